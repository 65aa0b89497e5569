//! Lines of every part of memory against lines whose banks are known.
//!
//! A proof draws its pairs from anywhere, so that a small part of memory in which
//! the map is wrong costs it few of them. Here each part of memory and each huge
//! page of the pool must show that it lies where the map says.

use std::collections::HashMap;

use rand::Rng;
use serde::Serialize;
use soloist_machine::RamRange;

use crate::meter::{Meter, Stop};
use crate::model::{InWay, Model, Section};
use crate::timing::pool;

/// Borders of memory and shifts are multiples of this.
pub const STEP: u64 = 1 << 20;
/// log2 of the pages that are looked at one by one.
const HUGE: u32 = 21;
/// Anchors a bank, and lines drawn for them, at most.
const ANCHORS: usize = 8;
const MOST_DRAWN: usize = 1 << 16;
/// Odds at which a pair is judged, and at which a line that denies the map is believed.
const ODDS: f64 = 300.0;
const SURE: f64 = 100_000.0;
/// By how many pairs a line's bank is decided, and after how many it is left open.
const VOTES: i32 = 2;
const MOST_VOTES: usize = 8;
/// Lines of a piece that must lie where the map says, and that are tried for them. Where a
/// function is another, half of the lines lie there all the same.
const LINES: u32 = 2;
const TRIED: u32 = 3;
/// Share of the parts that are elsewhere which so many lines show.
const SHOWN: f64 = 0.75;

/// Lines whose banks are known.
pub struct Anchors(HashMap<InWay, Vec<u64>>);

impl Anchors {
    /// Lines of the pool in `sections`, by their banks.
    #[must_use]
    pub fn of(meter: &mut Meter<'_>, model: &Model, sections: &[Section]) -> Self {
        let trusted = Model {
            sections: sections.to_vec(),
            ..model.clone()
        };
        let banks = (model.ways() as usize) << model.functions.len().min(20);
        let mut lines: HashMap<InWay, Vec<u64>> = HashMap::new();
        for _ in 0..(3 * ANCHORS * banks).min(MOST_DRAWN) {
            let Some(line) = trusted.line(meter) else {
                break;
            };
            if let Some(bank) = trusted.bank(line) {
                let own = lines.entry(bank).or_default();
                if own.len() < ANCHORS {
                    own.push(line);
                }
            }
        }
        Self(lines)
    }

    /// An anchor of a bank that may be measured with `line`.
    fn pick(&self, meter: &mut Meter<'_>, line: u64, bank: InWay) -> Option<u64> {
        let own = self.0.get(&bank)?;
        (0..ANCHORS).find_map(|_| {
            let anchor = own[meter.rng.gen_range(0..own.len())];
            (anchor != line && meter.source().is_fair(line, anchor)).then_some(anchor)
        })
    }

    /// Whether a line lies in a bank, by several of its anchors; `None`: not to be told.
    ///
    /// # Errors
    /// When the deadline has passed.
    pub fn holds(
        &self,
        meter: &mut Meter<'_>,
        line: u64,
        bank: InWay,
    ) -> Result<Option<bool>, Stop> {
        self.at_odds(meter, line, bank, ODDS)
    }

    /// As [`Anchors::holds`], each pair at these odds.
    fn at_odds(
        &self,
        meter: &mut Meter<'_>,
        line: u64,
        bank: InWay,
        odds: f64,
    ) -> Result<Option<bool>, Stop> {
        let mut votes: i32 = 0;
        for _ in 0..MOST_VOTES {
            let Some(anchor) = self.pick(meter, line, bank) else {
                return Ok(None);
            };
            votes += match meter.rejects(line, anchor, odds)? {
                Some(false) => 1,
                Some(true) => -1,
                None => 0,
            };
            if votes.abs() >= VOTES {
                return Ok(Some(votes > 0));
            }
        }
        Ok(None)
    }
}

/// How the parts of memory stood up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Parts of memory.
    pub parts: u32,
    /// Those of them of which nothing was told: no page measured lies there, say.
    pub bare: u32,
    /// Parts and huge pages that were measured.
    pub pairs: u32,
    /// Memory that contradicted, between the nearest lines that did not.
    #[serde(skip)]
    pub wrong: Vec<RamRange>,
}

