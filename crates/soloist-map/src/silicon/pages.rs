//! Whole pages, with caches: what page colours by one address bit buy here.
//!
//! A victim follows pointers through a working set that fits into its share of the last
//! level, or one that is twice that cache. Neighbours write to as much as the cache holds,
//! again and again; nobody flushes. *Spread*: all tasks have pages of both values of the
//! bit, as Linux places them. *Private*: the victim has one value, drawn anew for each
//! block, the neighbours the other. A bit that chooses cache sets divides the cache so, one
//! that chooses banks divides those, and one that does both does both. After all bits the
//! two that saved most are tried together, measured anew: the victim in a quarter of the
//! pages. Where pages were sorted into classes that push each other out ([`Sorted`]), the victim
//! has one class and the neighbours the others, whatever bits choose them. The saving is spread less private, both beside neighbours, so it is net of the
//! cost of fewer sets and banks. All judgements of a run share one limit for chance
//! (Holm), so of many bits without an effect hardly any is claimed.

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;

use super::difference::{at_most, judge, Difference, Loss};
use super::slices::{Plan, LEAST_BLOCKS, PATIENCE};
use super::two_banks::CHANCE;
use crate::detect::eviction::Sorted;

pub mod real;
pub mod sim;

/// Bits that are tried, from the page offset's end on.
const MOST_BITS: u32 = 9;

/// The result of a round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// ns of an access of the victim.
    pub ns: f64,
    /// Bytes that all neighbours write in a microsecond.
    pub rate: f64,
}

/// Processors whose caches play a part, real or simulated.
pub trait Caching {
    /// Neighbours at most.
    fn most_neighbours(&self) -> usize;

    /// Bytes of the last-level cache.
    fn cache_bytes(&self) -> u64;

    /// Bytes of a page as the kernel has it.
    fn page_bytes(&self) -> u64;

    /// First addresses of all such pages; those of huge pages, so that the bits below
    /// `known_bits` are physical ones.
    fn pages(&self) -> Vec<u64>;

    /// The first address bit that may not be a physical one.
    fn known_bits(&self) -> u32;

    /// The victim on all lines of its pages, beside neighbours on theirs. `None`: a
    /// neighbour hardly ran.
    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>]) -> Option<Round>;
}

/// How large the victim's working set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A quarter of the last level.
    Inside,
    /// Twice the last level, or what a quarter of the memory at hand has.
    Beyond,
    /// Three quarters of what the last level has for one class of pages.
    OfClass,
}

/// Pages divided by some address bits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Split {
    /// The address bits; two: the victim has a quarter of the pages; none: it has a class of
    /// pages that push each other out.
    pub bits: Vec<u32>,
    /// The victim's working set.
    pub size: Size,
    /// Its bytes.
    pub bytes: u64,
    /// Neighbours.
    pub neighbours: usize,
    /// The victim beside neighbours, spread over all pages, ns of an access.
    pub spread_ns: f64,
    /// In pages of its own.
    pub private_ns: f64,
    /// The saving by private pages.
    pub saved: Difference,
    /// By which share the neighbours are slower.
    pub neighbours_lose: Loss,
    /// Blocks that count.
    pub blocks: usize,
}

impl Split {
    /// The figures in a sentence, which claims nothing that chance explains.
    #[must_use]
    pub fn verdict(&self) -> String {
        let bits: Vec<String> = self.bits.iter().map(u32::to_string).collect();
        let set = match self.size {
            Size::Inside => "a working set inside the cache",
            Size::Beyond => "one beyond it",
            Size::OfClass => "a working set that one class has room for",
        };
        let by = match self.size {
            Size::OfClass => "by what pushes out".to_owned(),
            _ => format!("by bit {}", bits.join(" and ")),
        };
        let head = format!("Pages {by}, {set}:");
        let lose = self.neighbours_lose.says();
        if !self.saved.shown && !self.saved.shown_less {
            return format!(
                "{head} that pages of its own save anything is not shown ({}){lose}.",
                at_most(self.saved.ns.high / self.spread_ns)
            );
        }
        let worse = if self.saved.shown_less {
            ", so worse"
        } else {
            ""
        };
        format!(
            "{head} {:.0} ns spread, {:.0} in pages of its own{worse}{lose}.",
            self.spread_ns, self.private_ns
        )
    }

    /// Whether anything is shown: a saving, harm, or what it costs the neighbours.
    #[must_use]
    pub fn shows_anything(&self) -> bool {
        self.saved.shown || self.saved.shown_less || self.neighbours_lose.shown
    }
}

