//! A simulated machine whose last level has page colours, or none: the truth is known.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{AddrMap, FRAME_SIZE};
use soloist_machine::gf2;

use super::{Attack, Caching, Round};
use soloist_detect::cache::llc::{CacheProbe, Geometry};

/// ns of a hit and of a miss.
const HIT: f64 = 20.0;
const MISS: f64 = 100.0;
/// Single accesses that are timed.
const SINGLES: u32 = 100;
/// Bytes of a huge page.
const HUGE_PAGE: u64 = 2 << 20;
/// Lines that a neighbour reads or writes in a microsecond.
const RATE: f64 = 60.0;
/// Bytes of a cache line, and ways of a cache whose hash keeps no page together.
const LINE: u64 = 64;
const WAYS: u64 = 16;
/// One of so many looks whether lines push another out is wrong.
const WRONG: u32 = 20;

/// The truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Bytes of the last level.
    pub cache: u64,
    /// Bytes of a page as the kernel has it.
    pub page: u64,
    /// Address bits that choose cache sets, as a mask.
    pub cache_bits: u64,
    /// Functions that choose the slice of the cache; 0: none. With neither these nor `cache_bits`
    /// the hash keeps no page together.
    pub cache_hash: [u64; 2],
    /// Address bits that choose banks.
    pub bank_bits: u64,
    /// Added to a miss where all neighbours are in the victim's banks and write, ns; half of it
    /// where they read.
    pub same_bank_ns: f64,
    /// Standard deviation of what others do to the machine from round to round, ns.
    pub others_ns: f64,
    /// Neighbours.
    pub neighbours: usize,
}

impl Truth {
    /// Page colours that the cache has; 1: none.
    #[must_use]
    pub fn cache_colors(&self) -> u64 {
        let slices = self.cache_hash.iter().filter(|&&hash| hash != 0).count() as u32;
        1 << (self.cache_bits.count_ones() + slices)
    }

    /// The colour of a page in the cache.
    fn class(&self, page: u64) -> u64 {
        let [a, b] = self.cache_hash.map(|hash| gf2::parity(hash, page));
        // Bits of a page's offset are free.
        page & self.cache_bits | a << 1 | b
    }
}

/// The machine.
pub struct SimCaching {
    truth: Truth,
    bytes: u64,
    /// The bank set of each page; none: the truth's bits choose banks.
    sets: Vec<u64>,
    /// Nobody found which banks a page lies in.
    hides_banks: bool,
    rng: ChaCha8Rng,
    others: f64,
}

impl SimCaching {
    /// A machine with so many bytes in huge pages.
    #[must_use]
    pub fn new(truth: Truth, bytes: u64, seed: u64) -> Self {
        Self {
            truth,
            bytes,
            sets: Vec::new(),
            hides_banks: false,
            rng: ChaCha8Rng::seed_from_u64(seed),
            others: 0.0,
        }
    }

    /// The same machine, whose pages lie in the banks of this map.
    #[must_use]
    pub fn in_banks_of(self, map: &AddrMap) -> Self {
        let start = map.ranges().next().map_or(0, |range| range.start);
        let first = start.next_multiple_of(HUGE_PAGE);
        let set = |page: u64| map.color_of_frame((first + page) / FRAME_SIZE);
        let pages = Caching::pages(&self).into_iter();
        let sets = pages.map(|page| set(page).map_or(0, |color| u64::from(color.bank_set)));
        Self {
            sets: sets.collect(),
            ..self
        }
    }

    /// The same machine, whose functions nobody found.
    #[must_use]
    pub fn with_hidden_banks(self) -> Self {
        Self {
            hides_banks: true,
            ..self
        }
    }

    /// Pages by class.
    fn by(class: impl Fn(u64) -> u64, pages: &[u64]) -> BTreeMap<u64, f64> {
        let mut of = BTreeMap::new();
        for &page in pages {
            *of.entry(class(page)).or_insert(0.0) += 1.0;
        }
        of
    }

    /// The share of the victim's accesses that the cache has: of each class of sets it keeps
    /// as much as its share of what all have there.
    fn hits(&self, own: &[u64], theirs: &[u64]) -> f64 {
        let classes = self.truth.cache_colors();
        let capacity = self.truth.cache as f64 / self.truth.page as f64 / classes as f64;
        let class = |page: u64| self.truth.class(page);
        let others = Self::by(class, theirs);
        let hit = |(class, own): (&u64, &f64)| {
            let all = own + others.get(class).copied().unwrap_or(0.0);
            own * (capacity / all.max(capacity))
        };
        let hits: f64 = Self::by(class, own).iter().map(hit).sum();
        hits / own.len() as f64
    }

