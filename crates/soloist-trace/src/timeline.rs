//! What came of a schedule: the jobs, when they ran and how they ended.

mod responses;

use serde::{Deserialize, Serialize};
use soloist_core::statistics::{deviation, mean};

pub use self::responses::Responses;

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// At this time, picoseconds.
    Completed(u64),
    /// Aborted at its deadline, as the scheduler of this crate does; a kernel
    /// lets it run on.
    Missed,
    /// The record ends before it.
    Open,
}

/// One job of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Number of its task in the set.
    pub task: usize,
    /// Number of the job, from 0.
    pub number: u64,
    /// Release as planned, jitter not counted, picoseconds.
    pub release_ps: u64,
    /// Deadline; `None`: best effort.
    pub deadline_ps: Option<u64>,
    /// Begins and ends of its runs.
    pub runs: Vec<(u64, u64)>,
    /// Its end.
    pub end: End,
}

impl Job {
    /// Returns the time that it ran, picoseconds.
    #[must_use]
    pub fn executed_ps(&self) -> u64 {
        self.runs.iter().map(|(from, to)| to - from).sum()
    }

    /// Returns the time from release to completion, picoseconds.
    #[must_use]
    pub fn response_ps(&self) -> Option<u64> {
        match self.end {
            End::Completed(at) => Some(at - self.release_ps.min(at)),
            End::Missed | End::Open => None,
        }
    }

    /// Was it aborted at its deadline, or completed after it?
    #[must_use]
    pub fn missed(&self) -> bool {
        match self.end {
            End::Missed => true,
            End::Completed(at) => self.deadline_ps.is_some_and(|deadline| at > deadline),
            End::Open => false,
        }
    }
}

/// A task's row: its name and cores, and times in which it was kept from running
/// though it was its turn (bandwidth regulation).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Cores that it ran on; more than one of a kernel's task only.
    pub cores: Vec<u32>,
    /// Begins and ends of the times in which it was throttled.
    pub throttled: Vec<(u64, u64)>,
}

/// A whole record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Tasks by number.
    pub rows: Vec<Row>,
    /// All jobs by release.
    pub jobs: Vec<Job>,
    /// Its length, picoseconds.
    pub end_ps: u64,
}

/// Figures of one task's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Jobs that ended.
    pub jobs: u64,
    /// Those of them that were aborted at their deadline or completed after it.
    pub missed: u64,
    /// Execution of those that were completed: mean, longest, shortest,
    /// standard deviation, picoseconds.
    pub mean_ps: f64,
    /// Longest execution.
    pub max_ps: u64,
    /// Shortest execution.
    pub min_ps: u64,
    /// Standard deviation.
    pub std_ps: f64,
    /// Longest from release to completion.
    pub response_ps: u64,
}

impl Figures {
    /// Share of jobs that missed their deadline.
    #[must_use]
    pub fn miss_rate(&self) -> f64 {
        match self.jobs {
            0 => 0.0,
            jobs => self.missed as f64 / jobs as f64,
        }
    }

    fn of<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        let mut all = Self::default();
        let mut times = Vec::new();
        for job in jobs {
            match job.end {
                End::Open => continue,
                End::Missed => {}
                End::Completed(_) => times.push(job.executed_ps()),
            }
            all.jobs += 1;
            all.missed += u64::from(job.missed());
            all.response_ps = all.response_ps.max(job.response_ps().unwrap_or(0));
        }
        if times.is_empty() {
            return all;
        }
        let values: Vec<f64> = times.iter().map(|&t| t as f64).collect();
        Self {
            mean_ps: mean(&values),
            max_ps: times.iter().copied().max().unwrap_or(0),
            min_ps: times.iter().copied().min().unwrap_or(0),
            std_ps: deviation(&values),
            ..all
        }
    }
}

/// Returns what two lists of times have in common, each sorted and without overlap.
#[must_use]
pub fn common(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    for &(from, to) in a {
        let first = b.partition_point(|s| s.1 <= from);
        for &(start, end) in b[first..].iter().take_while(|s| s.0 < to) {
            parts.push((start.max(from), end.min(to)));
        }
    }
    parts
}

impl Timeline {
    /// Returns the figures of a task's jobs that were released at `from_ps` or later.
    #[must_use]
    pub fn figures(&self, task: usize, from_ps: u64) -> Figures {
        let mine = |j: &&Job| j.task == task && j.release_ps >= from_ps;
        Figures::of(self.jobs.iter().filter(mine))
    }

    /// Returns the part between two times, with jobs that reach beyond cut off; its times
    /// count from `from_ps` on.
    #[must_use]
    pub fn part(&self, from_ps: u64, to_ps: u64) -> Self {
        let cut = |&(a, b): &(u64, u64)| {
            let (a, b) = (a.max(from_ps), b.min(to_ps));
            (a < b).then(|| (a - from_ps, b - from_ps))
        };
        let inside = |job: &&Job| job.release_ps >= from_ps && job.release_ps < to_ps;
        let best_effort = |job: &&Job| job.deadline_ps.is_none();
        let jobs = self.jobs.iter();
        let kept = jobs.filter(|j| inside(j) || best_effort(j)).map(|job| Job {
            release_ps: job.release_ps.saturating_sub(from_ps),
            deadline_ps: job.deadline_ps.map(|d| d - from_ps),
            runs: job.runs.iter().filter_map(cut).collect(),
            end: match job.end {
                End::Completed(at) => End::Completed(at.saturating_sub(from_ps)),
                end => end,
            },
            ..job.clone()
        });
        Self {
            jobs: kept.collect(),
            rows: self
                .rows
                .iter()
                .map(|row| Row {
                    throttled: row.throttled.iter().filter_map(cut).collect(),
                    ..row.clone()
                })
                .collect(),
            end_ps: to_ps.min(self.end_ps).saturating_sub(from_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(end: End) -> Job {
        Job {
            task: 0,
            number: 0,
            release_ps: 0,
            deadline_ps: Some(10),
            runs: vec![(0, 8)],
            end,
        }
    }

    /// On a real kernel nobody aborts a job at its deadline.
    #[test]
    fn a_job_that_is_completed_late_misses_too() {
        let ends = [
            End::Completed(10),
            End::Completed(11),
            End::Missed,
            End::Open,
        ];
        let timeline = Timeline {
            rows: vec![Row::default()],
            jobs: ends.map(job).to_vec(),
            end_ps: 20,
        };
        let figures = timeline.figures(0, 0);
        assert_eq!((figures.jobs, figures.missed), (3, 2));
        assert_eq!((figures.mean_ps, figures.response_ps), (8.0, 11));
        let missed = timeline.jobs.iter().map(Job::missed);
        assert_eq!(missed.collect::<Vec<_>>(), [false, true, true, false]);
    }
}
