//! Tests a map against timings: does it say which pairs conflict?

use std::collections::BTreeMap;

use soloist_machine::classmap::{ClassMap, Proof as ClassProof};
use soloist_machine::function::Term;
use soloist_machine::gf2::Basis;
use soloist_machine::{Layout, MapRange, MapSpec, RamRange};

use crate::classes::proof::{prove, Sorted};
use crate::layout::functions::collect;
use crate::layout::prove::{lacks_rows, prove_banks, prove_rows, Proof, Tally};
use crate::layout::rows::rows as find_rows;
use crate::layout::sweep::{sweep_into, Anchors, Swept};
use crate::meter::{Meter, Stop};
use crate::model::{Model, Section};
use crate::timing::pool;
use crate::timing::{Addresses, TimingSource};
use crate::Options;

/// A map may leave out less than this: firmware takes as much somewhere in memory.
const SCRAP: u64 = 16 << 20;
/// Evidence against a map that something contradicts for certain.
const CONTRADICTED: f64 = -10.0;

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
    /// How its rows stood up; none where the map has none, addresses are not known, or the
    /// controller closes rows.
    pub rows: Option<Rows>,
    /// Banks that the map says, as far as they could be seen.
    pub banks: u64,
    /// Banks by the rate of conflicts.
    pub banks_by_rate: f64,
    /// Natural logarithm of the odds for the map against one that is wrong in
    /// one function or more in half of memory; below 0 it is contradicted.
    pub evidence: f64,
    /// How each part of memory stood up: what is wrong in a small part only shows here.
    pub swept: Swept,
    /// Memory that contradicts the map: first byte and first byte after, hexadecimal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<(String, String)>,
}

/// How the rows of a map stood up.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Rows {
    /// Pairs of one row that did not conflict, all.
    pub same: (u32, u32),
    /// Sets of row functions, lines that differ in which conflicted as two rows do; all.
    pub other: (u32, u32),
    /// Row functions that nothing tested.
    pub untried: u32,
    /// Nothing measured contradicts them.
    pub hold: bool,
}

impl Checked {
    fn agrees(&self) -> bool {
        self.evidence > 0.0
    }
}

/// Memory of this host that no page measured lies in.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Unmeasured {
    /// Its node by the map, or by the host where no range of the map has it.
    pub node: u8,
    /// Whether a range of the map has it.
    pub mapped: bool,
    /// First byte, hexadecimal.
    pub start: String,
    /// First byte after.
    pub end: String,
    /// Parts of memory in it, as those of [`Swept`].
    #[serde(skip)]
    pub parts: u32,
}

impl Unmeasured {
    fn new(range: &RamRange, mapped: bool) -> Self {
        let part = pool::part_size(std::slice::from_ref(range));
        Self {
            node: range.node,
            mapped,
            start: format!("{:#x}", range.start),
            end: format!("{:#x}", range.end),
            parts: (range.end - range.start).div_ceil(part) as u32,
        }
    }
}

/// How a map stood up.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Over all ranges.
    pub verdict: Verdict,
    /// The parts that were measured.
    pub checked: Vec<Checked>,
    /// The parts that were not.
    pub unmeasured: Vec<Unmeasured>,
}

impl Outcome {
    /// Whether the rows of all that was measured were tested too, and stood up.
    #[must_use]
    pub fn rows_hold(&self) -> bool {
        let hold = |one: &Checked| one.rows.is_some_and(|rows| rows.hold);
        self.checked.iter().all(hold)
    }
}

/// The verdict over all ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything measured agrees.
    Fits,
    /// Something measured contradicts it.
    Contradicted,
    /// Nothing could be measured, or nothing of a whole node or layout, or the map leaves out
    /// memory.
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
) -> Result<(Verdict, usize, ClassProof), Stop> {
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let sorted = Sorted::held(&meter, map);
    let held = sorted.pages.len();
    let (Some(first), Some(last)) = (sorted.pages.first(), sorted.pages.last()) else {
        return Ok((Verdict::Unknown, held, ClassProof::default()));
    };
    let whole = RamRange {
        start: first.0,
        end: last.0 + (1 << map.page_shift),
        node: 0,
    };
    meter.calibrate(&whole)?;
    let proof = prove(&mut meter, &sorted);
    let verdict = match proof {
        _ if proof.holds() => Verdict::Fits,
        ClassProof {
            same: (_, 500..),
            other: (_, 500..),
        } => Verdict::Contradicted,
        _ => Verdict::Unknown,
    };
    Ok((verdict, held, proof))
}

