//! One task of a kernel: its jobs, from when it was woken, ran and slept.
//!
//! A job begins with a wake-up and is done with the last sleep before the next
//! one's. Of a task with a period, a wake-up is a release only if it comes no more
//! than a quarter of the period early; an earlier one goes on with the same job.
//! A task that does not sleep until its next release is late: its jobs follow
//! each other without a sleep, and all that can be said is that each was done when
//! the last was. The first job is left out: it may have begun before the record.
//! If it did, and has no sleep for longer than a period, those that came due are
//! counted from its first sign on, as late as they can have been released. Of a
//! program's own beginning all is left out until it first sleeps between two jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::event::State;
use crate::timeline::{common, End, Job};

/// The timing of the jobs of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time from release to release, picoseconds, not 0.
    pub period_ps: u64,
    /// Time from release to deadline, picoseconds, at most the period.
    pub deadline_ps: u64,
}

/// What a task is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Activity {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Asleep(u64),
    Blocked,
    Ready,
    Running(u64),
    Ended,
}

/// A task as it is followed.
#[derive(Debug, Default)]
pub struct Track {
    /// The timing of its jobs; `None`: they come whenever it is woken.
    pub timing: Option<Timing>,
    /// Times that it could have gone on, but another ran.
    pub preempted: u64,
    /// Times that it gave way to another of its priority.
    pub yielded: u64,
    /// Begins and ends of the times in which its scheduling class held it back.
    pub held: Vec<(u64, u64)>,
    /// Times that it continued on another core.
    pub migrated: u64,
    /// Cores that it ran on.
    pub cores: BTreeSet<u32>,
    /// When it ended.
    pub ended_ps: Option<u64>,
    activity: Activity,
    core: u32,
    job: Option<Job>,
    done: Vec<Job>,
    /// Its first run is no job.
    begins: bool,
    /// Number of the next job; `None`: the one that is left out is not over.
    next: Option<u64>,
    /// When it wanted to run, by core; and since when, on which, it does.
    awake: BTreeMap<u32, Vec<(u64, u64)>>,
    awake_since: Option<(u32, u64)>,
    /// Since when it is held back.
    held_since: Option<u64>,
}

impl Track {
    /// Follows a task of which nothing is known yet but whether its program
    /// `begins` now.
    #[must_use]
    pub fn new(timing: Option<Timing>, begins: bool) -> Self {
        Self {
            timing,
            begins,
            // Without a period there is nothing to be late for.
            next: timing.is_none().then_some(0),
            ..Self::default()
        }
    }

    /// It is made ready, to run on `core`.
    pub fn wakes(&mut self, at: u64, core: u32) {
        match self.activity {
            Activity::Ended => return,
            Activity::Unknown => self.release(at),
            Activity::Asleep(since) => self.next_job(since, at),
            Activity::Blocked => {}
            // It had asked to sleep, and was woken before it did.
            Activity::Ready | Activity::Running(_) => {
                self.next_job(at, at);
                return;
            }
        }
        self.activity = Activity::Ready;
        self.awake_since = Some((core, at));
    }

    /// It gets a core.
    pub fn runs(&mut self, at: u64, core: u32) {
        self.let_go(at);
        match self.activity {
            Activity::Ended => return,
            Activity::Unknown => self.release(at),
            Activity::Asleep(_) | Activity::Blocked => self.wakes(at, core),
            Activity::Ready | Activity::Running(_) => {}
        }
        if self.cores.insert(core) && self.cores.len() == 1 {
            self.core = core;
        }
        self.migrated += u64::from(self.core != core);
        self.core = core;
        if self.awake_since.is_none_or(|(on, _)| on != core) {
            self.sleeps(at);
            self.awake_since = Some((core, at));
        }
        self.activity = Activity::Running(at);
    }

