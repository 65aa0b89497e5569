//! Does every job end in time? Response times under fixed priorities (Joseph and
//! Pandya, 1986; jitter: Audsley et al., 1993), the processor demand under EDF
//! (Baruah et al., 1990; QPA: Zhang and Burns, 2009), each with what memory adds
//! ([`crate::interference`]).

use serde::Serialize;

use crate::interference::Surroundings;
use crate::profile::Profile;
use crate::task::{Order, TaskSet};
use crate::time::Time;

/// What the analysis says of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Name.
    pub task: String,
    /// Core.
    pub core: u32,
    /// Longest from release to completion; `None`: beyond the deadline, or not
    /// said (EDF).
    pub response: Option<Time>,
    /// Deadline.
    pub deadline: Time,
    /// It always ends in time.
    pub holds: bool,
    /// What is missing where it does not hold, what is left where it does
    /// (negative: missing), ps. Where nothing bounds the response, what was known
    /// to be missing when the search stopped.
    pub slack_ps: i64,
    /// Of the response: execution alone.
    pub alone: Time,
    /// Tasks of its core that go before it, with what their preemptions cost, and
    /// what all of them leave in its way: dirty lines, pages to walk to again.
    pub preempted: Time,
    /// Waiting for other cores' memory traffic, and lines that they evicted.
    pub memory: Time,
}

/// A task as the analysis sees it, ps.
struct Demand {
    index: usize,
    rank: u32,
    period: u64,
    deadline: u64,
    jitter: u64,
    /// Execution, lines that others evict or have left included.
    time: u64,
    evicted: u64,
    /// Of `time`: what other tasks of the core left.
    left: u64,
    lines: u64,
    /// What it has to fetch again after each preemption.
    reload: u64,
    /// Page walks after another task of its core ran, ps.
    walks: u64,
}

/// Answers for the tasks of `core`, by their order in the set.
#[must_use]
pub fn analyse(
    (set, profiles): (&TaskSet, &[Profile]),
    core: u32,
    around: &Surroundings,
) -> Vec<Answer> {
    let mut demands = demands(set, profiles, core, around);
    match set.order {
        Order::Edf => edf(set, core, &demands, around),
        _ => {
            demands.sort_by_key(|d| d.rank);
            let mut answers: Vec<(usize, Answer)> = (0..demands.len())
                .map(|at| (demands[at].index, fixed(set, core, &demands, at, around)))
                .collect();
            answers.sort_by_key(|(index, _)| *index);
            answers.into_iter().map(|(_, a)| a).collect()
        }
    }
}

fn demands(set: &TaskSet, profiles: &[Profile], core: u32, around: &Surroundings) -> Vec<Demand> {
    let ranks = set.ranks();
    let line = 64;
    let of = |(i, task): (usize, &crate::task::Task)| {
        let release = task.release.filter(|_| task.core == Some(core))?;
        let evicted = around.evicted_ps(&profiles[i]);
        // A recorded program touches more than leaves its private caches.
        let touched = match task.recorded {
            Some(_) => u64::MAX,
            None => profiles[i].accesses,
        };
        let kept = (task.bytes / line).min(around.costs.cached).min(touched);
        let stale = stale(set, i, around.costs.cached).min(profiles[i].requests);
        let walks = match shares_core(set, i) {
            true => around.costs.walks_ps(task.bytes),
            false => 0,
        };
        let left = stale
            .saturating_mul(around.costs.miss_ps)
            .saturating_add(walks);
        Some(Demand {
            index: i,
            rank: ranks[i],
            period: release.period.0,
            deadline: release.deadline.0,
            jitter: release.jitter.0,
            time: (task.wcet.0).saturating_add(evicted).saturating_add(left),
            evicted,
            left,
            lines: around.lines(&profiles[i]) + stale,
            reload: kept,
            walks,
        })
    };
    set.tasks.iter().enumerate().filter_map(of).collect()
}

/// Lines of other tasks of its core that task `i` may find dirty in the caches:
/// its fills push them out, one each at most.
fn stale(set: &TaskSet, i: usize, cached: u64) -> u64 {
    let mine = &set.tasks[i];
    let others = set.tasks.iter().enumerate();
    let others = others.filter(|&(j, other)| j != i && other.core == mine.core);
    let lines = others.map(|(_, other)| other.bytes.div_ceil(64));
    lines.fold(0, u64::saturating_add).min(cached)
}

/// Does another task use the core of task `i`?
fn shares_core(set: &TaskSet, i: usize) -> bool {
    let mut tasks = set.tasks.iter().enumerate();
    tasks.any(|(j, other)| j != i && other.core == set.tasks[i].core)
}

/// One preemption makes its victims fetch at most so many lines again.
fn reload(victims: &[Demand]) -> u64 {
    victims.iter().map(|d| d.reload).max().unwrap_or(0)
}

