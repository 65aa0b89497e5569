//! Detection: finds the map of the memory behind a [`TimingSource`].
//!
//! Per piece of memory that the operating system shows: find the levels
//! ([`meter`]), solve the bank functions and row bits ([`region`]), and where
//! one layout does not explain the piece, find where it ends and go on behind
//! (modules of different sizes make such maps). Then pieces with the same
//! functions share a layout. Every result carries the measurements that bear
//! it out; what could not be seen or explained is said.

pub mod check;
pub mod classes;
pub mod cpu;
pub mod frames;
pub mod hardware;
pub mod llc;
pub mod meter;
pub mod one_bank;
pub mod proof;
pub mod region;
pub mod sim;
pub mod source;

use std::time::Duration;

use serde::Serialize;

use crate::function::show_terms;
use crate::gf2::{self, Basis};
use crate::spec::{Layout, MapRange, MapSpec};
use meter::{Levels, Meter, Stop};
use region::{Region, Shifts};
use source::{Addresses, OsRange, TimingSource};

/// Smallest piece that a layout is looked for in.
const SMALLEST: u64 = 32 << 20;
/// Ends of layouts are found to this granularity.
const EDGE: u64 = 2 << 20;
/// Huge pages sorted into classes if nothing else is asked for.
const CLASS_PAGES: usize = 64;
/// Frames sorted into classes if nothing else is asked for.
const CLASS_FRAMES: usize = 256;

/// How to detect.
#[derive(Debug, Clone)]
pub struct Options {
    /// Stop after this; what was found until then is returned.
    pub deadline: Duration,
    /// Seed of the detector's random choices.
    pub seed: u64,
    /// Pages to sort into classes where addresses are not physical: huge ones
    /// with functions inside, else frames of 4 KiB.
    pub class_pages: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            seed: 1,
            class_pages: None,
        }
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Detected {
    /// Colours by measured class, where addresses are not physical.
    pub classes: Option<classes::Classes>,
    /// The regions, ascending.
    pub regions: Vec<Region>,
    /// Memory that no layout was found for, and why.
    pub unsolved: Vec<(OsRange, Stop)>,
    /// What the addresses mean.
    pub addresses: Addresses,
    /// Raw samples taken.
    pub samples: u64,
    /// Time it took.
    pub elapsed: Duration,
}

/// One line of a report about a region.
#[derive(Debug, Clone, Serialize)]
pub struct RegionReport {
    /// First byte, hexadecimal.
    pub start: String,
    /// First byte after, hexadecimal.
    pub end: String,
    /// Node.
    pub node: u8,
    /// Offset of the first byte within its node.
    pub base: String,
    /// Bank functions.
    pub functions: Vec<String>,
    /// Row bits.
    pub rows: String,
    /// Lowest and highest address bit that could be seen.
    pub visible: (u32, u32),
    /// Banks by the functions.
    pub banks: u64,
    /// Banks by how often random pairs conflict.
    pub banks_by_rate: f64,
    /// 0 to 1.
    pub confidence: f64,
    /// Fresh pairs that were predicted to conflict: held, all.
    pub predicted_conflicts: (u32, u32),
    /// Fresh pairs that were predicted not to: held, all.
    pub predicted_others: (u32, u32),
    /// The levels.
    pub levels: Levels,
}

impl From<&Region> for RegionReport {
    fn from(region: &Region) -> Self {
        let line = region.visible.trailing_zeros();
        Self {
            start: format!("{:#x}", region.range.start),
            end: format!("{:#x}", region.range.end),
            node: region.range.node,
            base: format!("{:#x}", region.base),
            functions: region.functions.iter().map(|&f| gf2::show(f)).collect(),
            rows: show_terms(&region.rows),
            visible: (line, 63 - region.visible.leading_zeros().min(63)),
            banks: 1 << region.functions.len(),
            banks_by_rate: (region.banks_by_rate * 10.0).round() / 10.0,
            confidence: region.confidence(),
            predicted_conflicts: region.hits,
            predicted_others: region.rejections,
            levels: region.levels,
        }
    }
}

/// Finds the map. `progress` is told what is being done and how far, 0 to 1.
pub fn detect(
    source: &mut dyn TimingSource,
    options: &Options,
    progress: &mut dyn FnMut(&str, f64),
) -> Detected {
    let ranges = pieces(source);
    let addresses = source.addresses();
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let mut regions: Vec<Region> = Vec::new();
    let mut unsolved = Vec::new();
    for (i, range) in ranges.iter().enumerate() {
        let mut tell = |share: f64| {
            let all = (i as f64 + share) / ranges.len() as f64;
            progress("measuring", all);
        };
        cover(&mut meter, range, &mut regions, &mut unsolved, &mut tell);
    }
    let mut classes = None;
    if let Addresses::InsidePages { page_shift } = addresses {
        let known = regions
            .first()
            .filter(|known| known.is_sound() && !known.functions.is_empty());
        let mut tell = |share: f64| progress("sorting pages into classes", share);
        let limit = |usual| options.class_pages.unwrap_or(usual);
        classes = match known {
            Some(known) => {
                let limit = limit(CLASS_PAGES);
                let found = classes::classify(&mut meter, known, page_shift, limit, &mut tell);
                Some(found)
            }
            None => {
                let pool = meter.source().ranges();
                frames::classify(&mut meter, &pool, limit(CLASS_FRAMES), &mut tell).ok()
            }
        };
    }
    Detected {
        classes,
        regions,
        unsolved,
        addresses,
        samples: meter.samples(),
        elapsed: meter.elapsed(),
    }
}

