//! Scenarios: what was measured, in columns.

use std::path::Path;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPoolBuilder;
use soloist_lab::jobs::{check_machine, do_one, Options, Parts, Prepared, RunError};
use soloist_lab::judgement::alone_ms;
use soloist_lab::known;
use soloist_lab::measurements::{metric, CaseResult, Run, TaskResult, METRICS};
use soloist_lab::spec::Scenario;
use soloist_machine::FileError;
use soloist_memory::{Error, Platform};
use soloist_play::policy;

use crate::error::Refused;
use crate::work::{work, Told};

/// A scenario, and how to run it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Order {
    /// The scenario's text.
    text: String,
    /// Its file's name; recordings are looked for beside it.
    file: String,
    /// The text was made of a dictionary: its lines say nothing to people.
    made: bool,
    /// Instead of the scenario's.
    policies: Option<Vec<String>>,
    /// Instead of the scenario's.
    machine: Option<String>,
    /// Changes of the machine's model, by key, as TOML.
    model: Vec<(String, String)>,
    seed: u64,
    seeds: Option<u32>,
    small: bool,
    /// Also each task by itself.
    alone: bool,
    /// Threads; 0: all cores.
    threads: usize,
}

impl Order {
    fn options(&self) -> Options {
        Options {
            seed: self.seed,
            seeds: self.seeds,
            small: self.small,
            account: self.alone,
            needed: false,
        }
    }

    /// The scenario with what is changed of it.
    fn scenario(&self) -> Result<Scenario, Refused> {
        let mut scenario = self.written()?;
        for (key, value) in &self.model {
            let changed = scenario.change_model(key, value);
            changed
                .map_err(|e| Refused::from(format!("model.{key} = {value}: {}", e.message())))?;
        }
        let varies = scenario.check_sweeps();
        varies.map_err(|e| Refused::from(format!("model: {}", e.message)))?;
        Ok(scenario)
    }

    /// The same without the changes of the model.
    fn written(&self) -> Result<Scenario, Refused> {
        let table: Option<toml::Table> = self.text.parse().ok();
        if table.is_some_and(|t| t.get("tasks").is_some_and(toml::Value::is_str)) {
            let what =
                "a task set with deadlines: soloist.plan() plans one, `soloist-lab lab run` \
                        plays the built-in ones";
            return Err(FileError::whole(&self.file, what).into());
        }
        let mut scenario = known::parse(&self.text, &self.file)?;
        if let Some(policies) = &self.policies {
            scenario.policies.clone_from(policies);
        }
        if let Some(machine) = &self.machine {
            scenario.experiment.machine.clone_from(machine);
        }
        Ok(scenario)
    }

    fn run(&self, told: &Told) -> Result<Option<Measured>, Refused> {
        let scenario = self.scenario()?;
        let refused = |e: RunError| self.refused(&scenario, &e);
        let prepared = Prepared::new(&scenario, self.options()).map_err(refused)?;
        told.expect(prepared.costs().len());
        let until = Interruptible {
            inner: &prepared,
            told,
        };
        match do_one(&until, &|| told.one_done()) {
            Ok(cases) => Ok(Some(Measured { scenario, cases })),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(refused(error)),
        }
    }

    /// The same on the threads that are asked for. All cores are rayon's global pool, but
    /// not in a forked child: that inherits the pool without its threads, and would wait
    /// for ever. It makes a pool of its own.
    fn run_in_pool(&self, told: &Told) -> Result<Option<Measured>, Refused> {
        static FIRST: OnceLock<u32> = OnceLock::new();
        let process = std::process::id();
        if self.threads == 0 && *FIRST.get_or_init(|| process) == process {
            return self.run(told);
        }
        let pool = ThreadPoolBuilder::new().num_threads(self.threads).build();
        let pool = pool.map_err(|e| Refused::from(e.to_string()))?;
        pool.install(|| self.run(told))
    }

