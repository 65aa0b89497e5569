//! From tasks and a machine to cores, colours and bandwidth under which every
//! deadline holds.
//!
//! The search tries [`candidates`] in order: a core for each task, a node for its
//! memory. It gives each candidate [`colors`], plays each task alone in its colours
//! (fewer banks and less cache cost time too), and analyses all tasks with the times
//! that it measured ([`proof`]). Where cores without deadlines are too loud, it gives
//! them the highest limit of bandwidth under which all tasks hold. The first candidate
//! that holds is the plan. If none does, the plan is the one that misses least, with
//! the smallest change that would make it hold.
//!
//! [`check`] plays the plan on the model. [`config`] writes it for `soloist apply`,
//! with the [`event`] that counts its limits' lines, and [`host`] compares it with a
//! host. [`evidence`] is a document of it, with its [`inputs`] and its [`grounds`].
//! [`refusal`] says why there can be no plan at all.

mod alone;
mod build;
pub mod candidates;
pub mod check;
pub mod colors;
pub mod config;
pub mod event;
pub mod evidence;
pub mod grounds;
pub mod host;
pub mod inputs;
pub mod proof;
pub mod refusal;
mod relax;

use serde::Serialize;
use soloist_core::time::Time;
use soloist_memory::Platform;

use self::alone::undivided;
use self::build::Search;
use self::candidates::{candidates, leaves_a_core};
use self::refusal::{no_core_left, refuse, with_line, PlanError};
use self::relax::Enough;
use crate::analysis::interference::Costs;
use crate::analysis::linux::Server;
use crate::analysis::response::Answer;
use crate::model::cores::PageSource;
use crate::model::profile::profiles;
use crate::model::program::Maker;
use crate::tasks::{Order, TaskSet};

/// Limits of bandwidth that are tried, MB/s.
pub const LIMITS: [u64; 8] = [2000, 1000, 500, 250, 125, 64, 32, 16];

/// Where one task goes.
#[derive(Debug, Clone, Serialize)]
pub struct Assignment {
    /// The task.
    pub task: String,
    /// Its core.
    pub core: u32,
    /// Node of its memory.
    pub node: u32,
    /// Its group: all of a core and node.
    pub group: String,
    /// Bank sets.
    pub bank_sets: String,
    /// Last-level colours; empty: any.
    pub llc: String,
    /// Bytes a second that its core may read, and write; `None`: no limit.
    pub limit: Option<u64>,
    /// SCHED_FIFO priority, or 0.
    pub priority: u32,
    /// Its SCHED_DEADLINE, under EDF.
    pub server: Option<Server>,
    /// Longest execution alone in these colours.
    pub wcet: Time,
    /// Of how many jobs that were played there.
    pub jobs_alone: u64,
    /// Lines a job in these colours.
    pub lines: u64,
}

/// A change that makes it hold.
#[derive(Debug, Clone, Serialize)]
pub struct Relaxation {
    /// The task that misses.
    pub task: String,
    /// By how much.
    pub misses_by: Time,
    /// In words: what to change.
    pub change: String,
}

/// A plan, or the nearest to one.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The machine.
    pub machine: String,
    /// All deadlines are proved.
    pub holds: bool,
    /// By task, in the order of the file.
    pub assignments: Vec<Assignment>,
    /// What the analysis says of each task with deadlines.
    pub analysis: Vec<Answer>,
    /// What would make it hold.
    pub relaxations: Vec<Relaxation>,
    /// What a line of a neighbour costs here.
    pub costs: Costs,
    /// What was tried.
    pub candidates: usize,
    /// What drew programs, pages and jitter, of the check too.
    pub seed: u64,
    /// The tasks, each on its core.
    #[serde(skip)]
    pub set: TaskSet,
    #[serde(skip)]
    places: Vec<PageSource>,
    #[serde(skip)]
    makers: Vec<Maker>,
    #[serde(skip)]
    accesses: Vec<u64>,
    #[serde(skip)]
    limits: Vec<Option<u64>>,
    /// By task; what would be enough for those that are not proved.
    #[serde(skip)]
    enough: Vec<Enough>,
}

/// Plans; `seed` draws the programs that stand for tasks, and their pages.
///
/// # Errors
/// When the tasks can't be on this machine at all; a set that only misses
/// deadlines has a plan that does not hold.
pub fn plan(platform: &Platform, set: &TaskSet, seed: u64) -> Result<Plan, PlanError> {
    refuse(platform, set)?;
    let (makers, alone) = profiles(platform, set, 1).map_err(|e| with_line(set, e))?;
    let undivided =
        undivided(platform, set, &makers, &alone, seed).map_err(|e| with_line(set, e.into()))?;
    let mut candidates = candidates(platform, set);
    let some = !candidates.is_empty();
    if set.order == Order::Edf {
        candidates.retain(|candidate| leaves_a_core(platform, set, candidate));
    }
    if some && candidates.is_empty() {
        return Err(no_core_left(platform, set));
    }
    let search = Search {
        platform,
        set,
        seed,
        makers: &makers,
        alone: &alone,
        undivided: &undivided,
    };
    search.best(&candidates)
}

impl Plan {
    /// What `alone` is, in words: nobody looked at later jobs.
    #[must_use]
    pub fn alone_is(&self) -> String {
        let timed = self.assignments.iter().filter(|a| a.jobs_alone > 0);
        let jobs = timed.map(|a| format!("{} {}", a.task, a.jobs_alone));
        format!(
            "`alone`: its wcet, lengthened as its first jobs are in these colours (played: {}); later ones are for its wcet to cover",
            jobs.collect::<Vec<_>>().join(", ")
        )
    }
}
