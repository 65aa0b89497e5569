//! The memory of a modelled machine: uncoloured pages from the buddy model,
//! coloured ones from the frame lists of core/, which the kernel module runs.

use soloist_core::{AddrMap, ColorSet, FillLimits, FrameLists};

use super::buddy::Buddy;
use super::module::{CpuLists, Sites};

/// What a task gets when its colours have no page left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhaust {
    /// Nothing: the task ends.
    Fail,
    /// Any page, the local node first; counted.
    Spill,
}

/// There is no page for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{lack} after {pages} pages")]
pub struct Exhausted {
    /// What has no page left.
    pub lack: Lack,
    /// Pages that the task had got.
    pub pages: u64,
}

/// What has no page left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// The task's colours, and the policy is [`Exhaust::Fail`].
    #[error("no page left in the task's colours")]
    Colors,
    /// The node that a policy binds the task to.
    #[error("node {0} has no page left")]
    Node(u32),
    /// All of memory.
    #[error("no node has a page left")]
    Memory,
}

/// One task's way of getting pages.
pub struct Allocation {
    owner: u32,
    cpu: u32,
    /// Cells to take from; empty: uncoloured.
    cells: Vec<u32>,
    /// The same, those of the local node and the others; set at first use.
    by_distance: Option<[Vec<u32>; 2]>,
    next: usize,
    exhaust: Exhaust,
    ignores_nodes: bool,
    /// Uncoloured pages come from this node only.
    bound: Option<u32>,
    /// Uncoloured pages come from all nodes in turn.
    interleaved: bool,
    /// Its CPU's, where pages come as the module hands them out.
    cpu_lists: Option<CpuLists>,
    /// Pages handed out.
    pub pages: u64,
    /// Of these, out of colour.
    pub spilled: u64,
}

impl Allocation {
    /// For the task `owner` on `cpu` with these colours (`None`: uncoloured).
    pub fn new(
        map: &AddrMap,
        owner: u32,
        cpu: u32,
        colors: Option<&ColorSet>,
        exhaust: Exhaust,
    ) -> Self {
        Self {
            owner,
            cpu,
            cells: colors.map_or_else(Vec::new, |c| c.cells(map)),
            by_distance: None,
            next: 0,
            exhaust,
            ignores_nodes: false,
            bound: None,
            interleaved: false,
            cpu_lists: None,
            pages: 0,
            spilled: 0,
        }
    }

    /// Takes pages in colour from all nodes in turn, not the local one's first.
    pub fn from_anywhere(mut self, ignores_nodes: bool) -> Self {
        self.ignores_nodes = ignores_nodes;
        self
    }

    /// Takes uncoloured pages from all nodes in turn, as numactl's
    /// `--interleave` does.
    pub fn interleaved(mut self, interleaved: bool) -> Self {
        self.interleaved = interleaved;
        self
    }

    /// Binds it to a node, as numactl's `--membind` does; colours name nodes
    /// already.
    pub fn bound_to(mut self, node: Option<u32>) -> Self {
        self.bound = node;
        self
    }
}

/// All memory of the machine.
pub struct Memory {
    /// The system's free memory.
    pub buddy: Buddy,
    lists: FrameLists,
    /// The nodes that have any.
    nodes: Vec<u32>,
    /// Of the module; `None`: coloured pages come as the papers say.
    sites: Option<Sites>,
}

impl Memory {
    /// Nothing coloured yet.
    pub fn new(map: &AddrMap, buddy: Buddy) -> Self {
        Self {
            buddy,
            lists: FrameLists::new(map),
            nodes: map.memory_nodes(),
            sites: None,
        }
    }

    /// Hands coloured pages out in the module's order, those of the nearest node
    /// first whatever the policy, not in that of the papers' algorithms.
    pub fn as_the_module(mut self) -> Self {
        self.sites = Some(Sites::new(self.lists.map()));
        self
    }

