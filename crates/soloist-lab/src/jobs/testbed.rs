//! One run of one case: a stage is made of it and played.

use soloist_core::{AddrMap, Reservation};
use soloist_memory::Platform;
use soloist_play::guard::{ModelGuard, Regulated};
use soloist_play::pace::{self, Found, PaceError};
use soloist_play::placement::FreeMemory;
use soloist_play::programs::counters::{Counters, Pace};
use soloist_play::programs::order::Wakes;
use soloist_play::programs::rounds::accesses;
use soloist_play::programs::ProgramKind;
use soloist_play::stage::{Played, Regulator, Seat, SeatResult, Stage, StageError};
use soloist_play::warm::{Caches, Warmed};

use super::error::RunError;
use crate::cases::{Case, CaseTask};
use crate::measurements::{Run, TaskResult, Waits};
use crate::spec::{Mode, RegulatorSpec};

/// A benchmark that the machine can't be as fast as its paper prints is played as
/// fast as it can be, if that is this share of it at least: as near as a claim on
/// its speed wants it.
const NEARLY: f64 = 0.85;

/// A bank set counts as full at this share, since some of it is in use already.
const USABLE: f64 = 0.7;

/// What all runs by one model of the machine have in common.
pub(super) struct Testbed {
    pub(super) platform: Platform,
    pub(super) memory: FreeMemory,
    pub(super) regulator: Option<RegulatorSpec>,
    /// Every wait gets a cause and a culprit.
    pub(super) account: bool,
    /// The latency of each line is kept.
    pub(super) latencies: bool,
    /// Of programs that are made from counters, see [`Self::learn`].
    pub(super) paces: Vec<(Counters, Pace)>,
}

impl Testbed {
    fn map(&self) -> &AddrMap {
        &self.platform.memory.map
    }

    /// Runs `case` with everything that is drawn drawn from `seed`.
    pub(super) fn run(&self, case: &Case, seed: u64) -> Result<Run, RunError> {
        self.check(case)?;
        let stage = Stage {
            regulator: self.regulator(case),
            memory: self.memory,
            account: self.account,
            latencies: self.latencies,
            ..Stage::new(&self.platform, case.policy, self.seats(case, seed), seed)
        };
        let played = stage.play().map_err(|e| refused(case, e))?;
        let tasks = case.tasks.iter().zip(&played.seats);
        Ok(Run {
            seed,
            tasks: tasks
                .map(|(task, seat)| self.result(case, task, seat, &played))
                .collect(),
        })
    }

    /// The tasks in their caches and on their cores.
    fn seats(&self, case: &Case, seed: u64) -> Vec<Seat> {
        let busy: Vec<usize> = case.tasks.iter().map(|t| t.cpu as usize).collect();
        let mut wakes = Wakes::default();
        let mut seats = Vec::new();
        for (i, task) in case.tasks.iter().enumerate() {
            if task.program.thread == 0 {
                wakes = Wakes::default();
            }
            let core = task.cpu as usize;
            let caches = Caches {
                platform: &self.platform,
                core,
                busy: &busy,
            };
            let program = self.program(task, caches, seed ^ (i as u64) << 32, &wakes);
            let named = |other: &CaseTask| other.name == task.name;
            seats.push(Seat {
                thread: task.program.thread as usize,
                owner: i,
                group: case.tasks.iter().position(named).unwrap_or(i),
                background: task.is_background(),
                first_touch: task.first_touch,
                node: task.node,
                sets: self.sets(task),
                ..Seat::new(Box::new(program), core)
            });
        }
        seats
    }

    /// A task's program behind its initialisation.
    fn program(&self, task: &CaseTask, caches: Caches, seed: u64, wakes: &Wakes) -> Warmed {
        let line = u64::from(self.map().line_size());
        let make = || task.program.generator(self.pace(task), line, seed, wakes);
        let half = match task.is_background() {
            true => 0,
            false => accesses(make().as_mut()) / 2 + 1,
        };
        Warmed::new(make(), caches, task.program.dirty(), half)
    }

    /// Bank sets that a private assignment gives a task.
    fn sets(&self, task: &CaseTask) -> u32 {
        let map = self.map();
        let set_bytes = map.bytes() as f64 / f64::from(map.n_bank_sets()) * USABLE;
        let needed = (task.program.bytes as f64 / set_bytes).ceil() as u32;
        task.sets.unwrap_or(needed).max(1)
    }

