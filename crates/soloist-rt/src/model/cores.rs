//! Plays a task set on the memory model: every core has its scheduler, every
//! task its pages, and all meet in caches, links, controllers and banks.
//!
//! A core asks its scheduler before every access who runs, so that a preemption
//! comes at most [`CHUNK`] instructions late; what
//! the preempted task has in flight comes home meanwhile. Switching itself takes
//! no time. Caches begin cold.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use soloist_core::time::Time;
use soloist_core::{ColorSet, Refusal, Regulation, Reservation, Sharing};
use soloist_memory::core::{self as cpu, CoreStats, Stream};
use soloist_memory::Platform;
use soloist_play::guard::Counts;
use soloist_play::pace::PaceError;
use soloist_play::placement::memory::{Exhaust, Exhausted};
use soloist_play::placement::FreeMemory;
use soloist_play::play::Cast;
use soloist_play::policy::Given;
use soloist_play::programs::{Program, Step};
use soloist_play::stage::{Regulator, Seat, Stage, StageError, Touches};
use soloist_play::thread::Pages;
use soloist_trace::timeline::{common, Job, Timeline};

use crate::model::program::{Maker, CHUNK};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::times::rows;
use crate::tasks::TaskSet;

/// The source of a task's pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageSource {
    /// Its colours; `None`: Linux gives them.
    pub colors: Option<ColorSet>,
    /// Pages that Linux gives come from this node only.
    pub node: Option<u32>,
}

/// One play.
pub struct Setup<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// The tasks, each on a core.
    pub set: &'a TaskSet,
    /// The program of each task.
    pub makers: &'a [Maker],
    /// Accesses of one job of each task.
    pub accesses: &'a [u64],
    /// The source of each task's pages.
    pub places: &'a [PageSource],
    /// Bytes a second that each core may read, by number; `None`: no limit.
    pub limits: &'a [Option<u64>],
    /// All times are divided by it.
    pub scale: u64,
    /// Length of the play, picoseconds, scaled.
    pub length_ps: u64,
    /// Draws programs, page placement and jitter.
    pub seed: u64,
}

/// The result of a play.
pub struct Played {
    /// The schedule.
    pub timeline: Timeline,
    /// Accesses of each task in all.
    pub accesses: Vec<u64>,
    /// By task, the most lines, to and from memory, that its core moved from the end of one
    /// job to that of the next; its first begins with the play.
    pub lines: Vec<u64>,
    /// Counts of each core.
    pub stats: Vec<CoreStats>,
}

/// Returns the seed that draws the program of a task, by its number in the set.
#[must_use]
pub fn seed_of(seed: u64, task: usize) -> u64 {
    seed ^ (task as u64) << 32
}

/// The reason why tasks can't be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// No such core.
    #[error("task {task:?} is on core {core}: {machine} has cores 0 to {last}")]
    Core {
        /// The task.
        task: String,
        /// Its core.
        core: u32,
        /// The machine.
        machine: String,
        /// Its last core.
        last: usize,
    },
    /// Banks of a node are too few.
    #[error("task {task:?} needs {sets} bank sets on node {node}, where {left} are left: give it less memory, or move tasks to other nodes")]
    Banks {
        /// The task.
        task: String,
        /// Bank sets that it needs.
        sets: u32,
        /// The node.
        node: u32,
        /// Bank sets that are left.
        left: u32,
    },
    /// One controller can't be shared out.
    #[error("{0} has one memory controller: controllers of their own need two")]
    OneController(String),
    /// Not enough memory.
    #[error("task {task:?} wants {bytes} bytes: {source}; give it more colours or less memory")]
    Memory {
        /// The task.
        task: String,
        /// What it wants.
        bytes: u64,
        /// What went wrong.
        source: Exhausted,
    },
    /// The regulator refuses.
    #[error("bandwidth limits: {0}")]
    Limits(Refusal),
    /// The model refuses.
    #[error(transparent)]
    Model(soloist_memory::system::RunError),
    /// No program has the task's counters.
    #[error("task {0:?}: {1}")]
    Pace(String, PaceError),
    /// More lines than its wcet has time for.
    #[error("task {task:?}: {lines} lines one after the other take {least} on this machine, more than its wcet: lengthen `wcet` or name fewer `lines`")]
    Lines {
        /// The task.
        task: String,
        /// Its lines.
        lines: u64,
        /// Time that they take.
        least: Time,
    },
}

/// A task on its core.
struct Member {
    task: usize,
    program: Box<dyn Program>,
    pages: Pages,
    per_job: u64,
    job: Option<u64>,
    left: u64,
    /// Read but not yet handed on, because of the work before it.
    next: Option<Step>,
    /// Where it was last; of a recorded program always its first line, since its
    /// own accesses go past the private caches, and computing does not.
    last: u64,
    /// It begins again after so many jobs: they, its maker and seed.
    again: Option<(u64, Maker, u64)>,
}