/// Pieces worth solving: all of physical memory, or the first pages whose
/// addresses are not known (they all have the same functions).
fn pieces(source: &dyn TimingSource) -> Vec<OsRange> {
    let ranges = source.ranges();
    match source.addresses() {
        Addresses::Physical => ranges
            .into_iter()
            .filter(|range| range.end - range.start >= SMALLEST)
            .collect(),
        // Inside a frame there is hardly a second row to conflict with.
        Addresses::InsidePages { page_shift } if page_shift <= frames::FRAME_SHIFT => Vec::new(),
        Addresses::InsidePages { .. } => ranges.into_iter().take(1).collect(),
    }
}

/// Solves a piece, layout after layout.
fn cover(
    meter: &mut Meter<'_>,
    piece: &OsRange,
    regions: &mut Vec<Region>,
    unsolved: &mut Vec<(OsRange, Stop)>,
    progress: &mut dyn FnMut(f64),
) {
    let mut rest = *piece;
    while rest.start < rest.end {
        let shifts = likely_bases(&rest, regions);
        match first_region(meter, &rest, &shifts, progress) {
            Ok(region) => {
                rest.start = region.range.end;
                regions.push(region);
            }
            Err(stop) => {
                unsolved.push((rest, stop));
                return;
            }
        }
        if rest.end - rest.start < EDGE {
            return;
        }
    }
}

/// Where a piece may begin within its node, likeliest first: behind what the
/// node has already, at the start of its module, or at its physical address.
fn likely_bases(range: &OsRange, regions: &[Region]) -> Shifts {
    let behind = regions
        .iter()
        .filter(|region| region.range.node == range.node)
        .map(|region| region.range.end - region.range.start)
        .sum();
    let mut likely = vec![behind];
    for base in [0, range.start] {
        if !likely.contains(&base) {
            likely.push(base);
        }
    }
    Shifts { likely }
}

/// The longest region at the start of `range` that one layout explains.
fn first_region(
    meter: &mut Meter<'_>,
    range: &OsRange,
    shifts: &Shifts,
    progress: &mut dyn FnMut(f64),
) -> Result<Region, Stop> {
    let whole = region::solve(meter, range, shifts, progress)?;
    if whole.is_explained() || meter.source().addresses() != Addresses::Physical {
        return Ok(whole);
    }
    // Solve a part small enough to have one layout, follow it to its end,
    // and solve again over all that it reaches.
    let mut part = *range;
    while part.end - part.start > SMALLEST {
        part.end = part.start + ((part.end - part.start) / 2 / EDGE).max(1) * EDGE;
        let local = region::solve(meter, &part, shifts, progress)?;
        if !local.is_explained() {
            continue;
        }
        let end = reach(meter, &local, range)?;
        let reached = OsRange { end, ..*range };
        let full = region::solve(meter, &reached, shifts, progress)?;
        return Ok(if full.is_explained() { full } else { local });
    }
    Ok(whole)
}

