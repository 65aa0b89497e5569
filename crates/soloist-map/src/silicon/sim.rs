//! Two simulated processors, whose truth is known.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Cores, Neighbour, Round};
use crate::detect::noise::Noise;
use crate::detect::sim::SimSource;

/// An access alone, ns.
const ALONE: f64 = 110.0;
/// What any neighbour adds, ns.
const BESIDE: f64 = 15.0;
/// Passes of a round.
const PASSES: usize = 15;
/// Most by which a bank is slower for its victim, or its neighbour faster, ns:
/// what must drop out.
const OF_BANK: f64 = 12.0;

/// The truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// What a neighbour in the same bank adds, ns; 0: nothing.
    pub same_bank_ns: f64,
    /// Standard deviation of what others do to the machine from round to round, ns.
    pub others_ns: f64,
    /// Share of rounds in which the neighbour does not run.
    pub taken: f64,
    /// Noise of each reading.
    pub noise: Noise,
}

/// The processors of a simulated memory.
pub struct SimCores<'a> {
    memory: &'a SimSource,
    truth: Truth,
    rng: ChaCha8Rng,
    others: f64,
    readings: u64,
}

impl<'a> SimCores<'a> {
    /// Processors before `memory`.
    #[must_use]
    pub fn new(memory: &'a SimSource, truth: Truth, seed: u64) -> Self {
        Self {
            memory,
            truth,
            rng: ChaCha8Rng::seed_from_u64(seed),
            others: 0.0,
            readings: 0,
        }
    }

    /// Something between 0 and 1 that a bank has for good.
    fn of_bank(&self, line: u64, what: u64) -> f64 {
        let bank = u64::from(self.memory.bank(line).unwrap_or(0));
        ChaCha8Rng::seed_from_u64(bank << 8 | what).gen()
    }
}

impl Cores for SimCores<'_> {
    fn round(&mut self, lines: &[u64], neighbour: Neighbour<'_>) -> Option<Round> {
        let normal = |rng: &mut ChaCha8Rng| -> f64 {
            (0..6).map(|_| rng.gen::<f64>() - 0.5).sum::<f64>() * std::f64::consts::SQRT_2
        };
        // What others do lasts for some rounds.
        self.others = 0.7 * self.others + 0.7 * self.truth.others_ns * normal(&mut self.rng);
        let mut ns = ALONE + self.others.abs() + OF_BANK * self.of_bank(lines[0], 0);
        if let Some((attack, theirs)) = neighbour {
            if self.rng.gen::<f64>() < self.truth.taken {
                return None;
            }
            let own = self.memory.bank(lines[0]);
            let same = theirs.iter().filter(|&&line| self.memory.bank(line) == own);
            let share = same.count() as f64 / theirs.len() as f64;
            ns += BESIDE + OF_BANK * self.of_bank(theirs[0], 1 + attack as u64);
            ns += share * self.truth.same_bank_ns;
        }
        let mut times: Vec<f64> = (0..PASSES)
            .map(|_| {
                self.readings += 1;
                let noise = &self.truth.noise;
                f64::from(noise.reading(ns, ns, self.readings, &mut self.rng))
            })
            .collect();
        Some(Round {
            ns: soloist_core::statistics::median(&mut times),
            rate: f64::from(u8::from(neighbour.is_some())),
        })
    }
}
