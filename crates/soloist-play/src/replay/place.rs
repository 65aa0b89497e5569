//! Where the pages of recorded programs lie.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{AddrMap, ColorSet, NumList};
use soloist_record::{Lane, Page, Program};

use super::{Part, ReplayError, Stage};
use crate::linux::own_node;
use crate::placement::buddy::{Buddy, NumaLayout};
use crate::placement::memory::{Allocation, Exhaust, Memory};
use crate::placement::policy::{assign, Policy, Seat, UnknownPolicy};

const PAGE_SHIFT: u32 = 12;
/// log2 of the frames of a block that Linux keeps for what does not move: 2 MiB.
const BLOCK: u32 = 9;
/// Frames of a block that the kernel touched, from which on all of it is taken.
const FULL: u32 = 16;

/// Who decides where pages lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where they lay when the program was recorded.
    Recorded,
    /// Placed anew.
    Policy(Policy),
}

impl Placement {
    /// The name that commands and reports use.
    pub fn name(self) -> String {
        match self {
            Self::Recorded => "recorded".to_owned(),
            Self::Policy(policy) => policy.name().to_owned(),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for Placement {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "recorded" => Ok(Self::Recorded),
            other => other.parse().map(Self::Policy),
        }
    }
}

/// A program's pages.
pub(super) struct Placed {
    /// Physical address of each.
    pub(super) frames: Arc<[u64]>,
    /// Node of each.
    pub(super) nodes: Vec<u32>,
    /// Of them, out of colour.
    pub(super) spilled: u64,
}

/// Places the pages of all parts.
pub(super) fn place(
    stage: &Stage,
    placement: Placement,
    seed: u64,
) -> Result<Vec<Placed>, ReplayError> {
    let (frames, colors) = match placement {
        Placement::Recorded => (recorded(stage), asked_for(stage)?),
        Placement::Policy(policy) => {
            let colors = colors(stage, policy)?;
            (anew(stage, policy, &colors, seed)?, colors)
        }
    };
    let map = &stage.platform.memory.map;
    let node = |frame: &u64| {
        let mut ranges = map.ranges();
        let range = ranges.find(|r| (r.start..r.end).contains(frame));
        range.map(|r| r.node)
    };
    let parts = stage.parts.iter().zip(&colors);
    frames
        .into_iter()
        .zip(parts)
        .map(|(frames, (part, colors))| {
            let nodes: Option<Vec<u32>> = frames.iter().map(node).collect();
            let Some(nodes) = nodes else {
                return Err(ReplayError::Misfit(
                    "recorded on another machine: its pages lie where this one has no memory; \
                     place them anew with --recolor"
                        .to_owned(),
                ));
            };
            let spilled = colors
                .as_ref()
                .map_or(0, |colors| out_of(colors, map, part, &frames));
            Ok(Placed {
                frames: frames.into(),
                nodes,
                spilled,
            })
        })
        .collect()
}

/// Pages of user space whose frames lie out of the colours: those that the program
/// had before it was coloured or shares with others, and those for which its colours
/// had no frame left.
fn out_of(colors: &ColorSet, map: &AddrMap, part: &Part, frames: &[u64]) -> u64 {
    let lies_out = |&(page, frame): &(&Page, &u64)| {
        let color = map.color_of_frame(frame >> PAGE_SHIFT);
        page.user && !color.is_some_and(|c| colors.holds(c.bank_set, c.llc))
    };
    part.program
        .pages
        .iter()
        .zip(frames)
        .filter(lies_out)
        .count() as u64
}

/// The colours that the module was asked for when the parts were recorded.
fn asked_for(stage: &Stage) -> Result<Vec<Option<ColorSet>>, ReplayError> {
    let map = &stage.platform.memory.map;
    let of = |part: &Part| {
        let mut colors = None;
        for setting in &part.settings {
            let list = |limit: u32, value: &str| {
                let wrong = |e| ReplayError::Misfit(format!("`{}`: {setting}: {e}", part.name));
                NumList::parse(value, limit).map_err(wrong)
            };
            let before = || colors.clone().unwrap_or_else(|| ColorSet::any(map));
            let with = match setting.split_once('=') {
                Some(("bank_set", value)) => {
                    before().with_sets(list(map.n_bank_sets(), value)?.iter())
                }
                Some(("llc_color", value)) => before().with_llc(list(map.n_llc(), value)?.iter()),
                _ => continue,
            };
            colors = Some(with);
        }
        Ok(colors)
    };
    stage.parts.iter().map(of).collect()
}

type Frames = Vec<Vec<u64>>;

fn recorded(stage: &Stage) -> Frames {
    let frames = |part: &Part| {
        let pages = part.program.pages.iter();
        pages.map(|page| page.phys << PAGE_SHIFT).collect()
    };
    stage.parts.iter().map(frames).collect()
}

fn anew(
    stage: &Stage,
    policy: Policy,
    colors: &[Option<ColorSet>],
    seed: u64,
) -> Result<Frames, ReplayError> {
    let platform = &stage.platform;
    let map = &platform.memory.map;
    let layout = NumaLayout {
        node_of_cpu: platform.node_of_core.iter().map(|&n| n as u32).collect(),
        distance: platform
            .hops
            .iter()
            .map(|row| row.iter().map(|&h| h as u32).collect())
            .collect(),
    };
    let mut buddy = Buddy::new(map, layout, stage.history, seed);
    let stays = kernel_frames(stage);
    let taken: BTreeSet<u32> = stays.iter().flatten().flatten().copied().collect();
    // Colours take frame by frame what is free. Linux splits whole blocks and hands them
    // out, and what does not move has blocks of its own: it would not come to the pieces
    // that are left around these frames, so there they are passed over.
    if !policy.uncolored() {
        take(&taken, &mut buddy);
    }
    let mut memory = Memory::new(map, buddy).as_the_module();
    let mut theirs = allocations(stage, policy, colors);
    let mut frames: Vec<Vec<u64>> = stage.parts.iter().map(|_| Vec::new()).collect();
    for (i, page) in order(stage, seed) {
        if let Some(frame) = stays[i][page] {
            frames[i].push(u64::from(frame) << PAGE_SHIFT);
            continue;
        }
        let program = &stage.parts[i].program;
        let page = program.pages[page];
        let allocation = &mut theirs[i].of(program, page.thread)[usize::from(!page.user)];
        let free = loop {
            match memory.page(allocation) {
                Ok(frame) if taken.contains(&frame) => {}
                other => break other,
            }
        };
        let frame = free.map_err(|source| ReplayError::Memory {
            policy: policy.name().to_owned(),
            program: stage.parts[i].name.clone(),
            source,
        })?;
        frames[i].push(u64::from(frame) << PAGE_SHIFT);
    }
    Ok(frames)
}

/// Takes the kernel's frames, and the whole of each block that has many: a recording
/// names only those that were touched, not the rest of its page array.
fn take(frames: &BTreeSet<u32>, buddy: &mut Buddy) {
    let mut of_block: BTreeMap<u32, u32> = BTreeMap::new();
    for &frame in frames {
        buddy.take_frame(frame);
        *of_block.entry(frame >> BLOCK).or_default() += 1;
    }
    let full = of_block.into_iter().filter(|&(_, frames)| frames >= FULL);
    for frame in full.flat_map(|(block, _)| block << BLOCK..(block + 1) << BLOCK) {
        buddy.take_frame(frame);
    }
}

/// Page by page of each part, the frame of what is the kernel's alone: no policy moves
/// that, and on the machine that it was recorded on it stays where it was. Of several
/// recordings each has a kernel of its own, and an imported trace does not say where a
/// page was: none.
fn kernel_frames(stage: &Stage) -> Vec<Vec<Option<u32>>> {
    let platform = &stage.platform;
    let stays = together(stage) && stage.parts[0].machine == platform.memory.name;
    let of = |page: &Page| {
        let at = page.phys << PAGE_SHIFT;
        let mut ranges = platform.memory.map.ranges();
        let there = ranges.any(|r| (r.start..r.end).contains(&at));
        (stays && !page.user && there).then_some(page.phys as u32)
    };
    let parts = stage.parts.iter();
    parts
        .map(|part| part.program.pages.iter().map(of).collect())
        .collect()
}

/// How a part gets pages: in its colours and, for the kernel's, without, on the
/// processor of each of its lanes.
struct Allocations {
    lanes: Vec<Lane>,
    of_lane: Vec<[Allocation; 2]>,
}

impl Allocations {
    /// Of the lane that has the thread.
    fn of(&mut self, program: &Program, thread: u32) -> &mut [Allocation; 2] {
        let has = |lane: &Lane| program.is_of(lane, thread);
        let lane = self.lanes.iter().position(has).unwrap_or(0);
        &mut self.of_lane[lane]
    }
}

fn allocations(stage: &Stage, policy: Policy, colors: &[Option<ColorSet>]) -> Vec<Allocations> {
    let map = &stage.platform.memory.map;
    let first = stage.parts[0].cores[0];
    let of_part = |(i, (part, colors)): (usize, (&Part, &Option<ColorSet>))| {
        let own = (policy == Policy::Membind).then(|| own_node(&stage.platform, first, i));
        let of = |core: usize, colors| {
            Allocation::new(map, i as u32, core as u32, colors, Exhaust::Spill)
                .interleaved(policy == Policy::Interleave)
                .bound_to(own)
        };
        let both = |&core: &usize| [of(core, colors.as_ref()), of(core, None)];
        Allocations {
            lanes: part.program.lanes(),
            of_lane: part.cores.iter().map(both).collect(),
        }
    };
    let parts = stage.parts.iter().zip(colors).enumerate();
    parts.map(of_part).collect()
}

/// Whether all were recorded together.
fn together(stage: &Stage) -> bool {
    let first = &stage.parts[0].recording;
    stage.parts.iter().all(|p| p.recording == *first)
}

/// Part and page, in the order of first touches: as it was where all were recorded
/// together, else turns drawn from the seed.
fn order(stage: &Stage, seed: u64) -> Vec<(usize, usize)> {
    let parts = &stage.parts;
    let pages = |i: usize| (0..parts[i].program.pages.len()).map(move |page| (i, page));
    let mut all: Vec<(usize, usize)> = (0..parts.len()).flat_map(pages).collect();
    if together(stage) {
        all.sort_by_key(|&(i, page)| parts[i].program.pages[page].order);
        return all;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x7061_6765);
    let mut next = vec![0; parts.len()];
    let mut left: Vec<usize> = (0..parts.len())
        .filter(|&i| !parts[i].program.pages.is_empty())
        .collect();
    all.clear();
    while !left.is_empty() {
        let turn = rng.gen_range(0..left.len());
        let i = left[turn];
        all.push((i, next[i]));
        next[i] += 1;
        if next[i] == parts[i].program.pages.len() {
            left.swap_remove(turn);
        }
    }
    all
}

/// The colours of each part; `None`: uncoloured.
fn colors(stage: &Stage, policy: Policy) -> Result<Vec<Option<ColorSet>>, ReplayError> {
    let seats: Vec<Seat> = stage
        .parts
        .iter()
        .map(|part| Seat {
            node: stage.platform.home(part.cores[0]),
            sets: stage.sets,
        })
        .collect();
    assign(policy, &stage.platform.memory.map, &seats).map_err(|source| ReplayError::Colors {
        policy: policy.name().to_owned(),
        source,
    })
}
