//! `soloist advise`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use soloist_bench::advice::facts::Facts;
use soloist_bench::advice::origin;
use soloist_bench::advice::origin::Here;
use soloist_bench::advice::{advise, Advice, Item, Measured};
use soloist_bench::pages::Split;
use soloist_bench::report::Report;
use soloist_detect::cache::eviction::Eviction;
use soloist_host::control::Control;
use soloist_host::machine::Host;
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

/// Of the files, what counts here.
#[derive(Default, Deserialize)]
struct Written {
    machine: Option<String>,
    slices: Option<Report>,
    slices_why: Option<String>,
    cache: Option<Eviction>,
    cache_why: Option<String>,
    #[serde(default)]
    pages: Vec<Split>,
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let written = measured(args, &host, ctx)?;
    let simulated = written.simulated();
    let facts = facts(args, &host, &written)?;
    let advice = advise(&facts, &written.found());
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
fn facts(args: &Args, host: &Host, written: &Written) -> Result<Facts> {
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
fn measured(args: &Args, host: &Host, ctx: &Ctx) -> Result<Written> {
    let mut all = Written::default();
    for file in &args.from {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        let written = Written::parse(&text).and_then(|written| {
            written.is_of(host, args.machine.as_deref())?;
            all.take(written)
        });
        written.map_err(|why| Misuse(format!("{name}: {why}")))?;
    }
    if !args.measure {
        return Ok(all);
    }
    let report = silicon::here(&silicon::Args::usual(args.cpus.clone()), ctx)?;
    Ok(Written {
        machine: None,
        slices: report.slices,
        slices_why: report.slices_why,
        cache: report.cache,
        cache_why: report.cache_why.or(report.pages_why),
        pages: report.pages,
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
        let other = Self::by_another(&value);
        let written: Self = serde_json::from_value(value)
            .map_err(|e| other.unwrap_or_else(|| wrong("")) + &format!(": {e}"))?;
        let of_slices = written.slices.is_some() || written.slices_why.is_some();
        let of_cache = written.cache.is_some() || written.cache_why.is_some();
        match of_slices || of_cache {
            true => Ok(written),
            false => Err(
                "it has no slices and no count of cache colours: `soloist bench silicon --json` \
                         writes both without --only"
                    .to_owned(),
            ),
        }
    }

    /// What to say of figures that have other fields than this version's; `None`: it is no
    /// measurement.
    fn by_another(value: &serde_json::Value) -> Option<String> {
        let has_figures = ["slices", "pages", "cache"]
            .iter()
            .any(|part| value.get(part).is_some());
        let is_measured = value.get("machine").is_some() && has_figures;
        let by = match value.get("soloist").and_then(serde_json::Value::as_str) {
            Some(version) => format!("soloist {version}"),
            None => "an older soloist".to_owned(),
        };
        let own = silicon::VERSION;
        is_measured
            .then(|| format!("{by} wrote it, and this one, {own}, can't read it: measure again"))
    }

    /// Adds what another file has; of one machine, and nothing twice.
    fn take(&mut self, other: Self) -> Result<(), String> {
        let is_twice = self.slices.is_some() && other.slices.is_some()
            || self.cache.is_some() && other.cache.is_some();
        if is_twice {
            return Err("a file before it has the same experiment: give one of them".to_owned());
        }
        if self.machine.is_some() && self.machine != other.machine {
            return Err("it is of another machine than the file before it".to_owned());
        }
        self.machine = other.machine.or(self.machine.take());
        self.slices = self.slices.take().or(other.slices);
        self.slices_why = self.slices_why.take().or(other.slices_why);
        self.cache = self.cache.take().or(other.cache);
        self.cache_why = self.cache_why.take().or(other.cache_why);
        self.pages.extend(other.pages);
        Ok(())
    }

    fn found(&self) -> Measured<'_> {
        Measured {
            slices: self.slices.as_ref(),
            slices_why: self.slices_why.as_deref(),
            cache: self.cache.as_ref(),
            cache_why: self.cache_why.as_deref(),
            pages: &self.pages,
        }
    }

    /// The machine that was simulated.
    fn simulated(&self) -> Option<&str> {
        origin::simulated(self.machine.as_deref()?)
    }

    /// Processors that took part; `None`: nobody knows.
    fn processors(&self) -> Option<usize> {
        let of_slices = self.slices.as_ref().map(|slices| slices.processors);
        let of_pages = self.pages.first().map(|split| split.neighbours + 1);
        of_slices.or(of_pages)
    }

    /// Whether the figures are of this machine, or of the simulated one that is `named`.
    fn is_of(&self, host: &Host, named: Option<&str>) -> Result<(), String> {
        let Some(machine) = self.machine.as_deref() else {
            return match self.slices.is_none() && self.cache.is_none() {
                true => Ok(()),
                false => Err("it names no machine".to_owned()),
            };
        };
        let here = Here {
            machine: &silicon::name_of(host),
            processors: available(),
            named,
        };
        origin::objection(machine, self.processors().unwrap_or(1), here).map_or(Ok(()), Err)
    }
}

/// Processors of this machine that this process may use.
fn available() -> usize {
    std::thread::available_parallelism().map_or(usize::MAX, usize::from)
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
