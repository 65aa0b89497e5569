//! From a scenario to its cases: one for each policy, mode and sweep value,
//! with all numbers resolved.
//!
//! Names of measured values are `CASE_TASK_METRIC`, so a case's name is an
//! identifier.

mod fields;
mod names;

use soloist_machine::KeyError;
use soloist_play::policy::{linux, Policy, UnknownPolicy};
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::ProgramSpec;

use crate::spec::number::as_u32;
use crate::spec::{of_task, Mode, Number, Point, Reserve, Scenario, TaskSpec};

/// One policy, mode and sweep value.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `policy`, `policy_mode`, and with `_value` behind it for each sweep.
    pub name: String,
    /// The policy.
    pub policy: &'static dyn Policy,
    /// How bandwidth is regulated; `None`: the scenario has no regulator.
    pub mode: Option<Mode>,
    /// Where in the sweeps it is.
    pub point: Point,
    /// Its tasks, one per cpu.
    pub tasks: Vec<CaseTask>,
}

/// One task of a case, all numbers resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseTask {
    /// Name of its `[[task]]`.
    pub name: String,
    /// What it does; endless if it is not waited for. Threads of a recorded program
    /// follow each other.
    pub program: ProgramSpec,
    /// Where it is pinned.
    pub cpu: u32,
    /// Pages of this node only.
    pub node: Option<u32>,
    /// Bank sets of a private assignment.
    pub sets: Option<u32>,
    /// Cpu of the first touch.
    pub first_touch: u32,
    /// Bandwidth that its cpu reserves.
    pub reserve: Option<Reserve>,
}

impl CaseTask {
    /// It runs for as long as the others do, and is not waited for.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.program.endless
    }
}

impl Scenario {
    /// All cases, with every task's work divided by `divide`.
    pub fn cases(&self, divide: u64) -> Result<Vec<Case>, KeyError> {
        let mut cases = Vec::new();
        let points = self.points();
        if points.is_empty() {
            return Err(self.no_values());
        }
        if self.policies.is_empty() {
            let what = "`policies` needs at least one, such as [\"buddy\", \"camc\"]";
            return Err(KeyError::at(&["policies"], what));
        }
        let modes: Vec<Option<Mode>> = match &self.regulator {
            Some(regulator) => regulator.modes()?.into_iter().map(Some).collect(),
            None => vec![None],
        };
        self.check_only(&modes)?;
        for point in &points {
            let model = self.model_of(point);
            model.map_err(|message| KeyError::at(&["model"], message))?;
        }
        for (number, name) in self.policies.iter().enumerate() {
            let wrong = |what: String| KeyError::at(&["policies", &number.to_string()], what);
            let policy: &'static dyn Policy = name
                .parse()
                .map_err(|e: UnknownPolicy| wrong(e.to_string()))?;
            if self.regulator.is_some() && policy.is_regulated() {
                return Err(wrong(format!(
                    "{policy} regulates by itself: leave it or [regulator] out"
                )));
            }
            for mode in &modes {
                for point in &points {
                    cases.push(self.case(policy, mode.as_ref(), point, divide)?);
                }
            }
        }
        names::check(self, &cases)?;
        Ok(cases)
    }

    /// Tasks that a mode names as the only one to run.
    fn check_only(&self, modes: &[Option<Mode>]) -> Result<(), KeyError> {
        for (number, mode) in modes.iter().enumerate() {
            let Some(only) = mode.as_ref().and_then(|mode| mode.only.as_ref()) else {
                continue;
            };
            if !self.tasks.iter().any(|task| task.name == *only) {
                let names: Vec<&str> = self.tasks.iter().map(|t| t.name.as_str()).collect();
                let what = format!("no task `{only}`; there are: {}", names.join(", "));
                let path = ["regulator", "modes", &number.to_string()];
                return Err(KeyError::at(&path, what));
            }
        }
        Ok(())
    }

    /// A sweep without values.
    fn no_values(&self) -> KeyError {
        let empty = self.sweep.0.iter().position(|s| s.values.is_empty());
        let number = empty.unwrap_or(0).to_string();
        let path: &[&str] = match self.sweep.0.len() {
            1 => &["sweep", "values"],
            _ => &["sweep", &number, "values"],
        };
        KeyError::at(path, "[sweep] needs at least one value")
    }