impl Swept {
    /// Share of memory that may be elsewhere than the map says though nothing
    /// contradicted, 95 % sure.
    #[must_use]
    pub fn may_be_wrong(&self) -> f64 {
        let measured = self.parts.saturating_sub(self.bare);
        (3.0 / (SHOWN * f64::from(measured.max(4)))
            + f64::from(self.bare) / f64::from(self.parts.max(1)))
        .min(1.0)
    }
}

/// Measures lines of each part of `ranges` and each huge page of the pool there.
///
/// # Errors
/// When the deadline has passed.
pub fn sweep(
    meter: &mut Meter<'_>,
    model: &Model,
    ranges: &[RamRange],
    anchors: &Anchors,
) -> Result<Swept, Stop> {
    let mut swept = Swept::default();
    sweep_into(&mut swept, meter, model, ranges, anchors)?;
    Ok(swept)
}

/// As [`sweep`]; what contradicted before the deadline passed is in `swept` all the same.
///
/// # Errors
/// When the deadline has passed.
pub fn sweep_into(
    swept: &mut Swept,
    meter: &mut Meter<'_>,
    model: &Model,
    ranges: &[RamRange],
    anchors: &Anchors,
) -> Result<(), Stop> {
    let part = pool::part_size(ranges);
    for range in ranges {
        // Where the last line that held was, and since when none did.
        let (mut good, mut bad) = (range.start, false);
        let between = |start, end| RamRange {
            start,
            end,
            ..*range
        };
        let mut at = range.start;
        while at < range.end {
            let end = (at + part).min(range.end);
            let pieces = pieces(meter, &between(at, end));
            swept.parts += 1;
            let mut is_told = false;
            for piece in pieces {
                let stood = stands(meter, model, anchors, &piece);
                // A gap ends where a line holds, or where the time is up.
                if bad && matches!(stood, Ok(Some(true)) | Err(_)) {
                    swept.wrong.push(between(good, piece.start));
                }
                match stood? {
                    None => continue,
                    Some(true) => (good, bad) = (piece.end, false),
                    Some(false) => bad = true,
                }
                is_told = true;
                swept.pairs += 1;
            }
            swept.bare += u32::from(!is_told);
            at = end;
        }
        if bad {
            swept.wrong.push(between(good, range.end));
        }
    }
    Ok(())
}

/// The pieces of a part that are measured: its huge pages, else the part.
fn pieces(meter: &Meter<'_>, part: &RamRange) -> Vec<RamRange> {
    let pool = meter.source().pool();
    let size = 1u64 << pool.page_shift();
    let pages = pool.inside(part);
    let (Some(&first), Some(&last)) = (pages.first(), pages.last()) else {
        return Vec::new();
    };
    let piece = |start: u64, end: u64| RamRange {
        start: start.max(part.start),
        end: end.min(part.end),
        ..*part
    };
    match pool.page_shift() {
        HUGE => pages.iter().map(|&page| piece(page, page + size)).collect(),
        _ => vec![piece(first, last + size)],
    }
}

/// Whether a piece lies where the model says: several lines say so, and one denies it;
/// `None`: not to be told.
fn stands(
    meter: &mut Meter<'_>,
    model: &Model,
    anchors: &Anchors,
    piece: &RamRange,
) -> Result<Option<bool>, Stop> {
    let mut held = 0;
    for _ in 0..TRIED {
        let Ok(line) = meter.random(piece) else {
            return Ok(None);
        };
        let Some(bank) = model.bank(line) else {
            return Ok(None);
        };
        match lies(meter, anchors, line, bank)? {
            Some(true) => held += 1,
            Some(false) => return Ok(Some(false)),
            None => {}
        }
        if held == LINES {
            return Ok(Some(true));
        }
    }
    Ok(None)
}

/// Whether a line lies in a bank: a pair that conflicts says so, and several that never do
/// deny it.
fn lies(
    meter: &mut Meter<'_>,
    anchors: &Anchors,
    line: u64,
    bank: InWay,
) -> Result<Option<bool>, Stop> {
    let Some(anchor) = anchors.pick(meter, line, bank) else {
        return Ok(None);
    };
    if meter.is_conflict(line, anchor, ODDS)? {
        return Ok(Some(true));
    }
    match anchors.holds(meter, line, bank)? {
        Some(false) => anchors.at_odds(meter, line, bank, SURE),
        told => Ok(told),
    }
}
