//! `soloist advise`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_bench::advice::facts::Facts;
use soloist_bench::advice::{advise, Advice, Item};
use soloist_bench::report::Report;
use soloist_detect::cache::eviction::Eviction;
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_machine::file::read_text;
use soloist_machine::known;

use super::bench::silicon;
use soloist_cli::complete;
use soloist_cli::{Ctx, Misuse};

use super::map::map_for;
use super::up;

/// Say what isolation to use on this machine.
///
/// Looks at the host's nodes, colours of the loaded map, reservations and cache ways.
/// The worth of each comes from `soloist bench silicon`, run at once or from files.
/// What can't be measured so has figures of the model, which say so and rank behind measured
/// ones.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist advise",
    "soloist advise --measure",
    "soloist advise --from here.json",
    "soloist advise --from here.json --machine haswell",
])]
pub struct Args {
    /// Output of `soloist bench silicon --json` on this machine. Can be given several times.
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Measure now, which takes one to three minutes.
    #[arg(long, conflicts_with = "from")]
    measure: bool,
    /// CPUs to measure on, at most 16 [default: one of each core that this process may use].
    #[arg(
        long,
        value_name = "LIST",
        requires = "measure",
        conflicts_with = "from"
    )]
    cpus: Option<String>,
    /// Judge the colours of this machine's map instead of the loaded one; of a simulated
    /// machine, what was simulated.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    facts: &'a Facts,
    measured: bool,
    /// Page colours of the last-level cache, by which pages push each other out.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<&'a Eviction>,
    /// The machine that was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<&'a str>,
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let written = measured(args, &host, ctx)?;
    let simulated = written.simulated();
    let facts = facts(args, &host, &written)?;
    let advice = advise(&facts, &written);
    if ctx.json {
        ctx.print_json(&Page {
            advice: &advice,
            facts: &facts,
            measured: written.slices.is_some() || written.cache.is_some(),
            cache: written.cache.as_ref(),
            simulated,
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = simulated {
        outln!("Of {name}, simulated; nothing below is of this machine.")?;
    }
    outln!("{}", advice.answer)?;
    for (turn, item) in advice.items.iter().enumerate() {
        print(turn + 1, item)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Of this host, with the map that is judged; where a machine was simulated, of that one.
fn facts(args: &Args, host: &Host, written: &Report) -> Result<Facts> {
    let Some(name) = &args.machine else {
        let map = Control::open(host).and_then(|control| control.map()).ok();
        let facts = Facts::with_map(host, map.as_ref());
        return Ok(match map.as_ref().and_then(up::loaded_machine) {
            Some((_, machine)) => facts.described_by(&machine),
            None => facts,
        });
    };
    let machine = known::find(name).map_err(|e| Misuse(format!("--machine: {e}")))?;
    let map = map_for(&machine, None)?;
    let facts = match written.simulated() {
        Some(_) => Facts::simulated(&map, machine.topology.processors()),
        None => Facts::with_map(host, Some(&map)),
    };
    Ok(facts.described_by(&machine))
}

/// From files, or at once, and why there is nothing.
fn measured(args: &Args, host: &Host, ctx: &Ctx) -> Result<Report> {
    let mut all = Report::default();
    for file in &args.from {
        let (text, name) = read_text(file)?;
        let written = Report::parse(&text).and_then(|written| {
            written.is_of(host, args.machine.as_deref())?;
            all.take(written)
        });
        written.map_err(|why| Misuse(format!("{name}: {why}")))?;
    }
    if !args.measure {
        return Ok(all);
    }
    silicon::here(&silicon::Args::usual(args.cpus.clone()), ctx)
}

fn print(number: usize, item: &Item) -> Result<()> {
    let access = match item.is_beside {
        true => "memory access beside co-runners",
        false => "memory access",
    };
    let worth = match (item.is_there, item.worth) {
        (false, _) if !item.is_known => "not known".to_owned(),
        (false, _) => "not here".to_owned(),
        (true, _) if item.is_first => "first, where one is free".to_owned(),
        (true, None) => item.modelled.as_ref().map_or_else(
            || "worth not known here".to_owned(),
            |modelled| format!("modelled: takes {} % of a slowdown away", modelled.share()),
        ),
        (true, Some(worth)) if item.is_bound => {
            format!("at most {:.1} % of a {access}", 100.0 * worth)
        }
        (true, Some(worth)) if worth < 0.0 => {
            format!("costs {:.1} % of a {access}", -100.0 * worth)
        }
        (true, Some(worth)) => format!("saves {:.1} % of a {access}", 100.0 * worth),
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
