//! Queues of a controller: a shared one in order of arrival, then one per bank.
//!
//! All storage is allocated once; entries live in a pool and queues hold their
//! numbers. Queues are short (8 to 32), so a linear scan of packed keys beats
//! any cleverer structure.

use crate::dram::Cycle;

/// Deepest queue of one bank.
pub(super) const MAX_BANK_QUEUE: usize = soloist_machine::memory::MAX_BANK_QUEUE as usize;
/// "No entry" in a bank queue.
pub(super) const NONE: u8 = u8::MAX;

/// A request in the controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub line: u64,
    pub arrival: Cycle,
    pub token: u64,
    pub seq: u64,
    pub row: u32,
    pub bank: u16,
    pub owner: u16,
    pub write: bool,
    pub live: bool,
}

/// Fixed pool of entries with a free list.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    entries: Vec<Entry>,
    free: Vec<u16>,
}

impl Pool {
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: vec![Entry::default(); capacity],
            free: (0..capacity as u16).rev().collect(),
        }
    }

    /// Slots that there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Stores `entry`. The queues' limits keep the pool from running dry.
    #[inline]
    pub fn put(&mut self, entry: Entry) -> u16 {
        let slot = self.free.pop().expect("queue limits bound the pool");
        self.entries[usize::from(slot)] = entry;
        slot
    }

    #[inline]
    pub fn get(&self, slot: u16) -> &Entry {
        &self.entries[usize::from(slot)]
    }

    #[inline]
    pub fn free(&mut self, slot: u16) {
        self.entries[usize::from(slot)].live = false;
        self.free.push(slot);
    }

    /// Is a write to `line` waiting? Slow; callers filter first.
    pub fn pending_write(&self, line: u64) -> bool {
        self.entries
            .iter()
            .any(|e| e.live && e.write && e.line == line)
    }
}

/// Requests of one bank, oldest first.
#[derive(Clone, Debug)]
pub(super) struct BankQueue {
    keys: [u32; MAX_BANK_QUEUE],
    slots: [u16; MAX_BANK_QUEUE],
    len: u8,
}

/// What a scheduler compares: row and direction in one word.
#[inline]
fn key(row: u32, write: bool) -> u32 {
    row << 1 | u32::from(write)
}

impl BankQueue {
    pub fn new() -> Self {
        Self {
            keys: [0; MAX_BANK_QUEUE],
            slots: [0; MAX_BANK_QUEUE],
            len: 0,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub fn push(&mut self, slot: u16, row: u32, write: bool) {
        let at = self.len();
        self.keys[at] = key(row, write);
        self.slots[at] = slot;
        self.len += 1;
    }

    #[inline(always)]
    pub fn remove(&mut self, at: u8) -> u16 {
        let at = usize::from(at);
        let slot = self.slots[at];
        // All places, without a branch: shorter than a call that moves a few.
        for i in 0..MAX_BANK_QUEUE - 1 {
            let next = i + usize::from(i >= at);
            self.keys[i] = self.keys[next];
            self.slots[i] = self.slots[next];
        }
        self.len -= 1;
        slot
    }

    #[inline]
    pub fn slot(&self, at: u8) -> u16 {
        self.slots[usize::from(at)]
    }

    /// Slots of all requests, oldest first.
    pub fn slots(&self) -> &[u16] {
        &self.slots[..self.len()]
    }

    /// Row of the oldest request.
    #[inline]
    pub fn oldest_row(&self) -> u32 {
        self.keys[0] >> 1
    }

    /// Positions of the oldest read and the oldest write of `row`, or [`NONE`].
    #[inline]
    pub fn hits(&self, row: u32) -> (u8, u8) {
        let (rd, wr) = (key(row, false), key(row, true));
        let (mut read, mut write) = (NONE, NONE);
        for (i, &k) in self.keys[..self.len()].iter().enumerate().rev() {
            if k == rd {
                read = i as u8;
            }
            if k == wr {
                write = i as u8;
            }
        }
        (read, write)
    }
}

/// Requests that wait for room in their bank's queue, in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct SharedQueue {
    /// Bank and slot.
    waiting: Vec<(u16, u16)>,
    capacity: usize,
}

impl SharedQueue {
    pub fn new(capacity: usize) -> Self {
        Self {
            waiting: Vec::with_capacity(capacity),
            capacity,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    #[inline]
    pub fn push(&mut self, slot: u16, bank: u16) {
        self.waiting.push((bank, slot));
    }

    #[inline]
    pub fn bank(&self, at: usize) -> u16 {
        self.waiting[at].0
    }

    #[inline]
    pub fn remove(&mut self, at: usize) -> u16 {
        self.waiting.remove(at).1
    }

    /// All that wait: bank and slot.
    pub fn all(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.waiting.iter().copied()
    }

    /// Oldest request of `bank`.
    #[inline]
    pub fn first_of(&self, bank: u16) -> Option<usize> {
        self.waiting.iter().position(|&(b, _)| b == bank)
    }
}

/// Lines of buffered writes, by hash: most reads need no search for theirs.
#[derive(Clone, Debug)]
pub(super) struct LineFilter {
    counts: Box<[u8; Self::SIZE]>,
}

impl LineFilter {
    const SIZE: usize = 1024;

    pub fn new() -> Self {
        Self {
            counts: Box::new([0; Self::SIZE]),
        }
    }

    #[inline]
    fn at(line: u64) -> usize {
        (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % Self::SIZE
    }

    /// Perhaps; if not, certainly not.
    #[inline]
    pub fn may_have(&self, line: u64) -> bool {
        self.counts[Self::at(line)] != 0
    }

    pub fn add(&mut self, line: u64) {
        let count = &mut self.counts[Self::at(line)];
        *count = count.saturating_add(1);
    }

    pub fn remove(&mut self, line: u64) {
        let count = &mut self.counts[Self::at(line)];
        *count = count.saturating_sub(1);
    }
}
