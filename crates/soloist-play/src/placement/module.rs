//! Coloured pages in the order in which the kernel module hands them out.
//!
//! The papers split whole blocks and list every frame of them
//! ([`super::memory`]). The module takes single frames of a cell instead, region by
//! region from the top of the node (kernel/frames/refill.c), for each of the next
//! cells that has none listed (`fill_next` of kernel/supply/supply.c), and
//! hands them out in turn, through the batches of a per-CPU list
//! (kernel/frames/cpu_list.c).
//! Which frames of a bank follow each other decides how often its row stays open,
//! so what is recorded under the module can only be placed alike in the same order.
//!
//! Left out: watermarks, ZONE_DMA, what is freed and handed out again, budgets, the
//! rungs below refilling (kernel/fault/request.c).

use soloist_core::{AddrMap, FrameLists, FRAME_SHIFT};

use super::buddy::Buddy;

/// log2 of a region's frames: `SOL_REGION_ORDER`.
const REGION: u32 = 10;
/// `SOL_BATCHES`, `SOL_BATCH_FRAMES`: batches of a per-CPU list, frames of a batch.
const BATCHES: usize = 16;
const BATCH_FRAMES: usize = 4;
/// `SOL_SCAN_CELLS`: cells that a refill looks at.
const SCAN_CELLS: usize = 32;
/// `SOL_REFILL_MAX`: frames that a refill takes.
const REFILL_MAX: u32 = 32;

/// How far the refills of each cell have come; of the whole machine.
pub(super) struct Sites(Vec<Site>);

#[derive(Clone, Copy)]
struct Site {
    /// The walk is in the region below this one, behind `step` of its frames.
    region: u64,
    step: u64,
    /// What the next refill takes; 0: none was yet.
    batch: u32,
}

impl Site {
    /// `sol_refill_batch`: a frame the first two times, then twice as many each time.
    fn batch(&mut self) -> u32 {
        let batch = self.batch.max(1);
        self.batch = (self.batch * 2).clamp(1, REFILL_MAX);
        batch
    }
}

impl Sites {
    pub(super) fn new(map: &AddrMap) -> Self {
        let start = Site {
            region: u64::MAX,
            step: 0,
            batch: 0,
        };
        Self(vec![start; map.n_cells() as usize])
    }

    /// Lists some more frames of `cell`.
    fn refill(&mut self, cell: u32, lists: &mut FrameLists, buddy: &mut Buddy) {
        let map = lists.map().clone();
        let node = map.node_of_set(cell / map.n_llc());
        let ranges: Vec<(u64, u64)> = map
            .ranges()
            .filter(|r| r.node == node)
            .map(|r| (r.start >> FRAME_SHIFT, r.end >> FRAME_SHIFT))
            .collect();
        let size = 1 << REGION;
        let regions: u64 = ranges
            .iter()
            .map(|(start, end)| end.div_ceil(size) - start / size)
            .sum();
        let site = &mut self.0[cell as usize];
        let want = site.batch();
        let (mut got, mut vain) = (0, 0);
        while got < want && vain <= regions {
            let limit = site.region.saturating_mul(size);
            let Some(&(start, end)) = ranges.iter().rev().find(|(start, _)| *start < limit) else {
                // Round again.
                (site.region, site.step) = (u64::MAX, 0);
                vain += u64::from(ranges.is_empty()) * (regions + 1);
                continue;
            };
            let region = site.region.min(end.div_ceil(size)) - 1;
            let base = region * size;
            let before = got;
            let mut at = start.max(base + site.step);
            let until = end.min(base + size);
            while at < until && got < want {
                if map.cell_of_frame(at) == Some(cell) && buddy.take_frame(at as u32) {
                    // A frame of the machine in no list.
                    let added = lists.add(at as u32, false);
                    debug_assert!(added.is_ok(), "the buddy model gave a listed frame");
                    got += 1;
                }
                at += 1;
            }
            (site.region, site.step) = if at < until {
                (region + 1, at - base)
            } else {
                (region, 0)
            };
            vain = if got > before { 0 } else { vain + 1 };
        }
    }
}

/// A task's per-CPU lists, node by node.
#[derive(Default)]
pub(super) struct CpuLists(Vec<CpuList>);

