//! `soloist bench silicon`: what neighbours cost on this machine's own memory, without a
//! module.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use soloist_bench::campaign::{Campaign, PagesPlan, Seats, Simulated, Tell, MOST_NEIGHBOURS};
use soloist_bench::cores::real::bind;
use soloist_bench::pages::Tried;
use soloist_bench::picture;
use soloist_bench::report::Report;
use soloist_bench::slices::Plan;
use soloist_bench::two_banks::Design;
use soloist_core::{format_size, parse_size};
use soloist_detect::cache::eviction::POOL;
use soloist_detect::cache::llc::geometry_of_host;
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::{most_memory, Hardware, HardwareError, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_host::machine::guest::emulator;
use soloist_host::machine::{in_cache_of, of_one_core, one_of_each_core, Host};
use soloist_machine::known;

mod channels;
mod paced;
mod print;
mod whole_pages;

use crate::cmd::compare;
use print::print;
use soloist_cli::number::{mask, memory, ns, whole};
use soloist_cli::{check_files, Ctx, Misuse};
use soloist_cli::{out, progress};

/// Bytes of a simulated last-level cache, least and most.
const SIM_CACHE: (u64, u64) = (128 << 10, 16 << 20);

/// Address bits of a page of 4 KiB inside a huge page.
const PAGE_BITS: u64 = 0x1f_f000;

/// Memory that lines are found in, and what is looked through for the cache at most.
const MEMORY: u64 = 128 << 20;
const MOST_MEMORY: u64 = 1 << 30;

/// Measure what co-runners cost in shared and in private banks.
///
/// Needs no module, no root and no physical addresses, so it also works in a virtual
/// machine. Finds banks by timing. A victim on one CPU follows pointers, and co-runners
/// on other CPUs read or write. The first experiment compares a co-runner in the same
/// bank with one in another bank. The second one confines all tasks to slices of few
/// banks, as many as a small machine has: shared, private, or all tasks in a quarter. The
/// third one colours whole pages, caches included: `--only pages` takes longer for it, and
/// tries address bits too. Conditions come many times in random order. The command reports
/// only effects that chance does not explain.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 measured, whatever it showed; 1 nothing could be measured; 2 misused";
    "soloist bench silicon",
    "soloist bench silicon --svg banks.svg --json >here.json",
    "soloist advise --from here.json",
    "soloist bench silicon --only two-banks --cpus 2,3 --blocks 200",
])]
pub struct Args {
    /// CPUs: the victim's, then the co-runners', at most 16 [default: one of each core that
    /// this process may use; with --only pages, of the victim's last-level cache].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Only this experiment.
    #[arg(long, value_name = "NAME")]
    only: Option<Part>,
    /// Time for the slices, after lines are found; the other experiments add as much.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = whole::<u64>(1..=86_400))]
    seconds: u64,
    /// Draw the cost of co-runners over the banks for each busy core into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Blocks: each has every condition once.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = whole::<u32>(20..=10_000))]
    blocks: u32,
    /// Memory to find lines in [default: 128M; for pages six times the last-level cache, up to
    /// 1G].
    #[arg(long, value_parser = memory, value_name = "SIZE")]
    memory: Option<u64>,
    /// Give up looking for lines after this many seconds, for page colours of the cache after a
    /// quarter of them; with --only pages after all.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = whole::<u64>(..))]
    deadline: u64,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
    /// Measure this machine, simulated, instead.
    #[arg(long, value_name = "MACHINE", conflicts_with_all = ["cpus", "memory"])]
    simulate: Option<String>,
    /// Simulated: what a co-runner in the same bank adds to an access, ns.
    #[arg(long, value_name = "NS", default_value_t = 12.0, requires = "simulate", value_parser = ns)]
    same_bank: f64,
    /// Simulated: what a co-runner on the same channel adds, ns.
    #[arg(long, value_name = "NS", default_value_t = 0.0, requires = "simulate", value_parser = ns)]
    same_channel: f64,
    /// Simulated: address bits that choose cache sets, as a mask; 0: none of a page's does.
    #[arg(long, value_name = "MASK", default_value_t = 0, requires = "simulate", value_parser = page_bits)]
    cache_bits: u64,
    /// Simulated: size of the last-level cache.
    #[arg(long, value_name = "SIZE", default_value = "1M", requires = "simulate", value_parser = cache)]
    cache: u64,
    /// Simulated: noise, as in `soloist map detect`.
    #[arg(long, default_value = "low", requires = "simulate")]
    noise: Noise,
}

/// Experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// One co-runner in the same bank, compared with one in another bank.
    TwoBanks,
    /// Few banks, paced co-runners, other channels.
    Slices,
    /// Whole pages, caches included.
    Pages,
}

/// Takes the size of a cache that each simulated page colour has a page of, at least.
fn cache(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|e| e.to_string())?;
    let (least, most) = SIM_CACHE;
    match bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!(
            "a power of two from {} to {} is wanted",
            format_size(least),
            format_size(most)
        )),
    }
}

/// Takes a mask of address bits that tell pages of 4 KiB in a huge page apart.
fn page_bits(text: &str) -> Result<u64, String> {
    let bits = mask(text)?;
    match bits & !PAGE_BITS == 0 {
        true => Ok(bits),
        false => Err(format!(
            "only bits 12 to 20 choose among the pages that are simulated: a mask within {PAGE_BITS:#x}"
        )),
    }
}

/// Runs the command: done where it was measured, whatever came out.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    // Said before a minute is spent.
    if let Some(file) = &args.svg {
        if !args.wants(Part::Slices) {
            let why = "--svg: only slices have a picture: leave --only out, or --only slices";
            return Err(Misuse(why.to_owned()).into());
        }
        check_files(&[("--svg", Some(file))])?;
    }
    let report = match &args.simulate {
        Some(machine) => simulated(args, machine, ctx)?,
        None => here(args, ctx)?,
    };
    let printed = match ctx.json {
        true => ctx.print_json(&report),
        false => print(&report),
    };
    // They took a minute: a full disk must not lose the figures, nor a closed pipe the picture.
    let done = out::both(printed, draw(&report, args.svg.as_deref()));
    let lacks_picture = args.svg.is_some() && report.slices.is_none();
    Ok(ctx.judged(done, report.has_any() && !lacks_picture))
}

/// Measures a machine whose truth is known.
fn simulated(args: &Args, machine: &str, ctx: &Ctx) -> Result<Report> {
    let known = known::find(machine).map_err(|e| Misuse(format!("--simulate: {e}")))?;
    let truth = Simulated {
        machine: &known,
        noise: args.noise,
        same_bank_ns: args.same_bank,
        same_channel_ns: args.same_channel,
        cache: args.cache,
        cache_bits: args.cache_bits,
    };
    if args.wants(Part::Pages) && !truth.has_room() {
        let why =
            "--cache-bits: more colours than the cache has pages: fewer bits, or a larger --cache";
        return Err(Misuse(why.to_owned()).into());
    }
    with_bar(ctx, |tell| {
        Ok(args.campaign().simulate(machine, &truth, tell))
    })
}

