//! Where the pages of a stage's programs lie: the one placer.
//!
//! Pages are handed out one by one, in the order of first touches: to a
//! seat in its colours, or without for what the kernel alone uses. The first thread of a
//! program takes all pages that its threads share, each on the core of the thread that
//! touches it first.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{ColorSet, FRAME_SHIFT};
use soloist_memory::Platform;

use crate::placement::buddy::{Buddy, NumaLayout};
use crate::placement::memory::{Allocation, Exhausted, Memory};
use crate::placement::FreeMemory;
use crate::policy::Tenant;
use crate::stage::{Seat, Stage, StageError, Touches};

/// log2 of the frames of a block that Linux keeps for what does not move: 2 MiB.
const BLOCK: u32 = 9;
/// Frames of a block that stay, from which on all of it is taken.
const FULL: u32 = 16;

/// Where a seat's pages lie.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed {
    /// The frame of each page.
    pub(crate) frames: Vec<u32>,
    /// Of its own pages, those that came out of its colours.
    pub(crate) spilled: u64,
}

/// The colours of each seat by the stage's policy; `None`: uncoloured.
pub(crate) fn colors(stage: &Stage) -> Result<Vec<Option<ColorSet>>, StageError> {
    let mut tenants: Vec<Tenant> = Vec::new();
    for seat in &stage.seats {
        if seat.owner == tenants.len() {
            let home = || stage.platform.home(seat.core);
            tenants.push(Tenant {
                node: seat.node.unwrap_or_else(home),
                sets: seat.sets,
            });
        }
    }
    let map = &stage.platform.memory.map;
    let colors = stage.policy.colors(map, &tenants);
    let colors = colors.map_err(StageError::Colors)?;
    let of_seat = |seat: &Seat| colors[seat.owner].clone();
    Ok(stage.seats.iter().map(of_seat).collect())
}

/// Places all pages of all seats.
pub(crate) fn place(stage: &Stage, colors: &[Option<ColorSet>]) -> Result<Vec<Placed>, StageError> {
    let seats = &stage.seats;
    let mut placed = vec![Placed::default(); seats.len()];
    let mut source = None;
    for (seat, page) in touches(stage) {
        let frame = match seats[seat].stays(page) {
            Some(frame) => frame,
            None => source
                .get_or_insert_with(|| Source::new(stage, colors))
                .frame(seat, page)
                .map_err(|source| StageError::Memory {
                    seat,
                    bytes: seats[seat].program.bytes(),
                    source,
                })?,
        };
        placed[seat].frames.push(frame);
    }
    if let Some(source) = &source {
        for (placed, [colored, _]) in placed.iter_mut().zip(&source.allocations) {
            placed.spilled = colored.spilled;
        }
    }
    share(seats, &mut placed);
    Ok(placed)
}

/// Gives all threads of a program the frames that they share.
fn share(seats: &[Seat], placed: &mut [Placed]) {
    let mut shared = Vec::new();
    for (placed, seat) in placed.iter_mut().zip(seats) {
        if seat.thread == 0 {
            let pages = seat.program.shared_pages() as usize;
            shared = placed.frames[..pages].to_vec();
        } else {
            placed.frames.splice(..0, shared.iter().copied());
        }
    }
}

/// Seat and page, in the order of first touches.
fn touches(stage: &Stage) -> Vec<(usize, u64)> {
    // Threads but the first come behind what all share.
    let first = |seat: &Seat| match seat.thread {
        0 => 0,
        _ => seat.program.shared_pages(),
    };
    let pages = |seat: &Seat| first(seat)..seat.program.bytes().div_ceil(1 << FRAME_SHIFT);
    let pages = stage.seats.iter().map(pages);
    match &stage.touches {
        Touches::Drawn => drawn(pages.enumerate().collect(), stage.seed),
        Touches::InTurn => in_turn(pages.collect()),
        Touches::Recorded(touches) => touches.clone(),
    }
}

type Range = std::ops::Range<u64>;

fn drawn(mut left: Vec<(usize, Range)>, seed: u64) -> Vec<(usize, u64)> {
    left.retain(|(_, pages)| !pages.is_empty());
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x7061_6765);
    let mut all = Vec::new();
    while !left.is_empty() {
        let turn = rng.gen_range(0..left.len());
        let (seat, pages) = &mut left[turn];
        all.extend(pages.next().map(|page| (*seat, page)));
        if pages.is_empty() {
            left.swap_remove(turn);
        }
    }
    all
}

fn in_turn(pages: Vec<Range>) -> Vec<(usize, u64)> {
    let most = pages.iter().map(|pages| pages.end).max().unwrap_or(0);
    let turn = |page| {
        let seats = pages.iter().enumerate();
        let has_it = move |&(_, pages): &(usize, &Range)| pages.contains(&page);
        seats.filter(has_it).map(move |(seat, _)| (seat, page))
    };
    (0..most).flat_map(turn).collect()
}