/// A per-CPU list: frames of a task's cells on one node, in batches.
#[derive(Default)]
struct CpuList {
    cells: Vec<u32>,
    cursor: usize,
    next: usize,
    /// Batches that the last filling found frames for.
    filled: usize,
    batches: [Vec<u32>; BATCHES],
}

impl CpuLists {
    /// For cells that are sorted by node; `near` tells how far away a node is.
    pub(super) fn new(map: &AddrMap, cells: &[u32], near: impl Fn(u32) -> u32) -> Self {
        let node = |cell: &u32| map.node_of_set(cell / map.n_llc());
        let mut cpu_lists: Vec<CpuList> = cells
            .chunk_by(|a, b| node(a) == node(b))
            .map(|cells| CpuList {
                cells: cells.to_vec(),
                ..CpuList::default()
            })
            .collect();
        cpu_lists.sort_by_key(|m| near(node(&m.cells[0])));
        Self(cpu_lists)
    }

    /// The next page, of the nearest node that has one.
    pub(super) fn page(
        &mut self,
        owner: u32,
        lists: &mut FrameLists,
        buddy: &mut Buddy,
        sites: &mut Sites,
    ) -> Option<u32> {
        self.0
            .iter_mut()
            .find_map(|list| list.page(owner, lists, buddy, sites))
    }
}

impl CpuList {
    fn page(
        &mut self,
        owner: u32,
        lists: &mut FrameLists,
        buddy: &mut Buddy,
        sites: &mut Sites,
    ) -> Option<u32> {
        if let Some(frame) = self.pop() {
            return Some(frame);
        }
        self.refill_turn(lists, buddy, sites);
        self.fill(owner, lists);
        self.pop()
            .or_else(|| self.listed(owner, lists))
            .or_else(|| self.refilled(owner, lists, buddy, sites))
    }

    /// The next frame: the batches take turns.
    fn pop(&mut self) -> Option<u32> {
        let batches = self.filled.max(1);
        (0..batches).find_map(|_| {
            let turn = self.next % batches;
            self.next += 1;
            self.batches[turn].pop()
        })
    }

    /// Frames for the cells whose turn it is and that have none listed.
    fn refill_turn(&mut self, lists: &mut FrameLists, buddy: &mut Buddy, sites: &mut Sites) {
        let mut listed = 0;
        for turns in 0..self.cells.len().min(SCAN_CELLS) {
            if listed == BATCHES {
                return;
            }
            let at = lists.map().cells_turn(&self.cells, self.cursor, turns);
            let cell = self.cells[at];
            if lists.listed(cell) == 0 {
                sites.refill(cell, lists, buddy);
            }
            listed += usize::from(lists.listed(cell) > 0);
        }
    }

    /// Fills the batches from the lists of the next cells: as many frames of each, so
    /// that all end together.
    fn fill(&mut self, owner: u32, lists: &mut FrameLists) {
        (self.filled, self.next) = (0, 0);
        for _ in 0..self.cells.len().clamp(BATCHES, SCAN_CELLS) {
            if self.filled == BATCHES {
                break;
            }
            let cell = self.cells[self.cursor];
            let batch = &mut self.batches[self.filled];
            batch.extend(
                (0..BATCH_FRAMES).map_while(|_| lists.get(cell, owner, false).map(|f| f.0)),
            );
            self.filled += usize::from(!batch.is_empty());
            self.cursor = lists.map().cells_turn(&self.cells, self.cursor, 1);
        }
        let batches = &mut self.batches[..self.filled];
        let least = batches.iter().map(Vec::len).min().unwrap_or(0);
        for frame in batches
            .iter_mut()
            .flat_map(|batch| batch.drain(least..).rev())
        {
            let put = lists.put(frame, false);
            debug_assert!(put.is_ok(), "a frame that was just taken");
        }
    }

    /// A page of the first cell from the cursor on that has one listed.
    fn listed(&mut self, owner: u32, lists: &mut FrameLists) -> Option<u32> {
        (0..self.cells.len()).find_map(|turns| {
            let map = lists.map().clone();
            let at = map.cells_turn(&self.cells, self.cursor, turns);
            let (frame, _) = lists.get(self.cells[at], owner, false)?;
            self.cursor = map.cells_turn(&self.cells, at, 1);
            Some(frame)
        })
    }