/// Checks `map` against the memory behind `source`. What contradicts it ends the check where
/// a later part can't be measured, or the time is up.
///
/// # Errors
/// When there is nothing to measure.
pub fn check(
    source: &mut dyn TimingSource,
    map: &MapSpec,
    options: &Options,
) -> Result<Outcome, Stop> {
    let parts = parts(source, map);
    let left_out = left_out(source, map);
    let proves = match source.addresses() {
        Addresses::Physical => true,
        Addresses::InsidePages { page_shift } => is_the_same_in_all_pages(map, page_shift),
    };
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let (mut checked, mut bare, mut is_whole) = (Vec::new(), Vec::new(), true);
    for ((_, layout), part) in parts {
        let held: Vec<RamRange> = part.sections.iter().map(|section| section.range).collect();
        bare.extend(part.bare);
        let is_denied = proves && !checked.iter().all(Checked::agrees);
        match check_part(&mut meter, &map.layouts[layout], part.sections) {
            Ok(one) => checked.push(one),
            Err(stop) if is_denied || matches!(stop, Stop::NoMemory | Stop::NotHeld) => {
                bare.extend(held);
                is_whole = false;
            }
            Err(stop) => return Err(stop),
        }
    }
    let verdict = match checked.as_slice() {
        [] => Verdict::Unknown,
        all if all.iter().all(Checked::agrees) && is_whole && left_out.is_empty() => Verdict::Fits,
        all if all.iter().all(Checked::agrees) => Verdict::Unknown,
        _ if proves => Verdict::Contradicted,
        _ => Verdict::Unknown,
    };
    let mapped = bare.iter().map(|range| Unmeasured::new(range, true));
    let left_out = left_out.iter().map(|range| Unmeasured::new(range, false));
    Ok(Outcome {
        verdict,
        checked,
        unmeasured: mapped.chain(left_out).collect(),
    })
}

/// Memory that no range of the map has.
fn left_out(source: &dyn TimingSource, map: &MapSpec) -> Vec<RamRange> {
    if source.addresses() != Addresses::Physical {
        return Vec::new();
    }
    let beside = |ram: RamRange| beside(ram, &map.ranges);
    let mut left: Vec<RamRange> = source.ranges().into_iter().flat_map(beside).collect();
    left.retain(|range| range.end - range.start >= SCRAP);
    left
}

/// Returns the parts of `memory` that lie in none of `ranges`.
fn beside(memory: RamRange, ranges: &[MapRange]) -> Vec<RamRange> {
    let mut left = vec![memory];
    for range in ranges {
        let parts = |ram: &RamRange| {
            let below = (ram.start, ram.end.min(range.start));
            let above = (ram.start.max(range.end), ram.end);
            [below, above].map(|(start, end)| RamRange { start, end, ..*ram })
        };
        left = left.iter().flat_map(parts).collect();
        left.retain(|ram| ram.start < ram.end);
    }
    left
}

/// Whether the map divides any page into banks as any other. Else a page of unknown
/// address may be of another layout than the one that is checked, at another turn of a
/// division, or cut where a range begins.
fn is_the_same_in_all_pages(map: &MapSpec, page_shift: u32) -> bool {
    let page = (1u64 << page_shift) - 1;
    let whole = |range: &MapRange| range.start.wrapping_sub(range.base) & page == 0;
    map.ranges.iter().all(whole)
        && matches!(map.layouts.as_slice(), [one] if one.interleave.is_none())
}

/// The sections of a map of one node and layout, where this host has memory.
#[derive(Default)]
struct Part {
    /// Sections to measure in.
    sections: Vec<Section>,
    /// Memory without a page that can be measured.
    bare: Vec<RamRange>,
}

/// The parts, by node and layout. Inside pages of unknown address every layout could
/// hold; the first one is checked, in one page.
fn parts(source: &dyn TimingSource, map: &MapSpec) -> BTreeMap<(u8, usize), Part> {
    let memory = source.ranges();
    if source.addresses() != Addresses::Physical {
        let page = memory.first().map(|&range| Part {
            sections: vec![Section {
                range,
                shift: range.start,
            }],
            bare: Vec::new(),
        });
        return page.map(|page| ((0, 0), page)).into_iter().collect();
    }
    let mut parts: BTreeMap<(u8, usize), Part> = BTreeMap::new();
    for range in &map.ranges {
        let whole = RamRange {
            start: range.start,
            end: range.end,
            node: range.node,
        };
        let key = (range.node, range.layout);
        if !source.pool().inside(&whole).is_empty() {
            parts.entry(key).or_default().sections.push(Section {
                range: whole,
                shift: range.start.wrapping_sub(range.base),
            });
            continue;
        }
        for bare in memory.iter().filter_map(|ram| common(&whole, ram)) {
            parts.entry(key).or_default().bare.push(bare);
        }
    }
    parts
}

