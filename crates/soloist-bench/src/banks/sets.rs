//! Lines of two banks, found by timing pairs.

use rand::seq::SliceRandom;
use serde::Serialize;
use soloist_machine::RamRange;

use soloist_detect::meter::{Levels, Meter, Stop};
use soloist_detect::timing::pool::of_nodes;

/// Lines of the victim, and of its neighbour, in each bank.
pub const LINES: usize = 32;
/// Lines that are drawn in vain, one after another, before no more are looked for.
const IN_VAIN: usize = 100_000;
/// Lines that are tried as the second bank's first.
const OTHERS: usize = 64;
/// Odds against a pair of lines that only seems to conflict.
const ODDS: f64 = 20_000.0;
/// Pairs of which it is seen whether the banks hold, of one bank and of two.
const CHECKED: usize = 48;
/// Of one bank so many must conflict: a few lie in one row.
const LEAST_WITHIN: f64 = 0.75;
/// Of two, so many may.
const MOST_ACROSS: f64 = 0.1;

/// Lines of one bank.
#[derive(Debug, Clone, Default)]
pub struct Bank {
    /// Those that the victim has.
    pub victim: Vec<u64>,
    /// Those that a neighbour has.
    pub neighbour: Vec<u64>,
}

/// Lines of two banks, and how well they hold.
#[derive(Debug, Clone, Serialize)]
pub struct Sets {
    /// The banks.
    #[serde(skip)]
    pub banks: [Bank; 2],
    /// What pairs take.
    pub levels: Levels,
    /// Pairs looked through.
    pub looked_through: usize,
    /// Pairs of one bank that conflicted when they were measured once more.
    pub within: usize,
    /// Pairs of two banks that did.
    pub across: usize,
    /// Pairs of each kind that were measured.
    pub checked: usize,
}

/// Why there are none.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SetsError {
    /// Conflicts can't be seen.
    #[error("{0}")]
    Stop(#[from] Stop),
    /// Some are seen, but not for one line after another.
    #[error("only {found} of {wanted} lines that share a bank with one were found in {pairs} pairs: what is slow there is noise, or memory has very many banks, and more time finds more (--deadline)")]
    TooFew {
        /// Pairs looked through for them.
        pairs: usize,
        /// Lines found.
        found: usize,
        /// Lines needed.
        wanted: usize,
    },
    /// What was found is not what it is taken for.
    #[error("the lines don't stay what they were taken for: measured once more, {within} of {CHECKED} pairs of one bank conflict, and {across} of {CHECKED} of two; too busy, or the host moves pages")]
    DoNotHold {
        /// Pairs of one bank that conflict.
        within: usize,
        /// Pairs of two.
        across: usize,
    },
}

/// Looks for them in the memory of the meter's source.
///
/// # Errors
/// When conflicts can't be seen, or what is found does not hold.
pub fn find(meter: &mut Meter<'_>, progress: &mut dyn FnMut(f64)) -> Result<Sets, SetsError> {
    let memory = memory(meter).ok_or(Stop::NoMemory)?;
    let levels = meter.calibrate(&memory)?;
    progress(0.3);
    let mut looked_through = 0;
    let first = meter.random(&memory)?;
    let one = lines_of(meter, &memory, first, 2 * LINES, &mut looked_through)?;
    progress(0.6);
    let mut second = None;
    for _ in 0..OTHERS {
        let line = meter.random(&memory)?;
        if line != first && meter.rejects(first, line, ODDS)? == Some(true) {
            second = Some(line);
            break;
        }
    }
    let second = second.ok_or(Stop::NoConflicts)?;
    let other = lines_of(meter, &memory, second, 2 * LINES, &mut looked_through)?;
    progress(0.9);
    let (mut within, mut across) = (0, 0);
    for _ in 0..CHECKED {
        let mut draw = |lines: &[u64]| lines.choose(&mut meter.rng).copied().unwrap_or(first);
        let (a, b, c) = (draw(&one), draw(&one), draw(&other));
        // A line is no pair with itself.
        let b = if a == b { first } else { b };
        within += usize::from(meter.is_conflict(a, b, 100.0)?);
        across += usize::from(meter.is_conflict(a, c, 100.0)?);
    }
    do_hold(within, across)?;
    let split = |lines: Vec<u64>| {
        let (victim, neighbour) = lines.split_at(LINES);
        Bank {
            victim: victim.to_vec(),
            neighbour: neighbour.to_vec(),
        }
    };
    Ok(Sets {
        banks: [split(one), split(other)],
        levels,
        looked_through,
        within,
        across,
        checked: CHECKED,
    })
}

