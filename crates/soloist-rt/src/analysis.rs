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
        let requests = match task.behaviour {
            // Nothing but what others of its core put out of its private caches.
            Behaviour::Compute if self.set.shares_core(i) => (task.bytes / LINE).min(costs.cached),
            _ if task.is_known() => 0,
            _ => costs.requests_in(task.wcet.0),
        };
        Profile {
            requests: known.requests.max(requests),
            ..known
        }
    }

    /// Lines that a job of task `i` can have in the caches of its core when it is preempted.
    pub(crate) fn kept(&self, i: usize, costs: &Costs) -> u64 {
        let task = &self.set.tasks[i];
        // Of no other the profile's accesses are all that it makes: a recording has those that
        // left private caches, a file's figures stand for a program that is not known.
        let touched = match task.behaviour {
            Behaviour::Compute | Behaviour::Lines(_) => u64::MAX,
            Behaviour::Program { kind, .. } => match kind {
                ProgramKind::Program | ProgramKind::Recorded => u64::MAX,
                _ => self.profiles[i].accesses,
            },
        };
        (task.bytes / LINE).min(costs.cached).min(touched)
    }
}
