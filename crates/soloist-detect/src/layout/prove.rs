//! Proof of a map: fresh pairs of lines, none of which found it.
//!
//! Four things can be wrong with bank functions F and row functions R, and each
//! has a test that it fails:
//!
//! 1. A bank function is missing, or a base is wrong: lines of one bank by F
//!    then lie in two, and half of those pairs don't conflict. Half of the lines
//!    are taken from where bits of the offset change, since a wrong base shows
//!    only there.
//! 2. A bank function is invented: then for one combination of values, and it
//!    could be any, lines that differ so are in one bank. All combinations are
//!    tried.
//! 3. A row function is missing: then lines of one row by R lie in two and
//!    half of those pairs conflict.
//! 4. A row function is invented: then for one combination of values lines that
//!    differ so share a row. All single ones and pairs are tried; a function for
//!    which no two lines of the pool differ in it alone is not proved, and said.

use rand::seq::SliceRandom;
use rand::Rng;
use serde::Serialize;
use soloist_machine::gf2::Basis;

use crate::meter::{Meter, Stop};
use crate::model::{Model, Pair, Wanted};

/// Pairs of one bank, half of them from edges.
const SAME_BANK: u32 = 160;
/// Pairs of two ways of a division.
const STRANGERS: u32 = 24;
/// Pairs of one row.
const SAME_ROW: u32 = 48;
/// Combinations of bank functions that are tried, all if there are no more.
const COMBINATIONS: usize = 1 << 11;
/// Odds at which a pair is judged.
const ODDS: f64 = 300.0;
/// Odds at which a surprise is believed.
const SURE: f64 = 100_000.0;
/// Stubborn pairs of one bank that disprove a map.
const STUBBORN: u32 = 2;
/// Pairs of one row, one after the other, by whose conflicts it is two.
const LACKS: u32 = 3;
/// Lines that differ in this bit or higher ones are hardly ever of one row.
const FAR: u32 = 22;
/// Share of predictions that may fail for other reasons than the map.
const SLIPS: f64 = 0.02;
/// The greatest confidence that is told: as much as the detector's own tests have shown.
const MOST: f64 = 0.99;
/// Chance that a map is wrong before it is tested.
const PRIOR: f64 = 0.2;

/// Predictions about fresh pairs: how many held, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Held.
    pub held: u32,
    /// All.
    pub all: u32,
}

impl Tally {
    fn add(&mut self, held: bool) {
        self.all += 1;
        self.held += u32::from(held);
    }

    /// Whether so few failed that the map can't be wrong in one function,
    /// where half of them would fail.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.all >= 8 && f64::from(self.all - self.held) <= 0.12 * f64::from(self.all)
    }

    /// Odds for a map by which half of these fail.
    fn odds_wrong(&self) -> f64 {
        let failed = f64::from(self.all - self.held);
        let log = failed * (0.5 / SLIPS).ln() + f64::from(self.held) * (0.5 / (1.0 - SLIPS)).ln();
        PRIOR / (1.0 - PRIOR) * log.clamp(-60.0, 60.0).exp()
    }
}

/// How a map stood up.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Proof {
    /// Pairs of one bank in different rows: they must conflict.
    pub same_bank: Tally,
    /// Of those that did not: pairs that don't when a known one does, again and
    /// again. No noise does that; a wrong base near its edges does.
    pub stubborn: u32,
    /// Combinations of bank functions: lines that differ so must not conflict.
    pub other_bank: Tally,
    /// Combinations that no pair of the pool has.
    pub untried: u32,
    /// Pairs of one row: they must not conflict.
    pub same_row: Tally,
    /// Combinations of row functions: lines of one bank that differ so must
    /// conflict.
    pub other_row: Tally,
    /// Row functions in which no two lines of the pool were found to differ
    /// alone: nothing speaks for them.
    pub untried_rows: Vec<u64>,
    /// Pairs that contradict: the map's to learn from.
    #[serde(skip)]
    pub surprises: Vec<Pair>,
}

impl Proof {
    /// Whether the bank functions stood up.
    #[must_use]
    pub fn banks_hold(&self) -> bool {
        self.same_bank.holds()
            && self.stubborn < STUBBORN
            && self.other_bank.held == self.other_bank.all
    }

