//! The two levels of a meter, fast and slow, and how they are found.

use std::collections::BTreeSet;

use soloist_core::statistics::high_median;
use soloist_machine::RamRange;

use super::{shorth, Meter, Stop};

/// Random pairs looked through for a first conflict, at most.
const SEARCH: u64 = 60_000;
/// The same, however many readings a sample takes.
const LEAST_SEARCH: u64 = 6_000;
/// Random pairs looked through for a level above the one found.
const SEARCH_HIGHER: u64 = 24_576;
/// Fewer pairs than this in [`SEARCH_HIGHER`] are accidents, no level.
const RARE: usize = 6;
/// Samples that say how often a sample lies.
const PATTERNS: usize = 1_024;
/// Random pairs whose lasting differences are looked at.
const LASTING: usize = 200;

/// The two levels and how they are told apart.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Levels {
    /// Pairs without a conflict.
    pub fast: f64,
    /// Pairs with one.
    pub slow: f64,
    /// Samples above `fast` by more than this are called slow.
    pub threshold: f64,
    /// Spread of the fast level, one standard deviation.
    pub sigma: f64,
    /// Raw samples whose median is one sample.
    pub repeats: u32,
    /// Share of slow samples among pairs without a conflict.
    pub false_slow: f64,
    /// Share of slow samples among pairs with one.
    pub true_slow: f64,
    /// The evidence in a sample, and in one of a random pair that is taken with it.
    #[serde(skip)]
    pub weights: Weights,
}

/// Natural logarithms of likelihood ratios for a conflict, by where the random
/// pair taken first lay (below the latest fast level, at it, above) and whether the pair
/// itself was slower than that one: measured when the levels are found, whatever
/// the noise is.
pub type Weights = [[f64; 2]; 3];

/// Counts by the same, and the share above the latest fast level.
type Pattern = (Weights, f64);

