//! `soloist run`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::{format_size, parse_size, AddrMap, ColorSet, NumList, MAX_CPUS};
use soloist_host::control::{ColorPlan, Control, KeyValues};
use soloist_host::machine::{movable_bytes, named_cpus, pin, Host};
use soloist_host::run::{Exit, Explained, Seat, SeatRequest};
use soloist_host::HostError;

use super::colors::ColorArgs;
use super::realtime::RealtimeArgs;
use super::up;
use soloist_cli::complete;
use soloist_cli::{Ctx, Misuse};

/// Run a command in memory colours.
///
/// Every page that the command, its threads and its children own comes from the given
/// colours, from the first page on. A number of colours, or `--mem`, is private. Other
/// groups may have listed ones too (`--colors 4-7`, `--bank-sets`, `--node`). Without
/// colour flags it gets one free colour, and takes more as it needs them. Without
/// `--cpus` it runs on the CPUs of its colours' node. `run` passes its exit status on.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "the command's own; 128 + the signal that killed it, 127 not found, 126 not\n\
     executable; before it ran 1 failed, 2 misused";
    "soloist run -- make -j4",
    "soloist run --colors 4 --cpus 2-3 -- ./control-loop",
    "soloist run --mem 512M --realtime --bandwidth 500MB/s --cpus 2 -- ./video",
    "soloist run --group video -- x264 --version",
    "soloist run --mem 64M --rt 80 --cpus 2 -- ./control-loop",
])]
pub struct Args {
    /// CPUs to run on; colours come from their node unless `--node` is given.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,

    /// Let it run on any node, even if its colours are on one.
    #[arg(long, conflicts_with = "cpus")]
    no_pin: bool,

    /// Memory to reserve for it beforehand, zeroed.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Bandwidth to reserve for it on its CPUs: RATE[:write=RATE], such as 500MB/s;
    /// docs/reference/guard.md. Needs `--cpus`.
    #[arg(long, value_name = "RATE", requires = "cpus")]
    bandwidth: Option<String>,

    /// Run it in this group.
    #[arg(long, value_name = "NAME", add = complete::groups())]
    group: Option<String>,

    /// Create the group if it does not exist, and remove it afterwards.
    #[arg(long, requires = "group")]
    create: bool,

    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", add = complete::command_line())]
    command: Vec<OsString>,

    #[command(flatten)]
    colors: ColorArgs,

    #[command(flatten)]
    realtime: RealtimeArgs,
}

/// What is said with `--json`, on standard error: standard output is the
/// command's.
#[derive(Serialize)]
struct Report<'a> {
    group: &'a str,
    plan: Option<&'a ColorPlan>,
    colors: &'a str,
    /// Nodes that the colours are on.
    nodes: &'a str,
    /// Processors that it was kept on; none: it was not.
    cpus: Option<String>,
    capacity: u64,
    pid: u32,
    exit: u8,
    signal: Option<i32>,
    stats: &'a KeyValues,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    args.realtime.check()?;
    let host = Host::live();
    let control = Control::open(&host)?;
    let map = control.map()?;
    let asked = asked_cpus(&args, &host)?;
    if let Some(cpus) = &asked {
        pin(cpus)?;
    }
    let mut seat = seat(&args, &host, &control, &map)?;
    let roams = args.no_pin || args.realtime.must_roam();
    if !ctx.json {
        up::warn(&map, &host);
    }
    let done = seat
        .keep_in_place(asked, roams, &host, &map)
        .and_then(|()| run_in(&seat, &args, ctx, &map));
    if let Some(left) = seat.leave(&host)?.filter(|_| !ctx.json) {
        errln!("soloist: {left}");
    }
    match done {
        Err(error) => exec_status(error, ctx),
        Ok(outcome) => Ok(ExitCode::from(outcome.code)),
    }
}

/// The CPUs of `--cpus`; `None`: it names none.
fn asked_cpus(args: &Args, host: &Host) -> Result<Option<NumList>, HostError> {
    let Some(list) = args.cpus.as_deref() else {
        return Ok(None);
    };
    let mut cpus = NumList::new(MAX_CPUS);
    for cpu in named_cpus(host, Some(list))? {
        cpus.insert(cpu);
    }
    Ok(Some(cpus))
}

