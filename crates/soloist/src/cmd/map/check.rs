//! `soloist map check`: a map held against the timing of memory.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use soloist_core::{parse_size, Left, PageSize};
use soloist_detect::check::{
    check as check_map, judged, why_unknown, Outcome, Rows, Unmeasured, Verdict,
};
use soloist_detect::choice::Counts;
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::Options;
use soloist_host::machine::edac;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::Host;
use soloist_machine::Machine;

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::out::put;
use soloist_cli::Ctx;

/// What `soloist map check` takes.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Machine: a name from `soloist map list` or a machine file.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    pub machine: String,
    /// Check against the simulated memory of this machine instead of the host.
    #[arg(long, value_name = "MACHINE")]
    pub simulate: Option<String>,
    /// Noise of the simulated memory.
    #[arg(long, default_value = "low", requires = "simulate")]
    pub noise: Noise,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    pub seed: u64,
    /// Show which colours pages of 4K, 16K or 64K leave [default: this kernel's pages].
    #[arg(long, value_name = "SIZE")]
    page_size: Option<PageSize>,
    /// Memory to choose pages from [default: three quarters of what is available,
    /// or 512M if physical addresses are unknown].
    #[arg(long, value_parser = parse_size, conflicts_with = "simulate")]
    pub memory: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = whole::<u64>(1..))]
    deadline: u64,
    /// In a virtual machine: trust the guest's physical addresses. Not for classes.
    #[arg(long, conflicts_with = "simulate")]
    pub trust_guest: bool,
}

impl Check {
    /// When to stop.
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }
}

/// Runs the command.
pub fn run(args: &Check, ctx: &Ctx) -> Result<ExitCode> {
    let machine = named(&args.machine)?;
    let left = Left::of(&super::map_for(&machine, args.page_size)?);
    let options = Options {
        deadline: Duration::from_secs(args.deadline),
        seed: args.seed,
        ..Options::default()
    };
    let counted = match &args.simulate {
        Some(_) => Counts::default(),
        None => {
            let counted = edac::counted(&Host::live());
            let trust = machine.about.trust;
            Counts::of(counted.as_ref(), &machine.map, machine.host.channels, trust)
        }
    };
    if !ctx.json {
        counted.said().for_each(|said| errln!("{said}"));
    }
    let found = match &args.simulate {
        Some(name) => {
            let other = named(name)?;
            let mut source = SimSource::new(&other, SimPool::all(), args.noise, args.seed);
            check_map(&mut source, &machine.map, &options)?
        }
        None => {
            let memory = HardwareOptions {
                memory: args.memory,
                trust_guest: args.trust_guest,
                ..HardwareOptions::default()
            };
            let (mut source, left) = Hardware::within(&memory, &options)?;
            check_map(&mut source, &machine.map, &left)?
        }
    };
    let is_guest = args.simulate.is_none() && !is_bare_metal(&Host::live()) && !args.trust_guest;
    let verdict = counted.over(judged(found.verdict, is_guest));
    let why = why_unknown(verdict, &found, is_guest);
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "machine": machine.about.name,
            "verdict": verdict,
            "why": why,
            "ranges": found.checked,
            "unmeasured": found.unmeasured,
            "counts": counted.said().collect::<Vec<_>>(),
            "left": left,
        })),
        false => put(&text_of(&machine, verdict, &found))
            .and_then(|()| left.iter().try_for_each(|left| outln!("{left}"))),
    };
    if let Some(why) = why.filter(|_| !ctx.json && !found.checked.is_empty()) {
        errln!("{why}");
    }
    Ok(ctx.judged(printed, verdict == Verdict::Fits))
}

/// Parts of memory that contradict a map and are listed: another machine's map is contradicted
/// nearly everywhere.
const MOST_DENIED: usize = 8;

fn text_of(machine: &Machine, verdict: Verdict, found: &Outcome) -> String {
    let mut out = String::new();
    for one in &found.checked {
        let ((a, b), (c, d)) = (one.conflicts, one.others);
        out.push_str(&format!(
            "{} to {}: {a} of {b} predicted conflicts and {c} of {d} others held; {} banks by the \
             map, {} by rate\n",
            one.start, one.end, one.banks, one.banks_by_rate
        ));
        out.extend(one.rows.iter().map(text_of_rows));
    }
    let mut denied = found.checked.iter().flat_map(|one| &one.denied);
    for (start, end) in denied.by_ref().take(MOST_DENIED) {
        out.push_str(&format!("contradicted: {start} to {end} is elsewhere\n"));
    }
    match denied.count() {
        0 => {}
        more => out.push_str(&format!(
            "contradicted: {more} more parts (--json lists them)\n"
        )),
    }
    for range in &found.unmeasured {
        let Unmeasured {
            node, start, end, ..
        } = range;
        let why = match range.mapped {
            true => "was not measured",
            false => "is in no range of the map",
        };
        out.push_str(&format!("node {node}: {start} to {end} {why}\n"));
    }
    let name = &machine.about.name;
    out.push_str(&match verdict {
        Verdict::Fits if found.rows_hold() => format!("{name} fits{}\n", how_far(found)),
        Verdict::Fits => format!(
            "{name}: its banks fit{}; rows are not checked\n",
            how_far(found)
        ),
        Verdict::Contradicted => format!("{name} does not fit\n"),
        Verdict::Unknown if found.checked.is_empty() => "nothing could be measured\n".into(),
        Verdict::Unknown => format!("whether {name} fits is not known\n"),
    });
    out
}

fn text_of_rows(rows: &Rows) -> String {
    let ((a, b), (c, d)) = (rows.same, rows.other);
    let untried = match rows.untried {
        0 => String::new(),
        n => format!("; {n} row functions were not tested"),
    };
    let wrong = match rows.hold {
        true => "",
        false => "; contradicted: its rows are others",
    };
    format!("rows: {a} of {b} pairs in one row are fast, {c} of {d} pairs in two rows are slow{untried}{wrong}\n")
}

/// How much of memory a map that fits may still be wrong in.
fn how_far(found: &Outcome) -> String {
    let checked = &found.checked;
    let parts: u32 = checked.iter().map(|one| one.swept.parts).sum();
    let bare: u32 = checked.iter().map(|one| one.swept.bare).sum();
    let unmeasured: u32 = found.unmeasured.iter().map(|range| range.parts).sum();
    if parts == 0 {
        return " inside a page: whether it does in all of memory is not known".into();
    }
    let most = checked.iter().map(|one| one.swept.may_be_wrong());
    let most = 100.0 * most.fold(0.0, f64::max);
    format!(
        ": {} of {} parts of memory were measured and none contradicts it; up to {most:.1} % \
         of a measured range may lie elsewhere all the same (95 % sure)",
        parts - bare,
        parts + unmeasured
    )
}
