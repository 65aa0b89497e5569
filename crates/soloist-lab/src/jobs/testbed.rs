//! One run of one case: pages are placed, caches warmed, tasks played.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use soloist_core::AddrMap;
use soloist_memory::core::CoreStats;
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};
use soloist_play::governor::Regulated;
use soloist_play::governor::{Counts, Guard};
use soloist_play::linux::{even_ways, Throttle};
use soloist_play::placement::buddy::History;
use soloist_play::placement::memory::Exhaust;
use soloist_play::placement::policy::Policy;
use soloist_play::programs::counters::{Counters, Pace};
use soloist_play::programs::order::Wakes;
use soloist_play::programs::rounds::accesses;
use soloist_play::programs::Program;
use soloist_play::programs::ProgramKind;

use super::error::RunError;
use super::generate::{dirty, generator};
use super::pace::{self, Paces};
use super::place::{colors, place, PAGE_SHIFT};
use super::thread::Thread;
use super::warm::Warmed;
use crate::cases::{Case, CaseTask};
use crate::measurements::{Run, TaskResult, Waits};
use crate::spec::{Mode, Point, RegulatorSpec};

/// A benchmark that the machine can't be as fast as its paper prints is played as
/// fast as it can be, if that is this share of it at least: as near as a claim on
/// its speed wants it.
const NEARLY: f64 = 0.85;

/// What all runs by one model of the machine have in common.
pub(super) struct Testbed {
    pub(super) platform: Platform,
    pub(super) history: History,
    pub(super) exhausted: Exhaust,
    pub(super) regulator: Option<RegulatorSpec>,
    /// Every wait gets a cause and a culprit.
    pub(super) account: bool,
    /// Of programs that are made from counters, see [`Self::learn`].
    pub(super) paces: Vec<(Counters, Pace)>,
}

/// What came of a case's tasks, in their order but for `stats`, which is by
/// core.
struct Played {
    stats: Vec<CoreStats>,
    seen: Vec<Arc<Counts>>,
    /// Pages out of colour, and the share of remote ones, per cent.
    places: Vec<(u64, f64)>,
    counted: Option<Vec<Regulated>>,
}

impl Testbed {
    pub(super) fn map(&self) -> &AddrMap {
        &self.platform.memory.map
    }

    /// Runs `case` with everything that is drawn drawn from `seed`.
    pub(super) fn run(&self, case: &Case, seed: u64) -> Result<Run, RunError> {
        self.check(case)?;
        let line = u64::from(self.map().line_size());
        let mut wakes = Wakes::default();
        let warmed = |(i, task): (usize, &CaseTask)| {
            if task.thread == 0 {
                wakes = Wakes::default();
            }
            let seed = seed ^ (i as u64) << 32;
            let make = || generator(task, self.pace(task), line, seed, &wakes);
            let half = match task.background {
                // An account begins anew with each mark.
                true => 0,
                false if self.account => 0,
                false => accesses(make().as_mut()) / 2 + 1,
            };
            self.warmed(case, task, make(), half)
        };
        let programs = case.tasks.iter().enumerate().map(warmed).collect();
        let played = self.play(case, programs, seed)?;
        let tasks = case
            .tasks
            .iter()
            .zip(played.seen.iter().zip(&played.places))
            .map(|(task, (counts, place))| {
                let cpu = task.cpu as usize;
                let result = self.result(task, counts, *place, &played.stats[cpu]);
                let on_core = |core: usize| {
                    let on_it = |t: &&CaseTask| t.cpu as usize == core;
                    case.tasks.iter().find(on_it).map(|t| t.name.clone())
                };
                let account = &played.stats[cpu].account;
                TaskResult {
                    waits: self.account.then(|| Waits::of(account, on_core)),
                    regulated: played.counted.as_ref().map(|c| c[cpu].clone()),
                    ..result
                }
            })
            .collect();
        Ok(Run { seed, tasks })
    }

    /// Finds the paces of all programs of `case` that are made from counters.
    pub(super) fn learn(&mut self, case: &Case) -> Result<(), RunError> {
        self.check(case)?;
        for task in &case.tasks {
            let Some(counters) = task.counters else {
                continue;
            };
            if self.paces.iter().any(|(known, _)| *known == counters) {
                continue;
            }
            let pace = self.pace_alone(task, counters)?;
            self.paces.push((counters, pace));
        }
        Ok(())
    }

    fn pace(&self, task: &CaseTask) -> Pace {
        let known = |&&(counters, _): &&(Counters, Pace)| task.counters == Some(counters);
        let found = self.paces.iter().find(known);
        found.map_or(Pace::SERIAL, |&(_, pace)| pace)
    }

    /// Plays a task of these counters alone to find its pace.
    pub(super) fn pace_alone(&self, task: &CaseTask, counters: Counters) -> Result<Pace, RunError> {
        let alone = Case {
            name: format!("{} alone", task.name),
            policy: Policy::Buddy,
            mode: None,
            point: Point::default(),
            tasks: vec![CaseTask {
                bytes: pace::BYTES,
                background: false,
                node: None,
                reserve: None,
                first_touch: task.cpu,
                ..task.clone()
            }],
        };
        let line = u64::from(self.map().line_size());
        let program = Box::new(Paces::new(counters, line));
        let program = self.warmed(&alone, &alone.tasks[0], program, 0);
        let stats = self.play(&alone, vec![program], 1)?.stats;
        let core = &stats[task.cpu as usize];
        let mut marks = core.marks_ps.clone();
        marks.push(core.finished_ps);
        match pace::choose(&self.platform, counters, &marks) {
            Ok(pace) => Ok(pace),
            Err((most, pace))
                if task.kind == ProgramKind::Spec && most >= NEARLY * counters.ipc =>
            {
                Ok(pace)
            }
            Err((most, _)) => Err(RunError::Task {
                case: alone.name,
                task: task.name.clone(),
                what: format!(
                    "ipc {} with mpki {} cannot be on this machine: it comes to {most:.2} alone",
                    counters.ipc, counters.mpki
                ),
            }),
        }
    }