    /// It leaves its core.
    pub fn leaves(&mut self, at: u64, state: State) {
        if self.activity == Activity::Ended {
            return;
        }
        self.pause(at);
        if self.activity == Activity::Unknown && !matches!(state, State::Sleeps | State::Dead) {
            self.release(at);
        }
        match state {
            State::Ready | State::Yields | State::Held => {
                self.preempted += u64::from(state == State::Ready);
                self.yielded += u64::from(state == State::Yields);
                self.held_since = (state == State::Held).then_some(at);
                self.activity = Activity::Ready;
                return;
            }
            State::Sleeps => self.activity = Activity::Asleep(at),
            State::Blocked => self.activity = Activity::Blocked,
            State::Dead => self.ends(at),
        }
        self.sleeps(at);
    }

    /// It ends, which completes no job, but may be too late for one.
    pub fn ends(&mut self, at: u64) {
        self.pause(at);
        self.let_go(at);
        self.sleeps(at);
        self.close(at);
        self.activity = Activity::Ended;
        self.ended_ps.get_or_insert(at);
    }

    /// Is there a job of which the end was seen, or that it missed its deadline?
    #[must_use]
    pub fn tells(&self) -> bool {
        self.done.iter().any(|job| job.end != End::Open)
    }

    /// The record ends: its jobs.
    pub fn finish(&mut self, at: u64) -> Vec<Job> {
        match self.activity {
            Activity::Asleep(since) => self.complete(since),
            Activity::Ended => {}
            _ => self.ends(at),
        }
        mem::take(&mut self.done)
    }

    /// Returns the times in which it was held back: by its class, and the parts of `stopped`,
    /// by core, in which it wanted to run there.
    #[must_use]
    pub fn throttled(&self, stopped: &BTreeMap<u32, Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
        let here = |(core, awake): (&u32, &Vec<(u64, u64)>)| {
            let stopped = stopped.get(core)?;
            Some(common(awake, stopped))
        };
        let stood = self.awake.iter().filter_map(here).flatten();
        united(stood.chain(self.held.iter().copied()).collect())
    }

    fn let_go(&mut self, at: u64) {
        self.held
            .extend(self.held_since.take().map(|since| (since, at)));
    }

    /// Slept from `since` on, woken `at`: the next job, or more of this one?
    fn next_job(&mut self, since: u64, at: u64) {
        let early = match (&self.job, self.timing) {
            (Some(job), Some(timing)) => {
                let next = last_release(job.release_ps, since, timing) + timing.period_ps;
                at < next - timing.period_ps / 4
            }
            _ => false,
        };
        if !early {
            if let Activity::Running(_) = self.activity {
                self.pause(at);
                self.activity = Activity::Running(at);
            }
            self.complete(since);
            self.release(at);
        }
    }

    fn release(&mut self, at: u64) {
        let deadline = self.timing.map(|t| at + t.deadline_ps);
        self.job = Some(Job {
            task: 0,
            number: 0,
            release_ps: at,
            deadline_ps: deadline,
            runs: Vec::new(),
            end: End::Open,
        });
    }

    /// Notes the stretch that it ran.
    fn pause(&mut self, at: u64) {
        if let (Activity::Running(since), Some(job)) = (self.activity, &mut self.job) {
            if at > since {
                job.runs.push((since, at));
            }
        }
    }

    fn sleeps(&mut self, at: u64) {
        if let Some((core, since)) = self.awake_since.take() {
            self.awake.entry(core).or_default().push((since, at));
        }
    }

    /// The job, and those that came due meanwhile, are done.
    fn complete(&mut self, at: u64) {
        self.take_jobs(at, |_| End::Completed(at));
    }

    /// They will not be seen to be done.
    fn close(&mut self, at: u64) {
        let late = |job: &Job| job.deadline_ps.is_some_and(|d| d < at);
        self.take_jobs(at, |job| if late(job) { End::Missed } else { End::Open });
    }

