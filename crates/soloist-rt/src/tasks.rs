//! A task set: who runs how often, until when, where, and what it does to memory.

pub mod file;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use soloist_core::time::{Time, US};
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::ProgramKind;

/// The highest `SCHED_FIFO` priority that a plan gives: those above are for the
/// kernel's threads.
pub const HIGHEST: u32 = 90;

/// So long a core that has used its budget of memory's bandwidth up may go on, where a file does
/// not say it: an overflow's interrupt, and a thread that wakes. A guest's cores took 27 us
/// (evidence/guard.md); no processor was measured.
pub const STOP: Time = Time(30 * US);

/// The order of the tasks of a core. All are preemptive, and a task never
/// leaves its core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The shorter the period the higher (Liu and Layland, 1973).
    #[default]
    #[serde(alias = "rm")]
    RateMonotonic,
    /// The shorter the deadline the higher (Leung and Whitehead, 1982).
    #[serde(alias = "dm")]
    DeadlineMonotonic,
    /// The priorities of the file; 99 is the highest, as for SCHED_FIFO.
    Fixed,
    /// The job whose deadline is next.
    Edf,
}

/// The releases of a task's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Release {
    /// Time from release to release.
    pub period: Time,
    /// Time from release to deadline, at most the period.
    pub deadline: Time,
    /// Release of the first job.
    pub phase: Time,
    /// Time by which a release may be late.
    pub jitter: Time,
    /// 1 to 99, 99 the highest; of [`Order::Fixed`] only.
    pub priority: u32,
}

/// The use that a task makes of memory while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Behaviour {
    /// Nothing behind its private caches.
    Compute,
    /// So many lines to or from memory a job; what it does else is not known.
    Lines(u64),
    /// One of the lab's programs.
    Program {
        /// Which.
        #[serde(rename = "kind")]
        kind: ProgramKind,
        /// Of a program that is known by its counters: instructions a cycle
        /// alone.
        ipc: f64,
        /// Lines from memory per thousand instructions; 0: a recording says it.
        mpki: f64,
        /// Share of these lines that are written.
        writes: f64,
    },
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The releases of its jobs; `None`: it runs whenever nobody else wants its core.
    pub release: Option<Release>,
    /// Longest execution of a job when the machine is its own.
    pub wcet: Time,
    /// Core that it is bound to; `None`: the plan chooses.
    pub core: Option<u32>,
    /// Bytes of memory.
    pub bytes: u64,
    /// Its use of memory.
    pub behaviour: Behaviour,
    /// The program that it plays, of kind `recorded`.
    #[serde(skip)]
    pub recorded: Option<Recorded>,
    /// The recording that it plays or has its counters from.
    #[serde(skip)]
    pub recording: Option<PathBuf>,
    /// Line of the file where it begins.
    #[serde(skip)]
    pub line: usize,
}

impl Task {
    /// Is what its jobs ask the last level for known, and not its lines from memory alone?
    #[must_use]
    pub fn is_known(&self) -> bool {
        match self.behaviour {
            Behaviour::Lines(_) => false,
            Behaviour::Program { kind, .. } => kind != ProgramKind::Program,
            Behaviour::Compute => true,
        }
    }

    /// Share of a core that it takes when the machine is its own.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.release.as_ref().map_or(0.0, |release| {
            self.wcet.0 as f64 / release.period.0.max(1) as f64
        })
    }
}

/// All tasks of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSet {
    /// Machine by name or file; a command may name another.
    pub machine: Option<String>,
    /// Line of the file where that stands.
    #[serde(skip)]
    pub machine_line: usize,
    /// The order of the tasks of a core.
    pub order: Order,
    /// So long a core that has used its budget of memory's bandwidth up may go on.
    pub stop: Time,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The file, for messages.
    #[serde(skip)]
    pub file: String,
}

impl TaskSet {
    /// A set that no file describes.
    #[must_use]
    pub fn of(order: Order, tasks: Vec<Task>) -> Self {
        Self {
            machine: None,
            machine_line: 0,
            order,
            stop: STOP,
            tasks,
            file: String::new(),
        }
    }

    /// Rank of each task among those with deadlines, 0 the first; ties by the
    /// order of the file. Best-effort tasks come last.
    #[must_use]
    pub fn ranks(&self) -> Vec<u32> {
        let key = |i: usize| {
            let key = self.tasks[i].release.as_ref().map(|r| match self.order {
                Order::RateMonotonic => r.period.0,
                Order::DeadlineMonotonic | Order::Edf => r.deadline.0,
                Order::Fixed => u64::from(99 - r.priority.min(99)),
            });
            (key.unwrap_or(u64::MAX), i)
        };
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&i| key(i));
        let mut ranks = vec![0; order.len()];
        for (rank, &i) in order.iter().enumerate() {
            ranks[i] = rank as u32;
        }
        ranks
    }

    /// Does another task use the core of task `i`?
    #[must_use]
    pub fn shares_core(&self, i: usize) -> bool {
        let mut tasks = self.tasks.iter().enumerate();
        tasks.any(|(j, other)| j != i && other.core == self.tasks[i].core)
    }

    /// `SCHED_FIFO` priorities: of each core's tasks with deadlines the first has
    /// [`HIGHEST`]; 0 of all others, and of all under EDF.
    #[must_use]
    pub fn priorities(&self) -> Vec<u32> {
        let ranks = self.ranks();
        let priority = |(i, task): (usize, &Task)| {
            if task.release.is_none() || self.order == Order::Edf {
                return 0;
            }
            let mates = self.tasks.iter().zip(&ranks);
            let before = mates.filter(|(mate, rank)| mate.core == task.core && **rank < ranks[i]);
            HIGHEST.saturating_sub(before.count() as u32)
        };
        self.tasks.iter().enumerate().map(priority).collect()
    }

    /// After so long the releases of all tasks repeat, picoseconds; `None`: not
    /// within an hour.
    #[must_use]
    pub fn hyperperiod(&self) -> Option<u64> {
        let periods = self.tasks.iter().filter_map(|t| t.release.as_ref());
        let longest = 3_600 * 1_000_000_000_000;
        periods.map(|r| r.period.0).try_fold(1, |all, period| {
            let multiple = (all / gcd(all, period)).checked_mul(period)?;
            (multiple <= longest).then_some(multiple)
        })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}