    /// The banks that a page lies in.
    fn set_of_banks(&self, page: u64) -> u64 {
        let set = self.sets.get((page / self.truth.page) as usize);
        set.copied().unwrap_or(page & self.truth.bank_bits)
    }

    /// How often an access of the one meets one of the others in a bank.
    fn meeting(&self, own: &[u64], theirs: &[u64]) -> f64 {
        let class = |page: u64| self.set_of_banks(page);
        let others = Self::by(class, theirs);
        let met = |(bank, count): (&u64, &f64)| count * others.get(bank).copied().unwrap_or(0.0);
        let met: f64 = Self::by(class, own).iter().map(met).sum();
        let banks = match self.sets.is_empty() {
            true => 1usize << self.truth.bank_bits.count_ones(),
            false => self.sets.iter().collect::<BTreeSet<_>>().len(),
        };
        banks as f64 * met / (own.len() as f64 * theirs.len().max(1) as f64)
    }
}

impl Caching for SimCaching {
    fn most_neighbours(&self) -> usize {
        self.truth.neighbours
    }

    fn cache_bytes(&self) -> u64 {
        self.truth.cache
    }

    fn page_bytes(&self) -> u64 {
        self.truth.page
    }

    fn pages(&self) -> Vec<u64> {
        (0..self.bytes).step_by(self.truth.page as usize).collect()
    }

    fn known_bits(&self) -> u32 {
        21
    }

    fn bank_color(&self, page: u64) -> Option<u64> {
        (!self.hides_banks).then(|| self.set_of_banks(page))
    }

    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>], attack: Attack) -> Option<Round> {
        let theirs = theirs.concat();
        let missed = 1.0 - self.hits(own, &theirs);
        let writes = match attack {
            Attack::Read => 0.5,
            Attack::Write => 1.0,
            Attack::Both => 0.75,
        };
        let bank = writes * self.truth.same_bank_ns * self.meeting(own, &theirs);
        let mut normal = || (0..6).map(|_| self.rng.gen::<f64>() - 0.5).sum::<f64>();
        // What others do lasts for some rounds.
        self.others = 0.7 * self.others + self.truth.others_ns * normal();
        let ns = HIT + missed * (MISS - HIT + bank) + self.others.abs() + normal();
        let rate = RATE * self.truth.neighbours as f64 * (1.0 + 0.02 * normal());
        // Misses are the slow ones.
        let hits = (f64::from(SINGLES) * (1.0 - missed)) as u32;
        let singles = (0..SINGLES).map(|i| match i < hits {
            true => HIT as f32,
            false => (MISS + bank) as f32,
        });
        let singles = singles.collect();
        Some(Round { ns, rate, singles })
    }
}

impl SimCaching {
    /// The set of a line, and how many lines it holds.
    fn set(&self, line: u64) -> (u64, u64) {
        let truth = &self.truth;
        match truth.cache_colors() {
            1 => {
                // The page offset chooses among sets as anywhere, and a hash of the line does.
                let sets = truth.cache / truth.page / WAYS;
                let mixed = (line / LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let offset = line % truth.page / LINE;
                (mixed % sets * (truth.page / LINE) + offset, WAYS)
            }
            colors => {
                let offset = line % truth.page / LINE * LINE;
                let [a, b] = truth.cache_hash.map(|hash| gf2::parity(hash, line));
                let set = line & truth.cache_bits | offset | a << 1 | b;
                (set, truth.cache / truth.page / colors)
            }
        }
    }
}

impl CacheProbe for SimCaching {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.truth.cache,
            ways: self.set(0).1 as u32,
            line: LINE as u32,
        }
    }

    fn congruent(&self, _target: u64, _count: usize) -> Vec<u64> {
        Vec::new()
    }

    fn pages(&self) -> Vec<u64> {
        Caching::pages(self)
    }

    fn page_bytes(&self) -> u64 {
        self.truth.page
    }

    fn has(&self, line: u64) -> bool {
        line < self.bytes
    }

    fn evicts(&mut self, target: u64, lines: &[u64]) -> bool {
        let (set, ways) = self.set(target);
        let rivals = lines.iter().filter(|&&line| self.set(line).0 == set);
        let truth = rivals.count() as u64 >= ways;
        truth != self.rng.gen_ratio(1, WRONG)
    }
}
