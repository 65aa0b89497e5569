//! The experiments one after the other, on this machine or on a simulated one.
//!
//! What can't be measured leaves its reason in the report, and the next experiment goes on.

use std::io;
use std::time::Duration;

use soloist_detect::cache::eviction::{self, Sorted};
use soloist_detect::cache::llc::{geometry_of_host, CacheProbe, HardwareProbe};
use soloist_detect::meter::Meter;
use soloist_detect::timing::hardware::Hardware;
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::TimingSource;
use soloist_host::machine::{processors_beside, Host};
use soloist_machine::Machine;

use crate::banks::sets::{self, Sets};
use crate::banks::{Banks, LEAST_BANKS};
use crate::cores::real::{bind, RealCores};
use crate::cores::sim::{SimCores, Truth};
use crate::cores::Cores;
use crate::in_slices::InSlices;
use crate::origin::SIMULATED;
use crate::pages::real::RealCaching;
use crate::pages::sim::{SimCaching, Truth as PagesTruth};
use crate::pages::{self, Caching, Tried};
use crate::report::Report;
use crate::slices::Plan;
use crate::two_banks::{self, Design};

/// Neighbours at most: as many as the largest experiment has.
pub const MOST_NEIGHBOURS: usize = 15;

/// Huge pages that a simulated machine gives, their size as a power of two, and bytes of the
/// pages that the kernel colours there.
const SIM_PAGES: u64 = 64;
const SIM_PAGE_SHIFT: u32 = 21;
const SIM_FRAME: u64 = 4096;

/// Is told what is done, and which share of it, 0 to 1.
pub type Tell<'a> = &'a mut dyn FnMut(&str, f64);

/// Which experiments are wanted, and how long each may take.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// One co-runner in the same bank, compared with one in another bank.
    pub two_banks: Option<Design>,
    /// Few banks, paced co-runners, other channels.
    pub slices: Option<Plan>,
    /// Whole pages, caches included.
    pub pages: Option<PagesPlan>,
    /// How long lines of known banks are looked for.
    pub deadline: Duration,
    /// Seed of all random choices.
    pub seed: u64,
}

/// How whole pages are measured.
#[derive(Debug, Clone, Copy)]
pub struct PagesPlan {
    /// Divisions of the pages that are tried.
    pub tried: Tried,
    /// How often, and how long.
    pub plan: Plan,
    /// How long page colours of the cache are looked for.
    pub deadline: Duration,
}

/// Processors of this machine that take part.
#[derive(Debug, Clone)]
pub struct Seats {
    /// The victim's.
    pub victim: usize,
    /// Those of the co-runners.
    pub neighbours: Vec<usize>,
    /// Those of the co-runners beside whole pages.
    pub beside_pages: Vec<usize>,
}

impl Seats {
    /// The processors, and this thread bound to the victim's.
    fn cores<'a>(&self, memory: &'a Hardware) -> io::Result<RealCores<'a>> {
        let cores = RealCores::new(memory, self.victim, &self.neighbours)?;
        let of_node = processors_beside(&Host::live(), self.victim as u32);
        Ok(cores.with_processors(of_node))
    }
}

/// A machine whose truth is known.
#[derive(Debug, Clone, Copy)]
pub struct Simulated<'a> {
    /// Its map and processors.
    pub machine: &'a Machine,
    /// Noise of its clock.
    pub noise: Noise,
    /// Time that a co-runner in the same bank adds to an access, ns.
    pub same_bank_ns: f64,
    /// Time that a co-runner on the same channel adds, ns.
    pub same_channel_ns: f64,
    /// Bytes of its last-level cache.
    pub cache: u64,
    /// Address bits that choose cache sets, as a mask.
    pub cache_bits: u64,
}

impl Simulated<'_> {
    fn neighbours(&self) -> usize {
        let others = self.machine.topology.processors().saturating_sub(1);
        others.min(MOST_NEIGHBOURS)
    }

    fn cores<'a>(&self, memory: &'a SimSource, seed: u64) -> SimCores<'a> {
        let truth = Truth {
            same_bank_ns: self.same_bank_ns,
            same_channel_ns: self.same_channel_ns,
            others_ns: 20.0,
            taken: 0.01,
            noise: self.noise,
        };
        SimCores::new(memory, truth, seed)
    }

    fn pages(&self) -> PagesTruth {
        PagesTruth {
            cache: self.cache,
            page: SIM_FRAME,
            cache_bits: self.cache_bits,
            cache_hash: [0; 2],
            bank_bits: 0,
            same_bank_ns: self.same_bank_ns,
            others_ns: 4.0,
            neighbours: self.neighbours(),
        }
    }

    /// Whether the cache has a page of each of its colours.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pages().cache_colors() <= self.cache / SIM_FRAME
    }
}

