//! What passes between the parts of a machine: lines on their way, and events
//! in time order.

use super::event::Events;
use crate::blame::{Bill, Label};
use crate::platform::DramAddress;

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// From one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub from: usize,
    pub to: usize,
}

impl Route {
    /// The way back.
    pub fn back(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A core goes on.
    Core(u32),
    /// A fill reaches the last-level cache.
    LastLevel(u32),
    /// A dirty line from a core reaches the last-level cache.
    Discard(u32),
    /// A request may leave its node.
    Leave(u32),
    /// A line to be written reaches its home node.
    Arrive(u32),
    /// A request enters the queue of its home node.
    Enqueue(u32),
    /// Data are ready at the home node's controllers.
    Answer(u32),
    /// An answer leaves the home node.
    Depart(u32),
    /// An answer reaches the core's node.
    Back(u32),
}

/// A line on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub line: u64,
    pub place: DramAddress,
    pub core: u32,
    /// The core's number for its fill.
    pub fill: u32,
    /// Whose line it is.
    pub owner: u16,
    /// Nodes of the core and of the memory.
    pub node: u16,
    pub home: u16,
    /// These are not one.
    pub apart: bool,
    pub write: bool,
    /// It pushed this out when it gave up another line, and keeps that one's room until it is gone.
    pub roomy: bool,
    /// The last-level cache had it: nothing to put in there.
    pub from_llc: bool,
    /// What its time is for where nobody is in the way.
    pub base: Label,
}

impl Transfer {
    /// From the core's node to that of the memory.
    pub fn route(&self) -> Route {
        Route {
            from: usize::from(self.node),
            to: usize::from(self.home),
        }
    }

    pub fn channel(&self) -> usize {
        usize::from(self.place.channel)
    }
}

/// Lines on their way, and what happens next.
pub(super) struct Flow {
    pub now_ps: u64,
    pub events: Events<Event>,
    transfers: Vec<Transfer>,
    free: Vec<u32>,
    /// One for each transfer, where accounts are kept.
    bills: Vec<Bill>,
    pub accounting: bool,
}

impl Flow {
    pub fn new() -> Self {
        Self {
            now_ps: 0,
            events: Events::new(),
            transfers: Vec::new(),
            free: Vec::new(),
            bills: Vec::new(),
            accounting: false,
        }
    }

    /// A line sets out; returns its number.
    pub fn begin(&mut self, transfer: Transfer) -> u32 {
        let t = match self.free.pop() {
            Some(t) => {
                self.transfers[t as usize] = transfer;
                t
            }
            None => {
                self.transfers.push(transfer);
                self.bills.push(Bill::default());
                self.transfers.len() as u32 - 1
            }
        };
        self.begin_bill(t, self.now_ps);
        t
    }

    /// It is where it was to go: the number is free.
    pub fn end(&mut self, t: u32) {
        self.free.push(t);
    }

    #[inline]
    pub fn get(&self, t: u32) -> &Transfer {
        &self.transfers[t as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, t: u32) -> &mut Transfer {
        &mut self.transfers[t as usize]
    }

    // ---- bills ----

    pub fn begin_bill(&mut self, t: u32, at: u64) {
        if self.accounting {
            self.bills[t as usize].start(at);
        }
    }

    /// A transfer's bill, where accounts are kept.
    #[inline]
    pub fn bill(&mut self, t: u32) -> Option<&mut Bill> {
        self.accounting.then(|| &mut self.bills[t as usize])
    }

    /// A transfer's time up to `at` was for `label`.
    #[inline]
    pub fn charge(&mut self, t: u32, at: u64, label: Label) {
        if self.accounting {
            self.bills[t as usize].until(at, label);
        }
    }

    /// The same, nobody having been in the way.
    #[inline]
    pub fn charge_base(&mut self, t: u32, at: u64) {
        self.charge(t, at, self.transfers[t as usize].base);
    }
}
