//! The event kernel: what happens next, in time order.
//!
//! Most events lie less than a microsecond ahead, so they are kept in a wheel
//! of short slots, each a small heap, and a bitmap says which hold any. What lies farther ahead waits in a heap until the wheel
//! comes near. Events of one instant leave in the order in which they came, so
//! that a run depends on its input alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots of the wheel.
const SLOTS: u64 = 512;
/// A slot covers 2^SHIFT ps.
const SHIFT: u32 = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<E> {
    at: u64,
    order: u64,
    event: E,
}

/// Events to come.
#[derive(Clone, Debug)]
pub(crate) struct Events<E> {
    slots: Vec<BinaryHeap<Reverse<Entry<E>>>>,
    filled: [u64; SLOTS as usize / 64],
    /// Slot number, not yet modulo [`SLOTS`], before which nothing lies.
    base: u64,
    far: BinaryHeap<Reverse<Entry<E>>>,
    made: u64,
    near: usize,
}

impl<E: Copy + Ord> Events<E> {
    pub fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| BinaryHeap::new()).collect(),
            filled: [0; SLOTS as usize / 64],
            base: 0,
            far: BinaryHeap::new(),
            made: 0,
            near: 0,
        }
    }

    /// `event` is to happen at `at` ps, which is not before what was popped
    /// last.
    #[inline]
    pub fn push(&mut self, at: u64, event: E) {
        self.made += 1;
        let entry = Entry {
            at,
            order: self.made,
            event,
        };
        if (at >> SHIFT) < self.base + SLOTS {
            self.put(entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    #[inline]
    fn put(&mut self, entry: Entry<E>) {
        let slot = ((entry.at >> SHIFT).max(self.base) % SLOTS) as usize;
        self.slots[slot].push(Reverse(entry));
        self.filled[slot / 64] |= 1 << (slot % 64);
        self.near += 1;
    }

    /// Moves the wheel to the first slot that holds something.
    fn advance(&mut self) -> Option<usize> {
        if self.near == 0 {
            self.base = self.far.peek()?.0.at >> SHIFT;
        }
        while let Some(&Reverse(entry)) = self.far.peek() {
            if (entry.at >> SHIFT) >= self.base + SLOTS {
                break;
            }
            self.far.pop();
            self.put(entry);
        }
        let first = (self.base % SLOTS) as usize;
        let words = self.filled.len();
        let mut word = first / 64;
        let mut bits = self.filled[word] & (u64::MAX << (first % 64));
        for _ in 0..=words {
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                self.base += (slot as u64 + SLOTS - first as u64) % SLOTS;
                return Some(slot);
            }
            word = (word + 1) % words;
            bits = self.filled[word];
        }
        None
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&mut self) -> Option<u64> {
        let slot = self.advance()?;
        self.slots[slot].peek().map(|e| e.0.at)
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let slot = self.advance()?;
        let entries = &mut self.slots[slot];
        let Reverse(entry) = entries.pop()?;
        if entries.is_empty() {
            self.filled[slot / 64] &= !(1 << (slot % 64));
        }
        self.near -= 1;
        Some((entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_in_order_of_time_and_then_of_arrival() {
        let mut events = Events::new();
        let mut expected = Vec::new();
        let (mut x, mut now, mut made) = (1_u64, 0, 0);
        for round in 0..20_000_u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ahead = [0, 3, 700, 40_000, 900_000, 5_000_000, 1 << 40];
            let at = now + ahead[(x >> 40) as usize % if round % 100 == 0 { 7 } else { 6 }];
            made += 1;
            events.push(at, made);
            expected.push((at, made));
            if x >> 60 < 7 {
                expected.sort_unstable();
                assert_eq!(events.next_at(), Some(expected[0].0));
                assert_eq!(events.pop(), Some(expected.remove(0)));
                now = now.max(expected.first().map_or(now, |e| e.0));
            }
        }
        expected.sort_unstable();
        for e in expected {
            assert_eq!(events.pop(), Some(e));
        }
        assert_eq!((events.next_at(), events.pop()), (None, None));
    }
}