    /// Finds the paces of all programs of `case` that are made from counters.
    pub(super) fn learn(&mut self, case: &Case) -> Result<(), RunError> {
        self.check(case)?;
        for task in &case.tasks {
            let Some(counters) = task.program.counters else {
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
        let known = |&&(counters, _): &&(Counters, Pace)| task.program.counters == Some(counters);
        let found = self.paces.iter().find(known);
        found.map_or(Pace::SERIAL, |&(_, pace)| pace)
    }

    /// Plays a task of these counters alone to find its pace.
    fn pace_alone(&self, task: &CaseTask, counters: Counters) -> Result<Pace, RunError> {
        let core = task.cpu as usize;
        let found = pace::find(&self.platform, self.memory, core, counters);
        let near = |found: &Found| {
            let enough = |most| most >= NEARLY * counters.ipc;
            task.program.kind == ProgramKind::Spec && found.most.is_some_and(enough)
        };
        let pace = match found {
            Ok(found) if near(&found) => return Ok(found.pace),
            Ok(found) => found.exact(counters),
            Err(e) => Err(e.into()),
        };
        pace.map_err(|e| {
            let (case, task) = (format!("{} alone", task.name), task.name.clone());
            match e {
                PaceError::Stage(e) => RunError::of_stage(case, |_| task.clone(), e),
                PaceError::TooFast { .. } => RunError::Task {
                    what: e.to_string(),
                    case,
                    task,
                },
            }
        })
    }

    fn result(
        &self,
        case: &Case,
        task: &CaseTask,
        seat: &SeatResult,
        played: &Played,
    ) -> TaskResult {
        let cpu = task.cpu as usize;
        let stats = &played.cores[cpu];
        let began = stats.marks_ps.first().copied().unwrap_or(stats.finished_ps);
        let on_core = |core: usize| {
            let on_it = |t: &&CaseTask| t.cpu as usize == core;
            case.tasks.iter().find(on_it).map(|t| t.name.clone())
        };
        let counted = |regulated: &Vec<Regulated>| regulated[cpu].clone();
        TaskResult {
            name: task.name.clone(),
            cpu: task.cpu,
            time_ns: (stats.finished_ps - began.min(stats.finished_ps)) as f64 / 1000.0,
            accesses: seat.accesses,
            // A recorded program has no barriers but the one that it begins with.
            idle_ns: match task.program.recorded {
                Some(_) => stats.slept_ps as f64 / 1000.0,
                None => stats.barrier_ps as f64 / 1000.0,
            },
            instructions: seat.instructions,
            memory_bytes: (stats.llc_misses + stats.write_backs)
                * u64::from(self.map().line_size()),
            whole_ns: stats.finished_ps as f64 / 1000.0,
            spilled: seat.spilled,
            remote: seat.remote,
            half_ns: stats
                .marks_ps
                .get(1)
                .map(|&at| (at - began) as f64 / 1000.0),
            p99_ns: stats.account.latency_ns().p99,
            waits: self.account.then(|| Waits::of(&stats.account, on_core)),
            regulated: played.regulated.as_ref().map(counted),
        }
    }

    /// What counts and regulates the case's cores.
    fn regulator(&self, case: &Case) -> Regulator {
        let (Some(spec), Some(mode)) = (&self.regulator, &case.mode) else {
            return Regulator::ByPolicy;
        };
        match mode.regulated {
            true => self.reserving(spec, mode, case),
            false => Regulator::Counting {
                period_us: spec.period_us,
            },
        }
    }

    fn reserving(&self, spec: &RegulatorSpec, mode: &Mode, case: &Case) -> Regulator {
        Regulator::Reserving {
            settings: spec.settings(mode, self.map().line_size()),
            reservations: self.reservations(mode, case),
            per_bank: mode.per_bank,
        }
    }

    /// The reservation of each core.
    fn reservations(&self, mode: &Mode, case: &Case) -> Vec<Option<Reservation>> {
        let mut reservations = vec![None; self.platform.node_of_core.len()];
        for task in &case.tasks {
            let reserve = task.reserve.as_ref().map(|r| r.in_mode(mode));
            reservations[task.cpu as usize] = reserve;
        }
        reservations
    }

    fn check(&self, case: &Case) -> Result<(), RunError> {
        self.check_tasks(case)?;
        self.check_reservations(case)
    }

    /// Reservations that the regulator takes. Which cores share banks is known only once
    /// pages are placed.
    fn check_reservations(&self, case: &Case) -> Result<(), RunError> {
        let (Some(spec), Some(mode)) = (&self.regulator, &case.mode) else {
            return Ok(());
        };
        if !mode.regulated || mode.per_bank {
            return Ok(());
        }
        let settings = spec.settings(mode, self.map().line_size());
        let reservations = self.reservations(mode, case);
        let nobody = vec![None; reservations.len()];
        match ModelGuard::regulating(&settings, &reservations, None, nobody) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refused(case, StageError::Regulator(refusal))),
        }
    }

    /// Cpus that exist and carry one task each.
    fn check_tasks(&self, case: &Case) -> Result<(), RunError> {
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
        let each = case.tasks.iter().map(|t| t.program.bytes);
        let wanted = each.fold(0, u64::saturating_add);
        let free = (memory as f64 * (1.0 - self.memory.history.used)) as u64;
        match case.tasks.iter().max_by_key(|t| t.program.bytes) {
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
}

fn refused(case: &Case, error: StageError) -> RunError {
    let task = |seat: usize| case.tasks[seat].name.clone();
    RunError::of_stage(case.name.clone(), task, error)
}
