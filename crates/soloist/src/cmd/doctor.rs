//! `soloist doctor`.

use std::process::ExitCode;

use anyhow::Result;
use soloist_host::machine::Host;
use soloist_host::observe::{examine_for, verdict, Check, Status};

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::{behind, Ctx};

/// Check what this machine supports, and say what to do about what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 it can work here, 1 something keeps it from working, 2 misused";
    "soloist doctor",
    "soloist doctor --machine zen2 --json",
])]
pub struct Args {
    /// Check this machine against the map of this one if none is loaded.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let offered = args.machine.as_deref().map(named).transpose()?;
    let checks = examine_for(&host, offered.as_ref());
    let printed = match ctx.json {
        true => ctx.print_json(&checks),
        false => print(&checks, ctx),
    };
    let is_good = checks.iter().all(|c| c.status != Status::Fail);
    Ok(ctx.judged(printed, is_good))
}

fn print(checks: &[Check], ctx: &Ctx) -> Result<()> {
    let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for check in checks {
        let mark = match check.status {
            Status::Ok => ctx.paint(32, "ok  "),
            Status::Warn => ctx.paint(33, "warn"),
            Status::Fail => ctx.paint(31, "FAIL"),
        };
        let head = format!("{mark}  {:width$}  ", check.name);
        outln!("{}", behind(&head, &check.found))?;
        if let Some(next) = &check.next {
            let head = format!("      {:width$}  -> ", "");
            outln!("{}", behind(&head, next))?;
        }
    }
    outln!("{}", behind("", &verdict(checks)))
}