/// What one preemption costs its victims: lines fetched again, each of which may
/// push one out, and page walks.
fn resume_ps(victims: &[Demand], around: &Surroundings) -> u64 {
    let walks = victims.iter().map(|d| d.walks).max().unwrap_or(0);
    (2 * reload(victims) * around.costs.miss_ps).saturating_add(walks)
}

fn fixed(set: &TaskSet, core: u32, demands: &[Demand], at: usize, around: &Surroundings) -> Answer {
    let me = &demands[at];
    let limit = me.deadline.saturating_sub(me.jitter);
    let victims = &demands[1..=at.max(1).min(demands.len() - 1)];
    let (again, resume) = (reload(victims), resume_ps(victims, around));
    let mut response = me.time;
    let (mut preempted, mut memory) = (0, 0);
    let holds = loop {
        let (mut lines, mut before) = (me.lines, 0u64);
        for other in &demands[..at] {
            let jobs = response.saturating_add(other.jitter).div_ceil(other.period);
            let each = other.time.saturating_add(resume);
            before = before.saturating_add(jobs.saturating_mul(each));
            lines = lines.saturating_add(jobs.saturating_mul(other.lines + 2 * again));
        }
        let delay = around.delay(lines, response);
        let next = me.time.saturating_add(before).saturating_add(delay);
        (preempted, memory) = if next > response || preempted == 0 {
            (before, delay)
        } else {
            (preempted, memory)
        };
        if next <= response {
            break true;
        }
        response = next;
        if response > limit {
            break false;
        }
    };
    let whole = response.saturating_add(me.jitter);
    Answer {
        task: set.tasks[me.index].name.clone(),
        core,
        response: holds.then_some(Time(whole)),
        deadline: Time(me.deadline),
        holds,
        slack_ps: me.deadline as i64 - whole.min(i64::MAX as u64) as i64,
        alone: set.tasks[me.index].wcet,
        preempted: Time(preempted.saturating_add(me.left)),
        memory: Time(memory.saturating_add(me.evicted)),
    }
}

fn edf(set: &TaskSet, core: u32, demands: &[Demand], around: &Surroundings) -> Vec<Answer> {
    let (again, resume) = (reload(demands), resume_ps(demands, around));
    let each = |d: &Demand| d.time.saturating_add(resume);
    // Jobs with release and deadline inside a window, or any release inside it.
    let due = |d: &Demand, t: u64| match (t + d.jitter).checked_sub(d.deadline) {
        Some(rest) => rest / d.period + 1,
        None => 0,
    };
    let demand = |t: u64, jobs: &dyn Fn(&Demand) -> u64| {
        let (mut time, mut lines) = (0u64, 0u64);
        for d in demands {
            let n = jobs(d);
            time = time.saturating_add(n.saturating_mul(each(d)));
            lines = lines.saturating_add(n.saturating_mul(d.lines + 2 * again));
        }
        if lines == 0 && time == 0 {
            return 0;
        }
        time.saturating_add(around.delay(lines, t))
    };
    let longest = demands.iter().map(|d| d.period).max().unwrap_or(1);
    let limit = longest.saturating_mul(200);
    let mut busy = demands.iter().map(each).sum::<u64>().max(1);
    let mut bounded = true;
    loop {
        let next = demand(busy, &|d: &Demand| (busy + d.jitter).div_ceil(d.period));
        if next <= busy {
            break;
        }
        busy = next;
        if busy > limit {
            bounded = false;
            break;
        }
    }
    let before = |t: u64| {
        let of = |d: &Demand| {
            let rest = (t + d.jitter).checked_sub(d.deadline + 1)?;
            (d.deadline + rest / d.period * d.period).checked_sub(d.jitter)
        };
        demands.iter().filter_map(of).max().filter(|&d| d > 0)
    };
    let mut slack = i64::MAX;
    if bounded {
        let mut t = before(busy + 1);
        while let Some(at) = t {
            let h = demand(at, &|d: &Demand| due(d, at));
            slack = slack.min(at as i64 - h.min(i64::MAX as u64) as i64);
            t = match h {
                h if h > at => None,
                h if h < at && h > 0 => before(h + 1).map(|d| d.min(at - 1)),
                _ => before(at),
            };
        }
    } else {
        slack = limit as i64 - busy.min(i64::MAX as u64) as i64;
    }
    let holds = bounded && slack >= 0;
    let answer = |d: &Demand| Answer {
        task: set.tasks[d.index].name.clone(),
        core,
        response: None,
        deadline: Time(d.deadline),
        holds,
        slack_ps: slack,
        alone: set.tasks[d.index].wcet,
        preempted: Time(0),
        memory: Time(d.evicted),
    };
    demands.iter().map(answer).collect()
}
