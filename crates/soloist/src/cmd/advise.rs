//! `soloist advise`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use soloist_host::machine::Host;
use soloist_machine::known;
use soloist_map::advice::facts::Facts;
use soloist_map::advice::{advise, Advice, Item};
use soloist_map::silicon::report::Report;

use super::bench::silicon;
use soloist_cli::complete;
use soloist_cli::{Ctx, Misuse};

use super::map::map_for;

/// Say what isolation to use on this machine.
///
/// Looks at the host's nodes, colours of the loaded map, reservations and cache ways.
/// The worth of each comes from `soloist bench silicon`, run at once or from a file.
/// Without a measurement, `advise` ranks nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist advise",
    "soloist advise --measure",
    "soloist advise --from here.json --machine haswell",
])]
pub struct Args {
    /// Output of `soloist bench silicon --json` on this machine.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Measure now, which takes about a minute.
    #[arg(long, conflicts_with = "from")]
    measure: bool,
    /// CPUs to measure on [default: all that this process may use, at most 16].
    #[arg(long, value_name = "LIST", requires = "measure")]
    cpus: Option<String>,
    /// Judge the colours of this machine's map instead of the loaded one.
    #[arg(long, value_name = "NAME", add = complete::machines())]
    machine: Option<String>,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    facts: &'a Facts,
    measured: bool,
}

/// Of the file, what counts here.
#[derive(Deserialize)]
struct Written {
    slices: Option<Report>,
    slices_why: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let facts = match &args.machine {
        Some(name) => Facts::with_map(&host, Some(&map_for(&known::find(name)?, None)?)),
        None => Facts::of(&host),
    };
    let (measured, why) = measured(args, ctx)?;
    let mut advice = advise(&facts, measured.as_ref());
    if let Some(why) = why.filter(|_| measured.is_none()) {
        advice = advice.without_measurement(why.trim_end_matches('.'));
    }
    if ctx.json {
        ctx.print_json(&Page {
            advice: &advice,
            facts: &facts,
            measured: measured.is_some(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    outln!("{}", advice.answer)?;
    for (turn, item) in advice.items.iter().enumerate() {
        print(turn + 1, item)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// From a file, or at once, and why there is nothing.
fn measured(args: &Args, ctx: &Ctx) -> Result<(Option<Report>, Option<String>)> {
    if let Some(file) = &args.from {
        let name = || file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(name)?;
        let wrong = |e: serde_json::Error| {
            Misuse(format!(
                "{}: not what `soloist bench silicon --json` writes: {e}",
                name()
            ))
        };
        let written: Written = serde_json::from_str(&text).map_err(wrong)?;
        if written.slices.is_none() && written.slices_why.is_none() {
            let why =
                "it has no slices: `soloist bench silicon --json` without --only two-banks has";
            return Err(Misuse(format!("{}: {why}", name())).into());
        }
        return Ok((written.slices, written.slices_why));
    }
    if !args.measure {
        return Ok((None, None));
    }
    let report = silicon::here(&silicon::Args::usual(args.cpus.clone()), ctx)?;
    Ok((report.slices, report.slices_why))
}

fn print(number: usize, item: &Item) -> Result<()> {
    let worth = match (item.is_there, item.worth) {
        (false, _) => "not here".to_owned(),
        (true, None) => "worth not known here".to_owned(),
        (true, Some(worth)) if worth.is_infinite() => "first, where one is free".to_owned(),
        (true, Some(worth)) if item.is_bound => {
            format!("at most {:.1} % of a memory access", 100.0 * worth)
        }
        (true, Some(worth)) => format!("saves {:.1} % of a memory access", 100.0 * worth),
    };
    outln!("\n{number}. {}: {worth}", item.name)?;
    outln!("   {}", item.says)?;
    if item.is_there {
        outln!("   costs: {}", item.costs)?;
        for command in &item.commands {
            outln!("     {command}")?;
        }
    }
    Ok(())
}
