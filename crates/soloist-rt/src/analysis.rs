//! Response times and processor demand, with what memory and the kernel add.
//!
//! [`interference`] bounds what other cores do through memory, [`linux`] is what
//! the kernel keeps for others, and [`response`] proves deadlines with both.

mod costs;
mod edf;
pub mod interference;
pub mod linux;
pub mod response;

use soloist_play::programs::ProgramKind;

use self::interference::Costs;
use crate::model::profile::Profile;
use crate::tasks::{Behaviour, TaskSet};

/// Bytes of a line.
const LINE: u64 = 64;

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

    /// What a job of task `i` can ask of memory. Its profile says so of a program that is
    /// played; of figures in a file another program is played, whose hits in the caches say
    /// nothing of the task's. Of these each request is counted that there is time for.
    pub(crate) fn profile(&self, i: usize, costs: &Costs) -> Profile {
        let (task, known) = (&self.set.tasks[i], self.profiles[i]);
        // Lines that others of its core put out between its jobs come from memory again.
        let lost = match self.set.shares_core(i) && !self.is_played_cold(i) {
            true => self.kept(i, costs),
            false => 0,
        };
        let requests = match task.is_known() {
            true => known.requests.saturating_add(lost),
            false => known.requests.max(costs.requests_in(task.wcet.0)),
        };
        Profile {
            requests,
            lines: known.lines.saturating_add(costs.again(lost)),
            ..known
        }
    }

    /// Does its profile have all that a job of task `i` touches, from empty caches on? A
    /// recording has what left private caches, a file's figures stand for a program that is not
    /// known.
    fn is_played_cold(&self, i: usize) -> bool {
        match self.set.tasks[i].behaviour {
            Behaviour::Compute | Behaviour::Lines(_) => false,
            Behaviour::Program { kind, .. } => {
                !matches!(kind, ProgramKind::Program | ProgramKind::Recorded)
            }
        }
    }

    /// Lines that a job of task `i` can have in the caches of its core when it is preempted.
    pub(crate) fn kept(&self, i: usize, costs: &Costs) -> u64 {
        let task = &self.set.tasks[i];
        let touched = match self.is_played_cold(i) {
            true => self.profiles[i].accesses,
            false => u64::MAX,
        };
        (task.bytes / LINE).min(costs.cached).min(touched)
    }
}
