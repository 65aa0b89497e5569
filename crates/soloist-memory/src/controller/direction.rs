//! The direction of the data bus: reads do not pass a write for ever, nor writes a read.
//!
//! To turn the bus takes time, so the next command of the same direction is always legal first,
//! and a stream of reads would starve a write of another bank, with all that waits behind it in
//! that bank. Controllers serve so many commands of a direction, then turn the bus.

use soloist_machine::memory::Policy;

#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    /// Column commands of one direction after which the other has its turn; 0: never.
    cap: u32,
    /// The last one's direction, and how many there were without another.
    write: bool,
    run: u32,
}

impl Direction {
    pub fn new(policy: &Policy) -> Self {
        Self {
            cap: policy.direction_cap,
            write: false,
            run: 0,
        }
    }

    /// A read or write is issued.
    #[inline]
    pub fn issued(&mut self, write: bool) {
        self.run = if write == self.write { self.run + 1 } else { 1 };
        self.write = write;
    }

    /// The direction that has had its turn.
    #[inline]
    pub fn spent(self) -> Option<bool> {
        (self.cap > 0 && self.run >= self.cap).then_some(self.write)
    }
}