    /// Whether the row functions did.
    #[must_use]
    pub fn rows_hold(&self) -> bool {
        self.same_row.holds() && self.other_row.held == self.other_row.all
    }

    /// Probability that banks and rows are right.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        let right = |odds_wrong: f64| 1.0 / (1.0 + odds_wrong);
        // A combination that was tried twice and never seen to conflict.
        let combinations = |tally: &Tally| match tally.held == tally.all {
            true if tally.all > 0 => right(PRIOR * SLIPS),
            _ => 0.05,
        };
        let banks = right(self.same_bank.odds_wrong()) * combinations(&self.other_bank);
        let rows = right(self.same_row.odds_wrong()) * combinations(&self.other_row);
        let tried =
            f64::from(self.other_bank.all) / f64::from(self.other_bank.all + self.untried).max(1.0);
        // A function that nothing tried is as good as a guess.
        let guesses = 0.5f64.powi(self.untried_rows.len().min(60) as i32);
        (banks * rows * tried * guesses).min(MOST)
    }
}

/// Whether pairs of one bank by `model` conflict: few, for a first look.
///
/// # Errors
/// When the deadline has passed.
pub fn plausible(meter: &mut Meter<'_>, model: &Model, pairs: u32) -> Result<bool, Stop> {
    let wanted = model.same_bank_other_row();
    let mut tally = Tally::default();
    for i in 0..pairs {
        let Some((a, b)) = model.pair(meter, &wanted, i % 2 == 0) else {
            continue;
        };
        tally.add(meter.is_conflict(a, b, ODDS)?);
        if tally.all - tally.held > 3 {
            return Ok(false);
        }
    }
    Ok(tally.all >= pairs / 2 && tally.holds())
}

/// Proves the bank functions.
///
/// # Errors
/// When the deadline has passed.
pub fn prove_banks(meter: &mut Meter<'_>, model: &Model, proof: &mut Proof) -> Result<(), Stop> {
    let wanted = model.same_bank_other_row();
    for i in 0..SAME_BANK {
        let Some((a, b)) = model.pair(meter, &wanted, i % 2 == 0) else {
            continue;
        };
        let held = meter.is_conflict(a, b, ODDS)?;
        proof.same_bank.add(held);
        // Lines near each other may share a row.
        let far = model.difference((a, b)).is_some_and(|d| d >> FAR > 0);
        if !held && far && meter.rejects(a, b, SURE)? == Some(true) {
            proof.stubborn += 1;
        }
        let failed = proof.same_bank.all - proof.same_bank.held;
        if failed >= 8 && !proof.same_bank.holds() {
            return Ok(());
        }
    }
    if model.ways() > 1 {
        prove_ways(meter, model, proof)?;
    }
    for combination in combinations(meter, model.functions.len()) {
        let wanted: Wanted = model
            .functions
            .iter()
            .enumerate()
            .map(|(i, &f)| (f, combination >> i & 1 == 1))
            .collect();
        let mut tried = false;
        let mut held = true;
        for _ in 0..2 {
            let Some((a, b)) = model.pair(meter, &wanted, false) else {
                continue;
            };
            tried = true;
            match meter.rejects(a, b, ODDS)? {
                Some(true) => {}
                None => tried = false,
                // A surprise must last: another line of the same kind must too.
                Some(false) => {
                    if meter.is_conflict(a, b, SURE)? && like(meter, model, &wanted, true)? {
                        held = false;
                        proof.surprises.push((a, b));
                    }
                }
            }
        }
        if tried {
            proof.other_bank.add(held);
        } else {
            proof.untried += 1;
        }
    }
    Ok(())
}

/// Lines of one bank but for their ways must not conflict.
fn prove_ways(meter: &mut Meter<'_>, model: &Model, proof: &mut Proof) -> Result<(), Stop> {
    for _ in 0..STRANGERS {
        let Some((a, b)) = model.strangers(meter) else {
            proof.untried += 1;
            continue;
        };
        // Ways that are none would conflict each time.
        let held = meter.rejects(a, b, ODDS)? != Some(false) || !meter.is_conflict(a, b, SURE)?;
        proof.other_bank.add(held);
    }
    Ok(())
}

