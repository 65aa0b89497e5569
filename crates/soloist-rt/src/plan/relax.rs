//! How little would be enough for a task that is not proved, all else as it is:
//! tried, by the analysis that does not prove it.

use soloist_core::time::{Time, MS, US};
use soloist_memory::Platform;

use super::{Plan, Relaxation};
use crate::analysis::interference::Costs;
use crate::analysis::linux::OTHERS_PS;
use crate::analysis::response::Answer;
use crate::analysis::ProfiledSet;
use crate::tasks::{Release, Task, TaskSet};

/// What helps a task; `None`: nothing of the kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Enough {
    /// A deadline, and a period where that is shorter, rounded up to 0.1 ms.
    pub deadline: Option<Time>,
    /// Part of its wcet, and of its traffic, rounded down to 0.1 %.
    pub wcet: Option<f64>,
    /// It holds as soon as all others do.
    pub others: bool,
}

/// Longest deadline that is tried, by the one there is.
const LONGEST: u64 = 64;
/// Steps of a deadline, ps.
const STEP: u64 = MS / 10;

/// Tries deadlines and wcets of task `i`; `proves` says whether it holds in a set.
pub(crate) fn enough(tasks: ProfiledSet, i: usize, proves: &dyn Fn(ProfiledSet) -> bool) -> Enough {
    let Some(release) = tasks.set.tasks[i].release else {
        return Enough::default();
    };
    let with = |change: &dyn Fn(&mut Task)| {
        let mut set = tasks.set.clone();
        change(&mut set.tasks[i]);
        set
    };
    let deadline = |steps: u64| {
        let patient = with(&|task| {
            if let Some(r) = &mut task.release {
                r.deadline = Time(steps * STEP);
                r.period = r.period.max(r.deadline);
            }
        });
        proves(ProfiledSet::new(&patient, tasks.profiles))
    };
    let part = |thousandths: u64| {
        let part_of = |n: u64| (u128::from(n) * u128::from(thousandths) / 1000) as u64;
        let quick = with(&|task| task.wcet = Time(part_of(task.wcet.0)));
        let mut profiles = tasks.profiles.to_vec();
        let p = &mut profiles[i];
        p.accesses = part_of(p.accesses);
        p.lines = part_of(p.lines);
        p.requests = part_of(p.requests);
        proves(ProfiledSet::new(&quick, &profiles))
    };
    let now = release.deadline.0 / STEP;
    Enough {
        deadline: first(now, (now + 1) * LONGEST, &deadline).map(|n| Time(n * STEP)),
        wcet: first(0, 999, &|n| part(1000 - n)).map(|n| (1000 - n) as f64 / 1000.0),
        others: false,
    }
}

/// Says how little would be enough, task by task, all others being as they are.
/// Times are of the file, not of the task in its colours.
pub(crate) fn relaxed(platform: &Platform, asked: &TaskSet, mut plan: Plan) -> Plan {
    let costs = Costs::of(platform);
    let missing = plan.analysis.iter().filter(|a| !a.holds);
    let relaxations = missing.filter_map(|answer| {
        let i = asked.tasks.iter().position(|t| t.name == answer.task)?;
        let ways = ways(&plan, answer, &asked.tasks[i], &plan.enough[i], &costs)?;
        Some(Relaxation {
            change: ways.join(", or "),
            task: answer.task.clone(),
            misses_by: answer.is_bounded().then(|| Time(short(answer))),
        })
    });
    plan.relaxations = relaxations.collect();
    plan
}

fn short(answer: &Answer) -> u64 {
    (-answer.slack_ps).max(0) as u64
}

/// What a task is told that holds if all others do.
const OTHERS_FIRST: &str = "make the others hold (nothing stops a job at its deadline, so no bound says what a task that misses does to memory after that)";

/// What would make a task hold, in words; `None`: it has no deadline.
fn ways(
    plan: &Plan,
    answer: &Answer,
    task: &Task,
    enough: &Enough,
    costs: &Costs,
) -> Option<Vec<String>> {
    let times = other_times(task, enough, task.release?);
    if enough.others {
        return Some(vec![OTHERS_FIRST.to_owned()]);
    }
    let mut ways = Vec::new();
    if !times.is_empty() {
        ways.push(format!("give it {}", times.join(", or ")));
    }
    if answer.others.0 > 0 {
        ways.push(format!(
            "leave more of core {} free: Linux keeps {} of each second for what is not real time (kernel.sched_rt_runtime_us), and lets it wait no longer",
            answer.core, answer.others.min(Time(OTHERS_PS))
        ));
    }
    // No patience helps against what preempts it ever again.
    let mates = plan.set.tasks.iter().filter(|t| t.release.is_some());
    let mates = mates.filter(|t| t.core == Some(answer.core)).count();
    if enough.deadline.is_none() && mates > 1 {
        ways.push("bind it to another core than what preempts it (`core`)".to_owned());
    }
    ways.extend(less_memory(plan, answer, task, costs));
    if ways.is_empty() {
        ways.push("no deadline and no wcet is enough here: take something else from its core or its controller".to_owned());
    }
    Some(ways)
}