/// The part of `range` that is in `memory`.
fn common(range: &RamRange, memory: &RamRange) -> Option<RamRange> {
    let both = RamRange {
        start: range.start.max(memory.start),
        end: range.end.min(memory.end),
        ..*range
    };
    (both.start < both.end).then_some(both)
}

fn check_part(
    meter: &mut Meter<'_>,
    layout: &Layout,
    sections: Vec<Section>,
) -> Result<Checked, Stop> {
    let (Some(first), Some(last)) = (sections.first(), sections.last()) else {
        return Err(Stop::NoMemory);
    };
    let whole = RamRange {
        end: last.range.end,
        ..first.range
    };
    meter.calibrate(&whole)?;
    let physical = meter.source().addresses() == Addresses::Physical;
    let ranges: Vec<RamRange> = sections.iter().map(|section| section.range).collect();
    let mut model = Model::of(meter, sections, layout.interleave);
    let found = collect(meter, &model, 24, &mut |_| {})?;
    // What never varies in the pool can't be tested.
    let constant = model.differences(meter).nullspace(model.visible);
    let functions = Basis::of(layout.bank_functions().iter().map(|f| f & model.visible));
    model.functions = functions.lightest_beside(&constant);
    let mut proof = Proof::default();
    prove_banks(meter, &model, &mut proof)?;
    let mut swept = Swept::default();
    if physical {
        let anchors = Anchors::of(meter, &model, &model.sections);
        match sweep_into(&mut swept, meter, &model, &ranges, &anchors) {
            // Without time for all of it, what was denied stands.
            Err(Stop::Deadline) if denied(&proof) || !swept.wrong.is_empty() => {}
            all => all?,
        }
    }
    let rows = match physical && proof.banks_hold() {
        // Without time for rows, what banks showed stands.
        true => match check_rows(meter, &mut model, layout, &mut proof) {
            Err(Stop::Deadline) => None,
            rows => rows?,
        },
        false => None,
    };
    let holds = !invents(&proof) && swept.wrong.is_empty() && rows.is_none_or(|rows| rows.hold);
    let evidence = match holds {
        true => log_odds(&proof.same_bank),
        false => log_odds(&proof.same_bank).min(CONTRADICTED),
    };
    let hex = |range: &RamRange| (format!("{:#x}", range.start), format!("{:#x}", range.end));
    let denied = swept.wrong.iter().map(hex).collect();
    let pairs = |tally: &Tally| (tally.held, tally.all);
    Ok(Checked {
        start: format!("{:#x}", whole.start),
        end: format!("{:#x}", whole.end),
        conflicts: pairs(&proof.same_bank),
        others: pairs(&proof.other_bank),
        rows,
        banks: u64::from(model.ways()) << model.functions.len(),
        banks_by_rate: (found.banks() * 10.0).round() / 10.0,
        evidence,
        swept,
        denied,
    })
}

/// Whether lines conflict that the map has in different banks.
fn invents(proof: &Proof) -> bool {
    proof.other_bank.held < proof.other_bank.all
}

/// Whether banks alone contradict the map.
fn denied(proof: &Proof) -> bool {
    invents(proof) || log_odds(&proof.same_bank) <= 0.0
}

/// Returns how much the pairs speak for the map. If the map is wrong, every second prediction
/// fails; if it is right, one in fifty does.
fn log_odds(tally: &Tally) -> f64 {
    let failed = f64::from(tally.all - tally.held);
    f64::from(tally.held) * (0.98f64 / 0.5).ln() + failed * (0.02f64 / 0.5).ln()
}

