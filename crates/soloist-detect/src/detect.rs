//! Detection: finds the map of the memory behind a [`TimingSource`].
//!
//! Pages are taken from all over memory ([`pool`]). Node by node ([`solve_node`]) its
//! [layouts](crate::layout) are found. Where a bit never varied in the pool, or another map
//! fits as well, the report says so, and the map is incomplete.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use soloist_core::{AddrMap, Interleave};
use soloist_machine::function::show_terms;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::{Layout, MapRange, MapSpec, RamRange};

use crate::classes::{self, classify, frames};
use crate::layout::names::{self, Names};
use crate::layout::node::solve_node;
use crate::layout::prove::Tally;
use crate::layout::region::Region;
use crate::meter::{Levels, Meter, Stop};
use crate::timing::{pool, Addresses, TimingSource};
use crate::Options;

/// Huge pages sorted into classes if nothing else is asked for.
const CLASS_PAGES: usize = 64;
/// Frames sorted into classes if nothing else is asked for.
const CLASS_FRAMES: usize = 256;

/// What was found.
#[derive(Debug, Clone)]
pub struct Detected {
    /// Colours by measured class, where addresses are not physical.
    pub classes: Option<classes::Classes>,
    /// The regions, ascending.
    pub regions: Vec<Region>,
    /// Memory that no layout was found for, and why.
    pub unsolved: Vec<(RamRange, Stop)>,
    /// Memory too small to be measured, taken to be as its neighbours.
    pub assumed: Vec<RamRange>,
    /// What the addresses mean.
    pub addresses: Addresses,
    /// Raw samples taken.
    pub samples: u64,
    /// Time it took.
    pub elapsed: Duration,
}

/// What a report says of a layout.
#[derive(Debug, Clone, Serialize)]
pub struct RegionReport {
    /// Its memory: first byte, first byte after, offset in the node of the
    /// first byte; hexadecimal.
    pub ranges: Vec<(String, String, String)>,
    /// Node.
    pub node: u8,
    /// The division that channels come from, if they do.
    pub division: Option<Interleave>,
    /// Bank functions, over what a division leaves.
    pub functions: Vec<String>,
    /// Row bits.
    pub rows: String,
    /// Lowest and highest address bit that could be seen.
    pub visible: (u32, u32),
    /// Banks by the functions.
    pub banks: u64,
    /// Banks by how often random pairs conflict.
    pub banks_by_rate: f64,
    /// Probability that banks and rows are right, 0 to 1.
    pub confidence: f64,
    /// Whether nothing is left open.
    pub complete: bool,
    /// Questions that are open, a sentence each.
    pub open: Vec<String>,
    /// Fresh pairs of one bank: conflicted, all.
    pub same_bank: Tally,
    /// Combinations of bank functions without a conflict, all tried.
    pub other_bank: Tally,
    /// Fresh pairs of one row without a conflict, all.
    pub same_row: Tally,
    /// Combinations of row functions with a conflict, all tried.
    pub other_row: Tally,
    /// The levels.
    pub levels: Levels,
    /// What some of the functions are.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub names: Names,
}

impl From<&Region> for RegionReport {
    fn from(region: &Region) -> Self {
        let model = &region.model;
        let hex = |n: u64| format!("{n:#x}");
        let proof = &region.proof;
        Self {
            ranges: region
                .ranges
                .iter()
                .map(|range| {
                    let base = model.base(range.start).unwrap_or(0);
                    (hex(range.start), hex(range.end), hex(base))
                })
                .collect(),
            node: region.node(),
            division: region.division,
            functions: model.functions.iter().map(|&f| gf2::show(f)).collect(),
            rows: show_terms(&model.rows),
            visible: (
                model.visible.trailing_zeros(),
                63 - model.visible.leading_zeros().min(63),
            ),
            banks: region.banks(),
            banks_by_rate: (region.banks_by_rate * 10.0).round() / 10.0,
            confidence: region.confidence(),
            complete: region.is_complete(),
            open: region.open(),
            same_bank: proof.same_bank,
            other_bank: proof.other_bank,
            same_row: proof.same_row,
            other_row: proof.other_row,
            levels: region.levels,
            names: region.names.clone(),
        }
    }
}