/// Whether most of some more pairs of the kind conflict, or don't.
fn like(
    meter: &mut Meter<'_>,
    model: &Model,
    wanted: &Wanted,
    conflict: bool,
) -> Result<bool, Stop> {
    let mut tally = Tally::default();
    for _ in 0..6 {
        if let Some((a, b)) = model.pair(meter, wanted, false) {
            tally.add(meter.is_conflict(a, b, ODDS)? == conflict);
        }
    }
    Ok(2 * tally.held > tally.all)
}

/// Non-zero values of `count` functions: all, or a random choice that has all
/// single ones.
fn combinations(meter: &mut Meter<'_>, count: usize) -> Vec<u64> {
    let all = 1u64 << count.min(40);
    if all <= COMBINATIONS as u64 {
        return (1..all).collect();
    }
    let singles = (0..count).map(|i| 1 << i);
    let mut chosen: Vec<u64> = singles.collect();
    while chosen.len() < COMBINATIONS {
        chosen.push(meter.rng.gen_range(1..all));
    }
    chosen
}

/// Proves the row functions.
///
/// # Errors
/// When the deadline has passed.
pub fn prove_rows(meter: &mut Meter<'_>, model: &Model, proof: &mut Proof) -> Result<(), Stop> {
    let rows: Vec<u64> = model.rows.iter().map(|row| row.mask).collect();
    let bank = model.same_bank();
    let with = |values: &dyn Fn(usize) -> bool| -> Wanted {
        let rows = rows.iter().enumerate().map(|(i, &f)| (f, values(i)));
        bank.iter().copied().chain(rows).collect()
    };
    let in_row = with(&|_| false);
    let free = Basis::of(in_row.iter().map(|w| w.0)).nullspace(model.visible);
    // Sets of row functions in which a pair differs. All in one order drawn at
    // random: what passes in a bad moment must not be of one kind.
    let mut some: Vec<Vec<usize>> = (0..rows.len()).map(|i| vec![i]).collect();
    some.extend((0..rows.len()).flat_map(|i| (i + 1..rows.len()).map(move |j| vec![i, j])));
    if free.rank() > 0 {
        some.extend(std::iter::repeat_n(Vec::new(), SAME_ROW as usize));
    }
    some.shuffle(&mut meter.rng);
    for set in some {
        let wanted = with(&|i| set.contains(&i));
        let found = match *set.as_slice() {
            [_] => model.sought_pair(meter, &wanted),
            _ => model.pair(meter, &wanted, false),
        };
        let Some((a, b)) = found else {
            match *set.as_slice() {
                [only] if model.occurs(meter, &wanted) => proof.untried_rows.push(rows[only]),
                _ => {}
            }
            continue;
        };
        if set.is_empty() {
            if let Some(held) = meter.rejects(a, b, ODDS)? {
                proof.same_row.add(held);
            }
        } else {
            let held = meter.is_conflict(a, b, ODDS)? || !like(meter, model, &wanted, false)?;
            proof.other_row.add(held);
        }
    }
    Ok(())
}

/// Whether lines of one bank and row differ in a bit by which they conflict: a row function that
/// the model lacks. Each bit that may differ is tried by itself.
///
/// # Errors
/// When the deadline has passed.
pub fn lacks_rows(meter: &mut Meter<'_>, model: &Model) -> Result<bool, Stop> {
    let rows = model.rows.iter().map(|row| (row.mask, false));
    let in_row: Wanted = model.same_bank().into_iter().chain(rows).collect();
    let free = Basis::of(in_row.iter().map(|w| w.0)).nullspace(model.visible);
    for lead in free.rows().iter().filter_map(|row| row.checked_ilog2()) {
        let mut wanted = in_row.clone();
        wanted.push((1 << lead, true));
        let mut conflicts = 0;
        while let Some((a, b)) = model.sought_pair(meter, &wanted) {
            if meter.rejects(a, b, ODDS)? != Some(false) || !meter.is_conflict(a, b, SURE)? {
                break;
            }
            conflicts += 1;
            if conflicts == LACKS {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
