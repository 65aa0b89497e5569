//! Tests a map against timings: does it say which pairs conflict?

use super::meter::{Meter, Stop};
use super::proof::{prove, Proof, Sorted};
use super::region::{validate, visible_bits, Region};
use super::source::{Addresses, OsRange, TimingSource};
use super::Options;
use crate::classmap::ClassMap;
use crate::gf2::Basis;
use crate::spec::{MapRange, MapSpec};

/// How a range of a map stood up.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Checked {
    /// First byte, hexadecimal; inside a page where addresses are not known.
    pub start: String,
    /// First byte after.
    pub end: String,
    /// Pairs that must conflict: did, all.
    pub conflicts: (u32, u32),
    /// Pairs that must not: did not, all.
    pub others: (u32, u32),
    /// Banks that the map says, as far as they could be seen.
    pub banks: u64,
    /// Banks by the rate of conflicts.
    pub banks_by_rate: f64,
    /// Natural logarithm of the odds for the map against one that is wrong in
    /// one function or more; below 0 it is contradicted.
    pub evidence: f64,
}

/// The verdict over all ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything measured agrees.
    Fits,
    /// Something measured contradicts it.
    Contradicted,
    /// Nothing could be measured.
    Unknown,
}

/// Checks conflict classes against the memory behind `source`, by those of
/// their pages that it holds: how many, and how they stood up.
///
/// # Errors
/// When no conflicts can be seen.
pub fn check_classes(
    source: &mut dyn TimingSource,
    map: &ClassMap,
    options: &Options,
) -> Result<(Verdict, usize, Proof), Stop> {
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let sorted = Sorted::held(&meter, map);
    let held = sorted.pages.len();
    let (Some(first), Some(last)) = (sorted.pages.first(), sorted.pages.last()) else {
        return Ok((Verdict::Unknown, held, Proof::default()));
    };
    let whole = OsRange {
        start: first.0,
        end: last.0 + (1 << map.page_shift),
        node: 0,
    };
    meter.calibrate(&whole)?;
    let proof = prove(&mut meter, &sorted);
    let verdict = match proof {
        _ if proof.holds() => Verdict::Fits,
        Proof {
            same: (_, 500..),
            other: (_, 500..),
        } => Verdict::Contradicted,
        _ => Verdict::Unknown,
    };
    Ok((verdict, held, proof))
}

/// Checks `map` against the memory behind `source`.
///
/// # Errors
/// When there is nothing to measure.
pub fn check(
    source: &mut dyn TimingSource,
    map: &MapSpec,
    options: &Options,
) -> Result<(Verdict, Vec<Checked>), Stop> {
    let pieces = pieces(source, map);
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let mut checked = Vec::new();
    for (range, layout, base) in pieces {
        match check_range(&mut meter, map, &range, layout, base) {
            Ok(one) => checked.push(one),
            Err(Stop::NoMemory) => {}
            Err(stop) => return Err(stop),
        }
    }
    let verdict = match checked.as_slice() {
        [] => Verdict::Unknown,
        all if all.iter().all(|one| one.evidence > 0.0) => Verdict::Fits,
        _ => Verdict::Contradicted,
    };
    Ok((verdict, checked))
}

/// Ranges to measure in, with layout and base. Inside pages of unknown address
/// every layout could hold; the first one is checked, in one page.
fn pieces(source: &dyn TimingSource, map: &MapSpec) -> Vec<(OsRange, usize, u64)> {
    if source.addresses() != Addresses::Physical {
        let first = source.ranges().into_iter().next();
        return first.map(|page| (page, 0, 0)).into_iter().collect();
    }
    let piece = |range: &MapRange| {
        let os = OsRange {
            start: range.start,
            end: range.end,
            node: range.node,
        };
        (os, range.layout, range.base)
    };
    map.ranges.iter().map(piece).collect()
}

fn check_range(
    meter: &mut Meter<'_>,
    map: &MapSpec,
    range: &OsRange,
    layout: usize,
    base: u64,
) -> Result<Checked, Stop> {
    let levels = meter.calibrate(range)?;
    let found = super::region::collect(meter, range, 24, &mut |_| {})?;
    let visible = visible_bits(meter, range, base);
    let layout = &map.layouts[layout];
    let functions = Basis::of(layout.bank_functions().iter().map(|f| f & visible));
    let mut region = Region {
        range: *range,
        base,
        functions: functions.lightest(),
        rows: Vec::new(),
        visible,
        banks_by_rate: found.banks(),
        pairs: found.pairs.len(),
        hits: (0, 0),
        rejections: (0, 0),
        levels,
    };
    validate(meter, &mut region)?;
    // Against a map that is wrong, every second prediction fails; measuring
    // errs about once in a hundred.
    let log_odds = |(good, all): (u32, u32)| {
        f64::from(good) * (0.98f64 / 0.5).ln() + f64::from(all - good) * (0.02f64 / 0.5).ln()
    };
    Ok(Checked {
        start: format!("{:#x}", range.start),
        end: format!("{:#x}", range.end),
        conflicts: region.hits,
        others: region.rejections,
        banks: 1 << region.functions.len(),
        banks_by_rate: (region.banks_by_rate * 10.0).round() / 10.0,
        evidence: log_odds(region.hits).min(log_odds(region.rejections).max(-1000.0)),
    })
}
