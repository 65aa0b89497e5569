//! From a scenario to its cases: one for each policy, mode and sweep value,
//! with all numbers resolved.
//!
//! Names of measured values are `CASE_TASK_METRIC`, so a case's name is an
//! identifier.

use soloist_play::policy::{linux, Policy, UnknownPolicy};
use soloist_play::programs::counters::Counters;
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::table_1::Benchmark;
use soloist_play::programs::{ProgramKind, ProgramSpec};

use crate::spec::number::{as_u32, parse_cpus};
use crate::spec::{Mode, Number, Point, Reserve, Scenario, TaskSpec, Wrong};

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
    pub fn cases(&self, divide: u64) -> Result<Vec<Case>, Wrong> {
        let mut cases = Vec::new();
        let points = self.points();
        if points.is_empty() {
            return Err(self.no_values());
        }
        if self.policies.is_empty() {
            let what = "`policies` needs at least one, such as [\"buddy\", \"camc\"]";
            return Err(Wrong::at(&["policies"], what));
        }
        let modes: Vec<Option<Mode>> = match &self.regulator {
            Some(regulator) => regulator.modes()?.into_iter().map(Some).collect(),
            None => vec![None],
        };
        for point in &points {
            let model = self.model_of(point);
            model.map_err(|message| Wrong::at(&["model"], message))?;
        }
        for (number, name) in self.policies.iter().enumerate() {
            let policy: &'static dyn Policy = name.parse().map_err(|e: UnknownPolicy| {
                Wrong::at(&["policies", &number.to_string()], e.to_string())
            })?;
            for mode in &modes {
                for point in &points {
                    cases.push(self.case(policy, mode.as_ref(), point, divide)?);
                }
            }
        }
        Ok(cases)
    }

    /// A sweep without values.
    fn no_values(&self) -> Wrong {
        let empty = self.sweep.0.iter().position(|s| s.values.is_empty());
        let number = empty.unwrap_or(0).to_string();
        let path: &[&str] = match self.sweep.0.len() {
            1 => &["sweep", "values"],
            _ => &["sweep", &number, "values"],
        };
        Wrong::at(path, "[sweep] needs at least one value")
    }

    fn case(
        &self,
        policy: &'static dyn Policy,
        mode: Option<&Mode>,
        point: &Point,
        divide: u64,
    ) -> Result<Case, Wrong> {
        let only = mode.and_then(|m| m.only.as_deref());
        let runs = |spec: &TaskSpec| only.is_none_or(|name| spec.name == name);
        let mut tasks = Vec::new();
        for (number, spec) in self.tasks.iter().enumerate().filter(|(_, spec)| runs(spec)) {
            let resolved = self.tasks_of(spec, point, divide, only.is_none());
            tasks.extend(resolved.map_err(|message| Wrong::of_task(number, message))?);
        }
        if tasks.iter().all(CaseTask::is_background) {
            let what = "every task is `background`: none to wait for";
            return Err(Wrong::at(&["task"], what));
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
        let get = |n: &Number| n.resolve(sweep);
        let small = |n: &Number| get(n).and_then(as_u32);
        let recorded = spec.recorded.as_ref();
        let mut cpus = parse_cpus(&spec.cpus)?;
        if let Some(copies) = &spec.copies {
            cpus.truncate(get(copies)? as usize);
        }
        let threads = threads(spec, cpus.len())?;
        let benchmark = match (spec.kind, &spec.benchmark) {
            (ProgramKind::Spec, Some(n)) => Some(benchmark(get(n)?)?),
            (ProgramKind::Spec, None) => {
                return Err("kind `spec` needs `benchmark`, such as 470".to_owned())
            }
            _ => None,
        };
        let counters = match benchmark {
            Some(benchmark) => Some(counted(spec, benchmark)?),
            None => counters(spec)?,
        };
        let bytes = bytes(spec)?.map_or(Ok(0), get)?.max(4096);
        let all = || Ok(recorded.map_or(0, Recorded::lines));
        let work = (work(spec)?.map_or_else(all, get)? / divide).max(1);
        let program = ProgramSpec {
            kind: spec.kind,
            bytes,
            work: benchmark.map_or(work, |b| b.misses(work)),
            endless: spec.background && others,
            stride: spec.stride.as_ref().map_or(Ok(0), get)?,
            rounds: spec.rounds,
            instructions: instructions(spec)?,
            counters,
            recorded: spec.recorded.clone(),
            thread: 0,
        };
        let node = spec.node.as_ref().map(small).transpose()?;
        let sets = spec.sets.as_ref().map(small).transpose()?;
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

/// Threads of each program of a task on this many cpus: of a recording that many take part.
fn threads(spec: &TaskSpec, cpus: usize) -> Result<usize, String> {
    let threads = spec.recorded.as_ref().map_or(1, Recorded::threads);
    if cpus % threads != 0 {
        return Err(format!(
            "the recording has {threads} threads: give it {threads} cpus, not {cpus}"
        ));
    }
    if threads > 1 && spec.rounds > 0 {
        return Err(format!(
            "`rounds` is not for a recording of {threads} threads: they wait for each other"
        ));
    }
    Ok(threads)
}

/// Each task that is waited for by itself under Linux, for each value of the
/// sweep: what its time beside others is held against. Named `alone_TASK`.
pub fn alone(cases: &[Case]) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    for case in cases {
        for (i, task) in case.tasks.iter().enumerate() {
            if task.is_background() || task.program.thread > 0 {
                continue;
            }
            let threads = task.program.recorded.as_ref().map_or(1, Recorded::threads);
            let name = alone_name(&task.name, &case.point);
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

/// Name of the case of a task by itself.
pub fn alone_name(task: &str, point: &Point) -> String {
    match point.first() {
        Some(_) => format!("alone_{task}_{point}"),
        None => format!("alone_{task}"),
    }
}

/// A task's `bytes`; none: its recording has them.
fn bytes(spec: &TaskSpec) -> Result<Option<&Number>, String> {
    match (&spec.bytes, spec.kind) {
        (Some(_), ProgramKind::Recorded) => {
            Err("`bytes` is not for kind \"recorded\": a recording has its own".to_owned())
        }
        (None, kind) if kind != ProgramKind::Recorded => {
            Err("`bytes` is missing: its memory, such as \"32M\"".to_owned())
        }
        (bytes, _) => Ok(bytes.as_ref()),
    }
}

/// A task's `work`; none: all of its recording.
fn work(spec: &TaskSpec) -> Result<Option<&Number>, String> {
    match (&spec.work, spec.kind) {
        (None, kind) if kind != ProgramKind::Recorded => {
            Err("`work` is missing: how many steps it does".to_owned())
        }
        (work, _) => Ok(work.as_ref()),
    }
}

fn benchmark(spec: u64) -> Result<Benchmark, String> {
    Benchmark::find(spec)
        .ok_or_else(|| format!("no benchmark {spec}: expected a SPEC CPU2006 number such as 470"))
}

/// A share that the file gives, or `usual`.
fn share(name: &str, value: Option<f64>, usual: f64) -> Result<f64, String> {
    match value {
        Some(v) if !(0.0..=1.0).contains(&v) => Err(format!("{name} {v}: expected from 0 to 1")),
        value => Ok(value.unwrap_or(usual)),
    }
}

/// Counters of a benchmark: what is printed of it, and the file's of the rest.
fn counted(spec: &TaskSpec, benchmark: Benchmark) -> Result<Counters, String> {
    if spec.ipc.or(spec.mpki).is_some() {
        return Err("`ipc` and `mpki` of kind \"spec\" are MemGuard's Table 1".to_owned());
    }
    let printed = benchmark.counters();
    Ok(Counters {
        writes: share("writes", spec.writes, printed.writes)?,
        arrays: spec.arrays.unwrap_or(printed.arrays).min(64),
        uneven: share("uneven", spec.uneven, printed.uneven)?,
        ..printed
    })
}

/// Counters of a `program`.
fn counters(spec: &TaskSpec) -> Result<Option<Counters>, String> {
    let within = |name: &str, value: Option<f64>, most: f64| match value {
        Some(v) if v > 0.0 && v <= most => Ok(v),
        Some(v) => Err(format!("{name} {v}: expected above 0 and at most {most}")),
        None => Err(format!("kind \"program\" needs `{name}`")),
    };
    if spec.uneven.is_some() {
        return Err("`uneven` is for kind \"spec\"".to_owned());
    }
    if spec.kind == ProgramKind::Program {
        return Ok(Some(Counters {
            ipc: within("ipc", spec.ipc, 8.0)?,
            mpki: within("mpki", spec.mpki, 500.0)?,
            writes: within("writes", spec.writes.or(Some(0.3)), 1.0)?,
            arrays: spec.arrays.unwrap_or(4).min(64),
            uneven: 0.0,
            spell: 0.0,
        }));
    }
    let counted = spec.ipc.or(spec.mpki).or(spec.writes);
    match counted.or(spec.arrays.map(f64::from)) {
        Some(_) => Err("`ipc`, `mpki`, `writes` and `arrays` are for kind \"program\"".to_owned()),
        None => Ok(None),
    }
}

/// How many times as many instructions a generator has between its accesses.
fn instructions(spec: &TaskSpec) -> Result<f64, String> {
    use ProgramKind::{Latency, Program, Recorded, Spec};
    match (spec.instructions, spec.kind) {
        (None, _) => Ok(1.0),
        (Some(_), Program | Spec | Recorded | Latency) => {
            Err("`instructions` is for generators that no counters make".to_owned())
        }
        (Some(times), _) if (0.01..=100.0).contains(&times) => Ok(times),
        (Some(times), _) => Err(format!("instructions {times}: expected 0.01 to 100")),
    }
}
