//! `soloist events`.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_host::observe::watch::Snapshot;
use soloist_host::observe::{events, Removed};
use soloist_trace::tracefs::{self, Instance};

use soloist_cli::number::whole;
use soloist_cli::Ctx;

/// Follow events: colours exhausted, pages out of colour, groups made, CPUs
/// stopped.
///
/// Compares counters at an interval. To see groups that end in between, such as those
/// of a short `soloist run`, it makes a trace instance and removes it at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist events", "soloist events --json"])]
pub struct Args {
    /// Seconds between updates.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1, value_parser = whole::<u64>(1..=3600))]
    interval: u64,

    /// Stop after N updates; 0: never.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0, value_parser = whole::<u64>(..))]
    count: u64,
}

/// Without a trace: how soon a signal is seen.
const NAP: Duration = Duration::from_millis(100);
/// Of each processor's buffer: a group takes a line of some 160 bytes.
const BUFFER_KIB: u32 = 64;

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    let mut removals = Removals::new();
    let mut before = Snapshot::take(&control)?;
    let mut looks = 0;
    while removals.wait(Duration::from_secs(args.interval))? {
        let begun = tracefs::now().as_secs_f64();
        let now = Snapshot::take(&control)?;
        for event in events(&before, &now, &removals.read(begun, &now)?) {
            match ctx.json {
                // One document a line, so that a pipe can follow too.
                true => outln!("{}", serde_json::to_string(&event)?)?,
                false => outln!("{event}")?,
            }
        }
        before = now;
        looks += 1;
        if looks == args.count {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Groups that were removed, as the module tells it.
struct Removals {
    /// `None`: it can't be had; that was said.
    trace: Option<Instance>,
    /// Told since the last snapshot, and those that it still showed.
    told: Vec<Removed>,
}

impl Removals {
    fn new() -> Self {
        let trace = Self::trace();
        if let Err(why) = &trace {
            errln!("soloist: {why:#}; of groups removed between two looks only that is told");
        }
        Self {
            trace: trace.ok(),
            told: Vec::new(),
        }
    }

    fn trace() -> Result<Instance> {
        let trace = Instance::new("events", BUFFER_KIB)?;
        let event = format!("soloist/{}", Removed::TRACEPOINT);
        ensure!(trace.has(&event), "the module has no {event}: it is older");
        trace.enable(&event, None)?;
        trace.start()?;
        Ok(trace)
    }

    /// Whether that time passed before somebody wanted us to end. Meanwhile the
    /// trace's buffers don't overflow.
    fn wait(&mut self, time: Duration) -> Result<bool> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if tracefs::ended() || left.is_zero() {
                return Ok(!tracefs::ended());
            }
            match &self.trace {
                Some(trace) => trace.wait(left)?,
                None => sleep(left.min(NAP)),
            }
            self.drain()?;
        }
    }

    fn drain(&mut self) -> Result<()> {
        let told = &mut self.told;
        match &mut self.trace {
            Some(trace) => Ok(trace.read(|line| told.extend(Removed::of_line(line)))?),
            None => Ok(()),
        }
    }

    /// Those of before the snapshot `now`, which was begun at `begun`, in seconds of
    /// the monotonic clock.
    fn read(&mut self, begun: f64, now: &Snapshot) -> Result<Vec<Removed>> {
        self.drain()?;
        let before;
        (self.told, before) = std::mem::take(&mut self.told)
            .into_iter()
            .partition(|last| last.at >= begun && now.groups.iter().any(|group| last.is(group)));
        Ok(before)
    }
}