    fn take_jobs(&mut self, at: u64, end: impl Fn(&Job) -> End) {
        let Some(mut rest) = self.job.take() else {
            return;
        };
        if self.next.is_none() && self.begins {
            self.next = Some(0);
            return;
        }
        if let Some(timing) = self.timing {
            let last = last_release(rest.release_ps, at, timing);
            while rest.release_ps < last {
                let until = rest.release_ps + timing.period_ps;
                let (mine, others) = split(&rest.runs, until);
                let mut job = rest.clone();
                job.runs = mine;
                job.end = end(&job);
                self.note(job);
                rest.release_ps = until;
                rest.deadline_ps = Some(until + timing.deadline_ps);
                rest.runs = others;
            }
        }
        rest.end = end(&rest);
        self.note(rest);
    }

    /// Keeps a job, unless it is the first.
    fn note(&mut self, mut job: Job) {
        if let Some(number) = self.next {
            job.number = number;
            self.done.push(job);
        }
        self.next = Some(self.next.map_or(0, |number| number + 1));
    }
}

/// The last release before `at` of a task that has not slept since `release`.
fn last_release(release: u64, at: u64, timing: Timing) -> u64 {
    let passed = at.saturating_sub(release).saturating_sub(1) / timing.period_ps;
    release + passed * timing.period_ps
}

type Spans = Vec<(u64, u64)>;

/// Sorted, those that overlap joined.
fn united(mut spans: Spans) -> Spans {
    spans.sort_unstable();
    let mut whole: Spans = Vec::new();
    for (from, to) in spans {
        match whole.last_mut().filter(|last| from < last.1) {
            Some(last) => last.1 = last.1.max(to),
            None => whole.push((from, to)),
        }
    }
    whole
}

