//! Does every job end in time?
//!
//! Under fixed priorities the analysis iterates response times (Joseph and Pandya,
//! 1986; jitter: Audsley et al., 1993). Under EDF it compares the processor demand with
//! the time there is (`edf.rs`). Both count what memory adds ([`super::interference`])
//! and what the kernel keeps for others ([`super::linux`]).

use serde::Serialize;
use soloist_core::time::Time;

use super::edf::{self, Sporadic};
use super::interference::{Costs, Surroundings};
use super::linux::{self, turns_of_others, Server, BUSIEST_PS, SECOND_PS};
use super::{ProfiledSet, LINE};
use crate::tasks::{Order, Task, TaskSet};

/// The analysis of a task.
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
    /// Time that is left where it holds, or is missing where it does not
    /// (negative), ps. Where nothing bounds the response, what was known
    /// to be missing when the search stopped.
    pub slack_ps: i64,
    /// Part of the response: execution alone.
    pub alone: Time,
    /// Tasks of its core that go before it, with what their preemptions cost, and
    /// what all of them leave in its way: dirty lines, pages to walk to again.
    pub preempted: Time,
    /// Waiting for other cores' memory traffic, and lines that they evicted.
    pub memory: Time,
    /// Of `memory`: lines that others put out of a last level that they share.
    pub evicted: Time,
    /// Of `preempted`, or of the core's time under EDF: what the kernel keeps for
    /// tasks that are not real time, where these may wait so long that it does.
    pub others: Time,
}

impl Answer {
    /// Whether anything bounds how long it waits for other cores' memory traffic. Where nothing
    /// does and the deadline is missed, [`Answer::memory`] is a day.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.holds || self.memory.0 < UNBOUNDED_PS
    }

    /// How long it waits for other cores' memory traffic, for people.
    #[must_use]
    pub fn waits(&self) -> String {
        match self.is_bounded() {
            true => self.memory.to_string(),
            false => "no bound".to_owned(),
        }
    }
}

/// Said of a wait that nothing bounds, where a deadline is missed: a day.
const UNBOUNDED_PS: u64 = 86_400 * SECOND_PS;

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
    /// Page walks after another task ran on its core, ps.
    walks: u64,
}

/// Answers for the tasks of `core`, by their order in the set.
#[must_use]
pub fn analyse(tasks: ProfiledSet, core: u32, around: &Surroundings) -> Vec<Answer> {
    let mut demands = demands(tasks, core, around);
    let set = tasks.set;
    match set.order {
        Order::Edf => by_edf(set, core, &demands, around),
        _ => {
            demands.sort_by_key(|d| d.rank);
            let by_priority = |others: bool| -> Vec<Answer> {
                let core = CoreDemands {
                    set,
                    core,
                    demands: &demands,
                    others,
                };
                let answer = |at| fixed_priority(core, at, around);
                (0..demands.len()).map(answer).collect()
            };
            let mut answers = by_priority(false);
            if around.kernel && !leave_time(&demands, &answers, around) {
                // Of one that misses even so, less is known to be missing.
                for (answer, with) in answers.iter_mut().zip(by_priority(true)) {
                    if answer.holds {
                        *answer = with;
                    }
                }
            }
            let mut answers: Vec<_> = demands.iter().map(|d| d.index).zip(answers).collect();
            answers.sort_by_key(|(index, _)| *index);
            answers.into_iter().map(|(_, a)| a).collect()
        }
    }
}

/// Do these tasks, with these responses, leave others their part of each second? Of one that
/// misses nothing says for how long it goes on.
fn leave_time(demands: &[Demand], answers: &[Answer], around: &Surroundings) -> bool {
    let (again, resume) = (
        resume_lines(demands, &around.costs),
        resume_ps(demands, around),
    );
    let (mut busy, mut lines) = (0u64, 0u64);
    for (d, answer) in demands.iter().zip(answers) {
        let Some(Time(response)) = answer.response else {
            return false;
        };
        let job = d.time.saturating_add(resume).min(response);
        busy = busy.saturating_add(linux::workload(
            SECOND_PS,
            linux::Jobs {
                time: job,
                response,
                period: d.period,
            },
        ));
        let jobs = SECOND_PS.saturating_add(response).div_ceil(d.period);
        lines = lines.saturating_add(jobs.saturating_mul(d.lines + again));
    }
    busy.saturating_add(around.delay(lines, SECOND_PS)) <= BUSIEST_PS
}