    /// A page for the next first touch of the task.
    pub fn page(&mut self, task: &mut Allocation) -> Result<u32, Exhausted> {
        let page = if task.cells.is_empty() {
            match task.bound {
                Some(node) => self.buddy.page_on(task.cpu, node),
                None if task.interleaved => self.buddy.page_on(task.cpu, self.turn(task)),
                None => self.buddy.page(task.cpu),
            }
        } else {
            self.colored(task)
        };
        match page.or_else(|| self.spill(task)) {
            Some(pfn) => {
                task.pages += 1;
                Ok(pfn)
            }
            None => Err(Exhausted {
                lack: self.lack(task),
                pages: task.pages,
            }),
        }
    }

    /// What has no page for the task.
    fn lack(&self, task: &Allocation) -> Lack {
        match (task.cells.is_empty(), task.exhaust, task.bound) {
            (false, Exhaust::Fail, _) => Lack::Colors,
            (false, Exhaust::Spill, _) => Lack::Memory,
            (true, _, Some(node)) => Lack::Node(node),
            (true, ..) if task.interleaved => Lack::Node(self.turn(task)),
            (true, ..) => Lack::Memory,
        }
    }

    /// The node whose turn it is for a task that takes pages of all.
    fn turn(&self, task: &Allocation) -> u32 {
        self.nodes[task.pages as usize % self.nodes.len()]
    }

    fn spill(&mut self, task: &mut Allocation) -> Option<u32> {
        if task.exhaust == Exhaust::Fail || task.cells.is_empty() {
            return None;
        }
        let pfn = self.buddy.page(task.cpu)?;
        task.spilled += 1;
        Some(pfn)
    }

    /// Round robin over the task's cells, those of the local node while they
    /// last unless it does not know nodes.
    fn colored(&mut self, task: &mut Allocation) -> Option<u32> {
        if let Some(sites) = &mut self.sites {
            let (map, buddy) = (self.lists.map(), &self.buddy);
            let near = |node| buddy.distance(task.cpu, node);
            let cpu_lists = task
                .cpu_lists
                .get_or_insert_with(|| CpuLists::new(map, &task.cells, near));
            return cpu_lists.page(task.owner, &mut self.lists, &mut self.buddy, sites);
        }
        let by_distance = match task.by_distance.take() {
            Some(known) => known,
            None => self.by_distance(task),
        };
        let page = by_distance
            .iter()
            .filter(|cells| !cells.is_empty())
            .find_map(|cells| self.take_from(task, cells));
        task.by_distance = Some(by_distance);
        page
    }

    fn by_distance(&self, task: &Allocation) -> [Vec<u32>; 2] {
        if task.ignores_nodes {
            return [task.cells.clone(), Vec::new()];
        }
        let local = self.buddy.node_of_cpu(task.cpu);
        let map = self.lists.map();
        let (near, far) = task
            .cells
            .iter()
            .partition(|&&cell| map.node_of_set(cell / map.n_llc()) == local);
        [near, far]
    }

    fn take_from(&mut self, task: &mut Allocation, cells: &[u32]) -> Option<u32> {
        let n = cells.len();
        let first = task.next % n;
        task.next = self.lists.map().cells_turn(cells, first, 1);
        if let Some(pfn) = self.get(cells[first], task.owner) {
            return Some(pfn);
        }
        // Fill for this very cell, so that pages spread evenly over all.
        let filled = self
            .lists
            .fill(&mut self.buddy, &[cells[first]], FillLimits::default());
        debug_assert!(filled.is_ok(), "the buddy model gave a bad block");
        (0..n).find_map(|turns| {
            let at = self.lists.map().cells_turn(cells, first, turns);
            self.get(cells[at], task.owner)
        })
    }

