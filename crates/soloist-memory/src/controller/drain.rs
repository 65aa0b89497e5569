//! Write drain: when writes leave the write buffer for their banks.
//!
//! A drain begins when the buffer reaches its high mark, or when there is
//! nothing to read and enough writes wait. It ends at the low mark; one that
//! began for want of reads takes every write.

use soloist_machine::memory::Policy;

#[derive(Clone, Debug)]
pub(super) struct Drain {
    high: usize,
    low: usize,
    idle: usize,
    /// While one is in progress: writes left at which it ends.
    until: Option<usize>,
}

impl Drain {
    pub fn new(policy: &Policy) -> Self {
        Self {
            high: policy.drain_high as usize,
            low: policy.drain_low as usize,
            idle: policy.drain_idle as usize,
            until: None,
        }
    }

    #[inline]
    pub fn is_active(&self) -> bool {
        self.until.is_some()
    }

    /// Should one begin, so many requests waiting to be moved or served?
    #[inline]
    pub fn is_due(&self, writes: usize, reads: usize) -> bool {
        writes >= self.high || (writes >= self.idle && reads == 0)
    }

    /// Begins one; returns how many writes it leaves.
    pub fn begin(&mut self, reads: usize) -> usize {
        let until = if reads == 0 { 0 } else { self.low };
        self.until = Some(until);
        until
    }

    /// Writes that the one in progress leaves.
    pub fn until(&self) -> Option<usize> {
        self.until
    }

    pub fn end(&mut self) {
        self.until = None;
    }

    /// From now on a single write is enough where there is nothing to read.
    pub fn flush(&mut self) {
        self.idle = 1;
    }
}