/// Finds the map. `progress` is told what is being done and how far, 0 to 1.
pub fn detect(
    source: &mut dyn TimingSource,
    options: &Options,
    progress: &mut dyn FnMut(&str, f64),
) -> Detected {
    let addresses = source.addresses();
    let nodes = memory_of_nodes(source);
    let lifted = source.lifted();
    let mut meter = Meter::new(source, options.deadline, options.seed);
    let mut found = Detected {
        classes: None,
        regions: Vec::new(),
        unsolved: Vec::new(),
        assumed: Vec::new(),
        addresses,
        samples: 0,
        elapsed: Duration::ZERO,
    };
    for (i, ranges) in nodes.iter().enumerate() {
        let mut tell = |share: f64| {
            progress("measuring", (i as f64 + share) / nodes.len() as f64);
        };
        let node = solve_node(&mut meter, ranges, lifted, &mut tell);
        found.regions.extend(node.regions);
        found.unsolved.extend(node.unsolved);
        found.assumed.extend(node.assumed);
    }
    if addresses == Addresses::Physical {
        // Rows must be known to be kept open. Without names the map is as right.
        for region in found.regions.iter_mut().filter(|r| r.is_complete()) {
            region.names = names::find(&mut meter, &region.model).unwrap_or_default();
        }
    }
    if let Addresses::InsidePages { page_shift } = addresses {
        let known = found.regions.first().filter(|known| known.is_sound());
        let mut tell = |share: f64| progress("sorting pages into classes", share);
        let limit = |usual| options.class_pages.unwrap_or(usual);
        found.classes = match known {
            Some(known) => {
                let limit = limit(CLASS_PAGES);
                let model = &known.model;
                let found = classify::classify(&mut meter, model, page_shift, limit, &mut tell);
                Some(found)
            }
            None => {
                let pool = meter.source().ranges();
                frames::classify(&mut meter, &pool, limit(CLASS_FRAMES), &mut tell).ok()
            }
        };
    }
    found.samples = meter.samples();
    found.elapsed = meter.elapsed();
    found
}

/// Memory worth solving, by node: all of it, or the first of the pages whose
/// addresses are not known (they all have the same functions).
fn memory_of_nodes(source: &dyn TimingSource) -> Vec<Vec<RamRange>> {
    let ranges = source.ranges();
    match source.addresses() {
        Addresses::Physical => pool::of_nodes(&ranges),
        // Inside a frame there is hardly a second row to conflict with.
        Addresses::InsidePages { page_shift } if page_shift <= frames::FRAME_SHIFT => Vec::new(),
        Addresses::InsidePages { .. } => {
            vec![ranges.into_iter().take(1).collect()]
        }
    }
}

