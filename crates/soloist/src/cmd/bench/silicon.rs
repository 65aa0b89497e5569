//! `soloist bench silicon`: what neighbours cost on this machine's own memory, without a
//! module.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_bench::advice::origin::SIMULATED;
use soloist_bench::banks::sets;
use soloist_bench::banks::sets::Sets;
use soloist_bench::banks::{Banks, LEAST_BANKS};
use soloist_bench::cores::real::{bind, RealCores};
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::cores::{Attack, Cores};
use soloist_bench::pages;
use soloist_bench::pages::real::RealCaching;
use soloist_bench::pages::sim::{SimCaching, Truth as PagesTruth};
use soloist_bench::pages::{Caching, Split, Tried};
use soloist_bench::picture;
use soloist_bench::report::Report as Slices;
use soloist_bench::slices::{Cell, Figures, Plan};
use soloist_bench::two_banks::{measure, Cost, Design, Measured};
use soloist_core::{format_size, parse_size};
use soloist_detect::cache::eviction;
use soloist_detect::cache::eviction::{Eviction, Sorted, POOL};
use soloist_detect::cache::llc::{geometry_of_host, CacheProbe, HardwareProbe};
use soloist_detect::meter::Meter;
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::{most_memory, Hardware, HardwareError, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::TimingSource;
use soloist_host::machine::guest::{emulator, is_bare_metal};
use soloist_host::machine::{cpu_name, processors_beside, Host};
use soloist_machine::{known, Machine};

mod channels;
mod cpus;
mod paced;
mod whole_pages;

use crate::cmd::compare;
use soloist_cli::number::{mask, memory, ns, whole};
use soloist_cli::{check_files, Ctx, Misuse};
use soloist_cli::{out, progress, table};

/// That the answer names.
pub(in crate::cmd) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Huge pages that the simulated machine gives.
const SIM_PAGES: u64 = 64;

/// Bytes of its last-level cache, least and most.
const SIM_CACHE: (u64, u64) = (128 << 10, 16 << 20);

/// Address bits of a page of 4 KiB inside a huge page.
const PAGE_BITS: u64 = 0x1f_f000;

/// Memory that lines are found in, and what is looked through for the cache at most.
const MEMORY: u64 = 128 << 20;
const MOST_MEMORY: u64 = 1 << 30;

/// Neighbours at most: as many as the largest experiment has.
const MOST_NEIGHBOURS: usize = 15;

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

/// What is printed.
#[derive(Default, Serialize)]
pub(in crate::cmd) struct Report {
    /// The version that wrote it.
    soloist: &'static str,
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
    /// Whether a co-runner in the same bank was shown to cost something.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<bool>,
    /// Why nothing could be measured with two banks.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The experiments in slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) slices: Option<Slices>,
    /// Why there are no slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) slices_why: Option<String>,
    /// Whole pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cmd) pages: Vec<Split>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) pages_why: Option<String>,
    /// Page colours of the last-level cache, by which pages push each other out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) cache: Option<Eviction>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) cache_why: Option<String>,
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
    let done = out::both(printed, report.draw(args.svg.as_deref()));
    let any = report.measured.is_some()
        || report.slices.is_some()
        || !report.pages.is_empty()
        || report.cache.is_some();
    let lacks_picture = args.svg.is_some() && report.slices.is_none();
    Ok(ctx.judged(done, any && !lacks_picture))
}

fn simulated(args: &Args, machine: &str, ctx: &Ctx) -> Result<Report> {
    let known = known::find(machine).map_err(|e| Misuse(format!("--simulate: {e}")))?;
    let mut memory = SimSource::new(
        &known,
        SimPool::unprivileged(21, SIM_PAGES),
        args.noise,
        args.seed,
    );
    let truth = Truth {
        same_bank_ns: args.same_bank,
        same_channel_ns: args.same_channel,
        others_ns: 20.0,
        taken: 0.01,
        noise: args.noise,
    };
    let others = known.topology.processors().saturating_sub(1);
    let neighbours = others.min(MOST_NEIGHBOURS);
    let mut report = Report::of(format!("{machine}{SIMULATED}"), "cycles");
    report.page_bytes = 2 << 20;
    if neighbours == 0 {
        report.measures_nothing("the machine has no second CPU for the co-runner", args);
        return Ok(report);
    }
    if args.wants(Part::TwoBanks) {
        match find(&mut memory, args, ctx) {
            Ok(sets) => {
                let mut cores = SimCores::new(&memory, truth, args.seed);
                report.take(sets, &mut cores, args, ctx);
            }
            Err(why) => report.why = Some(why),
        }
    }
    if args.only == Some(Part::TwoBanks) {
        return Ok(report);
    }
    let banks = find_banks(&mut memory, neighbours, args, ctx);
    if args.wants(Part::Slices) {
        let cores = SimCores::new(&memory, truth, args.seed);
        let cores = cores.with_neighbours(neighbours);
        let mut cores = cores.with_processors(known.topology.processors());
        report.slice(banks.as_ref(), &mut cores, args, ctx);
    }
    if args.wants(Part::Pages) {
        let knows_banks = banks.is_ok_and(|banks| banks.are_all());
        report.simulate_pages(&known, neighbours, knows_banks, args, ctx)?;
    }
    Ok(report)
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
    let mut report = Report::of_host(&host);
    if let Some(sign) = emulator(&host) {
        report.measures_nothing(&HardwareError::Emulated(sign).to_string(), args);
        return Ok(report);
    }
    let Some((&victim, neighbours)) = cpus.split_first().filter(|(_, n)| !n.is_empty()) else {
        report.measures_nothing("there is no second CPU for the co-runner", args);
        return Ok(report);
    };
    let in_cache = cpus::in_cache_of(&host, victim, neighbours);
    let (victim, neighbours) = (victim as usize, places(neighbours));
    report.cpus = Some((victim, neighbours[0]));
    // The victim's last: memory is of the node that it is first touched from.
    neighbours.iter().chain([&victim]).try_for_each(bind_to)?;
    let all = std::iter::once(victim).chain(neighbours.iter().copied());
    let mut memory = args.memory()?.with_cpus(all.collect());
    report.page_bytes = 1 << memory.page_shift();
    if args.wants(Part::TwoBanks) {
        match find(&mut memory, args, ctx) {
            Ok(sets) => report.take(sets, &mut real(&memory, victim, &neighbours)?, args, ctx),
            Err(why) => report.why = Some(why),
        }
    }
    if args.only == Some(Part::TwoBanks) {
        return Ok(report);
    }
    let banks = find_banks(&mut memory, neighbours.len(), args, ctx);
    if args.wants(Part::Slices) {
        let mut cores = real(&memory, victim, &neighbours)?;
        report.slice(banks.as_ref(), &mut cores, args, ctx);
    }
    if args.wants(Part::Pages) {
        bind(victim).with_context(|| format!("CPU {victim}"))?;
        let beside = args.beside(neighbours, &in_cache);
        report.whole_pages(&memory, &beside, banks.ok(), args, ctx);
    }
    Ok(report)
}

fn places(cpus: &[u32]) -> Vec<usize> {
    cpus.iter().map(|&cpu| cpu as usize).collect()
}

/// The processors, bound.
fn real<'a>(memory: &'a Hardware, victim: usize, neighbours: &[usize]) -> Result<RealCores<'a>> {
    let cores = RealCores::new(memory, victim, neighbours);
    let cores = cores.with_context(|| format!("CPU {victim}"))?;
    let of_node = processors_beside(&Host::live(), victim as u32);
    Ok(cores.with_processors(of_node))
}

