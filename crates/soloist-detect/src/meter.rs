//! From noisy samples to "conflict" or "no conflict".
//!
//! Nothing here is set by hand: the fast level is the narrowest half of what
//! random pairs take, followed as it drifts; the slow level is that of pairs
//! which stay slow when they are measured again and again; how often a pair is
//! sampled follows from how often a sample lies, by Wald's sequential test.
//! Real machines are slow for a while now and then, whatever is accessed: a
//! pair is therefore sampled in turn with random ones, and what counts is by how
//! much it is slower than the one just before it. A level that was measured
//! earlier is never compared with: when a burst ends, it would make conflicts
//! look fast. And as "no conflict" is also what a meter says that sees nothing,
//! a proof asks it for a pair that is known to conflict ([`Meter::rejects`]).

mod levels;

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use self::levels::{Levels, Weights};
use crate::timing::TimingSource;
use soloist_core::statistics::high_median;
use soloist_machine::RamRange;

/// Samples between looks at the clock.
const CLOCK_EVERY: u64 = 256;
/// Samples of random pairs that say where the fast level is now.
const RECENT: usize = 256;
/// The last of them, which say where it is at this moment.
const LATEST: usize = 15;
/// Rounds until a pair that says nothing is judged by what there is: longer
/// than a burst.
const ROUNDS: u32 = 2_000;
/// Odds at which a known conflict is seen again.
const CONTROL_ODDS: f64 = 20.0;
/// Times that a pair is judged anew because a known conflict was not seen.
const BLIND: usize = 8;
/// Times that more pages are asked for.
const MOST_FETCHES: usize = 8;

/// Why measuring ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// No pair is reliably slower than the others.
    #[error(
        "no pair of addresses is reliably slower than the others: no row conflicts to be seen"
    )]
    NoConflicts,
    /// None of it is among the pages that are measured.
    #[error("none of it is among the pages measured; more memory (--memory) may hold some")]
    NotHeld,
    /// The pool has no memory where it is needed.
    #[error("the pool holds no memory there")]
    NoMemory,
    /// Pairs of lines deny the functions.
    #[error("pairs of lines there do not conflict as the functions have it: left out of the map")]
    Denied,
    /// Pairs of lines deny what the host's registers say.
    #[error("pairs of lines deny where the host bridge says that it lies; measured without it")]
    ToldOtherwise,
    /// Two shifts that say different banks would do.
    #[error(
        "whether it lies straight or was lifted out of the hole below 4 GiB can't be told by the \
         pages measured: left out of the map; more memory (--memory) may tell"
    )]
    Undecided,
}

/// Measures pairs and judges them.
pub struct Meter<'a> {
    source: &'a mut dyn TimingSource,
    /// Random choices of the detector.
    pub rng: ChaCha8Rng,
    started: Instant,
    deadline: Duration,
    samples: u64,
    recent: Vec<f64>,
    next: usize,
    fast: f64,
    levels: Option<Levels>,
    /// Memory of the random pairs that others are compared with.
    around: RamRange,
    scratch: Vec<f64>,
    /// Step of the clock, in its own unit.
    step: f64,
    /// Pairs that were seen to conflict, over and over.
    controls: Vec<(u64, u64)>,
    /// Memory that more pages were asked for of.
    fetched: Vec<RamRange>,
}

impl<'a> Meter<'a> {
    /// A meter over `source` that stops at `deadline` from now.
    pub fn new(source: &'a mut dyn TimingSource, deadline: Duration, seed: u64) -> Self {
        Self {
            started: source.now(),
            source,
            rng: ChaCha8Rng::seed_from_u64(seed),
            deadline,
            samples: 0,
            recent: Vec::with_capacity(RECENT),
            next: 0,
            fast: 0.0,
            levels: None,
            around: RamRange {
                start: 0,
                end: 0,
                node: 0,
            },
            scratch: Vec::new(),
            step: 1.0,
            controls: Vec::new(),
            fetched: Vec::new(),
        }
    }

    /// Raw samples taken.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Time since the meter was made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.source.now().saturating_duration_since(self.started)
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &dyn TimingSource {
        self.source
    }