impl Meter<'_> {
    /// The step of the clock: what all readings are multiples of. One or two
    /// different ones are levels without noise, and say nothing of a clock.
    fn find_step(&mut self, range: &RamRange) -> Result<(), Stop> {
        let mut readings = BTreeSet::new();
        for _ in 0..256 {
            let (a, b) = self.random_pair(range)?;
            self.samples += 1;
            readings.insert(self.source.sample(a, b));
        }
        self.step = match readings.len() {
            3.. => f64::from(readings.into_iter().fold(0, common).max(1)),
            _ => 1.0,
        };
        Ok(())
    }

    /// Finds the levels for pairs inside `range`.
    ///
    /// # Errors
    /// [`Stop::NoConflicts`] when nothing is reliably slower than the rest.
    pub fn calibrate(&mut self, range: &RamRange) -> Result<Levels, Stop> {
        self.around = *range;
        self.find_step(range)?;
        let mut found = Err(Stop::NoConflicts);
        for repeats in [1, 3, 7, 15, 31, 63] {
            match self.calibrate_with(range, repeats) {
                Ok(levels) => {
                    let clear = levels.true_slow - levels.false_slow;
                    found = Ok(levels);
                    if clear > 0.5 {
                        break;
                    }
                }
                Err(Stop::NoConflicts) => {}
                Err(stop) => return Err(stop),
            }
        }
        self.levels = found.ok();
        found
    }

    fn calibrate_with(&mut self, range: &RamRange, repeats: u32) -> Result<Levels, Stop> {
        self.recent.clear();
        self.next = 0;
        let mut first = Vec::with_capacity(512);
        for _ in 0..512 {
            let (a, b) = self.random_pair(range)?;
            let time = self.sample(a, b, repeats)?;
            first.push(time);
            self.follow(time);
        }
        let (_, sigma) = shorth(&mut first);
        let sigma = sigma.max(0.5);
        let top = self.climb(range, repeats, sigma)?;
        let slow = self.search(range, repeats, 0.7 * top, 0.8 * top, SEARCH)?;
        if slow.len() < 3 {
            return Err(Stop::NoConflicts);
        }
        let gap = median_of(&slow, |pair| pair.2);
        // A median of 15 is itself off by a part of sigma.
        let below = (self.lasting(range, repeats, 0.75 * gap)? - sigma).max(0.0);
        let threshold = (below + gap) / 2.0;
        let conflicts: Vec<(u64, u64)> = slow.iter().map(|pair| (pair.0, pair.1)).collect();
        let [(without, false_slow), (with, true_slow)] =
            self.patterns(range, &conflicts, repeats, threshold)?;
        let weights = weights(&with, &without);
        if true_slow < 0.7 || weights[1][1] < 1.0 || weights[1][0] > -0.5 {
            return Err(Stop::NoConflicts);
        }
        self.controls = conflicts;
        Ok(Levels {
            fast: self.fast,
            slow: self.fast + gap,
            threshold,
            sigma,
            repeats,
            false_slow: false_slow.clamp(0.002, 0.45),
            true_slow: true_slow.min(0.998),
            weights,
        })
    }

    /// The height of the highest level that is not too rare for a level. Pairs
    /// of one bank group, or far apart, are slower than others too, but less so
    /// than conflicts and far more frequent: whatever is found first, go on
    /// above it.
    fn climb(&mut self, range: &RamRange, repeats: u32, sigma: f64) -> Result<f64, Stop> {
        let mut found = self.search(range, repeats, 3.0 * sigma, 1.5 * sigma, SEARCH)?;
        if found.len() < 3 {
            return Err(Stop::NoConflicts);
        }
        let mut top = median_of(&found, |pair| pair.2);
        for _ in 0..12 {
            let high = gap_above(&mut found, sigma).unwrap_or(found[found.len() * 9 / 10].2);
            let mut higher = self.search(range, repeats, high, high, SEARCH_HIGHER)?;
            if higher.len() < RARE {
                break;
            }
            let next = median_of(&higher, |pair| pair.2);
            if next < 1.2 * top && gap_above(&mut higher, sigma).is_none() {
                break;
            }
            (top, found) = (next, higher);
        }
        Ok(top)
    }

    /// By how much pairs without a conflict are slower than others, lastingly
    /// (distance, bank groups): nearly the most, below `limit`.
    fn lasting(&mut self, range: &RamRange, repeats: u32, limit: f64) -> Result<f64, Stop> {
        let mut lesser = Vec::with_capacity(LASTING);
        for _ in 0..LASTING {
            let (a, b) = self.random_pair(range)?;
            lesser.push(self.excess(a, b, 15, repeats)?);
        }
        lesser.retain(|&excess| excess < limit);
        lesser.sort_unstable_by(f64::total_cmp);
        let nearly = lesser.len().saturating_sub(1) * 49 / 50;
        Ok(lesser.get(nearly).copied().unwrap_or(0.0))
    }

    /// Random pairs that are once more than `above` over the fast level and
    /// stay more than `keep` over it, with their excess: up to 16.
    fn search(
        &mut self,
        range: &RamRange,
        repeats: u32,
        above: f64,
        keep: f64,
        tries: u64,
    ) -> Result<Vec<(u64, u64, f64)>, Stop> {
        let mut found = Vec::new();
        // Samples of many readings say more each, and cost more.
        for _ in 0..(tries / u64::from(repeats)).max(LEAST_SEARCH) {
            let (a, b) = self.random_pair(range)?;
            let time = self.sample(a, b, repeats)?;
            self.follow(time);
            if time <= self.now() + above
                || self.excess(a, b, 3, repeats)? <= keep
                || self.excess(a, b, 9, repeats)? <= keep
            {
                continue;
            }
            let excess = self.excess(a, b, 21, repeats)?;
            if excess > keep {
                found.push((a, b, excess));
                if found.len() == 16 {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// How often a random pair and then another random one, or one of
    /// `conflicts`, looked how: counts as in [`Weights`], and the share above the
    /// latest fast level. In turn, so that both meet the same good and bad moments.
    fn patterns(
        &mut self,
        range: &RamRange,
        conflicts: &[(u64, u64)],
        repeats: u32,
        threshold: f64,
    ) -> Result<[Pattern; 2], Stop> {
        let mut found: [Pattern; 2] = Default::default();
        for i in 0..PATTERNS {
            let pairs = [self.random_pair(range)?, conflicts[i % conflicts.len()]];
            for ((a, b), (counts, slow)) in pairs.into_iter().zip(&mut found) {
                let (class, slower, time) = self.compare(a, b, repeats, threshold)?;
                counts[class][usize::from(slower)] += 1.0;
                let above = time > self.now() + threshold;
                *slow += f64::from(u8::from(above)) / PATTERNS as f64;
            }
        }
        Ok(found)
    }
}

/// Evidence by what was seen with and without a conflict; what was never seen
/// counts as seen once.
fn weights(with: &Weights, without: &Weights) -> Weights {
    let share = |counts: &Weights, class: usize, slower: usize| {
        let all: f64 = counts.iter().flatten().sum();
        (counts[class][slower] + 1.0) / (all + 6.0)
    };
    let mut weights = [[0.0; 2]; 3];
    for (class, row) in weights.iter_mut().enumerate() {
        for (slower, weight) in row.iter_mut().enumerate() {
            *weight = (share(with, class, slower) / share(without, class, slower)).ln();
        }
    }
    weights
}

/// The greatest common divisor.
fn common(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => common(b, a % b),
    }
}

/// Where pairs that were found for one level are of two: half way from the lower
/// ones, which are most of them, to what lies too far above to be of theirs. Sorts
/// them by their excess.
fn gap_above(found: &mut [(u64, u64, f64)], sigma: f64) -> Option<f64> {
    found.sort_by(|a, b| a.2.total_cmp(&b.2));
    let upper = &found[found.len() / 2..];
    let far = |two: &&[(u64, u64, f64)]| two[1].2 > 1.2 * two[0].2 + sigma;
    let gap = upper.windows(2).find(far)?;
    Some((gap[0].2 + gap[1].2) / 2.0)
}

fn median_of<T>(items: &[T], value: impl Fn(&T) -> f64) -> f64 {
    high_median(&mut items.iter().map(value).collect::<Vec<_>>())
}
