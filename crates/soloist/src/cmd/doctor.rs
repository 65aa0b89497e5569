//! `soloist doctor`.

use std::process::ExitCode;

use anyhow::Result;
use soloist_host::{examine, verdict, Host, Status};
use soloist_machine::known;

use crate::Ctx;

/// Say what this machine offers, and what to do about what it lacks.
///
/// Exits with 1 where something keeps Soloist from working here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Hold this machine's memory against the map of NAME (see `soloist map
    /// list`) where none is loaded.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let map = match &args.machine {
        Some(name) => Some(known::find(name)?.addr_map()),
        None => None,
    };
    let checks = examine(&Host::live(), map.as_ref());
    if ctx.json {
        ctx.print_json(&checks)?;
    } else {
        let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for check in &checks {
            let mark = match check.status {
                Status::Ok => ctx.paint(32, "ok  "),
                Status::Warn => ctx.paint(33, "warn"),
                Status::Fail => ctx.paint(31, "FAIL"),
            };
            outln!("{mark}  {:width$}  {}", check.name, check.found)?;
            if let Some(next) = &check.next {
                outln!("      {:width$}  -> {next}", "")?;
            }
        }
        outln!("{}", verdict(&checks))?;
    }
    let failed = checks.iter().any(|c| c.status == Status::Fail);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