    /// Asks for more pages in `range`; false where that was done before, or too often:
    /// it takes a kernel seconds.
    pub fn fetch(&mut self, range: &RamRange) -> bool {
        let middle = range.start + (range.end - range.start) / 2;
        let had = |old: &RamRange| (old.start..old.end).contains(&middle);
        if self.fetched.len() == MOST_FETCHES || self.fetched.iter().any(had) {
            return false;
        }
        self.fetched.push(*range);
        self.source.fetch(range);
        true
    }

    /// The levels of the last calibration.
    #[must_use]
    pub fn levels(&self) -> Option<Levels> {
        self.levels
    }

    /// A random pair of different lines inside `range`.
    ///
    /// # Errors
    /// When the pool holds none.
    pub fn random_pair(&mut self, range: &RamRange) -> Result<(u64, u64), Stop> {
        for _ in 0..64 {
            let a = self.random(range)?;
            let b = self.random(range)?;
            if a != b && self.source.is_fair(a, b) {
                return Ok((a, b));
            }
        }
        Err(Stop::NoMemory)
    }

    /// A random line inside `range`.
    ///
    /// # Errors
    /// When the pool holds none.
    pub fn random(&mut self, range: &RamRange) -> Result<u64, Stop> {
        self.source
            .random(range, &mut self.rng)
            .ok_or(Stop::NoMemory)
    }

    /// One sample: the median of `repeats` raw ones. What the
    /// clock rounds off is put back at random, so that spreads stay spreads.
    fn sample(&mut self, a: u64, b: u64, repeats: u32) -> Result<f64, Stop> {
        self.scratch.clear();
        for _ in 0..repeats {
            if self.samples % CLOCK_EVERY == 0 && self.elapsed() > self.deadline {
                return Err(Stop::Deadline);
            }
            self.samples += 1;
            let time = f64::from(self.source.sample(a, b));
            let dither = self.step * (self.rng.gen::<f64>() - 0.5);
            self.scratch.push(time + dither);
        }
        Ok(high_median(&mut self.scratch))
    }

    /// One sample of a pair, as the levels were told apart.
    ///
    /// # Errors
    /// When the deadline has passed, or nothing is calibrated.
    pub fn time(&mut self, a: u64, b: u64) -> Result<f64, Stop> {
        let levels = self.levels.ok_or(Stop::NoConflicts)?;
        self.sample(a, b, levels.repeats)
    }

    /// Time in which several streams read these lines; `None`: not to be had.
    ///
    /// # Errors
    /// When the deadline has passed.
    pub fn stream(&mut self, lines: &[u64]) -> Result<Option<f64>, Stop> {
        if self.elapsed() > self.deadline {
            return Err(Stop::Deadline);
        }
        if lines.is_empty() {
            return Ok(None);
        }
        Ok(self.source.stream(lines))
    }

    /// Median of `count` samples less that of random pairs, taken in turn.
    fn excess(&mut self, a: u64, b: u64, count: u32, repeats: u32) -> Result<f64, Stop> {
        let (mut here, mut around) = (Vec::new(), Vec::new());
        for _ in 0..count {
            around.push(self.refer(repeats)?);
            here.push(self.sample(a, b, repeats)?);
        }
        Ok(high_median(&mut here) - high_median(&mut around))
    }

    /// Takes note of a random pair's sample, to follow the fast level.
    fn follow(&mut self, time: f64) {
        if self.recent.len() < RECENT {
            self.recent.push(time);
        } else {
            self.recent[self.next] = time;
        }
        self.next = (self.next + 1) % RECENT;
        if self.next % 32 == 0 && self.recent.len() >= 64 {
            self.fast = shorth(&mut self.recent.clone()).0;
        }
    }

    /// The fast level at this moment: a low quantile of the latest random pairs,
    /// since some of them conflict.
    fn now(&self) -> f64 {
        let count = self.recent.len().min(LATEST);
        let mut latest = [f64::INFINITY; LATEST];
        for (i, slot) in latest.iter_mut().take(count).enumerate() {
            let at = self.next + self.recent.len() - 1 - i;
            *slot = self.recent[at % self.recent.len()];
        }
        *latest.select_nth_unstable_by(count / 3, f64::total_cmp).1
    }