/// The group of `--group`, or one that is made for the command.
fn seat(args: &Args, host: &Host, control: &Control, map: &AddrMap) -> Result<Seat> {
    let existing = match &args.group {
        Some(name) => Seat::find(control, name, args.create)?,
        None => None,
    };
    if let Some(group) = existing {
        if !args.colors.is_empty() || args.reserve.is_some() || args.bandwidth.is_some() {
            let name = group.name();
            return Err(Misuse(format!("group {name} exists and has its colours: leave the colour flags out, or change it with `soloist group set {name}`")).into());
        }
        return Ok(Seat::join(group));
    }
    let colors = args.colors.request(host, map, args.cpus.as_deref())?;
    let bandwidth = match (&args.bandwidth, &args.cpus) {
        (Some(text), Some(cpus)) => Some((text.parse()?, cpus.as_str())),
        _ => None,
    };
    let request = SeatRequest {
        name: args.group.as_deref(),
        colors: &colors,
        reserve: args.reserve,
        bandwidth,
    };
    Ok(Seat::make(&request, host, control, map)?)
}

/// Runs the command, and says what came of it.
fn run_in(seat: &Seat, args: &Args, ctx: &Ctx, map: &AddrMap) -> Result<Exit, HostError> {
    let asked = seat.plan.as_ref().is_some_and(|plan| plan.mem.is_some());
    if !ctx.json && (ctx.progress || asked) {
        say(seat, &seat.group.colors(map)?, map);
    }
    if !ctx.json {
        if let Some(words) = seat.distance(&Host::live(), map) {
            errln!("soloist: {words}");
        }
    }
    let ran = seat.run(&args.command, args.realtime.asked().as_ref(), map)?;
    let (outcome, group) = (ran.outcome, seat.group.name());
    let Some(stats) = &ran.stats else {
        match ctx.json {
            true => errln!(
                "{}",
                serde_json::json!({ "group": group, "removed": true, "exit": outcome.code })
            ),
            false => errln!(
                "soloist: group {group} was removed while the command ran: from then on it was in no colour"
            ),
        }
        return Ok(outcome);
    };
    let capacity = ran.colors.bytes(map);
    if ctx.json {
        let report = serde_json::json!(Report {
            group,
            plan: seat.plan.as_ref(),
            colors: &ran.colors.to_string(),
            nodes: &seat.nodes.to_string(),
            cpus: seat.cpus.as_ref().map(NumList::to_string),
            capacity,
            pid: ran.pid,
            exit: outcome.code,
            signal: outcome.signal,
            stats,
        });
        errln!("{report}");
    } else {
        let explained = Explained {
            how: ran.exhaust,
            capacity,
            nodes: &seat.nodes,
            movable: movable_bytes(&Host::live(), &seat.nodes),
        };
        for sentence in explained.sentences(&outcome, &ran.during) {
            errln!("soloist: {sentence}");
        }
    }
    Ok(outcome)
}

fn say(seat: &Seat, colors: &ColorSet, map: &AddrMap) {
    let name = seat.group.name();
    let size = format_size(colors.bytes(map));
    match &seat.plan {
        Some(plan) => {
            let one = format_size(plan.capacity_of_one);
            let why = plan
                .mem
                .map(|mem| format!(" for --mem {}", format_size(mem)))
                .unwrap_or_default();
            // More than planned where others have memory in the first ones.
            let sets = colors
                .sets()
                .map_or(plan.sets, |sets| sets.iter().count() as u32);
            errln!("soloist: group {name}: {sets} x {one} = {size}{why}: {colors}");
        }
        None => errln!("soloist: group {name}: {size}: {colors}"),
    }
    let nodes = &seat.nodes;
    match &seat.cpus {
        Some(cpus) => errln!("soloist: memory on node {nodes}, kept on CPUs {cpus}"),
        None => errln!("soloist: memory on node {nodes}, on any CPU"),
    }
}

/// The shell's statuses for a command that could not be run.
fn exec_status(error: HostError, ctx: &Ctx) -> Result<ExitCode> {
    let code = match &error {
        HostError::Exec { source, .. } if source.kind() == ErrorKind::NotFound => 127,
        HostError::Exec { .. } => 126,
        _ => return Err(error.into()),
    };
    ctx.fail(&error.into());
    Ok(ExitCode::from(code))
}
