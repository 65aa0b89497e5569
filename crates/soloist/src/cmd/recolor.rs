//! `soloist recolor`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_cli::complete;
use soloist_cli::Ctx;
use soloist_host::control::{Control, MoveReport};
use soloist_host::machine::Host;

use super::moves;

/// Move pages that running tasks have already into their group's colours.
///
/// The tasks go on running. The kernel migrates their private pages to frames of the
/// group; program text becomes a copy at its next access. Pages that can't move are
/// counted by cause. A process must be in a group: `soloist group set NAME --pid PID
/// --move` does both.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist recolor 1234", "soloist recolor video --json"])]
pub struct Args {
    /// A process, or a group: all its processes.
    #[arg(value_name = "PID|GROUP", add = complete::groups())]
    what: String,
}

/// What became of the pages.
#[derive(Serialize)]
struct Recolored<'a> {
    group: &'a str,
    pid: Option<i32>,
    #[serde(flatten)]
    report: MoveReport,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    let pid: Option<i32> = args.what.parse().ok();
    let group = match pid {
        Some(pid) => control.group_of_process(&host, pid)?,
        None => control.group(&args.what)?,
    };
    let report = group.recolor(pid)?;
    if ctx.json {
        ctx.print_json(&Recolored {
            group: group.name(),
            pid,
            report,
        })?;
    } else {
        let whose = match pid {
            Some(pid) => format!("process {pid} of group {}", group.name()),
            None => format!("group {}", group.name()),
        };
        moves::say(&whose, &report, ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}