    /// The error at its line; or of the argument that stands in that line's stead.
    fn refused(&self, scenario: &Scenario, error: &RunError) -> Refused {
        let Some(argument) = self.argument(error) else {
            return Refused::from(error.in_file(scenario));
        };
        let wrong = self.wrong_machine_file();
        let wrong = wrong.unwrap_or_else(|| FileError::whole("", error.to_string()));
        Refused::from(FileError {
            message: format!("{argument}: {}", wrong.message),
            ..wrong
        })
    }

    /// What is wrong in the file that the argument `machine` names.
    fn wrong_machine_file(&self) -> Option<FileError> {
        match Platform::find(self.machine.as_ref()?) {
            Err(Error::File(wrong)) if Path::new(&wrong.file).is_file() => Some(wrong),
            _ => None,
        }
    }

    /// Whether the argument `model` is to blame: the file has changes of its own.
    fn is_right_without_model(&self) -> bool {
        let check = |written: &Scenario| check_machine(written, self.options());
        !self.model.is_empty() && self.written().is_ok_and(|written| check(&written).is_ok())
    }

    /// The argument that an error is about.
    fn argument(&self, error: &RunError) -> Option<String> {
        let RunError::Wrong { wrong, .. } = error else {
            return None;
        };
        let path: Vec<&str> = wrong.keys.iter().map(String::as_str).collect();
        match path[..] {
            ["experiment", "machine"] => {
                let machine = self.machine.as_ref()?;
                Some(format!("machine='{machine}'"))
            }
            ["policies", ..] => {
                let policies = self.policies.as_ref()?;
                Some(format!("policies={policies:?}"))
            }
            ["model", ..] => self.is_right_without_model().then(|| "model".to_owned()),
            _ => None,
        }
    }
}

/// A scenario whose parts are left out once nobody waits for them.
struct Interruptible<'a> {
    inner: &'a Prepared<'a>,
    told: &'a Told,
}

impl Parts for Interruptible<'_> {
    type Part = Run;
    type Whole = Vec<CaseResult>;
    type Error = Option<RunError>;

    fn costs(&self) -> Vec<u64> {
        self.inner.costs()
    }

    fn part(&self, n: usize) -> Result<Run, Self::Error> {
        match self.told.stopped() {
            true => Err(None),
            false => self.inner.part(n).map_err(Some),
        }
    }

    fn whole(&self, runs: Vec<Run>) -> Vec<CaseResult> {
        self.inner.whole(runs)
    }
}

/// The results of a scenario.
struct Measured {
    scenario: Scenario,
    cases: Vec<CaseResult>,
}

impl Measured {
    /// A row for each task of each run; runs of tasks by themselves are columns of those
    /// rows.
    fn rows(&self) -> Vec<Row<'_>> {
        let beside = self.cases.iter().filter(|c| !c.case.starts_with("alone_"));
        let mut rows = Vec::new();
        for case in beside {
            for run in &case.runs {
                rows.extend(run.tasks.iter().map(|task| Row {
                    case,
                    seed: run.seed,
                    task,
                    alone: alone_ms(&self.cases, case, task),
                }));
            }
        }
        rows
    }

    /// The columns by name, in their order.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.rows();
        let about = &self.scenario.experiment;
        let columns = PyDict::new(py);
        let all = |text: &str| vec![text.to_owned(); rows.len()];
        columns.set_item("experiment", all(&about.id))?;
        columns.set_item("machine", all(&about.machine))?;
        let texts = |get: fn(&Row) -> String| rows.iter().map(get).collect::<Vec<_>>();
        columns.set_item("case", texts(|r| r.case.case.clone()))?;
        columns.set_item("policy", texts(|r| r.case.policy.clone()))?;
        for (i, sweep) in self.scenario.sweep.0.iter().enumerate() {
            let values: Vec<u64> = rows.iter().map(|r| r.case.point().0[i]).collect();
            columns.set_item(format!("sweep.{}", sweep.name), values)?;
        }
        let seeds: Vec<u64> = rows.iter().map(|r| r.seed).collect();
        columns.set_item("seed", seeds)?;
        columns.set_item("task", texts(|r| r.task.name.clone()))?;
        let cpus: Vec<u32> = rows.iter().map(|r| r.task.cpu).collect();
        columns.set_item("cpu", cpus)?;
        for (name, _) in METRICS {
            let values: Vec<Option<f64>> = rows.iter().map(|r| metric(r.task, name)).collect();
            columns.set_item(name, values)?;
        }
        let alone: Vec<Option<f64>> = rows.iter().map(|r| r.alone).collect();
        columns.set_item("alone", alone)?;
        let slowdown = |r: &Row| Some(metric(r.task, "time")? / r.alone?);
        let slowdowns: Vec<Option<f64>> = rows.iter().map(slowdown).collect();
        columns.set_item("slowdown", slowdowns)?;
        Ok(columns)
    }
}

