//! `soloist bench silicon`: what a neighbour in the same bank costs, without a module.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_core::parse_size;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::{cpu_name, Host};
use soloist_machine::known;
use soloist_map::detect::cpu;
use soloist_map::detect::hardware::{Hardware, HardwareOptions};
use soloist_map::detect::meter::Meter;
use soloist_map::detect::noise::Noise;
use soloist_map::detect::sim::{SimPool, SimSource};
use soloist_map::detect::source::TimingSource;
use soloist_map::silicon::cores::{bind, RealCores};
use soloist_map::silicon::sets::{self, Sets};
use soloist_map::silicon::sim::{SimCores, Truth};
use soloist_map::silicon::{measure, Attack, Cores, Cost, Design, Measured};

use crate::cmd::compare;
use soloist_cli::number::whole;
use soloist_cli::{progress, table};
use soloist_cli::{status, Ctx, Misuse};

/// Huge pages that the simulated machine gives.
const SIM_PAGES: u64 = 64;

/// Measure whether a neighbour costs more in the same bank than in another.
///
/// Needs no module. Finds lines of two banks by timing. Then times a victim on one
/// processor beside a neighbour on another, in the same bank and in the other one,
/// many times in random order. Needs no physical addresses, so it also works in a
/// virtual machine. Says so if it sees no effect.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 measured, whatever it showed; 1 nothing could be measured; 2 misused";
    "soloist bench silicon",
    "soloist bench silicon --cpus 2,3 --blocks 200 --json",
])]
pub struct Args {
    /// Processors: the victim's and the neighbour's [default: the first two that
    /// this process may use].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Blocks: each has every condition once.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = whole::<u32>(20..=10_000))]
    blocks: u32,
    /// Memory to find lines in.
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "128M")]
    memory: u64,
    /// Give up looking for lines after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = whole::<u64>(..))]
    deadline: u64,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
    /// Measure this machine, simulated, instead.
    #[arg(long, value_name = "MACHINE")]
    simulate: Option<String>,
    /// Simulated: what a neighbour in the same bank adds to an access, ns.
    #[arg(long, value_name = "NS", default_value_t = 12.0, requires = "simulate")]
    same_bank: f64,
    /// Simulated: noise, as of `soloist map detect`.
    #[arg(long, default_value = "low", requires = "simulate")]
    noise: Noise,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    machine: String,
    virtual_machine: bool,
    /// Processors of the victim and its neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<(usize, usize)>,
    page_bytes: u64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<Sets>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    shown: bool,
    /// Why nothing could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Runs the command: done where it was measured, whatever came out.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let report = match &args.simulate {
        Some(machine) => simulated(args, machine, ctx)?,
        None => here(args, ctx)?,
    };
    if ctx.json {
        ctx.print_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(status(report.measured.is_some()))
}

fn simulated(args: &Args, machine: &str, ctx: &Ctx) -> Result<Report> {
    let known = known::find(machine)?;
    let mut memory = SimSource::new(
        &known,
        SimPool::unprivileged(21, SIM_PAGES),
        args.noise,
        args.seed,
    );
    let truth = Truth {
        same_bank_ns: args.same_bank,
        others_ns: 20.0,
        taken: 0.01,
        noise: args.noise,
    };
    let mut report = Report::of(format!("{machine}, simulated"), "cycles");
    report.page_bytes = 2 << 20;
    match find(&mut memory, args, ctx) {
        Ok(sets) => {
            let mut cores = SimCores::new(&memory, truth, args.seed);
            report.take(sets, &mut cores, args, ctx);
        }
        Err(why) => report.why = Some(why),
    }
    Ok(report)
}

fn here(args: &Args, ctx: &Ctx) -> Result<Report> {
    let cpus = compare::cpus(args.cpus.as_deref())?;
    let machine = cpu_name(&Host::live());
    let machine = machine.unwrap_or_else(|| "a processor without a name".to_owned());
    let mut report = Report::of(machine, cpu::UNIT);
    report.virtual_machine = !is_bare_metal(&Host::live());
    let &[victim, neighbour, ..] = cpus.as_slice() else {
        report.why = Some("there is no second processor for the neighbour".to_owned());
        return Ok(report);
    };
    let (victim, neighbour) = (victim as usize, neighbour as usize);
    report.cpus = Some((victim, neighbour));
    // Here already: memory is of the node that it is first touched from.
    bind(victim).map_err(|e| Misuse(format!("--cpus: processor {victim}: {e}")))?;
    let options = HardwareOptions {
        memory: Some(args.memory),
        ..HardwareOptions::default()
    };
    let mut memory = Hardware::new(&options)?;
    report.page_bytes = 1 << memory.page_shift();
    match find(&mut memory, args, ctx) {
        Ok(sets) => {
            let mut cores = RealCores::new(&memory, victim, neighbour)
                .with_context(|| format!("processor {victim}"))?;
            report.take(sets, &mut cores, args, ctx);
        }
        Err(why) => report.why = Some(why),
    }
    Ok(report)
}