impl Campaign {
    /// Measures this machine's memory. This thread is bound to the victim's processor.
    ///
    /// # Errors
    /// When it can't be.
    pub fn measure(
        &self,
        memory: &mut Hardware,
        seats: &Seats,
        report: &mut Report,
        tell: Tell<'_>,
    ) -> io::Result<()> {
        if let Some(design) = self.two_banks {
            match self.lines_of_two_banks(memory, tell) {
                Ok(sets) => report.compare(sets, &mut seats.cores(memory)?, design, tell),
                Err(why) => report.why = Some(why),
            }
        }
        if !self.wants_banks() {
            return Ok(());
        }
        let banks = self.banks(memory, seats.neighbours.len(), tell);
        if let Some(plan) = self.slices {
            report.slice(banks.as_ref(), &mut seats.cores(memory)?, plan, tell);
        }
        if let Some(plan) = self.pages {
            bind(seats.victim)?;
            let look = Look {
                plan,
                seed: self.seed,
            };
            look.of_host(report, memory, &seats.beside_pages, banks.ok(), tell);
        }
        Ok(())
    }

    /// Measures the memory of a simulated machine.
    #[must_use]
    pub fn simulate(&self, name: &str, truth: &Simulated<'_>, tell: Tell<'_>) -> Report {
        let pool = SimPool::unprivileged(SIM_PAGE_SHIFT, SIM_PAGES);
        let mut memory = SimSource::new(truth.machine, pool, truth.noise, self.seed);
        let mut report = Report::of(format!("{name}{SIMULATED}"), "cycles");
        report.page_bytes = 1 << SIM_PAGE_SHIFT;
        let neighbours = truth.neighbours();
        if neighbours == 0 {
            self.measures_nothing(
                "the machine has no second CPU for the co-runner",
                &mut report,
            );
            return report;
        }
        if let Some(design) = self.two_banks {
            match self.lines_of_two_banks(&mut memory, tell) {
                Ok(sets) => {
                    let mut cores = truth.cores(&memory, self.seed);
                    report.compare(sets, &mut cores, design, tell);
                }
                Err(why) => report.why = Some(why),
            }
        }
        if !self.wants_banks() {
            return report;
        }
        let banks = self.banks(&mut memory, neighbours, tell);
        if let Some(plan) = self.slices {
            let cores = truth.cores(&memory, self.seed).with_neighbours(neighbours);
            let processors = truth.machine.topology.processors();
            let mut cores = cores.with_processors(processors);
            report.slice(banks.as_ref(), &mut cores, plan, tell);
        }
        if let Some(plan) = self.pages {
            let look = Look {
                plan,
                seed: self.seed,
            };
            let knows_banks = banks.is_ok_and(|banks| banks.are_all());
            look.of_simulated(&mut report, truth, knows_banks, tell);
        }
        report
    }

    /// No part that is wanted can be measured.
    pub fn measures_nothing(&self, why: &str, report: &mut Report) {
        let because = |is_wanted: bool| is_wanted.then(|| why.to_owned());
        report.why = because(self.two_banks.is_some());
        report.slices_why = because(self.slices.is_some());
        report.pages_why = because(self.pages.is_some());
    }

    /// Whether an experiment needs all banks.
    fn wants_banks(&self) -> bool {
        self.slices.is_some() || self.pages.is_some()
    }

    /// Lines of two banks, or why there are none.
    fn lines_of_two_banks(
        &self,
        memory: &mut dyn TimingSource,
        tell: Tell<'_>,
    ) -> Result<Sets, String> {
        let mut meter = Meter::new(memory, self.deadline, self.seed);
        let mut tell = |share| tell("looking for lines of two banks", share);
        sets::find(&mut meter, &mut tell).map_err(|why| why.to_string())
    }

    /// Lines by bank, or why there are none; where only pages are wanted, by functions or not
    /// at all.
    fn banks(
        &self,
        memory: &mut dyn TimingSource,
        neighbours: usize,
        tell: Tell<'_>,
    ) -> Result<Banks, String> {
        let banks = match self.slices {
            Some(_) => Banks::find(memory, neighbours, self.deadline, self.seed, tell)
                .map_err(|why| why.to_string())?,
            None => Banks::by_functions(memory, self.deadline, self.seed, tell)
                .0
                .ok_or_else(|| "no bank functions were found".to_owned())?,
        };
        match banks.sizes().is_empty() {
            true => Err(format!(
                "fewer than {LEAST_BANKS} banks: none would be private"
            )),
            false => Ok(banks),
        }
    }
}