/// So many banks, with so many lines of each, by timing pairs alone: no function need
/// explain them.
///
/// # Errors
/// As of [`find`].
pub fn many(
    meter: &mut Meter<'_>,
    banks: usize,
    lines: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Vec<u64>>, SetsError> {
    let memory = memory(meter).ok_or(Stop::NoMemory)?;
    meter.calibrate(&memory)?;
    let mut looked_through = 0;
    let mut found: Vec<Vec<u64>> = Vec::new();
    let mut tries = 0;
    while found.len() < banks {
        tries += 1;
        if tries > OTHERS * banks {
            return Err(Stop::NoConflicts.into());
        }
        let base = meter.random(&memory)?;
        if is_of_none(meter, base, &found)? {
            found.push(lines_of(meter, &memory, base, lines, &mut looked_through)?);
            progress(found.len() as f64 / banks as f64);
        }
    }
    let (mut within, mut across) = (0, 0);
    for turn in 0..CHECKED {
        let (one, other) = (&found[turn % banks], &found[(turn + 1) % banks]);
        let mut draw = |lines: &[u64]| lines.choose(&mut meter.rng).copied().unwrap_or(0);
        let (a, b, c) = (draw(one), draw(one), draw(other));
        let b = if a == b {
            one[usize::from(a == one[0])]
        } else {
            b
        };
        within += usize::from(meter.is_conflict(a, b, 100.0)?);
        across += usize::from(meter.is_conflict(a, c, 100.0)?);
    }
    do_hold(within, across)?;
    Ok(found)
}

/// So many different lines of all of memory, in random order.
///
/// # Errors
/// When the pool holds none.
pub fn anywhere(meter: &mut Meter<'_>, count: usize) -> Result<Vec<u64>, SetsError> {
    let memory = memory(meter).ok_or(Stop::NoMemory)?;
    let mut lines = Vec::with_capacity(count);
    for _ in 0..count {
        lines.push(meter.random(&memory)?);
    }
    lines.sort_unstable();
    lines.dedup();
    lines.shuffle(&mut meter.rng);
    Ok(lines)
}

/// Whether a line shares a bank with none of those found: of each, two lines are asked,
/// since two of one row don't conflict.
fn is_of_none(meter: &mut Meter<'_>, line: u64, banks: &[Vec<u64>]) -> Result<bool, Stop> {
    for bank in banks {
        for &known in bank.iter().take(2) {
            if known == line || meter.rejects(known, line, ODDS)? != Some(true) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether enough pairs of one bank conflict, and few enough of two.
fn do_hold(within: usize, across: usize) -> Result<(), SetsError> {
    let share = |count: usize| count as f64 / CHECKED as f64;
    match share(within) < LEAST_WITHIN || share(across) > MOST_ACROSS {
        true => Err(SetsError::DoNotHold { within, across }),
        false => Ok(()),
    }
}

/// All memory of the first node that the pool has any of.
fn memory(meter: &Meter<'_>) -> Option<RamRange> {
    let source = meter.source();
    of_nodes(&source.ranges()).into_iter().find_map(|ranges| {
        let whole = RamRange {
            end: ranges.iter().map(|range| range.end).max()?,
            ..*ranges.first()?
        };
        (!source.pool().inside(&whole).is_empty()).then_some(whole)
    })
}

/// Lines that conflict with `base`, each seen twice; looked for until the meter's deadline.
fn lines_of(
    meter: &mut Meter<'_>,
    memory: &RamRange,
    base: u64,
    wanted: usize,
    looked_through: &mut usize,
) -> Result<Vec<u64>, SetsError> {
    let mut found = Vec::new();
    let (mut pairs, mut vain) = (0, 0);
    // Small memory may have no more lines: nothing is measured then, and no deadline passes.
    while found.len() < wanted && vain < IN_VAIN {
        let line = meter.random(memory)?;
        if line == base || found.contains(&line) || !meter.source().is_fair(base, line) {
            vain += 1;
            continue;
        }
        (pairs, vain) = (pairs + 1, 0);
        match conflicts(meter, base, line) {
            Ok(true) => found.push(line),
            Ok(false) => {}
            Err(Stop::Deadline) => break,
            Err(why) => return Err(why.into()),
        }
    }
    *looked_through += pairs;
    match found.len() == wanted {
        true => Ok(found),
        false => Err(SetsError::TooFew {
            pairs,
            found: found.len(),
            wanted,
        }),
    }
}

/// Whether two lines conflict, seen twice.
fn conflicts(meter: &mut Meter<'_>, base: u64, line: u64) -> Result<bool, Stop> {
    Ok(meter.is_conflict_among_many(base, line, ODDS)? && meter.is_conflict(base, line, 100.0)?)
}
