//! Runs a scenario: places pages, plays all tasks together, gathers results.
//!
//! A run is one case with one seed. Its pages come from [`Memory`] in the order
//! in which concurrent tasks would touch them first: one page at a time, whose
//! turn it is drawn from the seed. Initialisation itself is not timed, but the
//! tail of its memory is played before the measurement, so that caches begin
//! full, and as dirty as the task leaves them. Runs share nothing and
//! are spread over all cores; results don't depend on how many there are.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use soloist_core::{AddrMap, ColorSet, Refusal};
use soloist_memory::core::{self as cpu, CoreStats, Stream};
use soloist_memory::system::{self, Free};
use soloist_memory::{Platform, System};

use crate::alloc::{Allocation, Exhaust, Exhausted, Memory};
use crate::buddy::{Buddy, History, Layout};
use crate::generate::{dirty, generator};
use crate::governor::{Counts, Guard};
use crate::outcome::{CaseResult, Run, TaskResult};
use crate::policy::{assign, Policy, Seat};
use crate::regulation::{Mode, RegulatorSpec};
use crate::scenario::{Case, CaseTask, Scenario};
use crate::task::{Step, Task};

const PAGE_SHIFT: u32 = 12;
/// A bank set counts as full at this share, since some of it is in use already.
const USABLE: f64 = 0.7;

/// How a scenario is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Seed of the first repeat; the next ones follow.
    pub seed: u64,
    /// The small version: fewer repeats, less work.
    pub small: bool,
}

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine can't be modelled.
    #[error("{id}: {source}")]
    Machine {
        /// Of the scenario.
        id: String,
        /// The reason.
        source: soloist_memory::Error,
    },
    /// A task's place or size can't be.
    #[error("{case}: task `{task}`: {what}")]
    Task {
        /// Name of the case.
        case: String,
        /// Name of the task.
        task: String,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// The machine has not enough colours for the policy.
    #[error("{case}: {source}")]
    Colors {
        /// Name of the case.
        case: String,
        /// The palette's reason.
        source: Refusal,
    },
    /// A task's colours or node ran out of pages.
    #[error("{case}: task `{task}`: {source}; give it more `sets` or fewer `bytes`")]
    Memory {
        /// Name of the case.
        case: String,
        /// Name of the task.
        task: String,
        /// How far it came.
        source: Exhausted,
    },
    /// The regulator refused a reservation or a setting.
    #[error("{case}: [regulator]: {source}")]
    Regulator {
        /// Name of the case.
        case: String,
        /// Its reason.
        source: Refusal,
    },
    /// The model refused.
    #[error("{case}: {source}")]
    Model {
        /// Name of the case.
        case: String,
        /// The reason.
        source: system::RunError,
    },
}

impl RunError {
    /// The word of the scenario's file that it is about.
    pub fn word(&self, scenario: &Scenario) -> String {
        match self {
            Self::Machine {
                source: soloist_memory::Error::Model(_),
                ..
            } => "[model".to_owned(),
            Self::Machine { .. } => format!("\"{}\"", scenario.experiment.machine),
            Self::Task { task, .. } | Self::Memory { task, .. } => format!("\"{task}\""),
            Self::Colors { .. } => "policies".to_owned(),
            Self::Regulator { .. } => "[regulator]".to_owned(),
            Self::Model { .. } => "[experiment]".to_owned(),
        }
    }
}

