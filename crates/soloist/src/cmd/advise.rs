//! `soloist advise`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use soloist_host::machine::Host;
use soloist_machine::known;
use soloist_map::advice::facts::Facts;
use soloist_map::advice::origin::{self, Here};
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
    #[arg(
        long,
        value_name = "LIST",
        requires = "measure",
        conflicts_with = "from"
    )]
    cpus: Option<String>,
    /// Judge the colours of this machine's map instead of the loaded one; of a simulated
    /// machine, what was simulated.
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
    /// The machine that was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<&'a str>,
}

/// Of the file, what counts here.
#[derive(Default, Deserialize)]
struct Written {
    machine: Option<String>,
    slices: Option<Report>,
    slices_why: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let written = measured(args, &host, ctx)?;
    let simulated = written.simulated();
    let (measured, why) = (&written.slices, &written.slices_why);
    let facts = facts(args, &host, &written)?;
    let mut advice = advise(&facts, measured.as_ref());
    if let Some(why) = why.as_ref().filter(|_| measured.is_none()) {
        advice = advice.without_measurement(why.trim_end_matches('.'));
    }
    if ctx.json {
        ctx.print_json(&Page {
            advice: &advice,
            facts: &facts,
            measured: measured.is_some(),
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
fn facts(args: &Args, host: &Host, written: &Written) -> Result<Facts> {
    let Some(name) = &args.machine else {
        return Ok(Facts::of(host));
    };
    let machine = known::find(name).map_err(|e| Misuse(format!("--machine: {e}")))?;
    let map = map_for(&machine, None)?;
    let of = written.simulated().and(written.slices.as_ref());
    Ok(match of {
        Some(of) => Facts::simulated(&map, of.processors),
        None => Facts::with_map(host, Some(&map)),
    })
}

/// From a file, or at once, and why there is nothing.
fn measured(args: &Args, host: &Host, ctx: &Ctx) -> Result<Written> {
    if let Some(file) = &args.from {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        let written = Written::parse(&text).and_then(|written| {
            written.is_of(host, args.machine.as_deref())?;
            Ok(written)
        });
        return written.map_err(|why| Misuse(format!("{name}: {why}")).into());
    }
    if !args.measure {
        return Ok(Written::default());
    }
    let report = silicon::here(&silicon::Args::usual(args.cpus.clone()), ctx)?;
    Ok(Written {
        machine: None,
        slices: report.slices,
        slices_why: report.slices_why,
    })
}

impl Written {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("not what `soloist bench silicon --json` writes{why}");
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| wrong(&format!(": {e}")))?;
        if !value.is_object() {
            return Err(wrong(""));
        }
        let written: Self = serde_json::from_value(value).map_err(|e| wrong(&format!(": {e}")))?;
        match written.slices.is_none() && written.slices_why.is_none() {
            true => Err(
                "it has no slices: `soloist bench silicon --json` writes them without --only, \
                         or with --only slices"
                    .to_owned(),
            ),
            false => Ok(written),
        }
    }

    /// The machine that was simulated.
    fn simulated(&self) -> Option<&str> {
        origin::simulated(self.machine.as_deref()?)
    }

    /// Whether the figures are of this machine, or of the simulated one that is `named`.
    fn is_of(&self, host: &Host, named: Option<&str>) -> Result<(), String> {
        let Some(slices) = &self.slices else {
            return Ok(());
        };
        let machine = self.machine.as_deref().ok_or("it names no machine")?;
        let here = Here {
            machine: &silicon::name_of(host),
            processors: available(),
            named,
        };
        origin::objection(machine, slices.processors, here).map_or(Ok(()), Err)
    }
}

/// Processors of this machine that this process may use.
fn available() -> usize {
    std::thread::available_parallelism().map_or(usize::MAX, usize::from)
}

fn print(number: usize, item: &Item) -> Result<()> {
    let worth = match (item.is_there, item.worth) {
        (false, _) => "not here".to_owned(),
        (true, None) => "worth not known here".to_owned(),
        (true, Some(worth)) if worth.is_infinite() => "first, where one is free".to_owned(),
        (true, Some(worth)) if item.is_bound => {
            format!("at most {:.1} % of a memory access", 100.0 * worth)
        }
        (true, Some(worth)) if worth < 0.0 => {
            format!("costs {:.1} % of a memory access", -100.0 * worth)
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