/// Lines of two banks, or why there are none.
fn find(memory: &mut dyn TimingSource, args: &Args, ctx: &Ctx) -> Result<Sets, String> {
    let bar = progress::bar(ctx, 100, "looking for lines of two banks");
    let deadline = Duration::from_secs(args.deadline);
    let mut meter = Meter::new(memory, deadline, args.seed);
    let found = sets::find(&mut meter, &mut |share| {
        bar.set_position((100.0 * share) as u64);
    });
    bar.finish_and_clear();
    found.map_err(|why| why.to_string())
}

impl Report {
    /// Of which nothing is known yet.
    fn of(machine: String, unit: &'static str) -> Self {
        Self {
            machine,
            virtual_machine: false,
            cpus: None,
            page_bytes: 0,
            unit,
            sets: None,
            measured: None,
            shown: false,
            why: None,
        }
    }

    /// Measures what `sets` are good for.
    fn take(&mut self, sets: Sets, cores: &mut dyn Cores, args: &Args, ctx: &Ctx) {
        let bar = progress::bar(ctx, args.blocks as usize, "blocks");
        let design = Design {
            blocks: args.blocks as usize,
            seed: args.seed,
        };
        let measured = measure(cores, &sets, design, &mut |share| {
            bar.set_position((share * f64::from(args.blocks)) as u64);
        });
        bar.finish_and_clear();
        match measured {
            Ok(measured) => {
                self.shown = measured.is_shown();
                self.measured = Some(measured);
            }
            Err(why) => self.why = Some(why.to_string()),
        }
        self.sets = Some(sets);
    }
}

fn print(report: &Report) -> Result<()> {
    let inside = match report.virtual_machine {
        true => ", a virtual machine",
        false => "",
    };
    outln!("{}{inside}", report.machine)?;
    if let Some((victim, neighbour)) = report.cpus {
        outln!("victim on processor {victim}, neighbour on {neighbour}")?;
    }
    if let Some(sets) = &report.sets {
        outln!(
            "pairs of lines take {:.0} {unit}, in two rows of one bank {:.0} (spread {:.1})",
            sets.levels.fast,
            sets.levels.slow,
            sets.levels.sigma,
            unit = report.unit
        )?;
        outln!(
            "measured once more: {} of {} pairs of one bank conflict, {} of {} of two",
            sets.within,
            sets.checked,
            sets.across,
            sets.checked
        )?;
    }
    if let Some(why) = &report.why {
        outln!("Nothing can be measured here: {why}.")?;
        if report.page_bytes == 4096 {
            outln!(
                "The kernel gave no huge pages (echo madvise >/sys/kernel/mm/transparent_hugepage/enabled)."
            )?;
        }
        return Ok(());
    }
    let Some(measured) = &report.measured else {
        return Ok(());
    };
    let mut table = table([
        "NEIGHBOUR",
        "SAME BANK ns",
        "OTHER BANK ns",
        "ITS ACCESSES a µs",
        "ADDED ns (99 %)",
        "CHANCE",
    ]);
    table.add_row([
        "none".to_owned(),
        format!("{:.1}", measured.alone_ns),
        format!("{:.1}", measured.alone_ns),
    ]);
    for cost in &measured.costs {
        table.add_row([
            name(cost.attack).to_owned(),
            format!("{:.1}", cost.same_ns),
            format!("{:.1}", cost.other_ns),
            format!("{:.1}, {:.1}", cost.same_rate, cost.other_rate),
            format!(
                "{:+.1} ({:+.1} to {:+.1})",
                cost.added_ns.median, cost.added_ns.low, cost.added_ns.high
            ),
            format!("{:.5}", cost.chance),
        ]);
    }
    outln!("{table}")?;
    outln!(
        "medians of {} blocks; {} more were dropped, since the neighbour hardly ran",
        measured.blocks,
        measured.dropped
    )?;
    for cost in &measured.costs {
        outln!("{}", verdict(cost, measured.alone_ns))?;
    }
    Ok(())
}

fn name(attack: Attack) -> &'static str {
    match attack {
        Attack::Read => "reads",
        Attack::Write => "writes",
    }
}

/// What the figures say, in a sentence.
fn verdict(cost: &Cost, alone: f64) -> String {
    let who = format!("A neighbour that {}", name(cost.attack));
    let percent = |ns: f64| 100.0 * ns / alone;
    match cost.shown {
        true => format!(
            "{who}: shown, the same bank adds {:.1} % of an access alone.",
            percent(cost.added_ns.median)
        ),
        false => format!(
            "{who}: nothing is shown; if the same bank adds anything, it is less than {:.1} % (99 %).",
            percent(cost.added_ns.high.max(0.0))
        ),
    }
}