/// A deadline and a wcet that would be enough.
fn other_times(task: &Task, enough: &Enough, release: Release) -> Vec<String> {
    let longer = enough.deadline.map(|longer| {
        let what = match longer > release.period {
            true => "a period and deadline",
            false => "a deadline",
        };
        format!("{what} of at least {}", printed(longer, u64::div_ceil))
    });
    let quicker = enough.wcet.map(|part| {
        let wcet = Time((task.wcet.0 as f64 * part) as u64);
        format!("a wcet of at most {}", printed(wcet, |ps, step| ps / step))
    });
    longer.into_iter().chain(quicker).collect()
}

/// A time of as many digits as are printed, which print to the nearest: `steps` says to
/// which side this is rounded.
fn printed(time: Time, steps: fn(u64, u64) -> u64) -> Time {
    let unit = match time.0 {
        ..US => 1000,
        US..MS => US,
        MS.. => MS,
    };
    let parts = match time.0 / unit {
        1000.. => 1,
        100.. => 10,
        10.. => 100,
        _ => 1000,
    };
    Time(steps(time.0, unit / parts) * (unit / parts))
}

/// Where waiting for memory is more than what is missing: less of it.
fn less_memory(plan: &Plan, answer: &Answer, task: &Task, costs: &Costs) -> Option<String> {
    if !answer.is_bounded() {
        return Some("keep others off its controller, where nothing ends a stream of theirs that goes first (controller.direction_cap would, on one rank and channel)".to_owned());
    }
    if answer.memory.0 <= short(answer) {
        return None;
    }
    if answer.evicted.0 > answer.memory.0 / 2 {
        return Some(own_last_level(task));
    }
    let limited = plan.assignments.iter().filter(|a| a.limit.is_some());
    let others: Vec<&str> = limited.map(|a| a.task.as_str()).collect();
    Some(match others.is_empty() {
        false => format!(
            "keep {} from running beside it",
            others.join(" and ")
        ),
        true => format!(
            "give it a controller of its own: waiting for others is {} of its response (a line of theirs costs it up to {})",
            answer.memory,
            Time(costs.other_bank_ps)
        ),
    })
}

/// Where most of the waiting is for lines that others put out of its last level.
fn own_last_level(task: &Task) -> String {
    let alone = "keep what shares its last level from running beside it";
    match task.is_known() {
        true => alone.to_owned(),
        false => format!(
            "{alone}, or give a recording of it (kind = \"recorded\"): the file does not say what it asks the last level for"
        ),
    }
}

/// The least number above `from` that will do, if `to` does.
fn first(from: u64, to: u64, does: &dyn Fn(u64) -> bool) -> Option<u64> {
    if !does(to) {
        return None;
    }
    let (mut not, mut yes) = (from, to);
    while yes - not > 1 {
        let middle = not + (yes - not) / 2;
        if does(middle) {
            yes = middle;
        } else {
            not = middle;
        }
    }
    Some(yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed is never less than a deadline, nor more than a wcet, that is enough.
    #[test]
    fn advice_is_rounded_to_the_safe_side() {
        let up = |ps| printed(Time(ps), u64::div_ceil).to_string();
        let down = |ps| printed(Time(ps), |ps, step| ps / step).to_string();
        for (ps, more, less) in [
            (1_571_400_000_000, "1572 ms", "1571 ms"),
            (525_940_000_000, "526 ms", "525.9 ms"),
            (99_999_900_000, "100 ms", "99.99 ms"),
            (9_999_600_000, "10 ms", "9.999 ms"),
            (43_800, "43.8 ns", "43.8 ns"),
            (999_999, "1 us", "999.9 ns"),
        ] {
            assert_eq!((up(ps).as_str(), down(ps).as_str()), (more, less), "{ps}");
        }
    }
}