fn demands(tasks: ProfiledSet, core: u32, around: &Surroundings) -> Vec<Demand> {
    let set = tasks.set;
    let ranks = set.ranks();
    let demand = |(i, task): (usize, &Task)| {
        let release = task.release.filter(|_| task.core == Some(core))?;
        let profile = tasks.profile(i, &around.costs);
        let evicted = around.evicted_ps(&profile);
        let own = task.bytes.div_ceil(LINE);
        let costs = &around.costs;
        let stale = stale(set, i).min(costs.stale(profile.requests, own));
        let walks = costs.walks_ps(task.bytes);
        // Whoever has the core keeps it until it looks up who runs: when the line is here that
        // it waits for, behind those that it asked for before.
        let (handed_over, before) = match set.shares_core(i) {
            true => (
                costs.handed_over,
                costs.chunk_ps + costs.begun_ps + costs.handed_over_ps + walks,
            ),
            false => (0, 0),
        };
        let left = stale.saturating_mul(costs.miss_ps).saturating_add(before);
        Some(Demand {
            index: i,
            rank: ranks[i],
            period: release.period.0,
            deadline: release.deadline.0,
            jitter: release.jitter.0,
            time: (task.wcet.0).saturating_add(evicted).saturating_add(left),
            evicted,
            left,
            lines: around.lines(&profile) + stale + handed_over,
            reload: tasks.kept(i, &around.costs),
            walks,
        })
    };
    set.tasks.iter().enumerate().filter_map(demand).collect()
}

/// Lines of other tasks of its core that task `i` may find dirty in the caches.
fn stale(set: &TaskSet, i: usize) -> u64 {
    let mine = &set.tasks[i];
    let others = set.tasks.iter().enumerate();
    let others = others.filter(|&(j, other)| j != i && other.core == mine.core);
    let lines = others.map(|(_, other)| other.bytes.div_ceil(64));
    lines.fold(0, u64::saturating_add)
}

/// One preemption makes its victims fetch at most so many lines again.
fn reload(victims: &[Demand]) -> u64 {
    victims.iter().map(|d| d.reload).max().unwrap_or(0)
}

/// Lines that wait for other cores on account of one preemption: those fetched again, with
/// what they push out, and those in their way that whoever preempts has under way.
fn resume_lines(victims: &[Demand], costs: &Costs) -> u64 {
    match victims {
        [] => 0,
        _ => costs.again(reload(victims)) + costs.handed_over,
    }
}

/// What one preemption costs its victims: lines fetched again, those in their way, the last
/// that the preempting task waits for, and page walks.
fn resume_ps(victims: &[Demand], around: &Surroundings) -> u64 {
    let Some(walks) = victims.iter().map(|d| d.walks).max() else {
        return 0;
    };
    let before = around.costs.handed_over_ps + around.costs.begun_ps;
    (around.costs.again(reload(victims)) * around.costs.miss_ps)
        .saturating_add(before)
        .saturating_add(walks)
}

/// Tasks of a core under fixed priorities, the highest first.
#[derive(Clone, Copy)]
struct CoreDemands<'a> {
    set: &'a TaskSet,
    core: u32,
    demands: &'a [Demand],
    /// The kernel's part for what is not real time goes before all of them.
    others: bool,
}

