//! How long the jobs of running tasks took: what `soloist trace --json` writes,
//! and `soloist plan --measured` reads.

use serde::{Deserialize, Serialize};

use crate::observer::Record;
use crate::watch::kept_name;

/// A trace, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its length.
    pub length_ns: u64,
    /// Events that the kernel could not keep; what they would have changed is not
    /// known.
    pub lost_events: u64,
    /// Lines that were not understood.
    pub unread_lines: u64,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// A task that was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its thread's name.
    pub task: String,
    /// Its id.
    pub pid: u32,
    /// Cores that it ran on.
    pub cores: Vec<u32>,
    /// Time from release to release, if it is known.
    pub period_ns: Option<u64>,
    /// Time from release to deadline.
    pub deadline_ns: Option<u64>,
    /// Jobs that ended.
    pub jobs: u64,
    /// Those of them that ended after their deadline.
    pub missed: u64,
    /// The same as a share of `jobs`.
    pub miss_rate: f64,
    /// Median of the time from release to completion; none: no job ended.
    pub response_p50_ns: Option<u64>,
    /// Its 99.9th percentile.
    pub response_p999_ns: Option<u64>,
    /// The longest; none: no job was seen.
    pub response_worst_ns: Option<u64>,
    /// The worst was not over when the record or its task ended.
    pub worst_is_cut_off: bool,
    /// Longest execution of a completed job.
    pub execution_max_ns: u64,
    /// Times that it was left ready for another as urgent.
    pub preempted: u64,
    /// Times that it gave way.
    pub yielded: u64,
    /// Times that it changed its core.
    pub migrated: u64,
    /// Time in which it wanted to run and was kept from it.
    pub throttled_ns: u64,
    /// The part of that for which its scheduling class is the cause.
    pub held_ns: u64,
}

/// What was seen of all threads that have a task's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// Jobs that ended.
    pub jobs: u64,
    /// Those of them that ended after their deadline.
    pub missed: u64,
    /// The longest time from release to completion; none: no job was seen.
    pub response_worst_ns: Option<u64>,
    /// The worst was not over when the record or its thread ended.
    pub worst_is_cut_off: bool,
}

impl Task {
    /// Whether its thread has this name, of which the kernel kept the beginning. Of several
    /// threads of one name each has its id behind it.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let kept = kept_name(name);
        self.task == kept || self.task == format!("{kept}-{}", self.pid)
    }
}

impl Measured {
    /// Returns the figures of a record; jobs that were released before `skip_ps` are not counted.
    #[must_use]
    pub fn of(record: &Record, skip_ps: u64) -> Self {
        let timeline = &record.timeline;
        let rows = timeline.rows.iter().zip(&record.tasks).enumerate();
        let tasks = rows.map(|(number, (row, seen))| {
            let figures = timeline.figures(number, skip_ps);
            let until = seen.ended_ps.unwrap_or(timeline.end_ps);
            let responses = timeline.responses(number, skip_ps, until);
            let throttled: u64 = row.throttled.iter().map(|t| t.1 - t.0).sum();
            Task {
                task: row.name.clone(),
                pid: seen.pid,
                cores: row.cores.clone(),
                period_ns: seen.timing.map(|t| t.period_ps / 1000),
                deadline_ns: seen.timing.map(|t| t.deadline_ps / 1000),
                jobs: figures.jobs,
                missed: figures.missed,
                miss_rate: figures.miss_rate(),
                response_p50_ns: responses.and_then(|r| r.p50_ns),
                response_p999_ns: responses.and_then(|r| r.p999_ns),
                response_worst_ns: responses.map(|r| r.worst_ns),
                worst_is_cut_off: responses.is_some_and(|r| r.worst_cut_off),
                execution_max_ns: figures.max_ps / 1000,
                preempted: seen.preempted,
                yielded: seen.yielded,
                migrated: seen.migrated,
                throttled_ns: throttled / 1000,
                held_ns: seen.held_ps / 1000,
            }
        });
        Self {
            length_ns: timeline.end_ps / 1000,
            lost_events: record.lost,
            unread_lines: record.unread,
            tasks: tasks.collect(),
        }
    }

    /// The threads of this name together; `None`: none was seen.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<Together> {
        let seen = self.tasks.iter().filter(|task| task.is_named(name));
        let seen = seen.map(|task| Together {
            jobs: task.jobs,
            missed: task.missed,
            response_worst_ns: task.response_worst_ns,
            worst_is_cut_off: task.worst_is_cut_off,
        });
        seen.reduce(Together::and)
    }
}

impl Together {
    fn and(self, other: Self) -> Self {
        let worst = |of: &Self| (of.response_worst_ns, of.worst_is_cut_off);
        let (response_worst_ns, worst_is_cut_off) = worst(&self).max(worst(&other));
        Self {
            jobs: self.jobs + other.jobs,
            missed: self.missed + other.missed,
            response_worst_ns,
            worst_is_cut_off,
        }
    }
}
