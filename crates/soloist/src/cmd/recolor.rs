//! `soloist recolor`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_cli::complete;
use soloist_cli::Ctx;
use soloist_host::control::{parse_rate, Control, MoveHow, MoveReport};
use soloist_host::machine::Host;

use super::moves;

/// Move present pages of running tasks into their group's colours.
///
/// The tasks go on running. The kernel migrates their private pages to frames of the
/// group; program text becomes a copy at its next access. The report counts pages that
/// can't move, by cause. A process must be in a group: `soloist group set NAME --pid
/// PID --move` does both.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist recolor 1234",
    "soloist recolor video --rate 100MB/s",
    "soloist recolor x264#3 --json",
])]
pub struct Args {
    /// A process, or a group with all its processes. RULE#NUMBER is a group that a rule
    /// made.
    #[arg(value_name = "PID|GROUP", add = complete::shown_groups())]
    what: String,

    /// Limit the rate, such as 100MB/s.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,

    /// Also interrupt isolated CPUs. Otherwise pages mapped there stay.
    #[arg(long)]
    isolated: bool,
}

/// What became of the pages.
#[derive(Serialize)]
struct Recolored {
    group: String,
    pid: Option<i32>,
    #[serde(flatten)]
    report: MoveReport,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    let how = MoveHow {
        rate: args.rate,
        isolated: args.isolated,
    };
    let done = match args.what.parse() {
        Ok(pid) => process(pid, &host, &control, how)?,
        Err(_) => group(&args.what, &control, how)?,
    };
    if ctx.json {
        ctx.print_json(&done)?;
    } else {
        let group = &done.group;
        let whose = match done.pid {
            Some(pid) => format!("process {pid} of group {group}"),
            None => format!("group {group}"),
        };
        moves::say(&whose, &done.report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn process(pid: i32, host: &Host, control: &Control, how: MoveHow) -> Result<Recolored> {
    let group = control.group_of_process(host, pid)?;
    Ok(Recolored {
        group: group.name().to_owned(),
        pid: Some(pid),
        report: group.recolor(Some(pid), how)?,
    })
}

fn group(name: &str, control: &Control, how: MoveHow) -> Result<Recolored> {
    let view = control.group_view(name)?;
    let report = match view.implicit {
        true => control.recolor_number(view.id.parse()?, how)?,
        false => control.group(name)?.recolor(None, how)?,
    };
    Ok(Recolored {
        group: view.name,
        pid: None,
        report,
    })
}
