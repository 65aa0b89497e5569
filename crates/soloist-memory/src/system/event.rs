//! The event kernel: what happens next, in time order.
//!
//! Most events lie less than a microsecond ahead, so they are kept in a wheel
//! of short slots, each a list in order, and a bitmap says which hold any.
//! What lies farther ahead waits in a heap until the wheel comes near. Events
//! of one instant leave in the order in which they came, so that a run depends
//! on its input alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots of the wheel.
const SLOTS: usize = 1024;
/// A slot covers 2^SHIFT ps: an event or two of a busy machine.
const SHIFT: u32 = 10;
/// No entry.
const NONE: u32 = u32::MAX;

/// An event of the wheel.
#[derive(Clone, Copy, Debug)]
struct Near<E> {
    at: u64,
    event: E,
    /// The next of its slot, or of those that are free.
    next: u32,
}

/// An event beyond the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Far<E> {
    at: u64,
    order: u64,
    event: E,
}

/// The events of a slot, in order.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
}

/// Events to come.
#[derive(Clone, Debug)]
pub(crate) struct Events<E> {
    slots: Box<[Slot; SLOTS]>,
    filled: [u64; SLOTS / 64],
    near: Vec<Near<E>>,
    free: u32,
    /// Events of the wheel.
    held: usize,
    /// Number of the slot, not yet modulo [`SLOTS`], before which nothing lies.
    base: u64,
    /// The first slot beyond the wheel: all events from there on are in `far`.
    horizon: u64,
    far: BinaryHeap<Reverse<Far<E>>>,
    made: u64,
}

impl<E: Copy + Ord> Events<E> {
    pub fn new() -> Self {
        let empty = Slot {
            first: NONE,
            last: NONE,
        };
        Self {
            slots: Box::new([empty; SLOTS]),
            filled: [0; SLOTS / 64],
            near: Vec::new(),
            free: NONE,
            held: 0,
            base: 0,
            horizon: SLOTS as u64,
            far: BinaryHeap::new(),
            made: 0,
        }
    }

    /// `event` is to happen at `at` ps, which is not before what was popped
    /// last.
    #[inline]
    pub fn push(&mut self, at: u64, event: E) {
        if (at >> SHIFT) < self.horizon {
            self.put(at, event);
        } else {
            self.made += 1;
            self.far.push(Reverse(Far {
                at,
                order: self.made,
                event,
            }));
        }
    }

    /// Into the wheel, behind all that are not later.
    #[inline]
    fn put(&mut self, at: u64, event: E) {
        let slot = (at >> SHIFT).max(self.base) as usize % SLOTS;
        let new = self.entry(at, event);
        self.filled[slot / 64] |= 1 << (slot % 64);
        self.held += 1;
        let Slot { first, last } = self.slots[slot];
        if last == NONE {
            self.slots[slot] = Slot {
                first: new,
                last: new,
            };
        } else if self.near[last as usize].at <= at {
            self.near[last as usize].next = new;
            self.slots[slot].last = new;
        } else if self.near[first as usize].at > at {
            self.near[new as usize].next = first;
            self.slots[slot].first = new;
        } else {
            let mut before = first;
            while self.near[self.near[before as usize].next as usize].at <= at {
                before = self.near[before as usize].next;
            }
            self.near[new as usize].next = self.near[before as usize].next;
            self.near[before as usize].next = new;
        }
    }

    /// A place for an event.
    #[inline]
    fn entry(&mut self, at: u64, event: E) -> u32 {
        let entry = Near {
            at,
            event,
            next: NONE,
        };
        let place = self.free;
        if place == NONE {
            self.near.push(entry);
            return self.near.len() as u32 - 1;
        }
        self.free = self.near[place as usize].next;
        self.near[place as usize] = entry;
        place
    }

    /// The first slot that holds something; the wheel moves there.
    #[inline(always)]
    fn advance(&mut self) -> Option<usize> {
        let slot = self.base as usize % SLOTS;
        if self.slots[slot].first != NONE {
            return Some(slot);
        }
        self.turn(slot)
    }

    fn turn(&mut self, slot: usize) -> Option<usize> {
        self.base = if self.held > 0 {
            self.base + self.ahead(slot)
        } else {
            self.far.peek()?.0.at >> SHIFT
        };
        self.horizon = self.base + SLOTS as u64;
        while let Some(&Reverse(Far { at, event, .. })) = self.far.peek() {
            if (at >> SHIFT) >= self.horizon {
                break;
            }
            self.far.pop();
            self.put(at, event);
        }
        Some(self.base as usize % SLOTS)
    }

    /// How far the next slot that holds something lies ahead of this one.
    fn ahead(&self, slot: usize) -> u64 {
        let mut word = slot / 64;
        let mut bits = self.filled[word] & (u64::MAX << (slot % 64));
        while bits == 0 {
            word = (word + 1) % self.filled.len();
            bits = self.filled[word];
        }
        let found = word * 64 + bits.trailing_zeros() as usize;
        ((found + SLOTS - slot) % SLOTS) as u64
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&mut self) -> Option<u64> {
        let slot = self.advance()?;
        Some(self.near[self.slots[slot].first as usize].at)
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let slot = self.advance()?;
        let first = self.slots[slot].first;
        let entry = &mut self.near[first as usize];
        let (at, event) = (entry.at, entry.event);
        let next = std::mem::replace(&mut entry.next, self.free);
        self.free = first;
        self.slots[slot].first = next;
        if next == NONE {
            self.slots[slot].last = NONE;
            self.filled[slot / 64] &= !(1 << (slot % 64));
        }
        self.held -= 1;
        Some((at, event))
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
