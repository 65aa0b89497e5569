//! How much work a job is, and what it asks of memory: each task is played alone
//! until its wcet is over.
//!
//! It is played from cold caches for twice as long as its wcet (or as
//! [`LONGEST_PS`], and what is longer is extrapolated): the first half is a job
//! that finds nothing in the caches, the second one that finds all of the first.
//! A job is the lesser number of accesses, so that neither takes longer than the
//! wcet; its lines are those of the half that has more of them.

use serde::Serialize;
use soloist_core::time::{Time, MS};
use soloist_memory::Platform;

use crate::model::cores::{play, PageSource, PlayError, Setup};
use crate::model::program::Maker;
use crate::tasks::{Behaviour, Order, Task, TaskSet};

/// Longest stretch that is played.
pub const LONGEST_PS: u64 = 2 * MS;

/// A job of a task, as far as the analysis needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Accesses.
    pub accesses: u64,
    /// Lines that memory reads for it, or writes, the machine being its own.
    pub lines: u64,
    /// Lines that its private caches ask the last level for.
    pub requests: u64,
}

/// Makers and profiles of all tasks.
///
/// # Errors
/// When a task can't be played alone on the machine.
pub fn profiles(
    platform: &Platform,
    set: &TaskSet,
    scale: u64,
) -> Result<(Vec<Maker>, Vec<Profile>), PlayError> {
    let profiled = |task: &Task| {
        let mut maker =
            Maker::new(platform, task).map_err(|e| PlayError::Pace(task.name.clone(), e))?;
        let profile = profile(platform, task, &mut maker, scale.max(1))?;
        Ok((maker, profile))
    };
    set.tasks
        .iter()
        .map(profiled)
        .collect::<Result<Vec<_>, _>>()
        .map(|all| all.into_iter().unzip())
}

fn profile(
    platform: &Platform,
    task: &Task,
    maker: &mut Maker,
    scale: u64,
) -> Result<Profile, PlayError> {
    if task.release.is_none() {
        return Ok(Profile::default());
    }
    let wcet = task.wcet.0 / scale;
    let length = wcet.min(LONGEST_PS);
    if let Behaviour::Lines(lines) = task.behaviour {
        return even(platform, task, maker, lines / scale, wcet);
    }
    let (cold_n, cold) = alone(platform, task, maker, length)?;
    let (both_n, both) = alone(platform, task, maker, 2 * length)?;
    let warm_n = both_n.saturating_sub(cold_n).max(1);
    let warm = [
        both[0].saturating_sub(cold[0]),
        both[1].saturating_sub(cold[1]),
    ];
    let n = cold_n.min(warm_n).max(1);
    // Of n accesses, rounded up.
    let share = |of: u64, all: u64| (of * n).div_ceil(all.max(1));
    let most = |i: usize| share(cold[i], cold_n).max(share(warm[i], warm_n));
    let whole = |of: u64| (u128::from(of) * u128::from(wcet)).div_ceil(u128::from(length)) as u64;
    Ok(Profile {
        accesses: (u128::from(n) * u128::from(wcet) / u128::from(length)) as u64,
        lines: whole(most(0)),
        requests: whole(most(1)),
    })
}

/// A job of which only the number of lines is known: as much computing before
/// each as fills the wcet.
fn even(
    platform: &Platform,
    task: &Task,
    maker: &mut Maker,
    lines: u64,
    wcet: u64,
) -> Result<Profile, PlayError> {
    let lines = lines.max(1);
    let sample = wcet.min(LONGEST_PS / 10);
    let (n, _) = alone(platform, task, maker, sample)?;
    let each = sample as f64 / n.max(1) as f64;
    let spare = wcet as f64 / lines as f64 - each;
    if spare < 0.0 {
        return Err(PlayError::Lines {
            task: task.name.clone(),
            lines,
            least: Time((each * lines as f64) as u64),
        });
    }
    maker.work = (spare * 1000.0 / platform.instruction_fs as f64) as u32;
    Ok(Profile {
        accesses: lines,
        lines,
        requests: lines,
    })
}

/// Accesses in a time alone, lines to and from memory, requests to the last
/// level.
fn alone(
    platform: &Platform,
    task: &Task,
    maker: &Maker,
    length_ps: u64,
) -> Result<(u64, [u64; 2]), PlayError> {
    let core = task.core.unwrap_or(0);
    let set = TaskSet::of(
        Order::Fixed,
        vec![Task {
            release: None,
            core: Some(core),
            ..task.clone()
        }],
    );
    let played = play(&Setup {
        platform,
        set: &set,
        makers: std::slice::from_ref(maker),
        accesses: &[0],
        places: &[PageSource::default()],
        limits: &[],
        scale: 1,
        length_ps,
        seed: 1,
    })?;
    let stats = &played.stats[core as usize];
    let lines = stats.llc_misses + stats.write_backs;
    Ok((
        played.accesses[0],
        [lines, stats.llc_hits + stats.llc_misses],
    ))
}
