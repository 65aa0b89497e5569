//! The papers' ways of giving a task set its memory (CAMC, sections 4.4 and 4.5).
//!
//! CAMC's rule: tasks with deadlines on a controller of their own, all else on
//! the others.
//!
//! [`soloist_play::policy`] has policies of the same names, and these are no values of its trait:
//! - its tenants have no deadlines. Its `diff_controller` gives each program a controller in
//!   turn; here tasks with deadlines share the first one's, and only the rest take turns;
//! - a node's banks are taken here in the order of their numbers, as far as memory needs them.
//!   Its private banks are what core's palette assigns, which spreads them over channels, ranks
//!   and bank groups: the experiments' figures are of the former;
//! - all tasks have as many banks under [`Policy::SameBank`] as their memory needs together,
//!   where it gives as many as the first program needs;
//! - [`Policy::Single`] says who runs, not where pages come from.

use serde::{Deserialize, Serialize};
use soloist_core::{AddrMap, ColorSet};
use soloist_memory::Platform;

use crate::model::cores::{PageSource, PlayError};
use crate::tasks::{Task, TaskSet};

/// A way of giving memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Tasks with deadlines only, without the others.
    Single,
    /// Linux gives pages.
    Linux,
    /// All tasks in the same banks of one controller.
    SameBank,
    /// Private banks, all of one controller.
    DiffBank,
    /// Private banks; tasks with deadlines on one controller, the others on the
    /// others.
    DiffController,
}

impl Policy {
    /// All, the best first.
    pub const ALL: [Self; 5] = [
        Self::Single,
        Self::DiffController,
        Self::DiffBank,
        Self::Linux,
        Self::SameBank,
    ];

    /// Returns the name that files and commands use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Linux => "linux",
            Self::SameBank => "same_bank",
            Self::DiffBank => "diff_bank",
            Self::DiffController => "diff_controller",
        }
    }

    /// The tasks that run under it.
    #[must_use]
    pub fn tasks(self, set: &TaskSet) -> TaskSet {
        let keep = |t: &&Task| self != Self::Single || t.release.is_some();
        TaskSet {
            tasks: set.tasks.iter().filter(keep).cloned().collect(),
            ..set.clone()
        }
    }
}

/// Bank sets that `bytes` need on this machine; a set counts as full at 7/10,
/// since the system has some of it.
#[must_use]
pub fn sets_for(map: &AddrMap, bytes: u64) -> u32 {
    let set = map.bytes() / u64::from(map.n_bank_sets().max(1)) * 7 / 10;
    bytes.div_ceil(set.max(1)).max(1) as u32
}

/// Where each task of the set gets its pages; `least`: so many bank sets for a task
/// with deadlines, and for another, if its memory does not need more.
///
/// # Errors
/// When the machine has too few banks or controllers.
pub fn places(
    policy: Policy,
    platform: &Platform,
    set: &TaskSet,
    least: Option<(u32, u32)>,
) -> Result<Vec<PageSource>, PlayError> {
    let map = &platform.memory.map;
    let node_of = |t: &Task| platform.node_of_core[t.core.unwrap_or(0) as usize] as u32;
    let home = set.tasks.iter().find(|t| t.release.is_some());
    let home = home.map_or(0, node_of);
    // Bank sets of each controller: a node, or where there is but one a channel
    // that no page shares with another.
    let controllers: Vec<Vec<u32>> = match (policy, map.n_nodes()) {
        (Policy::DiffController, 1) => map.controllers(),
        (_, nodes) => (0..nodes)
            .map(|node| map.sets_of_node(node).collect())
            .collect(),
    };
    let count = controllers.len() as u32;
    if policy == Policy::DiffController && count < 2 {
        return Err(PlayError::OneController(platform.memory.name.clone()));
    }
    let mut used = vec![0; controllers.len()];
    let mut others = 0;
    let mut place = |task: &Task| {
        if matches!(policy, Policy::Single | Policy::Linux) {
            return Ok(PageSource::default());
        }
        let at = match (policy, &task.release) {
            (Policy::DiffController, None) => {
                others += 1;
                (home + 1 + (others - 1) % (count - 1)) % count
            }
            _ => home,
        };
        let sets = &controllers[at as usize];
        let from = used[at as usize];
        let need = match policy {
            Policy::SameBank => sets_for(map, set.tasks.iter().map(|t| t.bytes).sum()),
            _ => sets_for(map, task.bytes),
        };
        let need = need.max(match (least, task.release) {
            (None, _) => 0,
            (Some((timed, other)), _) if policy == Policy::SameBank => timed.max(other),
            (Some((timed, _)), Some(_)) => timed,
            (Some((_, other)), None) => other,
        });
        if from + need > sets.len() as u32 {
            return Err(PlayError::Banks {
                task: task.name.clone(),
                sets: need,
                node: map.node_of_set(sets[0]),
                left: sets.len() as u32 - from,
            });
        }
        if policy != Policy::SameBank {
            used[at as usize] += need;
        }
        let mine = sets[from as usize..(from + need) as usize].iter().copied();
        Ok(PageSource {
            colors: Some(ColorSet::any(map).with_sets(mine)),
            node: None,
        })
    };
    set.tasks.iter().map(&mut place).collect()
}