impl Args {
    /// Those beside whole pages: whoever names processors may want to see what another cache
    /// makes of it.
    fn beside(&self, named: Vec<usize>, in_cache: &[u32]) -> Vec<usize> {
        match &self.cpus {
            Some(_) => named,
            None => places(in_cache),
        }
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
            let mut cpus = cpus::one_of_each_core(host, &compare::cpus(None)?);
            cpus.truncate(1 + MOST_NEIGHBOURS);
            if let Some(note) = cpus::of_one_core(host, &cpus) {
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
                if let Some(note) = cpus::of_one_core(host, &cpus) {
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

    fn plan(&self) -> Plan {
        Plan {
            blocks: self.blocks as usize,
            time: Duration::from_secs(self.seconds),
            seed: self.seed,
        }
    }

    /// How long page colours of the cache are looked for: beside the other experiments less.
    fn cache_deadline(&self) -> Duration {
        let whole = Duration::from_secs(self.deadline);
        match self.only {
            Some(Part::Pages) => whole,
            _ => whole / 4,
        }
    }

    /// What is tried of whole pages, and how long: beside the other experiments, a third.
    fn pages_plan(&self) -> (Tried, Plan) {
        let plan = self.plan();
        match self.only {
            Some(Part::Pages) => (Tried::All, plan),
            _ => {
                let time = plan.time / 3;
                (Tried::Colors, Plan { time, ..plan })
            }
        }
    }
}

/// Lines by bank, or why there are none; where only pages are wanted, by functions or not at
/// all.
fn find_banks(
    memory: &mut dyn TimingSource,
    neighbours: usize,
    args: &Args,
    ctx: &Ctx,
) -> Result<Banks, String> {
    let bar = progress::bar(ctx, 100, "");
    let deadline = Duration::from_secs(args.deadline);
    let mut tell = |what: &str, share: f64| {
        bar.set_message(what.to_owned());
        bar.set_position((100.0 * share) as u64);
    };
    let found = match args.wants(Part::Slices) {
        true => Banks::find(memory, neighbours, deadline, args.seed, &mut tell)
            .map_err(|why| why.to_string()),
        false => Banks::by_functions(memory, deadline, args.seed, &mut tell)
            .0
            .ok_or_else(|| "no bank functions were found".to_owned()),
    };
    bar.finish_and_clear();
    let banks = found?;
    match banks.sizes().is_empty() {
        true => Err(format!(
            "fewer than {LEAST_BANKS} banks: none would be private"
        )),
        false => Ok(banks),
    }
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

/// The name of this machine in a report.
pub(in crate::cmd) fn name_of(host: &Host) -> String {
    cpu_name(host).unwrap_or_else(|| "a processor without a name".to_owned())
}

impl Report {
    /// Of which nothing is known yet.
    fn of(machine: String, unit: &'static str) -> Self {
        Self {
            soloist: VERSION,
            machine,
            unit,
            ..Self::default()
        }
    }

    /// Of this machine, of which nothing is measured yet.
    fn of_host(host: &Host) -> Self {
        let mut report = Self::of(name_of(host), cpu::UNIT);
        report.virtual_machine = !is_bare_metal(host);
        report
    }

    /// Draws the slices, where a picture is wanted.
    fn draw(&self, file: Option<&Path>) -> Result<()> {
        match (file, &self.slices) {
            (None, _) => {}
            (Some(file), Some(slices)) => out::write(file, picture::svg(&self.machine, slices))?,
            (Some(file), None) => {
                errln!("soloist: {}: no slices, so no picture", file.display());
            }
        }
        Ok(())
    }

    /// Measures with whole pages, bound to the victim's processor.
    fn whole_pages(
        &mut self,
        memory: &Hardware,
        neighbours: &[usize],
        banks: Option<Banks>,
        args: &Args,
        ctx: &Ctx,
    ) {
        let Some(cache) = geometry_of_host() else {
            self.pages_why = Some("the kernel names no last-level cache".to_owned());
            return;
        };
        let mut probe = HardwareProbe::new(memory);
        let probe = probe.as_mut().map(|probe| probe as &mut dyn CacheProbe);
        let probe = probe.map_err(|why| why.to_string());
        let sorted = self.look_at_cache(probe, args, ctx);
        if neighbours.is_empty() {
            self.pages_why = Some("no other CPU shares the victim's last-level cache".to_owned());
            return;
        }
        let colors = banks.map_or_else(Default::default, |banks| banks.page_colors());
        let cores = RealCaching::new(memory, neighbours, cache.size);
        let mut cores = cores.with_bank_colors(colors);
        self.by_pages(&mut cores, sorted.as_ref(), args, ctx);
    }

    /// Measures whole pages of a simulated machine.
    fn simulate_pages(
        &mut self,
        known: &Machine,
        neighbours: usize,
        knows_banks: bool,
        args: &Args,
        ctx: &Ctx,
    ) -> Result<()> {
        let truth = PagesTruth {
            cache: args.cache,
            page: 4096,
            cache_bits: args.cache_bits,
            cache_hash: [0; 2],
            bank_bits: 0,
            same_bank_ns: args.same_bank,
            others_ns: 4.0,
            neighbours,
        };
        if truth.cache_colors() > truth.cache / truth.page {
            let why = "--cache-bits: more colours than the cache has pages: fewer bits, or a larger --cache";
            return Err(Misuse(why.to_owned()).into());
        }
        let cores = SimCaching::new(truth, 16 * args.cache, args.seed);
        let cores = cores.in_banks_of(&known.addr_map());
        let mut cores = match knows_banks {
            true => cores,
            false => cores.with_hidden_banks(),
        };
        let sorted = self.look_at_cache(Ok(&mut cores), args, ctx);
        self.by_pages(&mut cores, sorted.as_ref(), args, ctx);
        Ok(())
    }

    /// No part that is wanted can be measured.
    fn measures_nothing(&mut self, why: &str, args: &Args) {
        let because = |part| args.wants(part).then(|| why.to_owned());
        self.why = because(Part::TwoBanks);
        self.slices_why = because(Part::Slices);
        self.pages_why = because(Part::Pages);
    }

    /// Why not one experiment could be measured, where the reason is the same for all.
    fn why_nothing(&self) -> Option<&str> {
        let why = self.why.as_deref();
        let all = [&self.slices_why, &self.pages_why];
        why.filter(|_| all.iter().all(|other| other.as_deref() == why))
    }

    /// Measures in slices of `banks`.
    fn slice(
        &mut self,
        banks: Result<&Banks, &String>,
        cores: &mut dyn Cores,
        args: &Args,
        ctx: &Ctx,
    ) {
        let banks = match banks {
            Ok(banks) => banks,
            Err(why) => {
                self.slices_why = Some(why.clone());
                return;
            }
        };
        let bar = progress::bar(ctx, 100, "");
        let measured = Slices::measure(cores, banks, args.plan(), &mut |what, share| {
            bar.set_message(what.to_owned());
            bar.set_position((100.0 * share) as u64);
        });
        bar.finish_and_clear();
        match measured.cells.is_empty() {
            true => {
                self.slices_why = Some(
                    "co-runners hardly ran beside the victim: other tasks use the CPUs".to_owned(),
                );
            }
            false => self.slices = Some(measured),
        }
    }

    /// Counts the page colours of the last-level cache behind `probe`, and sorts pages by one
    /// of them.
    fn look_at_cache(
        &mut self,
        probe: Result<&mut dyn CacheProbe, String>,
        args: &Args,
        ctx: &Ctx,
    ) -> Option<Sorted> {
        let bar = progress::bar(ctx, 100, "looking which pages push each other out");
        let found = probe.and_then(|probe| {
            let mut tell = |share| bar.set_position((100.0 * share) as u64);
            let found = eviction::look(probe, args.seed, args.cache_deadline(), &mut tell);
            found.map_err(|why| why.to_string())
        });
        bar.finish_and_clear();
        let found = found.map_err(|why| self.cache_why = Some(why)).ok()?;
        self.cache = Some(found.0);
        found.1
    }

    /// Measures whole pages.
    fn by_pages(
        &mut self,
        cores: &mut dyn Caching,
        sorted: Option<&Sorted>,
        args: &Args,
        ctx: &Ctx,
    ) {
        let bar = progress::bar(ctx, 100, "whole pages");
        let (tried, plan) = args.pages_plan();
        let measured = pages::measure(cores, sorted, tried, plan, &mut |share| {
            bar.set_position((100.0 * share) as u64);
        });
        bar.finish_and_clear();
        match measured {
            Ok(splits) => self.pages = splits,
            Err(why) => self.pages_why = Some(why.to_string()),
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
                self.shown = Some(measured.is_shown());
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
    if let Some(why) = report.why_nothing() {
        return outln!("Nothing can be measured: {why}.");
    }
    print_two_banks(report)?;
    if let Some(why) = &report.slices_why {
        outln!("No slices of few banks: {why}.")?;
    }
    if let Some(slices) = &report.slices {
        print_slices(slices)?;
    }
    if let Some(why) = &report.pages_why {
        outln!("No whole pages: {why}.")?;
    }
    if let Some(why) = &report.cache_why {
        outln!("Page colours of the last-level cache are not known: {why}.")?;
    }
    if let Some(cache) = &report.cache {
        outln!("{}", cache.verdict())?;
    }
    whole_pages::print(&report.pages)
}

fn print_slices(slices: &Slices) -> Result<()> {
    match slices.functions.as_slice() {
        [] => outln!(
            "\n{}, but no function inside a huge page tells which pairs: channels come from a division, \
             or the host makes huge pages of small ones. So 16 banks were found pair by pair.",
            match slices.banks {
                Some(banks) => format!("About {banks:.0} banks by how often random pairs conflict"),
                None => "Some pairs of lines conflict, of nobody knows how many banks".to_owned(),
            }
        )?,
        functions => outln!(
            "\n{} banks by functions {} inside a huge page, and a class for each page.",
            slices.banks.unwrap_or_default(),
            functions.join(", ")
        )?,
    }
    outln!("ns of an access (p99, p99.9 of single ones), and MB/s of all co-runners:\n")?;
    let mut table = table([
        "BANKS",
        "CO-RUNNERS",
        "ALONE",
        "SHARED",
        "PRIVATE",
        "SAME",
        "MB/s SHARED, PRIVATE",
    ]);
    for cell in &slices.cells {
        table.add_row(row(cell));
    }
    outln!("{table}\n")?;
    let blocks = slices
        .cells
        .iter()
        .map(|cell| cell.blocks)
        .min()
        .unwrap_or(0);
    let dropped: usize = slices.cells.iter().map(|cell| cell.dropped).sum();
    outln!(
        "medians of {blocks} blocks or more; {dropped} were dropped, since a co-runner hardly ran\n"
    )?;
    slices.paced.iter().try_for_each(paced::print)?;
    slices.channels.iter().try_for_each(channels::print)?;
    for sentence in slices.sentences() {
        outln!("{sentence}")?;
    }
    Ok(())
}

/// ns of an access, and in brackets p99 and p99.9 of single ones.
fn tails(figures: &Figures) -> String {
    format!(
        "{:.0} ({:.0}, {:.0})",
        figures.ns, figures.p99_ns, figures.p999_ns
    )
}

fn row(cell: &Cell) -> [String; 7] {
    let rate = |figures: &Figures| figures.neighbours_bytes_per_second / 1e6;
    let pages = if cell.by_pages { ", by page" } else { "" };
    [
        format!("{}{pages}", cell.banks),
        cell.attack.neighbours(cell.neighbours),
        tails(&cell.alone),
        tails(&cell.shared),
        tails(&cell.private),
        tails(&cell.same),
        format!("{:.0}, {:.0}", rate(&cell.shared), rate(&cell.private)),
    ]
}

/// One neighbour, in the same bank or another.
fn print_two_banks(report: &Report) -> Result<()> {
    if let Some((victim, neighbour)) = report.cpus.filter(|_| report.sets.is_some()) {
        outln!("victim on CPU {victim}, co-runner on {neighbour}")?;
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
        outln!("Nothing can be measured with two banks: {why}.")?;
        if report.page_bytes == Host::live().page_size().bytes() {
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
        "CO-RUNNER",
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
        "medians of {} blocks; {} more were dropped, since the co-runner hardly ran",
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
        Attack::Both => "reads and writes",
    }
}

/// What the figures say, in a sentence.
fn verdict(cost: &Cost, alone: f64) -> String {
    let who = format!("A co-runner that {}", name(cost.attack));
    let percent = |ns: f64| 100.0 * ns / alone;
    match (cost.shown, cost.shown_less) {
        (true, _) => format!(
            "{who}: shown, the same bank adds {:.1} % of an access alone.",
            percent(cost.added_ns.median)
        ),
        (_, true) => format!(
            "{who}: shown, the same bank takes {:.1} % of an access alone away.",
            percent(-cost.added_ns.median)
        ),
        _ => format!(
            "{who}: nothing is shown; if the same bank adds anything, it is less than {:.1} % (99 %).",
            percent(cost.added_ns.high).max(0.1)
        ),
    }
}