/// A task of a run.
struct Row<'a> {
    case: &'a CaseResult,
    seed: u64,
    task: &'a TaskResult,
    /// Its mean time by itself, ms.
    alone: Option<f64>,
}

/// Runs a scenario: columns by name.
#[pyfunction]
#[pyo3(signature = (order, progress=None))]
pub fn lab_run<'py>(
    py: Python<'py>,
    order: Order,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (text, file, made) = (order.text.clone(), order.file.clone(), order.made);
    let measured = work(py, progress, move |told| order.run_in_pool(told))?;
    let measured = measured.map_err(|e| match made {
        true => e.quoting(&file, &text),
        false => e,
    })?;
    let measured = measured.ok_or_else(|| Refused::from("interrupted".to_owned()))?;
    measured.columns(py)
}

/// Whether a scenario would run; how many cases it has.
#[pyfunction]
pub fn lab_check(py: Python<'_>, order: Order) -> PyResult<usize> {
    let (text, file, made) = (order.text.clone(), order.file.clone(), order.made);
    let check = move |_: &Told| {
        let scenario = order.scenario()?;
        let checked = soloist_lab::jobs::check(&scenario, order.options());
        checked.map_err(|e| order.refused(&scenario, &e))
    };
    let checked = work(py, None, check)?.map_err(|e| match made {
        true => e.quoting(&file, &text),
        false => e,
    });
    Ok(checked?)
}

/// Names of the experiments that are built in.
#[pyfunction]
pub fn lab_names() -> Vec<&'static str> {
    known::EXPERIMENTS.iter().map(|(name, _)| *name).collect()
}

/// Names of the policies, and what each is.
#[pyfunction]
pub fn lab_policies() -> Vec<(&'static str, &'static str)> {
    policy::all().map(|p| (p.name(), p.title())).collect()
}

/// The text of an experiment that is built in, and its file's name.
#[pyfunction]
pub fn lab_text(name: &str) -> PyResult<(String, String)> {
    let mut known = known::EXPERIMENTS.iter();
    match known.find(|(id, _)| *id == name) {
        Some((_, text)) => Ok(((*text).to_owned(), format!("experiments/{name}.toml"))),
        // It says which there are.
        None => match known::find(name) {
            Ok(_) => Err(Refused::from(format!("{name}: no experiment")).into()),
            Err(error) => Err(Refused::from(error).into()),
        },
    }
}

/// The metrics and their units.
#[pyfunction]
pub fn metrics() -> Vec<(&'static str, &'static str)> {
    METRICS.to_vec()
}

/// A dictionary, as JSON, in TOML.
#[pyfunction]
pub fn toml_of(json: &str) -> PyResult<String> {
    let table: Result<toml::Table, _> = serde_json::from_str(json);
    let table = table.map_err(|e| Refused::from(format!("not a table of TOML: {e}")))?;
    let text = toml::to_string(&table);
    Ok(text.map_err(|e| Refused::from(e.to_string()))?)
}

/// A value, as JSON, in TOML: one line of a table has room for it.
#[pyfunction]
pub fn toml_value_of(json: &str) -> PyResult<String> {
    let value: Result<toml::Value, _> = serde_json::from_str(json);
    let value = value.map_err(|e| Refused::from(format!("not a value of TOML: {e}")))?;
    Ok(value.to_string())
}