    /// A page of the first cell from the cursor on that can be refilled. The cursor
    /// stays there, as the module's does: what follows is of the same cell.
    fn refilled(
        &mut self,
        owner: u32,
        lists: &mut FrameLists,
        buddy: &mut Buddy,
        sites: &mut Sites,
    ) -> Option<u32> {
        (0..self.cells.len()).find_map(|turns| {
            let at = lists.map().cells_turn(&self.cells, self.cursor, turns);
            let cell = self.cells[at];
            sites.refill(cell, lists, buddy);
            let (frame, _) = lists.get(cell, owner, false)?;
            self.cursor = at;
            Some(frame)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::placement::buddy::{History, NumaLayout};
    use crate::placement::SMALL_MAP;

    struct Machine {
        lists: FrameLists,
        buddy: Buddy,
        sites: Sites,
        cpu_lists: CpuLists,
    }

    /// A task with bank set 0 of node 0, with all its cache colours.
    fn machine() -> Machine {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let layout = NumaLayout {
            node_of_cpu: vec![0, 1],
            distance: vec![vec![10, 16], vec![16, 10]],
        };
        let cells: Vec<u32> = (0..map.n_llc())
            .filter(|&llc| map.cell_frames(0, llc) > 0)
            .collect();
        Machine {
            cpu_lists: CpuLists::new(&map, &cells, |node| node),
            sites: Sites::new(&map),
            buddy: Buddy::new(&map, layout, History::FRESH, 0),
            lists: FrameLists::new(&map),
        }
    }

    impl Machine {
        fn page(&mut self) -> Option<u32> {
            self.cpu_lists
                .page(7, &mut self.lists, &mut self.buddy, &mut self.sites)
        }
    }

    /// As it was recorded under a 6.12 kernel: from the top of the node, and a page of
    /// each cell after the other.
    #[test]
    fn pages_come_from_the_top_and_cells_in_turn() {
        let mut machine = machine();
        let pages: Vec<u32> = (0..64).map(|_| machine.page().unwrap()).collect();
        assert!(pages.iter().all(|p| *p >= 0x7000), "{pages:x?}");
        for neighbours in pages.chunks(8) {
            let cells: Vec<u32> = neighbours.iter().map(|p| p & 7).collect();
            assert_eq!(cells, [0, 1, 2, 3, 4, 5, 6, 7], "{pages:x?}");
        }
    }

    /// Two rounds of a frame from each cell, then one of two, of four.
    #[test]
    fn refills_grow_as_the_modules_do() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let mut sites = Sites::new(&map);
        let batches = [1, 1, 2, 4, 8, 16, 32, 32];
        assert_eq!(batches.map(|_| sites.0[0].batch()), batches);
    }

    /// A change of the module must show here: what was measured under it would be
    /// placed in another order.
    #[test]
    fn the_module_has_the_same_numbers() {
        let file = |name: &str| {
            let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/frames/");
            std::fs::read_to_string(format!("{dir}{name}")).unwrap()
        };
        let header = ["cpu_list.h", "solver.h", "refill.h"].map(file).concat();
        let define = |name: &str| {
            let mut lines = header.lines().filter_map(|l| l.strip_prefix("#define "));
            let value = lines.find_map(|l| l.strip_prefix(name)).unwrap();
            let value = value.split_whitespace().next().unwrap();
            value.trim_end_matches('u').parse::<u32>().unwrap()
        };
        assert_eq!(define("SOL_BATCHES"), BATCHES as u32);
        assert_eq!(define("SOL_BATCH_FRAMES"), BATCH_FRAMES as u32);
        assert_eq!(define("SOL_SCAN_CELLS"), SCAN_CELLS as u32);
        assert_eq!(define("SOL_REGION_ORDER"), REGION);
        assert_eq!(define("SOL_REFILL_MAX"), REFILL_MAX);
    }

    #[test]
    fn every_page_comes_once_and_in_colour() {
        let mut machine = machine();
        let all = machine.lists.map().set_frames(0);
        let mut pages: Vec<u32> = std::iter::from_fn(|| machine.page()).collect();
        let map = machine.lists.map();
        assert!(pages
            .iter()
            .all(|&p| map.color_of_frame(p.into()).unwrap().bank_set == 0));
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len() as u64, all);
    }
}