/// Runs `work`, which tells how far it is, with a bar on a terminal.
fn with_bar<T>(ctx: &Ctx, work: impl FnOnce(Tell<'_>) -> Result<T>) -> Result<T> {
    let bar = progress::bar(ctx, 100, "");
    let done = work(&mut |what, share| {
        bar.set_message(what.to_owned());
        bar.set_position((100.0 * share) as u64);
    });
    bar.finish_and_clear();
    done
}

fn bind_to(cpu: &usize) -> Result<()> {
    bind(*cpu).map_err(|e| {
        let why = match e.kind() {
            ErrorKind::InvalidInput => "there is none, or this process may not use it".to_owned(),
            _ => e.to_string(),
        };
        Misuse(format!("--cpus: CPU {cpu}: {why}")).into()
    })
}

/// Measures this machine.
pub(in crate::cmd) fn here(args: &Args, ctx: &Ctx) -> Result<Report> {
    let host = Host::live();
    let cpus = args.chosen(&host)?;
    let campaign = args.campaign();
    let mut report = Report::of_host(&host, cpu::UNIT);
    if let Some(sign) = emulator(&host) {
        campaign.measures_nothing(&HardwareError::Emulated(sign).to_string(), &mut report);
        return Ok(report);
    }
    let Some(seats) = args.seats(&host, &cpus) else {
        campaign.measures_nothing("there is no second CPU for the co-runner", &mut report);
        return Ok(report);
    };
    report.cpus = Some((seats.victim, seats.neighbours[0]));
    // The victim's last: memory is of the node that it is first touched from.
    let neighbours = seats.neighbours.iter();
    neighbours.chain([&seats.victim]).try_for_each(bind_to)?;
    let all = cpus.iter().map(|&cpu| cpu as usize);
    let mut memory = args.memory()?.with_cpus(all.collect());
    report.page_bytes = 1 << memory.page_shift();
    with_bar(ctx, |tell| {
        let done = campaign.measure(&mut memory, &seats, &mut report, tell);
        done.with_context(|| format!("CPU {}", seats.victim))
    })?;
    Ok(report)
}

/// Draws the slices, where a picture is wanted.
fn draw(report: &Report, file: Option<&Path>) -> Result<()> {
    match (file, &report.slices) {
        (None, _) => {}
        (Some(file), Some(slices)) => out::write(file, picture::svg(&report.machine, slices))?,
        (Some(file), None) => {
            errln!("soloist: {}: no slices, so no picture", file.display());
        }
    }
    Ok(())
}

impl Args {
    /// Where victim and co-runners run; `None`: there is no second CPU.
    fn seats(&self, host: &Host, cpus: &[u32]) -> Option<Seats> {
        let (&victim, neighbours) = cpus.split_first().filter(|(_, n)| !n.is_empty())?;
        let places = |cpus: &[u32]| cpus.iter().map(|&cpu| cpu as usize).collect();
        Some(Seats {
            victim: victim as usize,
            neighbours: places(neighbours),
            // Whoever names CPUs may want to see what another cache makes of it.
            beside_pages: match &self.cpus {
                Some(_) => places(neighbours),
                None => places(&in_cache_of(host, victim, neighbours)),
            },
        })
    }

    /// Memory to measure in, of the node that the caller is bound to.
    fn memory(&self) -> Result<Hardware> {
        let usual = || self.usual_memory().min(most_memory().unwrap_or(MEMORY));
        let options = HardwareOptions {
            memory: Some(self.memory.unwrap_or_else(usual)),
            unprivileged: true,
            ..HardwareOptions::default()
        };
        Ok(Hardware::new(&options)?)
    }

    /// Memory where nobody says how much: for whole pages as much as a count of cache colours
    /// looks through.
    fn usual_memory(&self) -> u64 {
        let cache = geometry_of_host().filter(|_| self.wants(Part::Pages));
        let wanted = cache.map_or(0, |cache| POOL * cache.size);
        wanted.clamp(MEMORY, MOST_MEMORY)
    }

    /// The victim's CPU, then those of the co-runners: as named, or one of each core.
    fn chosen(&self, host: &Host) -> Result<Vec<u32>> {
        let Some(list) = &self.cpus else {
            let mut cpus = one_of_each_core(host, &compare::cpus(None)?);
            cpus.truncate(1 + MOST_NEIGHBOURS);
            if let Some(note) = of_one_core(host, &cpus) {
                errln!("soloist: {note}");
            }
            return Ok(cpus);
        };
        let cpus = compare::cpus(Some(list))?;
        let why = match cpus.len() {
            1 => "the victim and a co-runner need two CPUs".to_owned(),
            n if n > 1 + MOST_NEIGHBOURS => {
                format!("{n} CPUs, and at most {} take part", 1 + MOST_NEIGHBOURS)
            }
            _ => {
                if let Some(note) = of_one_core(host, &cpus) {
                    errln!("soloist: --cpus {list}: {note}");
                }
                return Ok(cpus);
            }
        };
        Err(Misuse(format!("--cpus {list}: {why}")).into())
    }

    /// As without a flag, for another command that measures: on the CPUs that its user named,
    /// else on some of those that are usable.
    pub(in crate::cmd) fn usual(cpus: Option<String>) -> Self {
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            args: Args,
        }
        let mut args = <Flags as clap::Parser>::parse_from(["silicon"]).args;
        args.cpus = cpus;
        args
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    /// The experiments that are wanted. Beside the others, those with whole pages take a third
    /// of their time, and look for page colours of the cache a quarter of it.
    fn campaign(&self) -> Campaign {
        let plan = Plan {
            blocks: self.blocks as usize,
            time: Duration::from_secs(self.seconds),
            seed: self.seed,
        };
        let deadline = Duration::from_secs(self.deadline);
        let pages = match self.only {
            Some(Part::Pages) => PagesPlan {
                tried: Tried::All,
                plan,
                deadline,
            },
            _ => PagesPlan {
                tried: Tried::Colors,
                plan: Plan {
                    time: plan.time / 3,
                    ..plan
                },
                deadline: deadline / 4,
            },
        };
        let design = Design {
            blocks: plan.blocks,
            seed: self.seed,
        };
        Campaign {
            two_banks: self.wants(Part::TwoBanks).then_some(design),
            slices: self.wants(Part::Slices).then_some(plan),
            pages: self.wants(Part::Pages).then_some(pages),
            deadline,
            seed: self.seed,
        }
    }
}
