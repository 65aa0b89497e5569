//! A task alone in its colours: how long its jobs take there, and their lines.

use soloist_core::time::Time;
use soloist_memory::Platform;

use super::cores::{play, PageSource, PlayError, Setup};
use super::profile::{Profile, LONGEST_PS};
use super::program::Maker;
use crate::tasks::{Behaviour, Order, Release, Task, TaskSet};

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

/// What is played of each of a task's jobs: all of it, or a part of [`LONGEST_PS`].
struct Part<'a> {
    platform: &'a Platform,
    task: &'a Task,
    maker: &'a Maker,
    pages: &'a PageSource,
    seed: u64,
    /// The task alone, a part at a time.
    set: TaskSet,
    /// Parts that a job has.
    share: u64,
    /// Accesses of a part.
    accesses: u64,
    /// Length of a part by the task's wcet, ps.
    length: u64,
    /// From one part's begin to the next, ps.
    period: u64,
    /// When the first begins, ps.
    begins: u64,
}

/// The figures of parts that were played in a row.
struct PartsPlayed {
    /// The longest, ps.
    longest: u64,
    /// Lines that memory read for them, or wrote.
    lines: u64,
    /// Lines that the private caches asked the last level for.
    requests: u64,
    /// The most lines of one part.
    most_lines: u64,
}

impl<'a> Part<'a> {
    /// It may take longer than the wcet here. What takes more than ten times as long is
    /// not known, and is no plan. Whole jobs come when the task's do, which says where in
    /// them refreshes fall.
    fn new(
        platform: &'a Platform,
        task: &'a Task,
        maker: &'a Maker,
        profile: &Profile,
        pages: &'a PageSource,
        seed: u64,
    ) -> Self {
        let wcet = task.wcet.0;
        let share = (wcet / LONGEST_PS).max(1);
        let length = wcet / share;
        let own = task.release.filter(|r| share == 1 && r.period.0 >= length);
        let period = own.map_or(length.saturating_mul(10).max(1000), |r| r.period.0);
        let release = task.release.map(|r| Release {
            period: Time(period),
            deadline: Time(period),
            phase: own.map_or(Time(0), |r| r.phase),
            jitter: own.map_or(Time(0), |r| r.jitter),
            ..r
        });
        let alone = Task {
            release,
            ..task.clone()
        };
        Part {
            platform,
            task,
            maker,
            pages,
            seed,
            set: TaskSet::of(Order::RateMonotonic, vec![alone]),
            share,
            accesses: (profile.accesses / share).max(1),
            length,
            period,
            begins: own.map_or(0, |r| r.phase.0),
        }
    }

    /// Plays `n` parts in a row, from cold caches.
    fn play(&self, n: u64) -> Result<PartsPlayed, PlayError> {
        let played = play(&Setup {
            platform: self.platform,
            set: &self.set,
            makers: std::slice::from_ref(self.maker),
            accesses: &[self.accesses],
            places: std::slice::from_ref(self.pages),
            limits: &[],
            scale: 1,
            length_ps: self.begins + n * self.period,
            seed: self.seed,
        })?;
        let stats = &played.stats[self.task.core.unwrap_or(0) as usize];
        let figures = played.timeline.figures(0, 0);
        let deadline = self
            .task
            .release
            .map_or(0, |r| r.deadline.0 / self.share + 1);
        Ok(PartsPlayed {
            longest: match figures.missed {
                0 => figures.max_ps,
                _ => self.period.max(deadline),
            },
            lines: stats.llc_misses + stats.write_backs,
            requests: stats.llc_hits + stats.llc_misses,
            most_lines: played.lines[0],
        })
    }

    /// The time of a job whose parts take `ps`.
    fn job(&self, ps: u64) -> Time {
        let wcet = u128::from(self.task.wcet.0);
        Time((u128::from(ps) * wcet).div_ceil(u128::from(self.length)) as u64)
    }

    /// All jobs that a recorded program has, or as many as asked for: those of the next round
    /// begin elsewhere in it.
    fn recorded(&self, write_backs: u64, asked: Jobs) -> Result<Alone, PlayError> {
        let n = self.maker.cycle(self.accesses).unwrap_or(1);
        let n = n.div_ceil(self.share).max(asked.least) * self.share;
        let played = self.play(n)?;
        // What was in flight when the job ended came after it. All that left its
        // private caches asks the last level, and so does the line by which it
        // computes.
        let requests = self.accesses + write_backs + 1;
        Ok(Alone {
            longest: self.job(played.longest),
            profile: Profile {
                accesses: self.accesses * self.share,
                lines: (played.most_lines + asked.in_flight).min(2 * requests) * self.share,
                requests: requests * self.share,
            },
            jobs: n / self.share,
        })
    }
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
    let part = Part::new(platform, task, maker, profile, pages, asked.seed);
    if let Some(recorded) = maker.recorded() {
        return part.recorded(recorded.write_backs(part.accesses), asked);
    }
    let n = (asked.least.saturating_mul(part.share))
        .min(2 * JOBS * LONGEST_PS / part.length.max(1))
        .max(JOBS);
    let (first, both, all) = (part.play(1)?, part.play(2)?, part.play(n)?);
    // Lines are known of the first two; a longer one is taken to have as many
    // more.
    let longest = all.longest.max(both.longest).max(first.longest);
    let more = |n: u64| {
        (u128::from(n) * u128::from(longest)).div_ceil(u128::from(both.longest.max(1))) as u64
    };
    let most = |a: u64, b: u64| more(a.max(b.saturating_sub(a))).saturating_mul(part.share);
    let named = match task.behaviour {
        Behaviour::Lines(lines) => lines,
        _ => 0,
    };
    Ok(Alone {
        longest: part.job(longest),
        profile: Profile {
            accesses: profile.accesses,
            lines: most(first.lines, both.lines).max(named),
            requests: most(first.requests, both.requests).max(named),
        },
        jobs: n / part.share,
    })
}