/// The machine's memory, and how each seat gets pages of it.
struct Source<'a> {
    seats: &'a [Seat],
    memory: Memory,
    /// In a seat's colours, and without.
    allocations: Vec<[Allocation; 2]>,
    /// Frames that nobody gets.
    taken: BTreeSet<u32>,
}

impl<'a> Source<'a> {
    fn new(stage: &'a Stage, colors: &[Option<ColorSet>]) -> Self {
        let map = &stage.platform.memory.map;
        let FreeMemory {
            history,
            as_the_module,
            ..
        } = stage.memory;
        let mut buddy = Buddy::new(map, layout(stage.platform), history, stage.seed);
        let stay = stage.seats.iter().flat_map(|seat| &seat.stay);
        let taken: BTreeSet<u32> = stay.flatten().copied().collect();
        // Colours take frame by frame what is free. Linux splits whole blocks and hands
        // them out, and what does not move has blocks of its own: it would not come to
        // the pieces that are left around these frames, so there they are passed over.
        if stage.policy.is_colored() {
            take(&taken, &mut buddy);
        }
        let memory = Memory::new(map, buddy);
        Self {
            seats: &stage.seats,
            memory: match as_the_module {
                true => memory.as_the_module(),
                false => memory,
            },
            allocations: allocations(stage, colors),
            taken,
        }
    }

    fn frame(&mut self, seat: usize, page: u64) -> Result<u32, Exhausted> {
        let program = &self.seats[seat].program;
        let by = match page < program.shared_pages() {
            true => seat + program.first_thread(page),
            false => seat,
        };
        let allocation = &mut self.allocations[by][usize::from(!program.colored(page))];
        loop {
            match self.memory.page(allocation) {
                Ok(frame) if self.taken.contains(&frame) => {}
                other => return other,
            }
        }
    }
}

fn layout(platform: &Platform) -> NumaLayout {
    let row = |row: &Vec<usize>| row.iter().map(|&hops| hops as u32).collect();
    NumaLayout {
        node_of_cpu: platform.node_of_core.iter().map(|&n| n as u32).collect(),
        distance: platform.hops.iter().map(row).collect(),
    }
}

/// Takes frames that stay, and the whole of each block that has many: a recording
/// names only those that were touched, not the rest of the kernel's page array.
fn take(frames: &BTreeSet<u32>, buddy: &mut Buddy) {
    let mut in_block: BTreeMap<u32, u32> = BTreeMap::new();
    for &frame in frames {
        buddy.take_frame(frame);
        *in_block.entry(frame >> BLOCK).or_default() += 1;
    }
    let full = in_block.into_iter().filter(|&(_, frames)| frames >= FULL);
    for frame in full.flat_map(|(block, _)| block << BLOCK..(block + 1) << BLOCK) {
        buddy.take_frame(frame);
    }
}

fn allocations(stage: &Stage, colors: &[Option<ColorSet>]) -> Vec<[Allocation; 2]> {
    let map = &stage.platform.memory.map;
    let policy = stage.policy;
    let programs = stage.seats.iter().filter(|seat| seat.thread == 0);
    let home = |seat: &Seat| seat.node.unwrap_or_else(|| stage.platform.home(seat.core));
    let nodes = policy.nodes(map, &programs.map(home).collect::<Vec<_>>());
    let (mut nodes, mut own) = (nodes.into_iter(), None);
    let mut all = Vec::new();
    for (seat, colors) in stage.seats.iter().zip(colors) {
        if seat.thread == 0 {
            own = nodes.next().flatten();
        }
        let node = seat.node.or(own);
        let allocation = |colors: Option<&ColorSet>| {
            let owner = seat.owner as u32;
            Allocation::new(map, owner, seat.first_touch, colors, stage.memory.exhaust)
                .from_anywhere(policy.ignores_nodes())
                .interleaved(policy.interleaves())
                .bound_to(node)
        };
        all.push([allocation(colors.as_ref()), allocation(None)]);
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use soloist_core::AddrMap;

    use super::*;
    use crate::placement::buddy::History;
    use crate::placement::SMALL_MAP;

    /// A block that many frames of stay is taken as far as there is memory.
    #[test]
    fn memory_need_not_end_with_a_block() {
        let layout = NumaLayout {
            node_of_cpu: vec![0],
            distance: vec![vec![10]],
        };
        let two_nodes = "0x8000000 node 0\nrange 0x8000000 0x10000000 node 1";
        let map = SMALL_MAP.replace(two_nodes, "0x7ff0000 node 0");
        let map = AddrMap::parse(&map).unwrap();
        let mut buddy = Buddy::new(&map, layout, History::FRESH, 1);
        let before = buddy.free_frames(0);
        take(&(0x7e00..0x7e00 + FULL).collect(), &mut buddy);
        assert_eq!(before - buddy.free_frames(0), 0x1f0);
    }
}