impl Detected {
    /// Whether everything that was looked at is explained, and nothing is left
    /// open.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        if let Some(classes) = &self.classes {
            return classes.proof.holds();
        }
        self.unsolved.is_empty()
            && !self.regions.is_empty()
            && self.regions.iter().all(Region::is_complete)
            && self.open().is_empty()
    }

    /// Probability that banks and rows of all memory are right, as far as they
    /// could be measured; 0 where none could, or core refuses the map.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        if self.refused().is_some() {
            return 0.0;
        }
        let all = self.regions.iter().map(Region::confidence);
        all.reduce(f64::min).unwrap_or(0.0)
    }

    /// What is open between layouts, a sentence each.
    #[must_use]
    pub fn open(&self) -> Vec<String> {
        // A division without functions is no layout.
        let known = |region: &&Region| region.is_sound() || region.division.is_none();
        let linear = self.regions.iter().filter(known);
        let mut nodes: Vec<u8> = linear.map(Region::node).collect();
        nodes.sort_unstable();
        let twice = nodes.windows(2).find(|two| two[0] == two[1]);
        let twice = twice.map(|two| {
            format!(
                "node {} has several layouts: which banks of the one are those of the other is \
                 not known",
                two[0]
            )
        });
        twice.into_iter().chain(self.refused()).collect()
    }

    /// Why nothing could load the map, if so: two addresses that are one place,
    /// say, which pairs of lines need not show.
    fn refused(&self) -> Option<String> {
        let map = self.map()?.to_text("found");
        let refusal = AddrMap::parse(&map).err()?;
        Some(format!("no map can be made of it: {refusal}"))
    }

    /// What a reader of the map must know: confidence, what was not seen.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "Found by timing row conflicts, which tell banks apart but not what makes them: functions"
                .to_owned(),
            "without a name below are listed as bank; bits below a cache line can't be seen.".to_owned(),
        ];
        for region in &self.regions {
            let start = region.ranges.first().map_or(0, |range| range.start);
            notes.push(format!(
                "from {start:#x}: confidence {:.2}, {} banks by functions, {:.0} by the rate of conflicts",
                region.confidence(),
                region.banks(),
                region.banks_by_rate
            ));
            notes.extend(region.names.said());
            notes.extend(
                region
                    .open()
                    .into_iter()
                    .map(|open| format!("open: {open}")),
            );
        }
        notes.extend(self.open().into_iter().map(|open| format!("open: {open}")));
        for (range, stop) in &self.unsolved {
            notes.push(format!(
                "{:#x} to {:#x}: {stop}",
                range.start,
                range.end - 1
            ));
        }
        for range in &self.assumed {
            notes.push(format!(
                "{:#x} to {:#x}: not measured, taken to be as its neighbour",
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
        let sound: Vec<&Region> = self.regions.iter().filter(|r| r.is_sound()).collect();
        if self.addresses != Addresses::Physical || sound.is_empty() {
            return None;
        }
        let mut spec = MapSpec {
            line: 64,
            llc: Vec::new(),
            layouts: Vec::new(),
            ranges: Vec::new(),
        };
        // The widest regions first: they see the most bits.
        let mut order = sound;
        order.sort_by_key(|region| std::cmp::Reverse(region.model.visible));
        let mut ends: BTreeMap<u8, u64> = BTreeMap::new();
        for region in order {
            let layout = spec
                .layouts
                .iter()
                .position(|layout| agrees(layout, region))
                .unwrap_or_else(|| {
                    spec.layouts.push(layout_of(region));
                    spec.layouts.len() - 1
                });
            // Layouts of one node must not overlap in their offsets.
            let model = &region.model;
            let offsets = |range: &RamRange| model.base(range.start).unwrap_or(0);
            let low = region.ranges.iter().map(offsets).min().unwrap_or(0);
            let behind = ends.get(&region.node()).copied().unwrap_or(0);
            let size = (model.visible + 1) * u64::from(model.ways());
            let moved = match behind > low {
                true => behind.div_ceil(size.next_power_of_two()) * size.next_power_of_two(),
                false => 0,
            };
            for range in &region.ranges {
                let base = offsets(range) + moved;
                let end = ends.entry(range.node).or_default();
                *end = (*end).max(base + (range.end - range.start));
                spec.ranges.push(MapRange {
                    start: range.start,
                    end: range.end,
                    node: range.node,
                    base,
                    layout,
                });
            }
        }
        spec.ranges.sort_by_key(|range| range.start);
        for (i, layout) in spec.layouts.iter_mut().enumerate() {
            layout.name = format!("layout{i}");
        }
        if let [only] = spec.layouts.as_mut_slice() {
            only.name.clear();
        }
        // Where rows are not known, what is left over is not all columns.
        if spec.layouts.iter().all(|layout| !layout.row.is_empty()) {
            spec.complete(64);
        }
        Some(spec)
    }
}

/// Whether a region's functions are those of `layout`, as far as it sees.
fn agrees(layout: &Layout, region: &Region) -> bool {
    let seen =
        |masks: Vec<u64>| Basis::of(masks.into_iter().map(|mask| mask & region.model.visible));
    let banks = seen(layout.bank_functions());
    let mut rows = banks.clone();
    rows.extend(seen(layout.row_masks()).rows().iter().copied());
    let mut found = Basis::of(region.model.functions.iter().copied());
    let same_banks = banks == found && layout.interleave == region.model.division;
    found.extend(region.model.rows.iter().map(|term| term.mask));
    same_banks && rows == found
}

/// A function without a sure name is listed as bank.
fn layout_of(region: &Region) -> Layout {
    let (functions, names) = (&region.model.functions, &region.names);
    let [channel, rank, group] = [&names.channel, &names.rank, &names.group].map(Names::sure);
    let known = Basis::of([channel, rank, group].concat());
    let rest = match known.rank() {
        0 => functions.clone(),
        _ => Basis::of(functions.iter().copied()).lightest_beside(&known),
    };
    Layout {
        interleave: region.model.division,
        channel: channel.to_vec(),
        rank: rank.to_vec(),
        bank: [group, &rest].concat(),
        bank_group: (0..group.len() as u8).collect(),
        row: region.model.rows.clone(),
        ..Layout::default()
    }
}
