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

/// Jobs, or parts of them, that are played to find the longest, at least.
const JOBS: u64 = 10;

/// The jobs of a task that are played alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jobs {
    /// Number of jobs, at least.
    pub least: u64,
    /// Draws the program and its pages: another seed's jobs may be longer.
    pub seed: u64,
    /// Lines that a core can have on their way.
    pub in_flight: u64,
}

/// A task's jobs as they were played alone in its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alone {
    /// The longest.
    pub longest: Time,
    /// The profile of a job there.
    pub profile: Profile,
    /// Jobs that were played.
    pub jobs: u64,
}

/// The same job in colours of its own: how long it takes alone, and its lines.
/// Jobs in a row are played, from cold caches, and the longest counts: one job
/// does not do what the next does. They are as many as asked for, or ten if that is
/// more; of jobs that are longer than [`LONGEST_PS`] it is parts of that length, ten
/// at least and no more than take 40 ms. Of a recorded program all jobs that it has
/// are played, and that with the most lines counts.
///
/// # Errors
/// When its colours don't hold its memory.
pub fn in_colors(
    platform: &Platform,
    task: &Task,
    maker: &Maker,
    profile: &Profile,
    pages: &PageSource,
    asked: Jobs,
) -> Result<Alone, PlayError> {
    let wcet = task.wcet.0;
    // Accesses of a part of the job that can be played.
    let share = (wcet / LONGEST_PS).max(1);
    let accesses = (profile.accesses / share).max(1);
    let part = wcet / share;
    // It may take longer here. What takes more than ten times as long is not known,
    // and is no plan. Whole jobs come when the task's do, which says where in them
    // refreshes fall.
    let own = task.release.filter(|r| share == 1 && r.period.0 >= part);
    let period = own.map_or(part.saturating_mul(10).max(1000), |r| r.period.0);
    let deadline = task.release.map_or(0, |r| r.deadline.0 / share + 1);
    let release = task.release.map(|r| crate::tasks::Release {
        period: Time(period),
        deadline: Time(period),
        phase: own.map_or(Time(0), |r| r.phase),
        jitter: own.map_or(Time(0), |r| r.jitter),
        ..r
    });
    let begins = own.map_or(0, |r| r.phase.0);
    let set = TaskSet::of(
        Order::RateMonotonic,
        vec![Task {
            release,
            ..task.clone()
        }],
    );
    let core = task.core.unwrap_or(0) as usize;
    let at_least = (asked.least.saturating_mul(share))
        .min(2 * JOBS * LONGEST_PS / part.max(1))
        .max(JOBS);
    let jobs = |n: u64| {
        let played = play(&Setup {
            platform,
            set: &set,
            makers: std::slice::from_ref(maker),
            accesses: &[accesses],
            places: std::slice::from_ref(pages),
            limits: &[],
            scale: 1,
            length_ps: begins + n * period,
            seed: asked.seed,
        })?;
        let stats = &played.stats[core];
        let lines = stats.llc_misses + stats.write_backs;
        let figures = played.timeline.figures(0, 0);
        let time = if figures.missed > 0 {
            period.max(deadline)
        } else {
            figures.max_ps
        };
        let requests = stats.llc_hits + stats.llc_misses;
        Ok::<_, PlayError>((time, lines, requests, played.lines[0]))
    };
    let of_part = |ps: u64| (u128::from(ps) * u128::from(wcet)).div_ceil(u128::from(part)) as u64;
    if let Some(recorded) = maker.recorded() {
        let n = maker.cycle(accesses).unwrap_or(1).div_ceil(share) * share;
        let (longest, .., lines) = jobs(n)?;
        // What was in flight when the job ended came after it. All that left its
        // private caches asks the last level, and so does the line by which it
        // computes.
        let requests = accesses + recorded.write_backs(accesses) + 1;
        return Ok(Alone {
            longest: Time(of_part(longest)),
            profile: Profile {
                accesses: accesses * share,
                lines: (lines + asked.in_flight).min(2 * requests) * share,
                requests: requests * share,
            },
            jobs: n / share,
        });
    }
    let (first, both, all) = (jobs(1)?, jobs(2)?, jobs(at_least)?);
    // Lines are known of the first two; a longer one is taken to have as many
    // more.
    let longest = all.0.max(both.0).max(first.0);
    let more = |n: u64| (u128::from(n) * u128::from(longest)).div_ceil(u128::from(both.0.max(1)));
    let most = |a: u64, b: u64| (more(a.max(b.saturating_sub(a))) as u64).saturating_mul(share);
    let named = match task.behaviour {
        Behaviour::Lines(lines) => lines,
        _ => 0,
    };
    Ok(Alone {
        longest: Time(of_part(longest)),
        profile: Profile {
            accesses: profile.accesses,
            lines: most(first.1, both.1).max(named),
            requests: most(first.2, both.2).max(named),
        },
        jobs: at_least / share,
    })
}
