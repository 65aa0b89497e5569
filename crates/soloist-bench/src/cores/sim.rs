//! Simulated processors, whose truth is known.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cores::moves::{Move, Played, CHUNK};
use crate::cores::{Attack, Company, Cores, Round};
use soloist_core::statistics::{mean, median};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::SimSource;

/// An access alone, ns.
const ALONE: f64 = 110.0;
/// What any neighbour adds, ns.
const BESIDE: f64 = 15.0;
/// Readings of a round.
const READINGS: usize = 15;
/// Most by which a bank is slower for its victim, or its neighbour faster, ns:
/// what must drop out.
const OF_BANK: f64 = 12.0;
/// Accesses of a neighbour in a microsecond, and in which time it makes as many as
/// it pauses after, ns.
const RATE: f64 = 40.0;
const TURN_NS: f64 = 400.0;
/// Lines, which are in random order, that say where all are.
const LOOKED_AT: usize = 128;
/// Processors beside the victim's.
const NEIGHBOURS: usize = 15;

/// The truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// What a neighbour all of whose accesses are in the victim's bank adds, ns; 0: nothing.
    pub same_bank_ns: f64,
    /// What a neighbour all of whose accesses are on the victim's channel adds, ns.
    pub same_channel_ns: f64,
    /// Standard deviation of what others do to the machine from round to round, ns.
    pub others_ns: f64,
    /// Share of rounds in which a neighbour does not run.
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
    most: usize,
    processors: usize,
}

/// Share of accesses by bank, or by channel.
type Shares = HashMap<u32, f64>;

/// How often an access of the one meets one of the other.
fn meeting(one: &Shares, other: &Shares) -> f64 {
    let both = |(place, share): (&u32, &f64)| share * other.get(place).copied().unwrap_or(0.0);
    one.iter().map(both).sum()
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
            most: NEIGHBOURS,
            processors: 0,
        }
    }

    /// With so many processors beside the victim's.
    #[must_use]
    pub fn with_neighbours(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// On a machine of so many processors, if they are more than take part.
    #[must_use]
    pub fn with_processors(self, processors: usize) -> Self {
        Self { processors, ..self }
    }

    /// Something between 0 and 1 that a bank has for good.
    fn of_bank(bank: u32, what: u64) -> f64 {
        ChaCha8Rng::seed_from_u64(u64::from(bank) << 8 | what).gen()
    }

    fn shares(&self, lines: &[u64], place: impl Fn(u64) -> Option<u32>) -> Shares {
        let mut shares = Shares::new();
        let some = &lines[..lines.len().min(LOOKED_AT)];
        for &line in some {
            *shares.entry(place(line).unwrap_or(0)).or_default() += 1.0 / some.len() as f64;
        }
        shares
    }

    /// The mean over banks of what each has for good.
    fn of_banks(banks: &Shares, what: u64) -> f64 {
        // In order: the sum must not depend on how a map was hashed.
        let mut parts: Vec<(u32, f64)> =
            banks.iter().map(|(&bank, &share)| (bank, share)).collect();
        parts.sort_unstable_by_key(|part| part.0);
        let all = parts.iter();
        all.map(|&(bank, share)| share * Self::of_bank(bank, what))
            .sum()
    }
}

impl Cores for SimCores<'_> {
    fn most_neighbours(&self) -> usize {
        self.most
    }

    fn processors(&self) -> usize {
        self.processors.max(self.most + 1)
    }

    fn round(&mut self, lines: &[u64], company: Option<&Company<'_>>) -> Option<Round> {
        let normal = |rng: &mut ChaCha8Rng| -> f64 {
            (0..6).map(|_| rng.gen::<f64>() - 0.5).sum::<f64>() * std::f64::consts::SQRT_2
        };
        // What others do lasts for some rounds.
        self.others = 0.7 * self.others + 0.7 * self.truth.others_ns * normal(&mut self.rng);
        let bank = |line: u64| self.memory.bank(line);
        let channel = |line: u64| self.memory.channel(line);
        let own = self.shares(lines, bank);
        let own_channels = self.shares(lines, channel);
        let mut ns = ALONE + self.others.abs() + OF_BANK * Self::of_banks(&own, 0);
        let mut rate = 0.0;
        if let Some(company) = company {
            let duty = TURN_NS / (TURN_NS + f64::from(company.pause_ns));
            let mut taken = false;
            for theirs in company.lines {
                taken |= self.rng.gen::<f64>() < self.truth.taken;
                let banks = self.shares(theirs, bank);
                let channels = self.shares(theirs, channel);
                let what = 1 + company.attack as u64;
                ns += BESIDE * duty / company.lines.len() as f64;
                ns += OF_BANK * Self::of_banks(&banks, what) / company.lines.len() as f64;
                ns += duty * meeting(&own, &banks) * self.truth.same_bank_ns;
                ns += duty * meeting(&own_channels, &channels) * self.truth.same_channel_ns;
                rate += RATE * duty;
            }
            if taken {
                return None;
            }
        }
        let mut times: Vec<f64> = (0..READINGS)
            .map(|_| {
                self.readings += 1;
                let noise = &self.truth.noise;
                f64::from(noise.reading(ns, ns, self.readings, &mut self.rng))
            })
            .collect();
        rate *= 1.0 + 0.02 * (mean(&times) / ns - 1.0);
        Some(Round {
            singles: times.iter().map(|&time| time as f32).collect(),
            ns: median(&mut times),
            rate,
        })
    }

    /// Each move takes its own time and what the access takes, one after another.
    fn play(&mut self, own: &[Move], beside: &[Vec<Move>]) -> Option<Played> {
        let lines = |moves: &[Move]| -> Vec<u64> {
            let step = moves.len().div_ceil(LOOKED_AT).max(1);
            moves.iter().step_by(step).map(|one| one.line).collect()
        };
        let theirs: Vec<Vec<u64>> = beside.iter().map(|moves| lines(moves)).collect();
        let company = Company {
            attack: Attack::Read,
            lines: &theirs,
            pause_ns: 0,
        };
        let own_lines = lines(own);
        let mut chunks = Vec::new();
        let mut singles = Vec::new();
        let mut rate = 0.0;
        for chunk in own.chunks(CHUNK) {
            let round = self.round(&own_lines, (!beside.is_empty()).then_some(&company));
            let computed: f64 = chunk.iter().map(|one| f64::from(one.gap_ps) / 1e3).sum();
            chunks.push(round.map(|round| {
                singles.extend(&round.singles);
                rate = round.rate;
                computed + round.ns * chunk.len() as f64
            }));
        }
        Some(Played {
            chunks,
            singles,
            rate,
        })
    }
}
