//! The scheduler of one core: preemptive, by fixed priorities or by deadline.
//!
//! A pure state machine. Whoever drives it tells it the time
//! ([`Scheduler::advance`]) and when the running job is done
//! ([`Scheduler::complete`]), and asks when it must be told again
//! ([`Scheduler::next_event`]). A job that is not done at its deadline is
//! aborted there and counts as missed, as in CAMC's charts (section 4.5, figure
//! 16); at most one job of a task is alive therefore. A task without deadlines
//! runs when nobody else wants to.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_trace::timeline::{End, Job};

use crate::tasks::{Order, Release, TaskSet};

/// A time that never comes.
pub const NEVER: u64 = u64::MAX;

/// A task as its core sees it.
#[derive(Debug, Clone)]
struct Slot {
    /// Number in the task set.
    task: usize,
    release: Option<Release>,
    rank: u32,
    /// Number of the next job, and when it is released: as planned, and with
    /// jitter.
    next: u64,
    planned_ps: u64,
    due_ps: u64,
    /// The job that is alive.
    job: Option<Job>,
}

/// The scheduler of one core.
#[derive(Debug)]
pub struct Scheduler {
    edf: bool,
    slots: Vec<Slot>,
    /// Slot that runs, and since when.
    running: Option<(usize, u64)>,
    done: Vec<Job>,
    rng: ChaCha8Rng,
}

impl Scheduler {
    /// For the tasks of `core`; all their times are divided by `scale`. Jitter
    /// is drawn from `seed`.
    ///
    /// # Panics
    /// If `scale` is 0.
    #[must_use]
    pub fn new(set: &TaskSet, core: u32, scale: u64, seed: u64) -> Self {
        let ranks = set.ranks();
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ u64::from(core) << 40);
        let mine = set.tasks.iter().enumerate();
        let slots = mine
            .filter(|(_, t)| t.core == Some(core))
            .map(|(i, t)| {
                let release = t.release.map(|r| scaled(r, scale));
                let planned_ps = release.map_or(0, |r| r.phase.0);
                Slot {
                    task: i,
                    due_ps: planned_ps + jitter(release, &mut rng),
                    release,
                    rank: ranks[i],
                    next: 0,
                    planned_ps,
                    job: None,
                }
            })
            .collect();
        Self {
            edf: set.order == Order::Edf,
            slots,
            running: None,
            done: Vec::new(),
            rng,
        }
    }

    /// It is `now_ps`: who runs? The task's number in the set and the job's.
    pub fn advance(&mut self, now_ps: u64) -> Option<(usize, u64)> {
        for at in 0..self.slots.len() {
            self.catch_up(at, now_ps);
        }
        let first = self.first();
        if self.running.map(|(at, _)| at) != first {
            self.pause(now_ps);
            self.running = first.map(|at| (at, now_ps));
        }
        let slot = &self.slots[first?];
        Some((slot.task, slot.job.as_ref()?.number))
    }

    /// Deadlines and releases of a slot up to now, in order.
    fn catch_up(&mut self, at: usize, now_ps: u64) {
        loop {
            let slot = &self.slots[at];
            let deadline = slot.job.as_ref().and_then(|j| j.deadline_ps);
            match deadline {
                Some(deadline) if deadline <= now_ps => self.end(at, deadline, End::Missed),
                _ if slot.due_ps <= now_ps && slot.job.is_none() => self.release(at),
                _ => return,
            }
        }
    }

    fn release(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.job = Some(Job {
            task: slot.task,
            number: slot.next,
            release_ps: slot.planned_ps,
            deadline_ps: slot.release.map(|r| slot.planned_ps + r.deadline.0),
            runs: Vec::new(),
            end: End::Open,
        });
        slot.next += 1;
        slot.planned_ps = match slot.release {
            Some(release) => slot.planned_ps + release.period.0,
            None => NEVER,
        };
        slot.due_ps = slot
            .planned_ps
            .saturating_add(jitter(slot.release, &mut self.rng));
    }

    /// The slot whose job goes first.
    fn first(&self) -> Option<usize> {
        let alive = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, s)| s.job.is_some());
        let key = |slot: &Slot| {
            let deadline = slot.job.as_ref().and_then(|j| j.deadline_ps);
            let deadline = deadline.unwrap_or(NEVER);
            let urgent = if self.edf { deadline } else { 0 };
            (slot.release.is_none(), urgent, slot.rank)
        };
        alive.min_by_key(|(_, s)| key(s)).map(|(at, _)| at)
    }

    /// The running job is done.
    pub fn complete(&mut self, now_ps: u64) {
        if let Some((at, _)) = self.running {
            self.end(at, now_ps, End::Completed(now_ps));
        }
    }

    fn end(&mut self, at: usize, at_ps: u64, end: End) {
        if self.running.is_some_and(|(running, _)| running == at) {
            self.pause(at_ps);
        }
        if let Some(job) = self.slots[at].job.take() {
            self.done.push(Job { end, ..job });
        }
    }

    /// Notes the stretch that the running job has had.
    fn pause(&mut self, until_ps: u64) {
        let Some((at, since)) = self.running.take() else {
            return;
        };
        if let Some(job) = self.slots[at].job.as_mut().filter(|_| until_ps > since) {
            match job.runs.last_mut() {
                Some(last) if last.1 == since => last.1 = until_ps,
                _ => job.runs.push((since, until_ps)),
            }
        }
    }

    /// Returns the time at which [`Scheduler::advance`] must be called again at the latest.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        let next = |slot: &Slot| match &slot.job {
            Some(job) => job.deadline_ps.unwrap_or(NEVER),
            None => slot.due_ps,
        };
        self.slots.iter().map(next).min().unwrap_or(NEVER)
    }

    /// All jobs up to `now_ps`, those alive included.
    #[must_use]
    pub fn finish(mut self, now_ps: u64) -> Vec<Job> {
        self.pause(now_ps);
        for slot in &mut self.slots {
            self.done.extend(slot.job.take());
        }
        self.done.sort_by_key(|j| (j.release_ps, j.task));
        self.done
    }
}

fn scaled(release: Release, scale: u64) -> Release {
    let by = |time: soloist_core::time::Time| soloist_core::time::Time(time.0 / scale);
    Release {
        period: by(release.period),
        deadline: by(release.deadline),
        phase: by(release.phase),
        jitter: by(release.jitter),
        priority: release.priority,
    }
}

fn jitter(release: Option<Release>, rng: &mut ChaCha8Rng) -> u64 {
    match release {
        Some(r) if r.jitter.0 > 0 => rng.gen_range(0..=r.jitter.0),
        _ => 0,
    }
}