impl Member {
    /// What it does next, or the beginning of the work before that.
    fn step(&mut self) -> cpu::Step {
        let behind = self.program.behind_caches();
        let (mut access, fetch) = loop {
            match self.next.take().unwrap_or_else(|| self.program.step()) {
                Step::Access(access) => break (access, false),
                Step::Fetch(access) => break (access, true),
                Step::WriteBack(at) => return cpu::Step::WriteBack(self.pages.physical(at)),
                _ => {}
            }
        };
        if access.work > CHUNK {
            access.work -= CHUNK;
            self.next = Some(match fetch {
                true => Step::Fetch(access),
                false => Step::Access(access),
            });
            return cpu::Step::Access(cpu::Access {
                work: CHUNK - 1,
                addr: self.pages.physical(self.last),
                write: false,
                dependent: false,
            });
        }
        self.left -= 1;
        if !behind {
            self.last = access.at;
        }
        let access = cpu::Access {
            work: access.work,
            addr: self.pages.physical(access.at),
            write: access.write,
            dependent: access.dependent,
        };
        match (behind, fetch) {
            (true, fetch) => cpu::Step::Behind { access, fetch },
            (false, true) => cpu::Step::Fetch(access),
            (false, false) => cpu::Step::Access(access),
        }
    }

    /// Begins a job. A recorded program's jobs come again in the same order.
    fn begin(&mut self, job: u64) {
        self.job = Some(job);
        self.left = self.per_job;
        if let Some((cycle, maker, seed)) = &self.again {
            if job > 0 && job % cycle == 0 {
                self.program = maker.make(*seed);
                self.next = None;
            }
        }
    }
}

/// Lines that cores moved, as jobs see it.
struct Moved {
    /// By core.
    lines: Arc<Vec<AtomicU64>>,
    /// By task: what its core had moved when its last job ended, and the most
    /// between two ends.
    jobs: Vec<(AtomicU64, AtomicU64)>,
}

impl Moved {
    fn new(cores: usize, tasks: usize) -> Self {
        Self {
            lines: Arc::new((0..cores).map(|_| AtomicU64::new(0)).collect()),
            jobs: (0..tasks).map(|_| Default::default()).collect(),
        }
    }

    fn job_ends(&self, task: usize, core: usize) {
        let now = self.lines[core].load(Ordering::Relaxed);
        let (last, most) = &self.jobs[task];
        let before = last.swap(now, Ordering::Relaxed);
        most.fetch_max(now - before, Ordering::Relaxed);
    }
}

/// A core: its tasks under its scheduler.
struct Core {
    core: usize,
    moved: Arc<Moved>,
    scheduler: Option<Scheduler>,
    members: Vec<Member>,
    length_ps: u64,
    counts: Arc<Vec<AtomicU64>>,
    jobs: Arc<Mutex<Vec<Job>>>,
    guard: Arc<Counts>,
}

impl Stream for Core {
    fn step(&mut self) -> cpu::Step {
        cpu::Step::Done
    }

    fn step_at(&mut self, now_ps: u64) -> cpu::Step {
        self.guard.begun.store(true, Ordering::Relaxed);
        let Some(scheduler) = &mut self.scheduler else {
            return cpu::Step::Done;
        };
        if now_ps < self.length_ps {
            while let Some((task, job)) = scheduler.advance(now_ps) {
                let Some(member) = self.members.iter_mut().find(|m| m.task == task) else {
                    break;
                };
                if member.job != Some(job) {
                    member.begin(job);
                }
                if member.left == 0 {
                    scheduler.complete(now_ps);
                    self.moved.job_ends(task, self.core);
                    continue;
                }
                let before = member.left;
                let step = member.step();
                self.counts[task].fetch_add(before - member.left, Ordering::Relaxed);
                return step;
            }
            let next = scheduler.next_event().min(self.length_ps);
            return cpu::Step::Until(next);
        }
        if let Some(scheduler) = self.scheduler.take() {
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            jobs.extend(scheduler.finish(self.length_ps));
        }
        cpu::Step::Done
    }
}