/// What lies before and behind `at`.
fn split(runs: &[(u64, u64)], at: u64) -> (Spans, Spans) {
    let before = runs.iter().map(|r| (r.0, r.1.min(at)));
    let behind = runs.iter().map(|r| (r.0.max(at), r.1));
    (
        before.filter(|r| r.0 < r.1).collect(),
        behind.filter(|r| r.0 < r.1).collect(),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        period_ps: 100,
        deadline_ps: 80,
    };

    /// Woken at 1000, ran, slept: the job that is left out is over.
    fn begun() -> Track {
        let mut track = Track::new(Some(TIMING), false);
        track.wakes(1000, 0);
        job(&mut track, 1000, 1010);
        track
    }

    fn job(track: &mut Track, from: u64, to: u64) {
        track.runs(from, 0);
        track.leaves(to, State::Sleeps);
    }

    #[test]
    fn a_job_is_from_a_wake_up_to_the_last_sleep_before_the_next() {
        let mut track = begun();
        track.wakes(1100, 0);
        track.runs(1105, 0);
        track.leaves(1110, State::Ready);
        track.runs(1120, 0);
        track.leaves(1130, State::Blocked);
        track.wakes(1135, 0);
        job(&mut track, 1136, 1140);
        // Long before the next release: more of the same.
        track.wakes(1150, 0);
        job(&mut track, 1151, 1160);
        // A little early, as timers are if the release before was noted late.
        track.wakes(1190, 0);
        job(&mut track, 1190, 1290);
        let jobs = track.finish(1295);
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].release_ps, 1100);
        assert_eq!(
            jobs[0].runs,
            [(1105, 1110), (1120, 1130), (1136, 1140), (1151, 1160)]
        );
        assert_eq!(jobs[0].end, End::Completed(1160));
        assert!(!jobs[0].missed());
        assert_eq!((jobs[1].number, jobs[1].release_ps), (1, 1190));
        assert!(jobs[1].missed());
        assert_eq!(track.preempted, 1);
    }

    /// No wake-up marks the release of a job whose predecessor is late.
    #[test]
    fn releases_that_pass_without_a_sleep_are_jobs_of_their_own() {
        let mut track = begun();
        track.wakes(1100, 0);
        job(&mut track, 1100, 1330);
        track.wakes(1400, 0);
        job(&mut track, 1400, 1410);
        let jobs = track.finish(1450);
        let seen: Vec<_> = jobs.iter().map(|j| (j.release_ps, j.missed())).collect();
        assert_eq!(
            seen,
            [(1100, true), (1200, true), (1300, false), (1400, false)]
        );
        assert_eq!(jobs[1].runs, [(1200, 1300)]);
        assert_eq!(jobs[1].response_ps(), Some(130));
    }

    /// Neither released nor done in the record, and yet late.
    #[test]
    fn a_task_that_never_sleeps_misses_unless_its_program_begins() {
        let missed = |begins| {
            let mut track = Track::new(Some(TIMING), begins);
            track.leaves(1000, State::Ready);
            track.runs(1050, 0);
            let jobs = track.finish(1390);
            jobs.iter().map(Job::missed).collect::<Vec<_>>()
        };
        // Whenever it was released before, the next three were at 1100, 1200 and
        // 1300 at the latest.
        assert_eq!(missed(false), [true, true, true]);
        assert!(missed(true).is_empty());
    }

    #[test]
    fn what_the_end_of_the_record_cuts_off_is_missed_only_if_it_is_late() {
        let ends = |until| {
            let mut track = begun();
            track.wakes(1100, 0);
            track.runs(1100, 0);
            let jobs = track.finish(until);
            jobs.iter().map(|j| j.end).collect::<Vec<_>>()
        };
        assert_eq!(ends(1150), [End::Open]);
        assert_eq!(ends(1190), [End::Missed]);
        assert_eq!(ends(1250), [End::Missed, End::Open]);
    }

    /// Its timer may go off between the decision to sleep and the sleep.
    #[test]
    fn a_wake_up_of_a_running_task_is_a_sleep_of_no_length() {
        let mut track = begun();
        track.wakes(1100, 0);
        track.runs(1100, 0);
        track.wakes(1199, 0);
        track.leaves(1210, State::Sleeps);
        let jobs = track.finish(1250);
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].end, End::Completed(1199));
        assert_eq!(jobs[1].runs, [(1199, 1210)]);
    }

    #[test]
    fn the_end_of_a_program_completes_no_job() {
        let mut track = begun();
        track.wakes(1100, 0);
        track.runs(1100, 0);
        track.ends(1120);
        track.leaves(1130, State::Sleeps);
        track.wakes(1200, 0);
        assert_eq!(track.finish(1300)[0].end, End::Open);
    }

    /// Its budget is used up at 1120; it gets the next one at 1200, and the guard
    /// stops the core meanwhile.
    #[test]
    fn held_by_its_class_is_throttled_and_not_preempted() {
        let mut track = begun();
        track.wakes(1100, 0);
        track.runs(1100, 0);
        track.leaves(1105, State::Yields);
        track.runs(1106, 0);
        track.leaves(1120, State::Held);
        track.runs(1200, 0);
        track.leaves(1210, State::Sleeps);
        let jobs = track.finish(1250);
        assert_eq!((track.preempted, track.yielded), (0, 1));
        assert_eq!(track.held, [(1120, 1200)]);
        let stopped = BTreeMap::from([(0, vec![(1102, 1104), (1110, 1130), (1190, 1230)])]);
        assert_eq!(track.throttled(&stopped), [(1102, 1104), (1110, 1210)]);
        assert_eq!(jobs[0].runs, [(1100, 1105), (1106, 1120)]);
        assert!(jobs[0].missed());
    }

    #[test]
    fn throttled_is_where_it_wanted_to_run() {
        let mut track = begun();
        track.wakes(1100, 2);
        track.runs(1120, 2);
        track.leaves(1125, State::Ready);
        track.runs(1130, 3);
        track.leaves(1140, State::Sleeps);
        let stopped = BTreeMap::from([
            (2, vec![(1050, 1110), (1128, 1129)]),
            (3, vec![(1128, 1135)]),
        ]);
        assert_eq!(
            track.throttled(&stopped),
            [(1100, 1110), (1128, 1129), (1130, 1135)]
        );
        assert_eq!(track.migrated, 2);
    }
}