/// Tests the rows of `layout`, whose banks hold. If they fail, the function finds the rows and
/// compares: a controller that closes rows after a while does not contradict a map.
fn check_rows(
    meter: &mut Meter<'_>,
    model: &mut Model,
    layout: &Layout,
    proof: &mut Proof,
) -> Result<Option<Rows>, Stop> {
    let visible = model.visible;
    let seen = layout.row.iter().map(|row| Term {
        mask: row.mask & visible,
        ..*row
    });
    model.rows = seen.filter(|row| row.mask != 0).collect();
    if model.rows.is_empty() {
        return Ok(None);
    }
    prove_rows(meter, model, proof)?;
    let hold = proof.rows_hold() && !lacks_rows(meter, model)? || {
        let Some(found) = find_rows(meter, model)? else {
            return Ok(None);
        };
        same_rows(meter, model, &found)
    };
    Ok(Some(Rows {
        same: (proof.same_row.held, proof.same_row.all),
        other: (proof.other_row.held, proof.other_row.all),
        untried: proof.untried_rows.len() as u32,
        hold,
    }))
}

/// Whether lines of one bank are of one row by the model's rows where they are by those `found`,
/// but for what never varies in the pool.
fn same_rows(meter: &Meter<'_>, model: &Model, found: &[Term]) -> bool {
    let constant = model.differences(meter).nullspace(model.visible);
    let with = |rows: &[Term]| {
        let rows = rows.iter().map(|row| row.mask);
        let constant = constant.rows().iter().copied();
        Basis::of(model.functions.iter().copied().chain(rows).chain(constant))
    };
    with(&model.rows) == with(found)
}

/// The verdict that a measurement proves. A guest's addresses are not those of DRAM, not even
/// inside a page: that conflicts are not where a map has them is nothing against it.
#[must_use]
pub fn judged(measured: Verdict, is_guest: bool) -> Verdict {
    match measured {
        Verdict::Contradicted if is_guest => Verdict::Unknown,
        verdict => verdict,
    }
}

/// Why a measurement proves nothing, where it does not.
#[must_use]
pub fn why_unknown(verdict: Verdict, found: &Outcome, is_guest: bool) -> Option<&'static str> {
    let checked = &found.checked;
    let agrees = checked.iter().all(Checked::agrees);
    match verdict {
        Verdict::Fits | Verdict::Contradicted => None,
        Verdict::Unknown if checked.is_empty() => Some("nothing could be measured"),
        Verdict::Unknown if agrees && found.unmeasured.iter().any(|range| !range.mapped) => Some(
            "what was measured agrees, but some of this machine's memory is in no range of the \
             map: give the map ranges for it (`soloist map detect` finds them)",
        ),
        Verdict::Unknown if agrees => Some(
            "what was measured agrees, but a whole node or layout was not measured: let this process \
             have memory of all nodes (numactl, cpusets), and more of it (--memory)",
        ),
        Verdict::Unknown if is_guest => Some(
            "the measurement does not agree, but a virtual machine's memory may lie anywhere in its \
             host's, so that nothing is proved; if the host backs it by one piece at the same \
             offsets: --trust-guest",
        ),
        Verdict::Unknown => Some(
            "the measurement does not agree, but it is not known of which part of memory a page is: \
             run it as root, who is told",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_all_ranges_is_left_over() {
        let range = |start, end| MapRange {
            start,
            end,
            node: 0,
            base: start,
            layout: 0,
        };
        let left = |ranges: &[MapRange]| -> Vec<(u64, u64)> {
            let memory = RamRange {
                start: 0x1000,
                end: 0x9000,
                node: 1,
            };
            let left = beside(memory, ranges);
            left.iter().map(|ram| (ram.start, ram.end)).collect()
        };
        assert_eq!(left(&[]), [(0x1000, 0x9000)]);
        assert_eq!(left(&[range(0, 0x4000), range(0x4000, 0x9000)]), []);
        let two = [range(0x6000, 0x10000), range(0x2000, 0x3000)];
        assert_eq!(left(&two), [(0x1000, 0x2000), (0x3000, 0x6000)]);
    }

    #[test]
    fn a_guest_contradicts_no_map() {
        let nothing = Outcome {
            verdict: Verdict::Unknown,
            checked: Vec::new(),
            unmeasured: Vec::new(),
        };
        let why = why_unknown(Verdict::Unknown, &nothing, true);
        assert_eq!(why, Some("nothing could be measured"));
        assert_eq!(why_unknown(Verdict::Fits, &nothing, true), None);
        assert_eq!(judged(Verdict::Contradicted, true), Verdict::Unknown);
        assert_eq!(judged(Verdict::Contradicted, false), Verdict::Contradicted);
        assert_eq!(judged(Verdict::Fits, true), Verdict::Fits);
    }
}
