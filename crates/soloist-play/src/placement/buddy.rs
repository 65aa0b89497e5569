//! A model of Linux' page allocator: where an uncoloured page really comes
//! from.
//!
//! What it has, because it decides which banks a task's pages share: free
//! lists per node and order with splitting and merging of buddies, last in
//! first out; per-CPU lists of single pages refilled in batches, so that
//! neighbouring frames go to *different* CPUs in turn when they fault at the
//! same time; node-local first touch with fallback to the nearest other node;
//! a seeded history of allocations that leaves memory fragmented, as that of
//! any machine that has been up for a while. What it leaves out: migrate
//! types, watermarks above zero, zones below 4 GiB, reclaim.
//!
//! Source: Linux mm/page_alloc.c (rmqueue, expand, `__free_one_page`,
//! rmqueue_bulk), whose batch of 63 pages is [`BATCH`].

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{AddrMap, Block, Source, FRAME_SHIFT};

/// Highest order of a free block: 4 MiB.
pub const MAX_ORDER: u32 = 10;
/// Pages that a per-CPU list takes at once.
pub const BATCH: usize = 63;

/// Places tried for a piece of what is in use before any is taken.
const TRIES: u32 = 16;

const NOT_FREE: u8 = u8::MAX;

/// What happened on the machine before the experiment began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct History {
    /// Share of each node's memory that stays in use (kernel, page cache).
    pub used: f64,
    /// How finely what is used is scattered: 0 one solid piece, 1 single
    /// pages all over.
    pub scatter: f64,
}

impl History {
    /// A machine that has just booted: nothing in use.
    pub const FRESH: Self = Self {
        used: 0.0,
        scatter: 0.0,
    };
}

/// Distances between nodes, and the nodes of cores.
#[derive(Debug, Clone)]
pub struct NumaLayout {
    /// Node of each CPU.
    pub node_of_cpu: Vec<u32>,
    /// Distance from node to node, smaller is nearer; row of the node.
    pub distance: Vec<Vec<u32>>,
}

/// Free memory of a machine.
pub struct Buddy {
    /// Order of the free block that starts at a frame, or `NOT_FREE`.
    order_of: Vec<u8>,
    /// Free blocks per node and order; entries may be stale, `order_of` says.
    free: Vec<Vec<Vec<u32>>>,
    /// Node of each range of frames, ascending.
    ranges: Vec<(u32, u32, u32)>,
    free_frames: Vec<u64>,
    /// Per-CPU lists of single pages, one per node that the CPU allocates of.
    pcp: Vec<Vec<Vec<u32>>>,
    layout: NumaLayout,
    /// Nodes by distance, per node: the fallback list.
    fallback: Vec<Vec<u32>>,
}

impl Buddy {
    /// The free memory of `map`'s machine after `history`.
    pub fn new(map: &AddrMap, layout: NumaLayout, history: History, seed: u64) -> Self {
        // Some may have cores alone, above all that have memory.
        let nodes = layout.distance.len().max(map.n_nodes() as usize);
        let ranges: Vec<_> = map
            .ranges()
            .map(|r| {
                (
                    (r.start >> FRAME_SHIFT) as u32,
                    (r.end >> FRAME_SHIFT) as u32,
                    r.node,
                )
            })
            .collect();
        let fallback = (0..nodes)
            .map(|from| {
                let mut order: Vec<u32> = (0..nodes as u32).collect();
                order.sort_by_key(|&to| (layout.distance[from][to as usize], to));
                order
            })
            .collect();
        let mut buddy = Self {
            order_of: vec![NOT_FREE; map.end_pfn() as usize],
            free: vec![vec![Vec::new(); MAX_ORDER as usize + 1]; nodes],
            free_frames: vec![0; nodes],
            pcp: vec![vec![Vec::new(); nodes]; layout.node_of_cpu.len()],
            ranges,
            layout,
            fallback,
        };
        buddy.release_all();
        buddy.age(history, seed);
        buddy
    }

    /// Puts all memory on the lists, the way that boot does: highest blocks
    /// first, so that they are dealt out from low addresses.
    fn release_all(&mut self) {
        for (start, end, node) in self.ranges.clone().into_iter().rev() {
            let mut blocks = Vec::new();
            let mut at = start;
            while at < end {
                let align = at.trailing_zeros().min(MAX_ORDER);
                let fit = (end - at).ilog2();
                let order = align.min(fit);
                blocks.push((at, order));
                at += 1 << order;
            }
            for (pfn, order) in blocks.into_iter().rev() {
                self.push(node, pfn, order);
            }
        }
    }

    /// Takes `used` of every node away in pieces whose size follows `scatter`;
    /// a piece that is no longer free as a whole goes elsewhere, or comes in
    /// halves.
    fn age(&mut self, history: History, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for (start, end, node) in self.ranges.clone() {
            let frames = u64::from(end - start);
            let mut left = (frames as f64 * history.used) as u64;
            while left > 0 {
                let order = piece_order(history.scatter, &mut rng).min(left.ilog2());
                let mut draw = || rng.gen_range(start..end) & !((1 << order) - 1);
                let taken = (0..TRIES).find_map(|_| {
                    let pfn = draw().max(start);
                    self.pin(node, pfn, order).then_some(1 << order)
                });
                match taken.or_else(|| self.take_some(node, order)) {
                    Some(frames) => left -= frames,
                    None => break,
                }
            }
        }
    }

    /// Takes the largest piece up to `order` that is free; returns its frames.
    fn take_some(&mut self, node: u32, order: u32) -> Option<u64> {
        (0..=order)
            .rev()
            .find_map(|o| self.take(node, o).map(|_| 1 << o))
    }