/// The response time of one task under fixed priorities, by iteration.
fn fixed_priority(tasks: CoreDemands, at: usize, around: &Surroundings) -> Answer {
    let CoreDemands {
        set,
        core,
        demands,
        others,
    } = tasks;
    let me = &demands[at];
    let limit = me.deadline.saturating_sub(me.jitter);
    let victims = &demands[1..=at.max(1).min(demands.len() - 1)];
    let (again, resume) = (
        resume_lines(victims, &around.costs),
        resume_ps(victims, around),
    );
    let mut response = me.time;
    let (mut preempted, mut memory, mut kept) = (0, 0, 0);
    let holds = loop {
        let (mut lines, mut before) = (me.lines, 0u64);
        if others {
            let (turns, stopped) = (turns_of_others(response), &demands[..=at]);
            kept = turns * linux::OTHERS_PS;
            before = kept.saturating_add(turns * resume_ps(stopped, around));
            lines = lines.saturating_add(turns * resume_lines(stopped, &around.costs));
        }
        for other in &demands[..at] {
            let jobs = response.saturating_add(other.jitter).div_ceil(other.period);
            let each = other.time.saturating_add(resume);
            before = before.saturating_add(jobs.saturating_mul(each));
            lines = lines.saturating_add(jobs.saturating_mul(other.lines + again));
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
    let bounded = |ps: u64| Time(if holds { ps } else { ps.min(UNBOUNDED_PS) });
    Answer {
        task: set.tasks[me.index].name.clone(),
        core,
        response: holds.then_some(Time(whole)),
        deadline: Time(me.deadline),
        holds,
        slack_ps: me.deadline as i64 - bounded(whole).0.min(i64::MAX as u64) as i64,
        alone: set.tasks[me.index].wcet,
        preempted: bounded(preempted.saturating_add(me.left)),
        memory: bounded(memory.saturating_add(me.evicted)),
        evicted: Time(me.evicted),
        others: Time(kept),
    }
}

/// Parts of a job's time under EDF, ps.
struct Job {
    time: u64,
    resumed: u64,
    delay: u64,
}

/// Of a job of `demands[at]` under EDF, all that it takes of the processor: what its
/// preemptions and other cores cost it too.
fn job(demands: &[Demand], at: usize, around: &Surroundings) -> Job {
    let me = &demands[at];
    let preempts = |other: &Demand| {
        // Its deadline is counted from when it was due, and it may come late: after this job,
        // and with an earlier deadline.
        let reach = (me.deadline + other.jitter).checked_sub(other.deadline)?;
        Some(reach.div_ceil(other.period))
    };
    let mates = demands.iter().enumerate().filter(|&(other, _)| other != at);
    let preempted: u64 = mates.filter_map(|(_, other)| preempts(other)).sum();
    let victim = std::slice::from_ref(me);
    let resumed = preempted.saturating_mul(resume_ps(victim, around));
    let again = preempted.saturating_mul(resume_lines(victim, &around.costs));
    let delay = around.delay(me.lines.saturating_add(again), me.deadline);
    Job {
        time: me.time.saturating_add(resumed).saturating_add(delay),
        resumed,
        delay,
    }
}

/// Returns what each task of `core` needs under `SCHED_DEADLINE`, by number in the set.
#[must_use]
pub fn servers(tasks: ProfiledSet, core: u32, around: &Surroundings) -> Vec<(usize, Server)> {
    let demands = demands(tasks, core, around);
    let found = servers_of(&demands, around);
    demands.iter().map(|d| d.index).zip(found).collect()
}

fn servers_of(demands: &[Demand], around: &Surroundings) -> Vec<Server> {
    let server = |(at, d): (usize, &Demand)| {
        // The kernel counts a deadline from the wake-up, which may be late.
        let deadline = d.deadline.saturating_sub(d.jitter);
        Server::new(job(demands, at, around).time, deadline, d.period)
    };
    demands.iter().enumerate().map(server).collect()
}

/// What EDF leaves of the processor's time, ps, and what the kernel keeps of it.
fn edf_slack(demands: &[Demand], around: &Surroundings) -> (i64, u64) {
    if !around.kernel {
        let sporadic = |(at, d): (usize, &Demand)| Sporadic {
            time: job(demands, at, around).time,
            deadline: d.deadline,
            period: d.period,
            jitter: d.jitter,
        };
        let tasks: Vec<Sporadic> = demands.iter().enumerate().map(sporadic).collect();
        return (edf::slack(&tasks), 0);
    }
    let servers = servers_of(demands, around);
    match (linux::left(&servers), linux::beyond_ps(&servers)) {
        (slack, beyond) if slack >= 0 && beyond > 0 => (-(beyond as i64), linux::OTHERS_PS),
        (slack, _) => (slack, 0),
    }
}

fn by_edf(set: &TaskSet, core: u32, demands: &[Demand], around: &Surroundings) -> Vec<Answer> {
    let (slack, others) = edf_slack(demands, around);
    let bounded = |ps: u64| Time(if slack >= 0 { ps } else { ps.min(UNBOUNDED_PS) });
    let answer = |(at, d): (usize, &Demand)| {
        let job = job(demands, at, around);
        Answer {
            task: set.tasks[d.index].name.clone(),
            core,
            response: None,
            deadline: Time(d.deadline),
            holds: slack >= 0,
            slack_ps: slack.max(-(UNBOUNDED_PS as i64)),
            alone: set.tasks[d.index].wcet,
            preempted: bounded(job.resumed.saturating_add(d.left)),
            memory: bounded(job.delay.saturating_add(d.evicted)),
            evicted: Time(d.evicted),
            others: Time(others),
        }
    };
    demands.iter().enumerate().map(answer).collect()
}
