//! Row policy: what becomes of a row after an access.

use soloist_machine::memory::{Page, Policy};

use super::queue::{BankQueue, NONE};

#[derive(Clone, Copy, Debug)]
pub(super) struct RowPolicy(Page);

impl RowPolicy {
    pub fn new(policy: &Policy) -> Self {
        Self(policy.page)
    }

    /// Does the row close by itself after the access that is being issued?
    /// `queue` holds the requests that its bank has left.
    #[inline]
    pub fn auto_precharges(self, queue: &BankQueue, row: u32) -> bool {
        match self.0 {
            Page::Open => false,
            Page::Closed => queue.hits(row) == (NONE, NONE),
        }
    }
}