/// Runs all cases and repeats. `progress` is told each time one is done, with
/// how many there are in all.
pub fn run(
    scenario: &Scenario,
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<CaseResult>, RunError> {
    let about = &scenario.experiment;
    let divide = if options.small {
        about.small_divide.max(1)
    } else {
        1
    };
    let cases = scenario
        .cases(divide)
        .map_err(|(task, what)| RunError::Task {
            case: about.id.clone(),
            task,
            what,
        })?;
    run_cases(scenario, &cases, options, progress)
}

/// As [`run`], the cases being given.
pub fn run_cases(
    scenario: &Scenario,
    cases: &[Case],
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<CaseResult>, RunError> {
    let about = &scenario.experiment;
    let repeats = if options.small {
        about.small_repeats.max(1)
    } else {
        about.repeats.max(1)
    };
    let benches = benches(scenario, cases)?;
    let jobs: Vec<(&Case, u64)> = cases
        .iter()
        .flat_map(|case| (0..u64::from(repeats)).map(move |r| (case, options.seed + r)))
        .collect();
    let runs = jobs
        .par_iter()
        .map(|&(case, seed)| {
            let run = benches[&bench_key(scenario, case)].run(case, seed);
            progress(jobs.len());
            run
        })
        .collect::<Result<Vec<Run>, RunError>>()?;
    let mut runs = runs.into_iter();
    Ok(cases
        .iter()
        .map(|case| CaseResult {
            case: case.name.clone(),
            policy: case.policy.name().to_owned(),
            value: case.value,
            runs: runs.by_ref().take(repeats as usize).collect(),
        })
        .collect())
}

/// By which of its machine's models a case runs: one for all, unless the
/// scenario changes the model.
fn bench_key(scenario: &Scenario, case: &Case) -> Option<u64> {
    case.value.filter(|_| !scenario.model.is_empty())
}

fn benches(scenario: &Scenario, cases: &[Case]) -> Result<HashMap<Option<u64>, Bench>, RunError> {
    let about = &scenario.experiment;
    let mut benches = HashMap::new();
    for case in cases {
        let key = bench_key(scenario, case);
        if benches.contains_key(&key) {
            continue;
        }
        let model = scenario.model_of(key);
        let platform = model
            .map_err(soloist_memory::Error::Model)
            .and_then(|model| Platform::find_changed(&about.machine, &model))
            .map_err(|source| RunError::Machine {
                id: about.id.clone(),
                source,
            })?;
        let bench = Bench {
            platform,
            history: History {
                used: about.used,
                scatter: about.scatter,
            },
            regulator: scenario.regulator.clone(),
        };
        benches.insert(key, bench);
    }
    Ok(benches)
}

/// What all runs by one model of the machine have in common.
struct Bench {
    platform: Platform,
    history: History,
    regulator: Option<RegulatorSpec>,
}

/// A task's generator and where its pages lie.
struct Placed {
    generator: Box<dyn Task>,
    pages: Vec<u32>,
    spilled: u64,
}

impl Bench {
    fn map(&self) -> &AddrMap {
        &self.platform.memory.map
    }

    fn run(&self, case: &Case, seed: u64) -> Result<Run, RunError> {
        self.check(case)?;
        let placed = self.place(case, seed)?;
        let mut groups: HashMap<&str, usize> = HashMap::new();
        let mut system = System::new(&self.platform);
        let mut seen = Vec::new();
        let mut places = Vec::new();
        for (task, placed) in case.tasks.iter().zip(placed) {
            let next = groups.len();
            let group = *groups.entry(&task.name).or_insert(next);
            let counts = Arc::new(Counts::default());
            seen.push(Arc::clone(&counts));
            places.push((placed.spilled, self.remote(task, &placed.pages)));
            let warm = self.warm_bytes(case, task).min(placed.generator.bytes());
            let line = u64::from(self.map().line_size());
            let program = Program::new(placed, warm, dirty(task), line, counts);
            system.put(task.cpu as usize, Box::new(program), group, task.background);
        }
        let mut guard = self.guard(case, &seen)?;
        let stats = match &mut guard {
            Some(guard) => system.run(guard),
            None => system.run(&mut Free),
        }
        .map_err(|source| RunError::Model {
            case: case.name.clone(),
            source,
        })?;
        let ends: Vec<u64> = stats.iter().map(|s| s.finished_ps).collect();
        let counted = guard.map(|g| g.counts(&ends));
        let tasks = case
            .tasks
            .iter()
            .zip(seen.iter().zip(places))
            .map(|(task, (counts, place))| {
                let cpu = task.cpu as usize;
                let result = self.result(task, counts, place, &stats[cpu]);
                TaskResult {
                    regulated: counted.as_ref().map(|c| c[cpu].clone()),
                    ..result
                }
            })
            .collect();
        Ok(Run { seed, tasks })
    }

    fn result(
        &self,
        task: &CaseTask,
        c: &Counts,
        (spilled, remote): (u64, f64),
        s: &CoreStats,
    ) -> TaskResult {
        let began = s.marks_ps.first().copied().unwrap_or(s.finished_ps);
        TaskResult {
            name: task.name.clone(),
            cpu: task.cpu,
            time_ns: (s.finished_ps - began.min(s.finished_ps)) as f64 / 1000.0,
            accesses: c.accesses.load(Ordering::Relaxed),
            idle_ns: s.barrier_ps as f64 / 1000.0,
            instructions: c.instructions.load(Ordering::Relaxed),
            memory_bytes: (s.llc_misses + s.write_backs) * u64::from(self.map().line_size()),
            whole_ns: s.finished_ps as f64 / 1000.0,
            spilled,
            remote,
            regulated: None,
        }
    }

    /// What counts and regulates the case's cores.
    fn guard(&self, case: &Case, seen: &[Arc<Counts>]) -> Result<Option<Guard>, RunError> {
        let (Some(spec), Some(mode)) = (&self.regulator, &case.mode) else {
            return Ok(None);
        };
        let mut tasks = vec![None; self.platform.node_of_core.len()];
        for (task, counts) in case.tasks.iter().zip(seen) {
            tasks[task.cpu as usize] = Some(Arc::clone(counts));
        }
        if !mode.regulated {
            return Ok(Some(Guard::counting(spec.period_us, tasks)));
        }
        let mut reservations = vec![None; tasks.len()];
        for task in &case.tasks {
            let reserve = task.reserve.as_ref().map(|r| r.in_mode(mode));
            reservations[task.cpu as usize] = reserve;
        }
        let set = spec.settings(mode, self.map().line_size());
        let pools = self.pools(case, mode)?;
        Guard::regulating(&set, &reservations, pools.as_deref(), tasks)
            .map(Some)
            .map_err(|source| RunError::Regulator {
                case: case.name.clone(),
                source,
            })
    }

    /// Which cores share banks, where the mode asks.
    fn pools(&self, case: &Case, mode: &Mode) -> Result<Option<Vec<u64>>, RunError> {
        if !mode.per_bank {
            return Ok(None);
        }
        let colors = self.colors(case)?;
        let of_task: Vec<_> = colors.iter().map(Option::as_ref).collect();
        let of_task = soloist_core::pools(self.map(), &of_task);
        // A core without a task must be somewhere, and joins nobody.
        let somewhere = of_task.first().map_or(1, |p| p & p.wrapping_neg());
        let mut pools = vec![somewhere; self.platform.node_of_core.len()];
        for (task, of_task) in case.tasks.iter().zip(of_task) {
            pools[task.cpu as usize] = of_task;
        }
        Ok(Some(pools))
    }

    fn remote(&self, task: &CaseTask, pages: &[u32]) -> f64 {
        let home = self.platform.node_of_core[task.cpu as usize] as u32;
        let away = pages.iter().filter(|&&pfn| self.node_of(pfn) != Some(home));
        100.0 * away.count() as f64 / pages.len().max(1) as f64
    }

    fn node_of(&self, pfn: u32) -> Option<u32> {
        let at = u64::from(pfn) << PAGE_SHIFT;
        let mut ranges = self.map().ranges();
        ranges
            .find(|r| (r.start..r.end).contains(&at))
            .map(|r| r.node)
    }

    /// Cpus that exist and carry one task each.
    fn check(&self, case: &Case) -> Result<(), RunError> {
        let cores = self.platform.node_of_core.len();
        let wrong = |task: &CaseTask, what| {
            Err(RunError::Task {
                case: case.name.clone(),
                task: task.name.clone(),
                what,
            })
        };
        for (i, task) in case.tasks.iter().enumerate() {
            if let Some(cpu) = [task.cpu, task.first_touch]
                .into_iter()
                .find(|&c| c as usize >= cores)
            {
                return wrong(
                    task,
                    format!("no cpu {cpu}: the machine has 0-{}", cores - 1),
                );
            }
            if let Some(other) = case.tasks[..i].iter().find(|t| t.cpu == task.cpu) {
                return wrong(
                    task,
                    format!("cpu {} is `{}`'s: one task a cpu", task.cpu, other.name),
                );
            }
            if let Some(node) = task.node.filter(|&n| n >= self.map().n_nodes()) {
                return wrong(
                    task,
                    format!("no node {node}: the machine has {}", self.map().n_nodes()),
                );
            }
        }
        Ok(())
    }

    /// What the caches that the task uses can hold of its initialisation.
    fn warm_bytes(&self, case: &Case, task: &CaseTask) -> u64 {
        let line = u64::from(self.map().line_size());
        let size =
            |l: &soloist_memory::platform::CacheLevel| l.shape.sets * l.shape.ways as u64 * line;
        let llc = &self.platform.llc;
        let die = |cpu: u32| cpu as usize / llc.shared_by;
        let mates = case.tasks.iter().filter(|t| die(t.cpu) == die(task.cpu));
        let private: u64 = self.platform.private.iter().map(size).sum();
        size(llc) / mates.count().max(1) as u64 + private
    }

    // ---- placement ----

    fn place(&self, case: &Case, seed: u64) -> Result<Vec<Placed>, RunError> {
        let map = self.map();
        let colors = self.colors(case)?;
        let layout = Layout {
            node_of_cpu: self
                .platform
                .node_of_core
                .iter()
                .map(|&n| n as u32)
                .collect(),
            distance: self
                .platform
                .hops
                .iter()
                .map(|row| row.iter().map(|&h| h as u32).collect())
                .collect(),
        };
        let mut memory = Memory::new(map, Buddy::new(map, layout, self.history, seed));
        let mut placed: Vec<Placed> = case
            .tasks
            .iter()
            .enumerate()
            .map(|(i, task)| Placed {
                generator: generator(task, u64::from(map.line_size()), seed ^ (i as u64) << 32),
                pages: Vec::new(),
                spilled: 0,
            })
            .collect();
        let mut allocations: Vec<Allocation> = case
            .tasks
            .iter()
            .zip(&colors)
            .enumerate()
            .map(|(i, (task, colors))| {
                let cpu = task.first_touch;
                Allocation::new(map, i as u32, cpu, colors.as_ref(), Exhaust::Fail)
                    .from_anywhere(case.policy.ignores_nodes())
                    .bound_to(task.node)
            })
            .collect();
        let mut left: Vec<(usize, u64)> = placed
            .iter()
            .enumerate()
            .map(|(i, p)| (i, p.generator.bytes().div_ceil(1 << PAGE_SHIFT)))
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x7061_6765);
        while !left.is_empty() {
            let turn = rng.gen_range(0..left.len());
            let (i, pages) = &mut left[turn];
            let pfn = memory
                .page(&mut allocations[*i])
                .map_err(|source| RunError::Memory {
                    case: case.name.clone(),
                    task: case.tasks[*i].name.clone(),
                    source,
                })?;
            placed[*i].pages.push(pfn);
            *pages -= 1;
            if *pages == 0 {
                left.swap_remove(turn);
            }
        }
        for (placed, allocation) in placed.iter_mut().zip(allocations) {
            placed.spilled = allocation.spilled;
        }
        Ok(placed)
    }

    fn colors(&self, case: &Case) -> Result<Vec<Option<ColorSet>>, RunError> {
        let map = self.map();
        let set_bytes = map.bytes() as f64 / f64::from(map.n_bank_sets()) * USABLE;
        let seats: Vec<Seat> = case
            .tasks
            .iter()
            .map(|task| Seat {
                node: task
                    .node
                    .unwrap_or(self.platform.node_of_core[task.cpu as usize] as u32),
                sets: task
                    .sets
                    .unwrap_or((task.bytes as f64 / set_bytes).ceil() as u32)
                    .max(1),
            })
            .collect();
        if case.policy == Policy::Buddy {
            return Ok(vec![None; seats.len()]);
        }
        assign(case.policy, map, &seats).map_err(|source| RunError::Colors {
            case: case.name.clone(),
            source,
        })
    }
}

/// A task as a core runs it: the tail of its initialisation, a mark, then its
/// own steps, at physical addresses.
struct Program {
    task: Box<dyn Task>,
    pages: Vec<u32>,
    line: u64,
    warm_at: u64,
    warm_end: u64,
    /// Share of the warm lines that are written to.
    dirty: f64,
    marked: bool,
    counts: Arc<Counts>,
}

impl Program {
    fn new(placed: Placed, warm: u64, dirty: f64, line: u64, counts: Arc<Counts>) -> Self {
        let warm_end = placed.generator.bytes() / line * line;
        Self {
            warm_at: warm_end - warm / line * line,
            warm_end,
            task: placed.generator,
            pages: placed.pages,
            dirty,
            line,
            marked: false,
            counts,
        }
    }

    fn physical(&self, at: u64) -> u64 {
        let offset = at & ((1 << PAGE_SHIFT) - 1);
        u64::from(self.pages[(at >> PAGE_SHIFT) as usize]) << PAGE_SHIFT | offset
    }
}

impl Stream for Program {
    fn step(&mut self) -> cpu::Step {
        if self.warm_at < self.warm_end {
            let addr = self.physical(self.warm_at);
            let dirty_before = |at: u64| ((at / self.line) as f64 * self.dirty) as u64;
            let write = dirty_before(self.warm_at + self.line) > dirty_before(self.warm_at);
            self.warm_at += self.line;
            return cpu::Step::Access(cpu::Access {
                work: 0,
                addr,
                write,
                dependent: false,
            });
        }
        if !self.marked {
            self.marked = true;
            self.counts.begun.store(true, Ordering::Relaxed);
            return cpu::Step::Mark;
        }
        match self.task.step() {
            Step::Access(a) => {
                self.counts.accesses.fetch_add(1, Ordering::Relaxed);
                let instructions = u64::from(a.work - self.task.idle_work()) + 1;
                self.counts
                    .instructions
                    .fetch_add(instructions, Ordering::Relaxed);
                cpu::Step::Access(cpu::Access {
                    work: a.work,
                    addr: self.physical(a.at),
                    write: a.write,
                    dependent: a.dependent,
                })
            }
            Step::Barrier => cpu::Step::Barrier,
            Step::Done => cpu::Step::Done,
        }
    }
}
