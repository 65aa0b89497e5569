//! `soloist run`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::{AddrMap, ColorSet};
use soloist_host::{
    cpu_list, format_size, parse_size, pin, Bandwidth, Control, Group, Guard, Host, HostError, Job,
    KeyValues, Outcome, Plan,
};

use super::colors::ColorArgs;
use crate::{Ctx, Misuse};

/// Run a command with memory of its own colours.
///
/// Every page that the command owns, from its first, comes from the colours
/// given, and so do those of its threads and children. Without colour flags
/// it gets one free colour and takes more as it needs them. Its exit status
/// is passed on (128 + the signal that killed it; 127 not found, 126 not
/// executable).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Processors to run on; colours come from their node unless `--node`.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,

    /// Memory set aside for it beforehand, known to be zero.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Bandwidth reserved for it on its processors: RATE[:write=RATE], such as
    /// 500MB/s; docs/guard.md. Needs `--cpus`.
    #[arg(long, value_name = "RATE", requires = "cpus")]
    bandwidth: Option<String>,

    /// Run in this group: joined if it exists, else made and removed again.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// The command and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,

    #[command(flatten)]
    colors: ColorArgs,
}

/// What is said with `--json`, on standard error: standard output is the
/// command's.
#[derive(Serialize)]
struct Report<'a> {
    group: &'a str,
    plan: Option<&'a Plan>,
    colors: &'a str,
    capacity: u64,
    pid: u32,
    exit: u8,
    signal: Option<i32>,
    stats: &'a KeyValues,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    let map = control.map()?;
    if let Some(cpus) = &args.cpus {
        pin(&cpu_list(cpus).map_err(|e| Misuse(format!("--cpus {cpus}: {e}")))?)?;
    }
    let seat = Seat::take(&args, &host, &control, &map)?;
    let done = seat.run(&args, ctx, &map);
    seat.leave(ctx)?;
    match done {
        Err(error) => exec_status(error),
        Ok(outcome) => Ok(ExitCode::from(outcome.code)),
    }
}

/// The group that the command runs in.
struct Seat {
    group: Group,
    /// How its colours were chosen; `None`: it was there before us.
    plan: Option<Plan>,
}

impl Seat {
    fn take(args: &Args, host: &Host, control: &Control, map: &AddrMap) -> Result<Self> {
        let existing = match &args.group {
            Some(name) => control.group(name).ok(),
            None => None,
        };
        if let Some(group) = existing {
            if !args.colors.is_empty() || args.reserve.is_some() || args.bandwidth.is_some() {
                let name = group.name();
                return Err(Misuse(format!("group {name} exists and has its colours: leave the colour flags out, or change it with `soloist group set {name}`")).into());
            }
            return Ok(Self { group, plan: None });
        }
        let plan = args.colors.plan(host, map, args.cpus.as_deref())?;
        let own = format!("run-{}", std::process::id());
        let group = control.create_group(args.group.as_deref().unwrap_or(&own))?;
        let reserve = |bytes| group.set_reserve(bytes);
        let set = plan
            .apply(&group, map)
            .and_then(|()| args.reserve.map_or(Ok(()), reserve))
            .and_then(|()| reserve_bandwidth(args, control, &group));
        match set {
            Ok(()) => Ok(Self {
                group,
                plan: Some(plan),
            }),
            Err(error) => {
                // The refusal is what matters; an empty group can stay if need be.
                let _ = group.remove();
                Err(error.into())
            }
        }
    }

    fn run(&self, args: &Args, ctx: &Ctx, map: &AddrMap) -> Result<Outcome, HostError> {
        let asked = self.plan.as_ref().is_some_and(|plan| plan.mem.is_some());
        if ctx.progress || (asked && !ctx.json) {
            self.say(&self.group.colors(map)?, map);
        }
        let job = Job::start(&self.group, &args.command)?;
        let pid = job.pid();
        let outcome = job.wait()?;
        let stats = self.group.stats()?;
        // Read afterwards: the group may have grown.
        let colors = self.group.colors(map)?;
        let capacity = colors.bytes(map);
        if ctx.json {
            let report = Report {
                group: self.group.name(),
                plan: self.plan.as_ref(),
                colors: &colors.to_string(),
                capacity,
                pid,
                exit: outcome.code,
                signal: outcome.signal,
                stats: &stats,
            };
            eprintln!("{}", serde_json::json!(report));
        } else {
            explain(&outcome, &stats, capacity);
        }
        Ok(outcome)
    }

    fn say(&self, colors: &ColorSet, map: &AddrMap) {
        let name = self.group.name();
        let size = format_size(colors.bytes(map));
        match &self.plan {
            Some(plan) => {
                let one = format_size(plan.capacity_of_one);
                let why = plan
                    .mem
                    .map(|mem| format!(" for --mem {}", format_size(mem)))
                    .unwrap_or_default();
                eprintln!(
                    "soloist: group {name}: {} x {one} = {size}{why}: {colors}",
                    plan.sets
                );
            }
            None => eprintln!("soloist: group {name}: {size}: {colors}"),
        }
    }

    /// Removes a group that we made, unless the command left somebody in it.
    fn leave(&self, ctx: &Ctx) -> Result<()> {
        if self.plan.is_none() {
            return Ok(());
        }
        let left = self.group.tasks()?;
        if left.is_empty() {
            self.group.remove()?;
        } else if !ctx.json {
            let name = self.group.name();
            eprintln!("soloist: group {name} stays: {} of its tasks still run; afterwards `soloist group rm {name}`", left.len());
        }
        Ok(())
    }
}

/// On the processors of `--cpus`; goes with the group.
fn reserve_bandwidth(args: &Args, control: &Control, group: &Group) -> Result<(), HostError> {
    let (Some(text), Some(cpus)) = (&args.bandwidth, &args.cpus) else {
        return Ok(());
    };
    let want: Bandwidth = text.parse()?;
    Guard::open(control)?.reserve_group(group, Some((&want, cpus)))
}

/// Says why a command died whose colours were exhausted.
fn explain(outcome: &Outcome, stats: &KeyValues, capacity: u64) {
    let count = |key: &str| {
        stats
            .get(key)
            .and_then(|v| v.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let killed = matches!(outcome.signal, Some(libc::SIGBUS | libc::SIGKILL));
    if killed && count("exhausted") > 0 {
        eprintln!("soloist: the command was killed: its colours, {} in all, had no page left; give it more with --mem or --colors, or let it take more with --exhaust grow", format_size(capacity));
    } else if count("spilled") > 0 {
        eprintln!(
            "soloist: {} pages are out of colour: the colours were exhausted (--exhaust spill)",
            count("spilled")
        );
    }
}

/// The shell's statuses for a command that could not be run.
fn exec_status(error: HostError) -> Result<ExitCode> {
    if let HostError::Exec { source, .. } = &error {
        eprintln!("soloist: {error}");
        let found = source.kind() != ErrorKind::NotFound;
        return Ok(ExitCode::from(if found { 126 } else { 127 }));
    }
    Err(error.into())
}