impl Report {
    /// Compares a co-runner in the same bank with one in another bank.
    fn compare(&mut self, sets: Sets, cores: &mut dyn Cores, design: Design, tell: Tell<'_>) {
        let mut tell = |share| tell("one co-runner", share);
        match two_banks::measure(cores, &sets, design, &mut tell) {
            Ok(measured) => {
                self.shown = Some(measured.is_shown());
                self.measured = Some(measured);
            }
            Err(why) => self.why = Some(why.to_string()),
        }
        self.sets = Some(sets);
    }

    /// Measures in slices of `banks`.
    fn slice(
        &mut self,
        banks: Result<&Banks, &String>,
        cores: &mut dyn Cores,
        plan: Plan,
        tell: Tell<'_>,
    ) {
        let banks = match banks {
            Ok(banks) => banks,
            Err(why) => {
                self.slices_why = Some(why.clone());
                return;
            }
        };
        let measured = InSlices::measure(cores, banks, plan, tell);
        match measured.cells.is_empty() {
            true => {
                self.slices_why = Some(
                    "co-runners hardly ran beside the victim: other tasks use the CPUs".to_owned(),
                );
            }
            false => self.slices = Some(measured),
        }
    }
}

/// How whole pages are looked at.
struct Look {
    plan: PagesPlan,
    seed: u64,
}

impl Look {
    /// Of this machine, bound to the victim's processor.
    fn of_host(
        &self,
        report: &mut Report,
        memory: &Hardware,
        neighbours: &[usize],
        banks: Option<Banks>,
        tell: Tell<'_>,
    ) {
        let Some(cache) = geometry_of_host() else {
            report.pages_why = Some("the kernel names no last-level cache".to_owned());
            return;
        };
        let mut probe = HardwareProbe::new(memory);
        let probe = probe.as_mut().map(|probe| probe as &mut dyn CacheProbe);
        let probe = probe.map_err(|why| why.to_string());
        let sorted = self.at_cache(report, probe, tell);
        if neighbours.is_empty() {
            report.pages_why = Some("no other CPU shares the victim's last-level cache".to_owned());
            return;
        }
        let colors = banks.map_or_else(Default::default, |banks| banks.page_colors());
        let cores = RealCaching::new(memory, neighbours, cache.size);
        let mut cores = cores.with_bank_colors(colors);
        self.at_pages(report, &mut cores, sorted.as_ref(), tell);
    }

    /// Of a simulated machine.
    fn of_simulated(
        &self,
        report: &mut Report,
        truth: &Simulated<'_>,
        knows_banks: bool,
        tell: Tell<'_>,
    ) {
        let cores = SimCaching::new(truth.pages(), 16 * truth.cache, self.seed);
        let cores = cores.in_banks_of(&truth.machine.addr_map());
        let mut cores = match knows_banks {
            true => cores,
            false => cores.with_hidden_banks(),
        };
        let sorted = self.at_cache(report, Ok(&mut cores), tell);
        self.at_pages(report, &mut cores, sorted.as_ref(), tell);
    }

    /// Counts the page colours of the last-level cache behind `probe`, and sorts pages by one
    /// of them.
    fn at_cache(
        &self,
        report: &mut Report,
        probe: Result<&mut dyn CacheProbe, String>,
        tell: Tell<'_>,
    ) -> Option<Sorted> {
        let mut tell = |share| tell("looking which pages push each other out", share);
        let found = probe.and_then(|probe| {
            let found = eviction::look(probe, self.seed, self.plan.deadline, &mut tell);
            found.map_err(|why| why.to_string())
        });
        let found = found.map_err(|why| report.cache_why = Some(why)).ok()?;
        report.cache = Some(found.0);
        found.1
    }

    /// Measures whole pages.
    fn at_pages(
        &self,
        report: &mut Report,
        cores: &mut dyn Caching,
        sorted: Option<&Sorted>,
        tell: Tell<'_>,
    ) {
        let mut tell = |share| tell("whole pages", share);
        let PagesPlan { tried, plan, .. } = self.plan;
        match pages::measure(cores, sorted, tried, plan, &mut tell) {
            Ok(splits) => report.pages = splits,
            Err(why) => report.pages_why = Some(why.to_string()),
        }
    }
}
