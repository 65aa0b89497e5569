//! How little would be enough for a task that is not proved, all else as it is:
//! tried, by the analysis that does not prove it.

use crate::profile::Profile;
use crate::tasks::{Task, TaskSet};
use crate::time::{Time, MS};

/// What helps a task; `None`: nothing of the kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Enough {
    /// A deadline, and a period where that is shorter, rounded up to 0.1 ms.
    pub deadline: Option<Time>,
    /// Part of its wcet, and of its traffic, rounded down to 0.1 %.
    pub wcet: Option<f64>,
}

/// Longest deadline that is tried, by the one there is.
const LONGEST: u64 = 64;
/// Steps of a deadline, ps.
const STEP: u64 = MS / 10;

/// Tries deadlines and wcets of task `i`; `proves` says whether it holds in a set.
pub(crate) fn enough(
    (set, profiles): (&TaskSet, &[Profile]),
    i: usize,
    proves: &dyn Fn(&TaskSet, &[Profile]) -> bool,
) -> Enough {
    let Some(release) = set.tasks[i].release else {
        return Enough::default();
    };
    let with = |change: &dyn Fn(&mut Task)| {
        let mut set = set.clone();
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
        proves(&patient, profiles)
    };
    let part = |thousandths: u64| {
        let of = |n: u64| (u128::from(n) * u128::from(thousandths) / 1000) as u64;
        let quick = with(&|task| task.wcet = Time(of(task.wcet.0)));
        let mut profiles = profiles.to_vec();
        let p = &mut profiles[i];
        (p.accesses, p.lines, p.requests) = (of(p.accesses), of(p.lines), of(p.requests));
        proves(&quick, &profiles)
    };
    let now = release.deadline.0 / STEP;
    Enough {
        deadline: first(now, (now + 1) * LONGEST, &deadline).map(|n| Time(n * STEP)),
        wcet: first(0, 999, &|n| part(1000 - n)).map(|n| (1000 - n) as f64 / 1000.0),
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
