//! What Linux's scheduling classes (sched(7)) have for the tasks of a plan, and
//! what the kernel keeps of a core for others.
//!
//! Fixed priorities are `SCHED_FIFO`'s, one for each task of a core, from
//! [`HIGHEST`](crate::tasks::HIGHEST) down. EDF is `SCHED_DEADLINE`, which gives each
//! task a budget of each period ([`Server`]) and takes no more of a core than
//! [`admitted`] says.
//!
//! Of each second 50 ms are for what is not real time. Before 6.12 the kernel
//! stops `SCHED_FIFO` where it ran longer (`kernel.sched_rt_runtime_us`), which does
//! not come where real-time tasks keep a core busy for [`BUSIEST_PS`] of a second at
//! most. From 6.12 on a server of the ordinary tasks goes before it, for 50 ms at a
//! time and also where the core has been idle for most of its period: time in which
//! it is idle empties the server without putting its next turn off. So a plan has
//! that server turned off on each core with deadlines.

use serde::Serialize;
use soloist_core::time::{Time, MS, US};

use super::edf::{missing, slack, Sporadic};

/// The kernel's second, ps.
pub const SECOND_PS: u64 = 1000 * MS;
/// The part of it that is for other tasks.
pub const OTHERS_PS: u64 = 50 * MS;
/// The rest of it.
pub const BUSIEST_PS: u64 = SECOND_PS - OTHERS_PS;
/// The server of ordinary tasks waits for so long before it runs.
const PATIENCE_PS: u64 = BUSIEST_PS;

/// Periods that `SCHED_DEADLINE` takes (`kernel.sched_deadline_period_min_us`,
/// `_max_us`), and its least budget.
pub const PERIODS: [Time; 2] = [Time(100 * US), Time((1 << 22) * US)];
const LEAST_BUDGET_PS: u64 = 1_024_000;

/// A share of a core as the kernel has it, in 2^20ths.
const ONE: u64 = 1 << 20;
const ADMITTED: u64 = ONE * BUSIEST_PS / SECOND_PS;

/// The parameters of a task under `SCHED_DEADLINE`; whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Processor time of each period.
    pub budget: Time,
    /// Deadline, from a wake-up on.
    pub deadline: Time,
    /// The period.
    pub period: Time,
}

impl Server {
    /// For jobs that take so long, with a deadline of so long after the latest
    /// release; ps.
    pub(crate) fn new(job: u64, deadline: u64, period: u64) -> Self {
        let whole = |ps: u64| Time(ps / 1000 * 1000);
        Self {
            budget: Time((job.max(LEAST_BUDGET_PS).div_ceil(1000)).saturating_mul(1000)),
            deadline: whole(deadline),
            period: whole(period),
        }
    }

    fn sporadic(&self) -> Sporadic {
        Sporadic {
            time: self.budget.0,
            deadline: self.deadline.0,
            period: self.period.0,
            jitter: 0,
        }
    }

    /// With a budget `by` 1024ths as large.
    fn times(&self, by: u64) -> Self {
        let budget = (u128::from(self.budget.0) * u128::from(by) >> 10) as u64;
        Self {
            budget: Time(budget / 1000 * 1000),
            ..*self
        }
    }
}

/// Shares of a core in 2^20ths, rounded up.
fn share(servers: &[Server]) -> u64 {
    let share = |s: &Server| (u128::from(s.budget.0) << 20).div_ceil(s.period.0.max(1).into());
    let all: u128 = servers.iter().map(share).sum();
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// Does the kernel take all of these on one core?
#[must_use]
pub fn admitted(servers: &[Server]) -> bool {
    share(servers) <= ADMITTED
}

/// By how much of the longest period they are more than the kernel takes, ps.
pub(crate) fn beyond_ps(servers: &[Server]) -> u64 {
    let more = share(servers).saturating_sub(ADMITTED);
    let longest = servers.iter().map(|s| s.period.0).max().unwrap_or(0);
    (u128::from(more) * u128::from(longest)).div_ceil(u128::from(ONE)) as u64
}

/// Jobs of a task, ps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jobs {
    /// Time that each takes.
    pub time: u64,
    /// Longest time from release to end.
    pub response: u64,
    /// Time from release to release.
    pub period: u64,
}

/// Longest that a task runs in any stretch of `window`.
pub(crate) fn workload(window: u64, jobs: Jobs) -> u64 {
    let reach = window.saturating_add(jobs.response.saturating_sub(jobs.time));
    let whole = reach / jobs.period.max(1);
    let rest = reach - whole * jobs.period;
    let all = (whole.saturating_mul(jobs.time)).saturating_add(jobs.time.min(rest));
    all.min(window)
}

/// How often others may take their part in a stretch of so long.
pub(crate) fn turns_of_others(window: u64) -> u64 {
    (window.saturating_add(PATIENCE_PS)).div_ceil(SECOND_PS)
}

fn sporadics(servers: &[Server]) -> Vec<Sporadic> {
    servers.iter().map(Server::sporadic).collect()
}

/// What is left in the window that has least, ps, where each server's job ends by
/// its deadline.
pub(crate) fn left(servers: &[Server]) -> i64 {
    slack(&sporadics(servers))
}

/// Does a core hold all of these?
fn holds(servers: &[Server]) -> bool {
    admitted(servers) && missing(&sporadics(servers)).is_none()
}

/// Servers that hold, with what is left of the core shared out over their budgets:
/// up to twice, for what no proof covers (interrupts, the switches themselves).
#[must_use]
pub fn stretched(servers: &[Server]) -> Vec<Server> {
    let by = |n: u64| -> Vec<Server> { servers.iter().map(|s| s.times(n)).collect() };
    let (mut can, mut not) = (1024, 2049);
    while not - can > 1 {
        let middle = can + (not - can) / 2;
        match holds(&by(middle)) {
            true => can = middle,
            false => not = middle,
        }
    }
    match can {
        1024 => servers.to_vec(),
        can => by(can),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(budget: u64, period: u64) -> Server {
        Server::new(budget * US, period * US, period * US)
    }

    #[test]
    fn the_kernel_keeps_a_twentieth_of_a_core() {
        assert!(admitted(&[server(2000, 5000), server(3600, 7000)]));
        assert!(admitted(&[server(9400, 10_000)]));
        assert!(!admitted(&[server(9600, 10_000)]));
        assert!(!admitted(&[server(2500, 5000), server(3200, 7000)]));
    }

    /// Jobs one right after the other: the end of one, whole ones, the begin of one.
    #[test]
    fn a_second_holds_the_ends_of_jobs_too() {
        let jobs = |time, response, period| Jobs {
            time,
            response,
            period,
        };
        assert_eq!(workload(1000, jobs(100, 100, 200)), 500);
        assert_eq!(workload(1000, jobs(100, 200, 200)), 600);
        assert_eq!(workload(100, jobs(300, 900, 900)), 100);
        // It may run at the end of one period and at the begin of the next.
        let second = |ms: u64, response| workload(SECOND_PS, jobs(ms * MS, response, SECOND_PS));
        assert_eq!(second(950, 950 * MS), BUSIEST_PS);
        assert_eq!(second(900, SECOND_PS), SECOND_PS);
    }

    #[test]
    fn what_is_left_goes_to_budgets() {
        let more = stretched(&[server(2000, 5000), server(3600, 7000)]);
        assert!(holds(&more));
        assert!(more[0].budget.0 > 2_060 * US && more[0].budget.0 < 2_080 * US);
        let twice = stretched(&[server(1000, 10_000)]);
        assert_eq!(twice[0].budget, Time(2000 * US));
    }
}
