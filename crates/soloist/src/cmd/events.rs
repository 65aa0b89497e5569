//! `soloist events`.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use soloist_host::watch::Snapshot;
use soloist_host::{events, Control, Host, Removed};

use super::number::whole;
use super::tracefs::{self, Instance};
use crate::Ctx;

/// Follow what happens: colours exhausted or left, groups made, CPUs stopped.
///
/// Counters are compared between two looks. What a group had counted that was
/// removed in between, one of a short `soloist run` say, the module tells through
/// a trace of our own, which is removed at the end.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds between two looks.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1, value_parser = whole::<u64>(1..=3600))]
    interval: u64,

    /// Look so many times, then stop; 0: until interrupted.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0, value_parser = whole::<u64>(..))]
    count: u64,
}

/// Between two looks, how soon a signal is seen.
const NAP: Duration = Duration::from_millis(50);
/// Of each processor's buffer: a group takes a line of some 160 bytes.
const BUFFER_KIB: u32 = 64;

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    let mut removals = Removals::new();
    let mut before = Snapshot::take(&control)?;
    let mut looks = 0;
    while wait(Duration::from_secs(args.interval)) {
        let begun = tracefs::now()?.as_secs_f64();
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

/// Whether that time passed before somebody wanted us to end.
fn wait(time: Duration) -> bool {
    let until = Instant::now() + time;
    while !tracefs::ended() && Instant::now() < until {
        sleep(NAP.min(until.saturating_duration_since(Instant::now())));
    }
    !tracefs::ended()
}

/// Groups that were removed, as the module tells it.
struct Removals {
    /// `None`: it can't be had; that was said.
    trace: Option<Instance>,
    /// Of groups that a snapshot still showed.
    later: Vec<Removed>,
}

impl Removals {
    fn new() -> Self {
        let trace = Self::trace();
        if let Err(why) = &trace {
            errln!("soloist: {why:#}; of groups removed between two looks only that is told");
        }
        Self {
            trace: trace.ok(),
            later: Vec::new(),
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

    /// Those of before the snapshot `now`, which was begun at `begun`, in seconds of
    /// the monotonic clock.
    fn read(&mut self, begun: f64, now: &Snapshot) -> Result<Vec<Removed>> {
        let mut all = std::mem::take(&mut self.later);
        if let Some(trace) = &mut self.trace {
            trace.read(|line| all.extend(Removed::of_line(line)))?;
        }
        let before;
        (self.later, before) = all
            .into_iter()
            .partition(|last| last.at >= begun && now.groups.iter().any(|group| last.is(group)));
        Ok(before)
    }
}
