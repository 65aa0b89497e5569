//! Row policy: what becomes of a row after an access.

use soloist_machine::memory::{Page, Policy};

use super::queue::{BankQueue, NONE};

#[derive(Clone, Copy, Debug)]
pub(super) struct RowPolicy(Page);

impl RowPolicy {
    pub fn new(policy: &Policy) -> Self {
        Self(policy.page)
    }

    /// Cycles after which a row that nobody uses is closed.
    pub fn idle(self) -> Option<u32> {
        match self.0 {
            Page::Idle(cycles) => Some(cycles),
            Page::Open | Page::Closed => None,
        }
    }

    /// Does the row close by itself after the access that is being issued?
    /// `queue` holds the requests that its bank has left.
    #[inline]
    pub fn auto_precharges(self, queue: &BankQueue, row: u32) -> bool {
        match self.0 {
            Page::Open | Page::Idle(_) => false,
            Page::Closed => queue.hits(row) == (NONE, NONE),
        }
    }
}