    /// Takes a piece out of whatever free block holds it; false: it was not
    /// free as a whole.
    fn pin(&mut self, node: u32, pfn: u32, order: u32) -> bool {
        for o in order..=MAX_ORDER {
            let head = pfn & !((1u32 << o) - 1);
            if self.order_of.get(head as usize) == Some(&(o as u8)) {
                self.order_of[head as usize] = NOT_FREE;
                self.free_frames[node as usize] -= 1 << o;
                self.split_around(node, head, o, pfn, order);
                return true;
            }
        }
        false
    }

    /// Takes this very frame out of the free block that holds it, as Linux'
    /// `take_page_off_buddy` does; false: it is not free, or there is no memory.
    pub fn take_frame(&mut self, pfn: u32) -> bool {
        self.node_of(pfn).is_some_and(|node| self.pin(node, pfn, 0))
    }

    /// How far a node is from a CPU; smaller is nearer.
    pub fn distance(&self, cpu: u32, node: u32) -> u32 {
        self.layout.distance[self.node_of_cpu(cpu) as usize][node as usize]
    }

    /// Gives the parts of a block back that are not the wanted piece.
    fn split_around(&mut self, node: u32, head: u32, order: u32, pfn: u32, want: u32) {
        let (mut head, mut order) = (head, order);
        while order > want {
            order -= 1;
            let upper = head + (1 << order);
            if pfn >= upper {
                self.push(node, head, order);
                head = upper;
            } else {
                self.push(node, upper, order);
            }
        }
    }

    fn push(&mut self, node: u32, pfn: u32, order: u32) {
        self.order_of[pfn as usize] = order as u8;
        self.free[node as usize][order as usize].push(pfn);
        self.free_frames[node as usize] += 1 << order;
    }

    fn pop(&mut self, node: u32, order: u32) -> Option<u32> {
        while let Some(pfn) = self.free[node as usize][order as usize].pop() {
            if self.order_of[pfn as usize] == order as u8 {
                self.order_of[pfn as usize] = NOT_FREE;
                self.free_frames[node as usize] -= 1 << order;
                return Some(pfn);
            }
        }
        None
    }

    /// A block of exactly `order` on `node`: the smallest that is free, split
    /// (Linux' expand: the upper half stays).
    pub fn take(&mut self, node: u32, order: u32) -> Option<u32> {
        let (found, pfn) =
            (order..=MAX_ORDER).find_map(|o| self.pop(node, o).map(|pfn| (o, pfn)))?;
        self.split_around(node, pfn, found, pfn, order);
        Some(pfn)
    }

    /// Gives a block back; it merges with its buddies. One of no node is not taken.
    pub fn give(&mut self, pfn: u32, order: u32) {
        let Some(node) = self.node_of(pfn) else {
            return;
        };
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_ORDER {
            let other = pfn ^ (1 << order);
            if self.order_of.get(other as usize) != Some(&(order as u8))
                || self.node_of(other) != Some(node)
            {
                break;
            }
            self.order_of[other as usize] = NOT_FREE;
            self.free_frames[node as usize] -= 1 << order;
            pfn = pfn.min(other);
            order += 1;
        }
        self.push(node, pfn, order);
    }

    /// One page for a fault on `cpu`: its own list first, the local node, then
    /// the nearest others.
    pub fn page(&mut self, cpu: u32) -> Option<u32> {
        let local = self.layout.node_of_cpu[cpu as usize];
        for i in 0..self.fallback[local as usize].len() {
            let node = self.fallback[local as usize][i];
            if let Some(pfn) = self.page_on(cpu, node) {
                return Some(pfn);
            }
        }
        None
    }

    /// One page of `node` through the list that `cpu` keeps for it.
    pub fn page_on(&mut self, cpu: u32, node: u32) -> Option<u32> {
        let (cpu, at) = (cpu as usize, node as usize);
        if self.pcp[cpu][at].is_empty() {
            for _ in 0..BATCH {
                match self.take(node, 0) {
                    Some(pfn) => self.pcp[cpu][at].push(pfn),
                    None => break,
                }
            }
            self.pcp[cpu][at].reverse();
        }
        self.pcp[cpu][at].pop()
    }

    /// Node that holds a frame; `None`: no range of the map does.
    pub fn node_of(&self, pfn: u32) -> Option<u32> {
        let at = self.ranges.partition_point(|&(_, end, _)| end <= pfn);
        let &(start, _, node) = self.ranges.get(at)?;
        (start <= pfn).then_some(node)
    }

    /// Free frames of a node, those on per-CPU lists not counted.
    pub fn free_frames(&self, node: u32) -> u64 {
        self.free_frames[node as usize]
    }

    /// Node of `cpu`.
    pub fn node_of_cpu(&self, cpu: u32) -> u32 {
        self.layout.node_of_cpu[cpu as usize]
    }
}

/// Geometric: with `scatter` 1 always order 0, with 0 always the largest.
fn piece_order(scatter: f64, rng: &mut ChaCha8Rng) -> u32 {
    (0..MAX_ORDER)
        .find(|_| rng.gen_bool(scatter.clamp(0.0, 1.0)))
        .unwrap_or(MAX_ORDER)
}

/// Filling takes the largest block that there is, up to what it may split:
/// fewest calls, and every colour is in it.
impl Source for Buddy {
    fn block(&mut self, node: u32, max_order: u32) -> Option<Block> {
        let order = (0..=max_order.min(MAX_ORDER))
            .rev()
            .find(|&o| (o..=MAX_ORDER).any(|o| !self.free[node as usize][o as usize].is_empty()))?;
        (0..=order).rev().find_map(|order| {
            self.take(node, order).map(|pfn| Block {
                pfn: pfn.into(),
                order,
                zero: false,
            })
        })
    }
}