    fn get(&mut self, cell: u32, owner: u32) -> Option<u32> {
        self.lists.get(cell, owner, false).map(|(pfn, _)| pfn)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::placement::buddy::{History, NumaLayout};
    use crate::placement::SMALL_MAP;
    use crate::policy::{self, camc, Policy as _, Tenant};

    fn layout() -> NumaLayout {
        NumaLayout {
            node_of_cpu: vec![0, 0, 1, 1],
            distance: vec![vec![10, 16], vec![16, 10]],
        }
    }

    fn memory(map: &AddrMap) -> Memory {
        let history = History {
            used: 0.2,
            scatter: 0.3,
        };
        Memory::new(map, Buddy::new(map, layout(), history, 7))
    }

    #[test]
    fn every_policy_places_pages_where_it_says() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let tenants = [0, 0, 1, 1].map(|node| Tenant { node, sets: 1 });
        for policy in policy::all() {
            let given = policy.colors(&map, &tenants).unwrap();
            let mut memory = memory(&map);
            for (i, colors) in given.iter().enumerate() {
                let cpu = i as u32;
                let mut task = Allocation::new(&map, cpu, cpu, colors.as_ref(), Exhaust::Fail);
                for _ in 0..100 {
                    let pfn = memory.page(&mut task).unwrap();
                    let frame = map.color_of_frame(pfn.into()).unwrap();
                    if let Some(colors) = colors {
                        assert!(colors.holds(frame.bank_set, frame.llc), "{policy}");
                    } else {
                        assert_eq!(frame.node, tenants[i].node, "{policy}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_private_bank_runs_out_or_spills() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let tenant = [Tenant { node: 0, sets: 1 }];
        let colors = camc::AUTO.colors(&map, &tenant).unwrap();
        let frames = map.set_frames(colors[0].as_ref().unwrap().sets().unwrap().first().unwrap());
        for exhaust in [Exhaust::Fail, Exhaust::Spill] {
            let mut memory = memory(&map);
            let mut task = Allocation::new(&map, 0, 0, colors[0].as_ref(), exhaust);
            let got = (0..frames + 100)
                .take_while(|_| memory.page(&mut task).is_ok())
                .count() as u64;
            match exhaust {
                // A fifth of the machine is in use by its history.
                Exhaust::Fail => assert!(got < frames && got > frames / 2, "{got} of {frames}"),
                Exhaust::Spill => assert_eq!(got, frames + 100),
            }
        }
    }

    /// What is out of pages: colours, a node, or all memory.
    #[test]
    fn who_gets_no_page_is_told_of_what() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let colors = camc::AUTO
            .colors(&map, &[Tenant { node: 0, sets: 1 }])
            .unwrap();
        let why = |colors: Option<&ColorSet>, node| {
            let mut memory = memory(&map);
            let task = Allocation::new(&map, 0, 0, colors, Exhaust::Fail);
            let mut task = task.bound_to(node);
            let refused = (0..=map.end_pfn()).find_map(|_| memory.page(&mut task).err());
            refused.unwrap().to_string()
        };
        assert!(why(colors[0].as_ref(), None).starts_with("no page left in the task's colours"));
        assert!(why(None, Some(1)).starts_with("node 1 has no page left"));
        assert!(why(None, None).starts_with("no node has a page left"));
    }

    #[test]
    fn history_takes_as_much_as_it_says() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let whole = Buddy::new(&map, layout(), History::FRESH, 0).free_frames(0);
        for used in [0.1, 0.5, 0.9] {
            for scatter in [0.0, 0.3, 1.0] {
                let buddy = Buddy::new(&map, layout(), History { used, scatter }, 3);
                let left = buddy.free_frames(0) as f64 / whole as f64;
                assert!(
                    (left - (1.0 - used)).abs() < 0.001,
                    "{used} {scatter} {left}"
                );
            }
        }
    }

    #[test]
    fn buddies_merge_back_to_what_they_were() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let mut buddy = Buddy::new(&map, layout(), History::FRESH, 0);
        let whole = buddy.free_frames(0);
        let taken: Vec<u32> = (0..1000).map(|_| buddy.take(0, 0).unwrap()).collect();
        assert_eq!(buddy.free_frames(0), whole - 1000);
        for pfn in taken {
            buddy.give(pfn, 0);
        }
        assert_eq!(buddy.free_frames(0), whole);
        assert!((0..32).all(|_| buddy.take(0, 10).is_some()));
    }
}