    /// A sample of a random pair, which also follows the fast level.
    fn refer(&mut self, repeats: u32) -> Result<f64, Stop> {
        let around = self.around;
        let (a, b) = self.random_pair(&around)?;
        let time = self.sample(a, b, repeats)?;
        self.follow(time);
        Ok(time)
    }

    /// Samples a random pair, then `a` and `b`: where the first lay, whether the
    /// second was slower, and its time.
    fn compare(
        &mut self,
        a: u64,
        b: u64,
        repeats: u32,
        threshold: f64,
    ) -> Result<(usize, bool, f64), Stop> {
        let around = self.refer(repeats)?;
        let time = self.sample(a, b, repeats)?;
        let off = around - self.now();
        let class = 1 + usize::from(off > threshold) - usize::from(off < -threshold);
        Ok((class, time - around > threshold, time))
    }

    /// Whether a random pair conflicts, cheaply: most are let go after one
    /// sample, and a conflict is only called one when the odds against chance
    /// are `odds`. Misses some conflicts ([`Levels::true_slow`]).
    ///
    /// # Errors
    /// When the deadline has passed, or nothing is calibrated.
    pub fn is_conflict_among_many(&mut self, a: u64, b: u64, odds: f64) -> Result<bool, Stop> {
        let levels = self.levels.ok_or(Stop::NoConflicts)?;
        let time = self.sample(a, b, levels.repeats)?;
        self.follow(time);
        if time <= self.now() + levels.threshold {
            return Ok(false);
        }
        let slow = (levels.true_slow / levels.false_slow).ln();
        self.decide(a, b, slow, -3.0, odds.ln())
    }

    /// Whether a chosen pair conflicts; wrong about once in `odds` either way.
    ///
    /// # Errors
    /// When the deadline has passed, or nothing is calibrated.
    pub fn is_conflict(&mut self, a: u64, b: u64, odds: f64) -> Result<bool, Stop> {
        let limit = odds.ln();
        self.decide(a, b, 0.0, -limit, limit)
    }

    /// Whether a chosen pair does not conflict, and a known conflict was seen at
    /// that time; `None`: it never was, so nothing is known.
    ///
    /// # Errors
    /// When the deadline has passed, or nothing is calibrated.
    pub fn rejects(&mut self, a: u64, b: u64, odds: f64) -> Result<Option<bool>, Stop> {
        for _ in 0..BLIND {
            if self.is_conflict(a, b, odds)? {
                return Ok(Some(false));
            }
            let control = self.rng.gen_range(0..self.controls.len().max(1));
            let Some(&(a, b)) = self.controls.get(control) else {
                return Ok(None);
            };
            if self.is_conflict(a, b, CONTROL_ODDS)? {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Wald's test: adds up evidence until it is `low` or less, or `high` or more.
    fn decide(&mut self, a: u64, b: u64, start: f64, low: f64, high: f64) -> Result<bool, Stop> {
        let levels = self.levels.ok_or(Stop::NoConflicts)?;
        let mut evidence = start;
        for _ in 0..ROUNDS {
            if evidence >= high {
                return Ok(true);
            }
            if evidence <= low {
                return Ok(false);
            }
            let (class, slower, _) = self.compare(a, b, levels.repeats, levels.threshold)?;
            evidence += levels.weights[class][usize::from(slower)];
        }
        Ok(evidence > 0.0)
    }
}

/// The shortest interval that holds half the values: its middle, and the
/// standard deviation of a normal distribution with such a half.
fn shorth(values: &mut [f64]) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    let (mut at, mut width) = (0, f64::INFINITY);
    for i in 0..values.len() - half {
        let span = values[i + half] - values[i];
        if span < width {
            (at, width) = (i, span);
        }
    }
    ((values[at] + values[at + half]) / 2.0, width / 1.349)
}
