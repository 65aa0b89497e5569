//! Response times and processor demand, with what memory and the kernel add.
//!
//! [`interference`] bounds what other cores do through memory, [`linux`] is what
//! the kernel keeps for others, and [`response`] proves deadlines with both.

mod edf;
pub mod interference;
pub mod linux;
pub mod response;

use crate::model::profile::Profile;
use crate::tasks::TaskSet;

/// Tasks, and what a job of each asks of memory.
#[derive(Debug, Clone, Copy)]
pub struct ProfiledSet<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// Profiles, by number of the task.
    pub profiles: &'a [Profile],
}

impl<'a> ProfiledSet<'a> {
    /// Returns tasks with a profile of each.
    #[must_use]
    pub fn new(set: &'a TaskSet, profiles: &'a [Profile]) -> Self {
        Self { set, profiles }
    }
}
