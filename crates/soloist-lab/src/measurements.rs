//! What was measured: of each task, run and case. Nothing here knows claims.

pub mod blame;
pub mod metric;
pub mod values;

use serde::{Deserialize, Serialize};
use soloist_core::statistics::Spread;
use soloist_play::guard::Regulated;

use crate::spec::Point;

pub use blame::Waits;
pub use metric::{metric, METRICS, SUFFIXES};
pub use values::values;

/// One task of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Name of its `[[task]]`.
    pub name: String,
    /// Cpu it ran on.
    pub cpu: u32,
    /// From its start to its end, ns; initialisation not counted.
    pub time_ns: f64,
    /// The same for the first half of its accesses; `None`: it ran in the
    /// background.
    #[serde(default)]
    pub half_ns: Option<f64>,
    /// Loads and stores.
    pub accesses: u64,
    /// Time waiting at barriers, ns.
    pub idle_ns: f64,
    /// Instructions.
    pub instructions: u64,
    /// Bytes moved between the last-level cache and memory, initialisation
    /// included.
    pub memory_bytes: u64,
    /// Time that `memory_bytes` took, ns.
    pub whole_ns: f64,
    /// Pages that came out of colour.
    pub spilled: u64,
    /// Share of its pages that lie on another node than its cpu, per cent.
    pub remote: f64,
    /// 99th percentile of the latency of its lines from memory or the last level,
    /// ns; 0: it asked for none, or nobody asked for it.
    #[serde(default)]
    pub p99_ns: f64,
    /// What its time was spent on, where asked for.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// What was counted of its cpu, in scenarios with a regulator.
    #[serde(default)]
    pub regulated: Option<Regulated>,
}

/// One run of one case: a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Its tasks.
    pub tasks: Vec<TaskResult>,
}

/// All runs of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case's name.
    pub case: String,
    /// Its policy.
    pub policy: String,
    /// The first sweep's value.
    pub value: Option<u64>,
    /// Those of the other sweeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<u64>,
    /// One per seed.
    pub runs: Vec<Run>,
}

impl CaseResult {
    /// Where in the sweeps it is.
    pub fn point(&self) -> Point {
        Point(
            self.value
                .into_iter()
                .chain(self.others.iter().copied())
                .collect(),
        )
    }

    /// Without one of its runs.
    pub fn without(&self, run: usize) -> Self {
        let mut left = self.clone();
        if run < left.runs.len() {
            left.runs.remove(run);
        }
        left
    }

    /// As it was after half of every task's work, doubled: times only. `None`:
    /// a task has no half.
    pub fn half(&self) -> Option<Self> {
        let mut half = self.clone();
        for task in half.runs.iter_mut().flat_map(|r| &mut r.tasks) {
            if task.regulated.is_some() {
                return None;
            }
            task.time_ns = 2.0 * task.half_ns.unwrap_or(f64::NAN);
            (task.idle_ns, task.remote, task.whole_ns) = (f64::NAN, f64::NAN, f64::NAN);
            task.p99_ns = f64::NAN;
        }
        Some(half)
    }

    /// `metric` of every task named `task`, per run.
    pub fn per_run(&self, task: &str, name: &str) -> Vec<Vec<f64>> {
        self.runs
            .iter()
            .map(|run| {
                run.tasks
                    .iter()
                    .filter(|t| t.name == task)
                    .filter_map(|t| metric(t, name))
                    .collect()
            })
            .collect()
    }

    /// Spread of `metric` over all runs and tasks of that name.
    pub fn spread(&self, task: &str, name: &str) -> Option<Spread> {
        let all: Vec<f64> = self.per_run(task, name).into_iter().flatten().collect();
        (!all.is_empty()).then(|| Spread::of(&all))
    }
}
