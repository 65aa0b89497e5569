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
//! host, [`measured`] with what was measured there. [`evidence`] is a document of it, with its
//! [`inputs`] and its [`grounds`]. [`refusal`] says why there can be no plan at all.

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
pub mod measured;
pub mod proof;
pub mod refusal;
mod relax;

use std::fmt;

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

/// The place of one task.
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
    /// Bytes a second that its core may read; `None`: no limit.
    pub limit: Option<u64>,
    /// SCHED_FIFO priority, or 0.
    pub priority: u32,
    /// Its SCHED_DEADLINE, under EDF.
    pub server: Option<Server>,
    /// Longest execution alone in these colours.
    pub wcet: Time,
    /// Number of jobs that were played there; 0: parts of one, which is too long.
    pub jobs_alone: u64,
    /// Lines a job in these colours.
    pub lines: u64,
}

/// A change that makes it hold.
#[derive(Debug, Clone, Serialize)]
pub struct Relaxation {
    /// The task that misses.
    pub task: String,
    /// Time by which it misses, or more; `None`: no bound says how late it can be.
    pub misses_by: Option<Time>,
    /// The change that helps, in words.
    pub change: String,
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.misses_by {
            Some(time) => write!(f, "{} misses by {time} or more", self.task)?,
            None => write!(f, "no bound says by how much {} misses", self.task)?,
        }
        write!(f, ": {}", self.change)
    }
}

/// A plan, or the nearest to one.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The machine.
    pub machine: String,
    /// All deadlines are proved, and nothing that was measured refutes that.
    pub holds: bool,
    /// Assignments by task, in the order of the file.
    pub assignments: Vec<Assignment>,
    /// The analysis of each task with deadlines.
    pub analysis: Vec<Answer>,
    /// Changes that would make it hold.
    pub relaxations: Vec<Relaxation>,
    /// Measurements that the proof calls impossible, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refuted: Vec<String>,
    /// Costs of a line of a co-runner here.
    pub costs: Costs,
    /// Number of ways that were tried until this one held, or all.
    pub tried: usize,
    /// The seed that drew programs, pages and jitter, of the check too.
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
    let set = &soon(set);
    let (makers, alone) = profiles(platform, set, 1).map_err(|e| with_line(set, e))?;
    let undivided =
        undivided(platform, set, &makers, &alone, seed).map_err(|e| with_line(set, e))?;
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

/// The same tasks, each with its first job in its first period: from then on their jobs come
/// as they did, and a play need not wait for them.
fn soon(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for release in set.tasks.iter_mut().filter_map(|t| t.release.as_mut()) {
        release.phase = Time(release.phase.0 % release.period.0.max(1));
    }
    set
}

impl Plan {
    /// Returns what `alone` is, in words: nobody looked at later jobs.
    #[must_use]
    pub fn alone_is(&self) -> String {
        let timed = self.assignments.iter().filter(|a| a.wcet.0 > 0);
        let jobs = timed.map(|a| match a.jobs_alone {
            0 => format!("{} a part", a.task),
            n => format!("{} {n}", a.task),
        });
        format!(
            "`alone`: the wcet, lengthened as its first jobs are in these colours (played: {});\nthe wcet must cover later jobs",
            jobs.collect::<Vec<_>>().join(", ")
        )
    }
}