/// Where the layout of `known`, which begins at the start of `range`, ends.
fn reach(meter: &mut Meter<'_>, known: &Region, range: &OsRange) -> Result<u64, Stop> {
    let steps = (range.end - range.start) / EDGE;
    let mut good = (known.range.end - range.start) / EDGE;
    let mut bad = steps;
    // Coarse first: the layout may come back later.
    let stride = (steps / 64).max(1);
    let mut at = good;
    while at < steps {
        if !same_layout(meter, known, range.start + at * EDGE)? {
            bad = at;
            break;
        }
        good = at;
        at += stride;
    }
    while good + 1 < bad {
        let middle = (good + bad) / 2;
        if same_layout(meter, known, range.start + middle * EDGE)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(if bad == steps {
        range.end
    } else {
        range.start + bad * EDGE
    })
}

/// Whether the block at `start` follows the functions of `known`, by
/// differences inside the block.
fn same_layout(meter: &mut Meter<'_>, known: &Region, start: u64) -> Result<bool, Stop> {
    // Large enough for three row bits: without rows there is no conflict.
    let first_row = known.rows.first().map_or(0, |row| row.mask);
    let size = EDGE.max(first_row << 3);
    let start = start / size * size;
    let block = Region {
        range: OsRange {
            start,
            end: start + size,
            node: known.range.node,
        },
        base: known.base + (start - known.range.start),
        visible: known.visible & (size - 1),
        ..known.clone()
    };
    let local = Basis::of(known.functions.iter().map(|f| f & block.visible)).lightest();
    let same_bank = Basis::of(local.iter().copied()).nullspace(block.visible);
    // With the highest bit, a row bit, the row differs for certain.
    let mut others = same_bank.clone();
    let row = others.take_highest();
    let mut wrong = |fixed: u64, space: &Basis, conflict: bool, tests: u32| {
        let mut share = (0u32, 0u32);
        for _ in 0..tests {
            if let Some((a, b)) = region::partner(meter, &block, space, fixed)? {
                share.1 += 1;
                share.0 += u32::from(meter.is_conflict(a, b, 100.0)? != conflict);
            }
        }
        Ok(share)
    };
    // In a foreign layout every second prediction of a conflict fails, or all
    // others for a function that it lacks.
    let (bad, all) = wrong(row, &others, true, 24)?;
    if bad * 6 > all {
        return Ok(false);
    }
    for i in 0..local.len() {
        if let Some(flip) = region::flip_only(&local, i, block.visible) {
            // In the same row nothing conflicts, whatever the layout.
            let top = row.checked_ilog2().map_or(0, |bit| 1 << bit);
            let flip = if flip & top == 0 { flip ^ row } else { flip };
            let (bad, all) = wrong(flip, &others, false, 6)?;
            if bad * 2 > all {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

impl Detected {
    /// Whether everything that was looked at is explained.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        if let Some(classes) = &self.classes {
            return classes.proof.holds();
        }
        self.unsolved.is_empty()
            && !self.regions.is_empty()
            && self.regions.iter().all(Region::is_explained)
    }

    /// What a reader of the map must know: confidence, what was not seen.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "Found by timing row conflicts. Timing tells banks apart but not what makes them: channel,"
                .to_owned(),
            "rank and bank bits are all listed as bank; bits below a cache line can't be seen.".to_owned(),
        ];
        for region in &self.regions {
            notes.push(format!(
                "{:#x} to {:#x}: confidence {:.2}, {} banks by functions, {:.0} by the rate of conflicts",
                region.range.start,
                region.range.end - 1,
                region.confidence(),
                1u64 << region.functions.len(),
                region.banks_by_rate
            ));
        }
        for (range, stop) in &self.unsolved {
            notes.push(format!(
                "{:#x} to {:#x}: {stop}",
                range.start,
                range.end - 1
            ));
        }
        notes
    }

    /// The map: one layout for all regions with the same functions. `None`
    /// when the addresses that were measured are not physical ones, or
    /// nothing was found.
    #[must_use]
    pub fn map(&self) -> Option<MapSpec> {
        if self.addresses != Addresses::Physical || self.regions.is_empty() {
            return None;
        }
        let mut spec = MapSpec {
            line: 64,
            llc: Vec::new(),
            layouts: Vec::new(),
            ranges: Vec::new(),
        };
        // The widest regions first: they see the most bits.
        let mut order: Vec<&Region> = self.regions.iter().collect();
        order.sort_by_key(|region| std::cmp::Reverse(region.visible));
        for region in order {
            let layout = spec
                .layouts
                .iter()
                .position(|layout| agrees(layout, region))
                .unwrap_or_else(|| {
                    spec.layouts.push(layout_of(region));
                    spec.layouts.len() - 1
                });
            spec.ranges.push(MapRange {
                start: region.range.start,
                end: region.range.end,
                node: region.range.node,
                base: region.base,
                layout,
            });
        }
        spec.ranges.sort_by_key(|range| range.start);
        for (i, layout) in spec.layouts.iter_mut().enumerate() {
            layout.name = format!("layout{i}");
        }
        if let [only] = spec.layouts.as_mut_slice() {
            only.name.clear();
        }
        spec.complete(64);
        Some(spec)
    }
}

/// Whether a region's functions are those of `layout`, as far as it sees.
fn agrees(layout: &Layout, region: &Region) -> bool {
    let seen = |masks: Vec<u64>| Basis::of(masks.into_iter().map(|mask| mask & region.visible));
    let banks = seen(layout.bank_functions());
    let mut rows = banks.clone();
    rows.extend(seen(layout.row_masks()).rows().iter().copied());
    let mut found = Basis::of(region.functions.iter().copied());
    let same_banks = banks == found;
    found.extend(region.rows.iter().map(|term| term.mask));
    same_banks && rows == found
}

/// Timing can't tell channel, rank and bank apart: all are bank bits.
fn layout_of(region: &Region) -> Layout {
    Layout {
        bank: region.functions.clone(),
        row: region.rows.clone(),
        ..Layout::default()
    }
}