    /// `program` behind its initialisation.
    fn warmed(
        &self,
        case: &Case,
        task: &CaseTask,
        program: Box<dyn Program>,
        half: u64,
    ) -> Box<dyn Program> {
        let line = u64::from(self.map().line_size());
        let warm = self.warm_bytes(case, task) / line * line;
        Box::new(Warmed::new(program, (warm, line), dirty(task), half))
    }

    fn play(
        &self,
        case: &Case,
        programs: Vec<Box<dyn Program>>,
        seed: u64,
    ) -> Result<Played, RunError> {
        let memory = (self.history, self.exhausted);
        let placed = place(&self.platform, memory, case, programs, seed)?;
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
            let program = Thread::new(placed, counts);
            system.put(task.cpu as usize, Box::new(program), group, task.background);
        }
        if self.account {
            system.account();
        }
        if case.policy == Policy::Cat {
            let busy: Vec<usize> = case.tasks.iter().map(|t| t.cpu as usize).collect();
            system.partition(&even_ways(&self.platform, &busy));
        }
        let mut guard = self.guard(case, &seen)?;
        let stats = match &mut guard {
            Some(guard) => system.run(guard),
            None if case.policy == Policy::Throttle => system.run(&mut self.throttle(case)),
            None => system.run(&mut Free),
        }
        .map_err(|source| RunError::Model {
            case: case.name.clone(),
            source,
        })?;
        let ends: Vec<u64> = stats.iter().map(|s| s.finished_ps).collect();
        let counted = case.mode.as_ref().and(guard).map(|g| g.counts(&ends));
        Ok(Played {
            stats,
            seen,
            places,
            counted,
        })
    }

    /// Background tasks at a share of what a node's memory can carry.
    fn throttle(&self, case: &Case) -> Throttle {
        let held = case.tasks.iter().filter(|t| t.background);
        Throttle::new(&self.platform, held.map(|t| t.cpu as usize))
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
            // A recorded program has no barriers but the one that it begins with.
            idle_ns: match task.recorded {
                Some(_) => s.slept_ps as f64 / 1000.0,
                None => s.barrier_ps as f64 / 1000.0,
            },
            instructions: c.instructions.load(Ordering::Relaxed),
            memory_bytes: (s.llc_misses + s.write_backs) * u64::from(self.map().line_size()),
            whole_ns: s.finished_ps as f64 / 1000.0,
            spilled,
            remote,
            half_ns: s.marks_ps.get(1).map(|&at| (at - began) as f64 / 1000.0),
            waits: None,
            regulated: None,
        }
    }

    /// What counts and regulates the case's cores.
    fn guard(&self, case: &Case, seen: &[Arc<Counts>]) -> Result<Option<Guard>, RunError> {
        let (Some(spec), Some(mode)) = (&self.regulator, &case.mode) else {
            return self.guard_of_policy(case);
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

    /// The policy `memguard` beside others in the background.
    fn guard_of_policy(&self, case: &Case) -> Result<Option<Guard>, RunError> {
        let cores = |background: bool| -> Vec<usize> {
            let some = case.tasks.iter().filter(|t| t.background == background);
            some.map(|t| t.cpu as usize).collect()
        };
        let (own, others) = (cores(false), cores(true));
        if case.policy != Policy::MemGuard || others.is_empty() {
            return Ok(None);
        }
        Guard::by_policy(&self.platform, &own, &others)
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
        let colors = colors(&self.platform, case)?;
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
        let nodes = self.map().memory_nodes();
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
            if let Some(node) = task.node.filter(|n| !nodes.contains(n)) {
                return wrong(
                    task,
                    format!("no node {node} with memory: the machine has it on {nodes:?}"),
                );
            }
        }
        let memory = self.map().bytes();
        let wanted: u64 = case.tasks.iter().map(|t| t.bytes).sum();
        let free = (memory as f64 * (1.0 - self.history.used)) as u64;
        match case.tasks.iter().max_by_key(|t| t.bytes) {
            Some(task) if wanted > free => wrong(
                task,
                format!(
                    "the case's tasks want {} MiB of memory together: {} MiB of the machine's {} are free",
                    wanted >> 20,
                    free >> 20,
                    memory >> 20
                ),
            ),
            _ => Ok(()),
        }
    }

    /// What the caches that the task uses can hold of its initialisation.
    fn warm_bytes(&self, case: &Case, task: &CaseTask) -> u64 {
        let line = u64::from(self.map().line_size());
        let size =
            |l: &soloist_memory::platform::CacheLevel| l.shape.sets * l.shape.ways as u64 * line;
        let llc = &self.platform.llc;
        let die = |cpu: u32| self.platform.llc_of_core[cpu as usize];
        let mates = case.tasks.iter().filter(|t| die(t.cpu) == die(task.cpu));
        let private: u64 = self.platform.private.iter().map(size).sum();
        let share = size(llc) / mates.count().max(1) as u64 + private;
        // Pages fall into the sets by chance: half as much again fills nearly all.
        share + share / 2
    }
}
