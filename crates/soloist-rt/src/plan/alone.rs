//! How long tasks take when nobody is beside them: undivided, as a task file says
//! it, and in colours of their own.

use soloist_core::time::{Time, MS};
use soloist_memory::Platform;

use crate::analysis::interference::Costs;
use crate::model::cores::{seed_of, PageSource, PlayError};
use crate::model::in_colors::{in_colors, Alone, Jobs};
use crate::model::profile::Profile;
use crate::model::program::Maker;
use crate::tasks::{Task, TaskSet};

/// Hyperperiods that a check plays: only releases repeat after one, and not the programs,
/// pages and refreshes.
const ROUNDS: u64 = 10;
/// It plays no more of them than take so long, ps, but a whole period of every task.
const CHECK_PS: u64 = 40 * MS;
/// At most so long: nobody waits for a play of minutes.
const MOST_PS: u64 = 1000 * MS;

/// Time that a check plays.
pub(crate) fn check_ps(set: &TaskSet) -> u64 {
    let rounds = set
        .hyperperiod()
        .map_or(CHECK_PS, |hyper| hyper.saturating_mul(ROUNDS));
    let longest = set.tasks.iter().filter_map(|t| t.release);
    let longest = longest.map(|r| r.phase.0.saturating_add(r.period.0));
    let least = longest.max().unwrap_or(0);
    rounds.min(CHECK_PS).max(least).min(MOST_PS)
}

/// The jobs of a task that a check of the plan plays.
pub(crate) fn jobs_of(platform: &Platform, set: &TaskSet, task: usize, seed: u64) -> Jobs {
    let release = set.tasks[task].release;
    Jobs {
        least: release.map_or(0, |r| check_ps(set).div_ceil(r.period.0)),
        seed: seed_of(seed, task),
        in_flight: Costs::of(platform).in_flight,
    }
}

/// Longest of these of each task, wherever its pages are.
pub(crate) fn undivided(
    platform: &Platform,
    set: &TaskSet,
    makers: &[Maker],
    alone: &[Profile],
    seed: u64,
) -> Result<Vec<Time>, PlayError> {
    let longest = |(i, task): (usize, &Task)| {
        if task.release.is_none() {
            return Ok(Time(0));
        }
        let (anywhere, on_first) = (PageSource::default(), with_core(task, 0));
        let jobs = jobs_of(platform, set, i, seed);
        let played = in_colors(platform, &on_first, &makers[i], &alone[i], &anywhere, jobs)?;
        Ok(played.longest)
    };
    set.tasks.iter().enumerate().map(longest).collect()
}

pub(crate) fn with_core(task: &Task, core: u32) -> Task {
    Task {
        core: task.core.or(Some(core)),
        ..task.clone()
    }
}

/// What a task of this `wcet` takes in colours where the longest of its jobs that
/// were played takes `there.longest`, and undivided `undivided`: as much longer as
/// these.
pub(crate) fn slowed(wcet: Time, undivided: Time, there: &Alone) -> Time {
    let (wcet, longest) = (u128::from(wcet.0), u128::from(there.longest.0));
    let as_slow = (wcet * longest).div_ceil(u128::from(undivided.0.max(1)));
    Time(as_slow.max(wcet).max(longest) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that stands for a task may have shorter jobs than the task's
    /// longest: that is as much longer in the colours as they are.
    #[test]
    fn colours_lengthen_a_wcet_as_they_do_the_jobs_played() {
        let there = |longest| Alone {
            longest: Time(longest),
            profile: Profile::default(),
            jobs: 10,
        };
        let took = |longest, undivided| slowed(Time(100), Time(undivided), &there(longest)).0;
        assert_eq!(took(110, 100), 110);
        assert_eq!(took(99, 90), 110);
        assert_eq!(took(80, 90), 100);
        // A later job was longer than its file says.
        assert_eq!(took(130, 130), 130);
    }
}