/// Why nothing can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPages {
    /// No bit of a page's address is a physical one.
    #[error("memory has no huge pages, so no address bit of a page is known")]
    Bits,
    /// Too few pages.
    #[error("memory is less than four times the last-level cache; give it more (--memory)")]
    Memory,
    /// Blocks hardly count.
    #[error("co-runners hardly ran beside the victim: other tasks use the CPUs")]
    Taken,
}

/// The pages of the victim and of each neighbour.
struct Shares {
    own: Vec<u64>,
    theirs: Vec<Vec<u64>>,
}

impl Shares {
    /// Pages that each neighbour has, at least.
    fn pages_of_each(&self) -> usize {
        self.theirs.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Leaves each neighbour so many.
    fn limit(&mut self, pages: usize) {
        self.theirs.iter_mut().for_each(|of| of.truncate(pages));
    }
}

/// The blocks measured of one split.
struct Taken {
    bits: Vec<u32>,
    size: Size,
    blocks: Vec<[Round; 2]>,
}

struct Experiment<'a> {
    cores: &'a mut dyn Caching,
    sorted: Option<&'a Sorted>,
    page: u64,
    pages: Vec<u64>,
    plan: Plan,
    rng: ChaCha8Rng,
}

/// Measures every bit, then the two best together, with both working sets; and a class of pages
/// against all others, where they are sorted.
///
/// # Errors
/// Why nothing could be measured.
pub fn measure(
    cores: &mut dyn Caching,
    sorted: Option<&Sorted>,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Split>, NoPages> {
    let pages = cores.pages();
    let page = cores.page_bytes();
    let first = page.trailing_zeros();
    let bits: Vec<u32> = (first..cores.known_bits().min(first + MOST_BITS)).collect();
    if bits.is_empty() && sorted.is_none() {
        return Err(NoPages::Bits);
    }
    if (pages.len() as u64) * page < 4 * cores.cache_bytes() {
        return Err(NoPages::Memory);
    }
    let mut experiment = Experiment {
        cores,
        sorted,
        page,
        pages,
        plan,
        rng: ChaCha8Rng::seed_from_u64(plan.seed),
    };
    let sizes = [Size::Inside, Size::Beyond];
    let single = bits
        .iter()
        .flat_map(|&bit| sizes.map(|size| Taken::of(vec![bit], size)));
    let class = sorted.map(|_| Taken::of(Vec::new(), Size::OfClass));
    let mut taken: Vec<Taken> = single.chain(class).collect();
    let time = plan.time * 4 / 5;
    experiment.take(&mut taken, time, &mut |share| progress(0.8 * share));
    if taken.iter().all(|one| one.blocks.len() < LEAST_BLOCKS) {
        return Err(NoPages::Taken);
    }
    for size in sizes {
        let mut best: Vec<&Taken> = taken.iter().filter(|one| one.size == size).collect();
        best.sort_by(|a, b| b.median_saved().total_cmp(&a.median_saved()));
        if let [first, second, ..] = best[..] {
            let both = vec![first.bits[0], second.bits[0]];
            let mut both = [Taken::of(both, size)];
            experiment.take(&mut both, plan.time / 10, &mut |_| {});
            taken.extend(both);
        }
    }
    progress(1.0);
    let enough = taken.iter().filter(|one| one.blocks.len() >= LEAST_BLOCKS);
    let mut splits: Vec<Split> = enough.map(|one| experiment.split(one)).collect();
    let both = splits.iter_mut();
    let both = both.map(|one| (&mut one.saved, &mut one.neighbours_lose));
    let (differences, losses) = both.unzip();
    judge(differences, losses, CHANCE);
    Ok(splits)
}

impl Taken {
    fn of(bits: Vec<u32>, size: Size) -> Self {
        let blocks = Vec::new();
        Self { bits, size, blocks }
    }

    fn saved(&self) -> Vec<f64> {
        let saved = |[spread, private]: &[Round; 2]| spread.ns - private.ns;
        self.blocks.iter().map(saved).collect()
    }

    fn median_saved(&self) -> f64 {
        median(&mut self.saved())
    }
}

impl Experiment<'_> {
    /// Takes blocks of all, in random order, until each has as many as planned.
    fn take(&mut self, all: &mut [Taken], time: Duration, progress: &mut dyn FnMut(f64)) {
        let begun = Instant::now();
        for turn in 0..PATIENCE as usize * self.plan.blocks {
            let least = all.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
            let late = begun.elapsed();
            let enough = least >= self.plan.blocks || (late > time && least >= LEAST_BLOCKS);
            if enough || late > PATIENCE * time {
                break;
            }
            let mut order: Vec<usize> = (0..all.len()).collect();
            order.shuffle(&mut self.rng);
            for at in order {
                let block = self.block(&all[at].bits.clone(), all[at].size);
                all[at].blocks.extend(block);
            }
            progress(((turn + 1) as f64 / self.plan.blocks as f64).min(1.0));
        }
    }

    /// Spread and private, either first.
    fn block(&mut self, bits: &[u32], size: Size) -> Option<[Round; 2]> {
        let mut spread = self.shares(&[], size);
        let mut private = match (size, self.sorted) {
            (Size::OfClass, Some(sorted)) => self.shares_by_class(sorted),
            _ => self.shares(bits, size),
        };
        // Less pressure would save something, too.
        let pages = spread.pages_of_each().min(private.pages_of_each());
        spread.limit(pages);
        private.limit(pages);
        let is_spread_first = self.rng.gen();
        let mut round = |shares: &Shares| self.cores.round(&shares.own, &shares.theirs);
        match is_spread_first {
            true => {
                let first = round(&spread)?;
                Some([first, round(&private)?])
            }
            false => {
                let first = round(&private)?;
                Some([round(&spread)?, first])
            }
        }
    }

    /// Pages for all: by these bits, or without any spread over all pages.
    fn shares(&mut self, bits: &[u32], size: Size) -> Shares {
        let value: u64 = self.rng.gen();
        let is_own = |page: &u64| bits.iter().all(|bit| (page ^ value) >> bit & 1 == 0);
        let mut pages = self.pages.clone();
        pages.shuffle(&mut self.rng);
        let wanted = (self.bytes(size) / self.page) as usize;
        let (mut own, mut rest) = (Vec::with_capacity(wanted), Vec::new());
        for page in pages {
            match own.len() < wanted && is_own(&page) {
                true => own.push(page),
                false if bits.is_empty() || !is_own(&page) => rest.push(page),
                false => {}
            }
        }
        self.deal(own, &rest)
    }

    /// Pages of the class for the victim, those of all others for its neighbours.
    fn shares_by_class(&mut self, sorted: &Sorted) -> Shares {
        let wanted = (self.bytes(Size::OfClass) / self.page) as usize;
        let mut own = sorted.own.clone();
        let mut others = sorted.others.clone();
        own.shuffle(&mut self.rng);
        own.truncate(wanted);
        others.shuffle(&mut self.rng);
        self.deal(own, &others)
    }

    /// Deals as much of `rest` as the cache holds to the neighbours, as many pages to each.
    fn deal(&self, own: Vec<u64>, rest: &[u64]) -> Shares {
        let neighbours = self.cores.most_neighbours();
        let wanted = (self.cores.cache_bytes() / self.page) as usize;
        let each = wanted.min(rest.len()) / neighbours.max(1);
        let theirs = rest.chunks(each.max(1)).take(neighbours);
        Shares {
            own,
            theirs: theirs.map(<[u64]>::to_vec).collect(),
        }
    }

    fn bytes(&self, size: Size) -> u64 {
        let cache = self.cores.cache_bytes();
        match size {
            Size::Inside => cache / 4,
            // Two bits leave a quarter of all pages.
            Size::Beyond => (2 * cache).min(self.pages.len() as u64 * self.page / 4),
            Size::OfClass => self.sorted.map_or(0, |sorted| {
                let room = 0.75 * cache as f64 / sorted.classes / self.page as f64;
                let pages = (room as u64).max(1).min(sorted.own.len() as u64);
                pages * self.page
            }),
        }
    }

    fn split(&self, taken: &Taken) -> Split {
        let column = |at: usize| -> Vec<f64> { taken.blocks.iter().map(|b| b[at].ns).collect() };
        let saved = taken.saved();
        let blocks = taken.blocks.iter();
        let rates = blocks.map(|[spread, private]| (spread.rate, private.rate));
        Split {
            bits: taken.bits.clone(),
            size: taken.size,
            bytes: self.bytes(taken.size),
            neighbours: self.cores.most_neighbours(),
            spread_ns: median(&mut column(0)),
            private_ns: median(&mut column(1)),
            saved: Difference::of(&saved),
            neighbours_lose: Loss::of(rates),
            blocks: taken.blocks.len(),
        }
    }
}