    fn case(
        &self,
        policy: &'static dyn Policy,
        mode: Option<&Mode>,
        point: &Point,
        divide: u64,
    ) -> Result<Case, KeyError> {
        let only = mode.and_then(|m| m.only.as_deref());
        let runs = |spec: &TaskSpec| only.is_none_or(|name| spec.name == name);
        let mut tasks = Vec::new();
        for (number, spec) in self.tasks.iter().enumerate().filter(|(_, spec)| runs(spec)) {
            let resolved = self.tasks_of(spec, point, divide, only.is_none());
            tasks.extend(resolved.map_err(|message| of_task(number, message))?);
        }
        if tasks.iter().all(CaseTask::is_background) {
            let what = "every task is `background`: none to wait for";
            return Err(KeyError::at(&["task"], what));
        }
        let identifier = match mode {
            Some(mode) => format!("{}_{mode}", policy.name()),
            None => policy.name().to_owned(),
        }
        .replace(|c: char| !c.is_alphanumeric(), "_")
        .trim_end_matches('_')
        .to_owned();
        Ok(Case {
            name: match point.first() {
                Some(_) => format!("{identifier}_{point}"),
                None => identifier,
            },
            policy,
            mode: mode.cloned(),
            point: point.clone(),
            tasks,
        })
    }

    /// The tasks of one `[[task]]` at a point of the sweeps, one per cpu; `others` run
    /// beside them, so that those in the background are endless.
    fn tasks_of(
        &self,
        spec: &TaskSpec,
        point: &Point,
        divide: u64,
        others: bool,
    ) -> Result<Vec<CaseTask>, String> {
        let sweep = &self.named(point);
        let small = |n: &Number| n.resolve(sweep).and_then(as_u32);
        let recorded = spec.recorded.as_ref();
        let cpus = fields::cpus(spec, sweep)?;
        let threads = fields::threads(spec, cpus.len())?;
        let benchmark = fields::benchmark(spec, sweep)?;
        let counters = match benchmark {
            Some(benchmark) => Some(fields::counted(spec, benchmark)?),
            None => fields::counters(spec)?,
        };
        let bytes = fields::bytes(spec, sweep)?;
        let work = (fields::work(spec, sweep)? / divide).max(1);
        let program = ProgramSpec {
            kind: spec.kind,
            bytes,
            work: benchmark.map_or(work, |b| b.misses(work)),
            endless: spec.background && others,
            stride: fields::stride(spec, bytes, sweep)?,
            rounds: spec.rounds,
            instructions: fields::instructions(spec)?,
            counters,
            recorded: spec.recorded.clone(),
            thread: 0,
        };
        let node = spec.node.as_ref().map(small).transpose()?;
        let sets = fields::sets(spec, sweep)?.map(as_u32).transpose()?;
        if spec.reserve.is_some() && self.regulator.is_none() {
            return Err("`reserve` is of a [regulator]: there is none".to_owned());
        }
        let reserve = spec.reserve.as_ref().map(|r| r.resolve(sweep));
        let reserve = reserve.transpose()?;
        let tasks = cpus.into_iter().enumerate().map(|(i, cpu)| CaseTask {
            name: spec.name.clone(),
            program: ProgramSpec {
                bytes: recorded.map_or(bytes, |r| r.bytes_of(i % threads)),
                thread: (i % threads) as u32,
                ..program.clone()
            },
            cpu,
            node,
            sets,
            first_touch: spec.first_touch.unwrap_or(cpu),
            reserve: reserve.clone(),
        });
        Ok(tasks.collect())
    }
}

/// Each task that is waited for by itself under Linux, for each value of the
/// sweep: what its time beside others is held against. Copies of a task are far
/// from its memory or near, so that each is held against itself.
pub fn alone(cases: &[Case]) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    for case in cases {
        for (i, task) in case.tasks.iter().enumerate() {
            if task.is_background() || task.program.thread > 0 {
                continue;
            }
            let threads = task.program.recorded.as_ref().map_or(1, Recorded::threads);
            let name = alone_name(&task.name, task.cpu, &case.point);
            if !all.iter().any(|known| known.name == name) {
                all.push(Case {
                    name,
                    policy: &linux::BUDDY,
                    mode: None,
                    point: case.point.clone(),
                    tasks: case.tasks[i..i + threads].to_vec(),
                });
            }
        }
    }
    all
}

/// Name of the case of a task by itself, whose first thread is on `cpu`.
fn alone_name(task: &str, cpu: u32, point: &Point) -> String {
    match point.first() {
        Some(_) => format!("alone_{task}_{cpu}_{point}"),
        None => format!("alone_{task}_{cpu}"),
    }
}