/// Plays it.
///
/// # Errors
/// When a task does not fit the machine.
pub fn play(setup: &Setup) -> Result<Played, PlayError> {
    check(setup)?;
    let set = setup.set;
    // What has no core does not play.
    let seated: Vec<usize> = (0..set.tasks.len())
        .filter(|&task| set.tasks[task].core.is_some())
        .collect();
    let counts: Arc<Vec<AtomicU64>> =
        Arc::new(set.tasks.iter().map(|_| AtomicU64::new(0)).collect());
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let cores = setup.platform.node_of_core.len();
    let moved = Arc::new(Moved::new(cores, set.tasks.len()));
    let share = |cast: Cast| -> Box<dyn Stream + Send> {
        let member = |(seat, program, pages)| member(setup, seated[seat], program, pages);
        Box::new(Core {
            core: cast.core,
            moved: Arc::clone(&moved),
            scheduler: Some(Scheduler::new(
                set,
                cast.core as u32,
                setup.scale,
                setup.seed,
            )),
            members: cast.programs.into_iter().map(member).collect(),
            length_ps: setup.length_ps,
            counts: Arc::clone(&counts),
            jobs: Arc::clone(&jobs),
            guard: cast.counts,
        })
    };
    let colors = seated.iter().map(|&task| setup.places[task].colors.clone());
    let policy = Given(colors.collect());
    let seats = (seated.iter().enumerate()).map(|(seat, &task)| of_task(setup, seat, task));
    let stage = Stage {
        regulator: regulator(setup),
        memory: FreeMemory {
            exhaust: Exhaust::Fail,
            ..FreeMemory::FRESH
        },
        touches: Touches::InTurn,
        ..Stage::new(setup.platform, &policy, seats.collect(), setup.seed)
    };
    let (stats, stopped) = stage
        .play_shared(&moved.lines, share)
        .map_err(|e| refused(setup, &seated, e))?;
    let mut jobs = std::mem::take(&mut *jobs.lock().unwrap_or_else(PoisonError::into_inner));
    jobs.sort_by_key(|j| (j.release_ps, j.task));
    let mut rows = rows(set);
    for (task, row) in rows.iter_mut().enumerate() {
        let core = row.cores.first();
        let stopped = core.and_then(|&core| stopped.get(core as usize));
        row.throttled = stopped.map_or_else(Vec::new, |s| while_running(s, &jobs, task));
    }
    Ok(Played {
        timeline: Timeline {
            rows,
            jobs,
            end_ps: setup.length_ps,
        },
        accesses: counts.iter().map(|c| c.load(Ordering::Relaxed)).collect(),
        lines: (moved.jobs.iter())
            .map(|(_, most)| most.load(Ordering::Relaxed))
            .collect(),
        stats,
    })
}

fn check(setup: &Setup) -> Result<(), PlayError> {
    let cores = setup.platform.node_of_core.len();
    for task in &setup.set.tasks {
        if let Some(core) = task.core.filter(|&c| c as usize >= cores) {
            return Err(PlayError::Core {
                task: task.name.clone(),
                core,
                machine: setup.platform.memory.name.clone(),
                last: cores - 1,
            });
        }
    }
    Ok(())
}

/// The seat of a task, which has colours of its own.
fn of_task(setup: &Setup, seat: usize, task: usize) -> Seat {
    let core = setup.set.tasks[task].core.unwrap_or(0) as usize;
    let program = setup.makers[task].make(seed_of(setup.seed, task));
    Seat {
        owner: seat,
        node: setup.places[task].node,
        ..Seat::new(program, core)
    }
}

fn member(setup: &Setup, task: usize, program: Box<dyn Program>, pages: Pages) -> Member {
    let maker = &setup.makers[task];
    let per_job = match setup.set.tasks[task].release {
        Some(_) => setup.accesses[task].max(1),
        None => u64::MAX,
    };
    let again = maker.cycle(per_job);
    Member {
        task,
        program,
        pages,
        per_job,
        job: None,
        left: 0,
        next: None,
        last: 0,
        again: again.map(|cycle| (cycle, maker.clone(), seed_of(setup.seed, task))),
    }
}

fn refused(setup: &Setup, seated: &[usize], error: StageError) -> PlayError {
    match error {
        StageError::Memory {
            seat,
            bytes,
            source,
        } => PlayError::Memory {
            task: setup.set.tasks[seated[seat]].name.clone(),
            bytes: bytes.next_multiple_of(4096),
            source,
        },
        StageError::Colors(refusal) | StageError::Regulator(refusal) => PlayError::Limits(refusal),
        StageError::Model(source) => PlayError::Model(source),
    }
}

/// MemGuard, where a core has a limit: of what it reads, as the guard of a plan's
/// configuration has it.
fn regulator(setup: &Setup) -> Regulator {
    let all: u64 = setup.limits.iter().flatten().sum();
    if all == 0 {
        return Regulator::ByPolicy;
    }
    let period = 1000 / setup.scale.clamp(1, 100);
    let want = |limit: &Option<u64>| {
        limit.map(|rate| Reservation {
            rate: [rate, 0],
            weight: 0,
            reclaim: false,
        })
    };
    let mut reservations: Vec<Option<Reservation>> = setup.limits.iter().map(want).collect();
    reservations.resize(setup.platform.node_of_core.len(), None);
    Regulator::Reserving {
        settings: Regulation {
            period_us: period as u32,
            line: setup.platform.memory.map.line_size(),
            r_min: [all, 0],
            peak: all,
            q_min: 0,
            ewma: 128,
            sharing: Sharing::None,
        },
        reservations,
        per_bank: false,
    }
}

/// The parts of `stopped` in which the task's jobs had the core.
fn while_running(stopped: &[(u64, u64)], jobs: &[Job], task: usize) -> Vec<(u64, u64)> {
    let mine = jobs.iter().filter(|j| j.task == task);
    mine.flat_map(|job| common(&job.runs, stopped)).collect()
}
