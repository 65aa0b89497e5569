//! A simulated machine whose last level has page colours, or none: the truth is known.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Caching, Round, PAGE};

/// ns of a hit and of a miss, and what a neighbour in the same bank adds to a miss where all
/// of its accesses are there.
const HIT: f64 = 20.0;
const MISS: f64 = 100.0;
/// Bytes that a neighbour writes in a microsecond.
const RATE: f64 = 4000.0;

/// The truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Bytes of the last level.
    pub cache: u64,
    /// Address bits that choose cache sets, as a mask; 0: the hash keeps no page together.
    pub cache_bits: u64,
    /// Address bits that choose banks.
    pub bank_bits: u64,
    /// Added to a miss where all neighbours are in the victim's banks, ns.
    pub same_bank_ns: f64,
    /// Standard deviation of what others do to the machine from round to round, ns.
    pub others_ns: f64,
    /// Neighbours.
    pub neighbours: usize,
}

/// The machine.
pub struct SimCaching {
    truth: Truth,
    bytes: u64,
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
            rng: ChaCha8Rng::seed_from_u64(seed),
            others: 0.0,
        }
    }

    /// Pages by the bits of `mask`.
    fn by(mask: u64, pages: &[u64]) -> std::collections::BTreeMap<u64, f64> {
        let mut of = std::collections::BTreeMap::new();
        for page in pages {
            *of.entry(page & mask).or_insert(0.0) += 1.0;
        }
        of
    }

    /// The share of the victim's accesses that the cache has: of each class of sets it keeps
    /// as much as its share of what all have there.
    fn hits(&self, own: &[u64], theirs: &[u64]) -> f64 {
        let mask = self.truth.cache_bits;
        let classes = 1u64 << mask.count_ones();
        let capacity = self.truth.cache as f64 / PAGE as f64 / classes as f64;
        let others = Self::by(mask, theirs);
        let hit = |(class, own): (&u64, &f64)| {
            let all = own + others.get(class).copied().unwrap_or(0.0);
            own * (capacity / all.max(capacity))
        };
        let hits: f64 = Self::by(mask, own).iter().map(hit).sum();
        hits / own.len() as f64
    }

    /// How often an access of the one meets one of the others in a bank.
    fn meeting(&self, own: &[u64], theirs: &[u64]) -> f64 {
        let mask = self.truth.bank_bits;
        let others = Self::by(mask, theirs);
        let met = |(bank, count): (&u64, &f64)| count * others.get(bank).copied().unwrap_or(0.0);
        let met: f64 = Self::by(mask, own).iter().map(met).sum();
        let banks = (1u64 << mask.count_ones()) as f64;
        banks * met / (own.len() as f64 * theirs.len().max(1) as f64)
    }
}

impl Caching for SimCaching {
    fn most_neighbours(&self) -> usize {
        self.truth.neighbours
    }

    fn cache_bytes(&self) -> u64 {
        self.truth.cache
    }

    fn pages(&self) -> Vec<u64> {
        (0..self.bytes / PAGE).map(|page| page * PAGE).collect()
    }

    fn known_bits(&self) -> u32 {
        21
    }

    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>]) -> Option<Round> {
        let theirs = theirs.concat();
        let missed = 1.0 - self.hits(own, &theirs);
        let bank = self.truth.same_bank_ns * self.meeting(own, &theirs);
        let mut normal = || (0..6).map(|_| self.rng.gen::<f64>() - 0.5).sum::<f64>();
        // What others do lasts for some rounds.
        self.others = 0.7 * self.others + self.truth.others_ns * normal();
        let ns = HIT + missed * (MISS - HIT + bank) + self.others.abs() + normal();
        let rate = RATE * self.truth.neighbours as f64 * (1.0 + 0.02 * normal());
        Some(Round { ns, rate })
    }
}
