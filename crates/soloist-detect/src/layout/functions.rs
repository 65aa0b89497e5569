//! Bank functions from conflicting pairs.
//!
//! Two addresses conflict when they lie in different rows of one bank. Every
//! bank function is therefore 0 on the XOR of the two, and random conflicting
//! pairs span everything else: the functions are the nullspace of the XORs,
//! whatever their number and width. A few pairs that only seemed to conflict
//! would hide functions, so the nullspace is taken of many random parts of the
//! pairs and judged by all of them.

use rand::seq::SliceRandom;
use rand::Rng;
use soloist_machine::gf2::{self, Basis};

use crate::meter::{Meter, Stop};
use crate::model::{Model, Pair};

/// Odds against a pair that only seems to conflict, times the banks.
const ODDS: f64 = 2_000.0;
/// Odds at which a pair is measured again later.
const LASTING_ODDS: f64 = 300.0;
/// Pairs more than there are address bits: chance leaves a false function with
/// probability 2^-this.
pub const SPARE_PAIRS: usize = 28;
/// Pairs that are looked at for a rate, at most.
const MOST_COUNTED: u32 = 400_000;
/// Random parts of the pairs that are looked at.
const PARTS: usize = 64;

/// Random conflicting pairs, and the banks that their rate speaks for.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// Evenly random pairs looked at.
    tried: u64,
    /// Those of them that conflict.
    hits: u64,
    /// Share of conflicts that is noticed.
    noticed: f64,
}

impl Collected {
    /// Banks by the rate at which random pairs conflict.
    #[must_use]
    pub fn banks(&self) -> f64 {
        self.tried as f64 * self.noticed / self.hits.max(1) as f64
    }

    /// Looks at more evenly random pairs until `hits` of them conflict: the fewer there
    /// are, the less their rate says.
    ///
    /// # Errors
    /// When the deadline has passed.
    pub fn count(&mut self, meter: &mut Meter<'_>, model: &Model, hits: u64) -> Result<(), Stop> {
        let mut left = MOST_COUNTED;
        while self.hits < hits && left > 0 {
            left -= 1;
            let (Some(a), Some(b)) = (model.line(meter), model.line(meter)) else {
                return Err(Stop::NoMemory);
            };
            if a != b && meter.source().is_fair(a, b) {
                self.tried += 1;
                let odds = ODDS * self.banks().clamp(4.0, 4096.0);
                self.hits += u64::from(meter.is_conflict_among_many(a, b, odds)?);
            }
        }
        Ok(())
    }

    /// Adds what was found later.
    pub fn extend(&mut self, more: Self) {
        self.pairs.extend(more.pairs);
        self.tried += more.tried;
        self.hits += more.hits;
    }
}

/// Collects `count` random conflicting pairs inside the sections of `model`.
///
/// # Errors
/// When the deadline has passed, or nothing conflicts.
pub fn collect(
    meter: &mut Meter<'_>,
    model: &Model,
    count: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<Collected, Stop> {
    let levels = meter.levels().ok_or(Stop::NoConflicts)?;
    let mut found = Collected {
        noticed: levels.true_slow,
        ..Collected::default()
    };
    let give_up = 40_000 * count as u64;
    let mut tried = 0;
    while found.pairs.len() < count && tried < give_up {
        // From anywhere, which tells the rate; or one line from an edge, so
        // that the highest bits differ often enough to be seen.
        let even = meter.rng.gen();
        let (Some(a), Some(b)) = (
            if even {
                model.line(meter)
            } else {
                model.edge_line(meter)
            },
            model.line(meter),
        ) else {
            return Err(Stop::NoMemory);
        };
        tried += 1;
        if a == b || !meter.source().is_fair(a, b) {
            continue;
        }
        let banks = if found.hits < 4 {
            4096.0
        } else {
            found.banks()
        };
        let conflict = meter.is_conflict_among_many(a, b, ODDS * banks.clamp(4.0, 4096.0))?;
        found.tried += u64::from(even);
        if conflict {
            found.hits += u64::from(even);
            found.pairs.push((a, b));
            progress(found.pairs.len() as f64 / count as f64);
        }
    }
    // What only seemed to conflict for a while does so no longer.
    let mut lasting = Vec::with_capacity(found.pairs.len());
    for (a, b) in found.pairs {
        if meter.is_conflict(a, b, LASTING_ODDS)? {
            lasting.push((a, b));
        }
    }
    found.pairs = lasting;
    if found.pairs.len() < 8 {
        return Err(Stop::NoConflicts);
    }
    Ok(found)
}

/// The functions that nearly all pairs agree on, but not all of the pool does,
/// lightest first.
pub fn functions(meter: &mut Meter<'_>, model: &Model, pairs: &[Pair]) -> Vec<u64> {
    let within = model.visible;
    let mut vectors: Vec<u64> = pairs.iter().filter_map(|&p| model.difference(p)).collect();
    let agrees = |function: u64, vectors: &[u64]| {
        let odd = vectors.iter().filter(|&&v| gf2::parity(function, v) == 1);
        odd.count() * 10 <= vectors.len()
    };
    let mut best = Basis::of(vectors.iter().copied()).nullspace(within);
    let bits = within.count_ones() as usize;
    let part = (bits + SPARE_PAIRS / 2).min(vectors.len() * 3 / 4);
    for _ in 0..PARTS {
        vectors.partial_shuffle(&mut meter.rng, part);
        let candidate = Basis::of(vectors[..part].iter().copied()).nullspace(within);
        if candidate.rank() > best.rank() && candidate.rows().iter().all(|&f| agrees(f, &vectors)) {
            best = candidate;
        }
    }
    let constant = model.differences(meter).nullspace(within);
    best.lightest_beside(&constant)
}
