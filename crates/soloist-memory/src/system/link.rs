//! The way between nodes: the port, and links with latency, bandwidth and
//! credits.
//!
//! The system knows [`Interconnect`] only; another topology or protocol is
//! another file that implements it.

use std::collections::VecDeque;

use soloist_machine::memory::HopConfig;

use super::flow::Route;
use crate::blame::{Bill, Cause, Label};
use crate::platform::Platform;

/// Bytes of a message without data.
pub(super) const HEADER: u64 = 8;

/// What carries messages between nodes.
pub(super) trait Interconnect: Send {
    /// Are the nodes apart?
    fn apart(&self, route: Route) -> bool;

    /// Takes what request `id` needs to be under way from one node to another,
    /// or lets it wait until [`Interconnect::release`] names it.
    fn admit(&mut self, route: Route, id: u32) -> bool;

    /// Requests that wait to be admitted.
    fn waiting(&self, route: Route) -> &VecDeque<u32>;

    /// The answer to a request is back: the request that may set out instead.
    fn release(&mut self, route: Route) -> Option<u32>;

    /// Sends a message with `data` bytes at `now`; returns when its last byte
    /// arrives. What held it up goes on the bill.
    fn send(
        &mut self,
        route: Route,
        now: u64,
        data: u64,
        sender: u16,
        bill: Option<&mut Bill>,
    ) -> u64;
}

/// A message on a wire.
#[derive(Clone, Copy, Debug)]
struct Message {
    end_ps: u64,
    sender: u16,
}

/// A wire: one message after the other.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    fs_per_byte: u64,
    free_ps: u64,
    /// Messages that still are in the way; kept where bills are.
    queued: VecDeque<Message>,
}

impl Wire {
    pub fn new(bytes_per_us: u64) -> Self {
        Self {
            fs_per_byte: 1_000_000_000 / bytes_per_us,
            free_ps: 0,
            queued: VecDeque::new(),
        }
    }

    /// Sends `bytes` at `now`; returns when the last of them is out.
    #[inline]
    pub fn send(&mut self, now: u64, bytes: u64, sender: u16, bill: Option<&mut Bill>) -> u64 {
        let begin = self.free_ps.max(now);
        self.free_ps = begin + bytes * self.fs_per_byte / 1000;
        if let Some(bill) = bill {
            while self.queued.front().is_some_and(|m| m.end_ps <= now) {
                self.queued.pop_front();
            }
            for ahead in &self.queued {
                bill.until(ahead.end_ps, Label::new(Cause::Link, ahead.sender));
            }
            self.queued.push_back(Message {
                end_ps: self.free_ps,
                sender,
            });
        }
        self.free_ps
    }
}

/// One direction of the path between two nodes.
#[derive(Clone, Debug)]
struct Path {
    latency_ps: u64,
    wire: Wire,
    credits: u32,
    waiting: VecDeque<u32>,
}

impl Path {
    fn new(hop: &HopConfig) -> Self {
        Self {
            latency_ps: hop.latency_ps,
            wire: Wire::new(hop.bytes_per_us),
            credits: hop.credits,
            waiting: VecDeque::new(),
        }
    }
}

/// A path of its own for every pair of nodes, by their distance.
pub(super) struct Paths {
    nodes: usize,
    paths: Vec<Option<Path>>,
}

impl Paths {
    pub fn new(platform: &Platform) -> Self {
        let nodes = platform.hops.len();
        let path = |i: usize| {
            let hops = platform.hops[i / nodes][i % nodes].checked_sub(1)?;
            platform.paths.get(hops).map(Path::new)
        };
        Self {
            nodes,
            paths: (0..nodes * nodes).map(path).collect(),
        }
    }

    fn index(&self, route: Route) -> usize {
        route.from * self.nodes + route.to
    }

    fn path(&mut self, route: Route) -> Option<&mut Path> {
        let index = self.index(route);
        self.paths[index].as_mut()
    }
}

impl Interconnect for Paths {
    fn apart(&self, route: Route) -> bool {
        self.paths[self.index(route)].is_some()
    }

    fn admit(&mut self, route: Route, id: u32) -> bool {
        let Some(path) = self.path(route) else {
            return true;
        };
        if path.credits == 0 {
            path.waiting.push_back(id);
            return false;
        }
        path.credits -= 1;
        true
    }

    fn waiting(&self, route: Route) -> &VecDeque<u32> {
        static NONE: VecDeque<u32> = VecDeque::new();
        let path = self.paths[self.index(route)].as_ref();
        path.map_or(&NONE, |p| &p.waiting)
    }

    fn release(&mut self, route: Route) -> Option<u32> {
        let path = self.path(route)?;
        let next = path.waiting.pop_front();
        if next.is_none() {
            path.credits += 1;
        }
        next
    }

    fn send(
        &mut self,
        route: Route,
        now: u64,
        data: u64,
        sender: u16,
        bill: Option<&mut Bill>,
    ) -> u64 {
        match self.path(route) {
            None => now,
            Some(path) => path.wire.send(now, HEADER + data, sender, bill) + path.latency_ps,
        }
    }
}
