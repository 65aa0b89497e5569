//! What was measured, and what becomes of the claims.

use std::collections::BTreeMap;

use evalexpr::{ContextWithMutableVariables, HashMapContext, Value};
use serde::{Deserialize, Serialize};

use crate::governor::Regulated;
use crate::scenario::{Claim, Over, Scenario};

/// One task of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Name of its `[[task]]`.
    pub name: String,
    /// Cpu it ran on.
    pub cpu: u32,
    /// From its start to its end, ns; initialisation not counted.
    pub time_ns: f64,
    /// Loads and stores.
    pub accesses: u64,
    /// Time waiting at barriers, ns.
    pub idle_ns: f64,
    /// Instructions.
    pub instructions: u64,
    /// Bytes moved between the last-level cache and memory, initialisation
    /// included.
    pub memory_bytes: u64,
    /// Time that `memory_bytes` took, ns.
    pub whole_ns: f64,
    /// Pages that came out of colour.
    pub spilled: u64,
    /// Share of its pages that lie on another node than its cpu, per cent.
    pub remote: f64,
    /// What was counted of its cpu, in scenarios with a regulator.
    #[serde(default)]
    pub regulated: Option<Regulated>,
}

/// One run of one case: a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Its tasks.
    pub tasks: Vec<TaskResult>,
}

/// All runs of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case's name.
    pub case: String,
    /// Its policy.
    pub policy: String,
    /// The sweep's value.
    pub value: Option<u64>,
    /// One per seed.
    pub runs: Vec<Run>,
}

/// An experiment as it came out: all that a report needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed of the first repeat.
    pub seed: u64,
    /// The small version ran.
    pub small: bool,
    /// What was measured.
    pub cases: Vec<CaseResult>,
    /// The claims, judged.
    pub verdicts: Vec<Verdict>,
}

impl Outcome {
    /// Judges the scenario's claims by what was measured.
    pub fn new(scenario: Scenario, seed: u64, small: bool, cases: Vec<CaseResult>) -> Self {
        let verdicts = judge(&scenario, &cases);
        Self {
            scenario,
            seed,
            small,
            cases,
            verdicts,
        }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let small = if self.small { " --small" } else { "" };
        let id = &self.scenario.experiment.id;
        format!("soloist lab run {id} --seed {}{small}", self.seed)
    }
}

/// Mean, least, greatest and standard deviation of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Standard deviation of the sample.
    pub std: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self {
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            std: if values.len() > 1 {
                (square / (n - 1.0)).sqrt()
            } else {
                0.0
            },
        }
    }
}

/// Bytes of a line of every machine that is modelled.
const LINE: f64 = 64.0;

/// The metrics that claims and plots may name, and their units.
pub const METRICS: [(&str, &str); 12] = [
    ("time", "ms"),
    ("latency", "ns per access"),
    ("idle", "ms"),
    ("bandwidth", "MB/s"),
    ("ipns", "instructions per ns"),
    ("spilled", "pages"),
    ("remote", "per cent of pages"),
    ("reads", "MB/s"),
    ("writes", "MB/s"),
    ("underruns", "per cent of periods"),
    ("stopped", "per cent of time"),
    ("unevenness", ""),
];

/// What may follow a metric's name, see [`values`].
pub const SUFFIXES: [&str; 7] = [
    "_min",
    "_max",
    "_std",
    "_runstd",
    "_runmin",
    "_runmax",
    "_runspread",
];

/// The value of `metric` for one task; `None`: there is no such metric.
pub fn metric(task: &TaskResult, metric: &str) -> Option<f64> {
    let time = task.time_ns.max(f64::MIN_POSITIVE);
    if let Some(value) = task.regulated.as_ref().and_then(|r| counted(r, metric)) {
        return Some(value);
    }
    Some(match metric {
        "time" => task.time_ns / 1e6,
        "latency" => task.time_ns / task.accesses.max(1) as f64,
        "idle" => task.idle_ns / 1e6,
        "bandwidth" => task.memory_bytes as f64 / task.whole_ns.max(f64::MIN_POSITIVE) * 1e3,
        "ipns" => task.instructions as f64 / time,
        "spilled" => task.spilled as f64,
        "remote" => task.remote,
        _ => return None,
    })
}

/// Metrics of what was counted since all tasks had begun.
fn counted(r: &Regulated, metric: &str) -> Option<f64> {
    let time = r.time_ns.max(f64::MIN_POSITIVE);
    let rate = |lines: u64| lines as f64 * LINE / time * 1e3;
    Some(match metric {
        "ipns" => r.instructions as f64 / time,
        "reads" => rate(r.reads),
        "writes" => rate(r.writes),
        "underruns" => 100.0 * r.underruns as f64 / r.periods.max(1) as f64,
        "stopped" => 100.0 * r.stopped_ns / time,
        "unevenness" => r.unevenness,
        _ => return None,
    })
}

impl CaseResult {
    /// `metric` of every task named `task`, per run.
    pub fn per_run(&self, task: &str, name: &str) -> Vec<Vec<f64>> {
        self.runs
            .iter()
            .map(|run| {
                run.tasks
                    .iter()
                    .filter(|t| t.name == task)
                    .filter_map(|t| metric(t, name))
                    .collect()
            })
            .collect()
    }

    /// Spread of `metric` over all runs and tasks of that name.
    pub fn spread(&self, task: &str, name: &str) -> Option<Spread> {
        let all: Vec<f64> = self.per_run(task, name).into_iter().flatten().collect();
        (!all.is_empty()).then(|| Spread::of(&all))
    }
}

/// A claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In words.
    pub what: String,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What came out; `None`: the expression could not be computed.
    pub ours: Option<f64>,
    /// ours / theirs.
    pub ratio: Option<f64>,
    /// Does it hold? `None`: nothing to compare with.
    pub holds: Option<bool>,
    /// Unit.
    pub unit: String,
    /// Why it could not be computed.
    pub error: Option<String>,
}

/// Every measured value by the name that expressions use:
/// `CASE_TASK_METRIC`, and with `_min`, `_max`, `_std` behind it; further
/// `_runstd`, the standard deviation over runs of a run's mean, and
/// `_runspread`, the mean over runs of (max - min) between tasks.
pub fn values(results: &[CaseResult]) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for case in results {
        let mut names: Vec<&str> = case
            .runs
            .iter()
            .flat_map(|r| r.tasks.iter().map(|t| t.name.as_str()))
            .collect();
        names.sort_unstable();
        names.dedup();
        for task in names {
            for (name, _) in METRICS {
                let Some(spread) = case.spread(task, name) else {
                    continue;
                };
                let stem = format!("{}_{task}_{name}", case.case);
                let runs: Vec<Spread> = case
                    .per_run(task, name)
                    .iter()
                    .map(|run| Spread::of(run))
                    .collect();
                let means: Vec<f64> = runs.iter().map(|s| s.mean).collect();
                let gaps: Vec<f64> = runs.iter().map(|s| s.max - s.min).collect();
                let over_runs = Spread::of(&means);
                for (suffix, value) in [
                    ("", spread.mean),
                    ("_min", spread.min),
                    ("_max", spread.max),
                    ("_std", spread.std),
                    ("_runstd", over_runs.std),
                    ("_runmin", over_runs.min),
                    ("_runmax", over_runs.max),
                    ("_runspread", Spread::of(&gaps).mean),
                ] {
                    values.insert(format!("{stem}{suffix}"), value);
                }
            }
        }
    }
    values
}

/// Judges every claim of the scenario.
pub fn judge(scenario: &Scenario, results: &[CaseResult]) -> Vec<Verdict> {
    let mut context = HashMapContext::new();
    for (name, value) in values(results) {
        // Names are identifiers by construction; a clash can't happen.
        let _ = context.set_value(name, Value::Float(value));
    }
    scenario
        .claims
        .iter()
        .map(|c| verdict(c, &sweep_of(scenario), &context))
        .collect()
}

fn sweep_of(scenario: &Scenario) -> Vec<u64> {
    let values = scenario.sweep.as_ref().map(|s| s.values.clone());
    values.unwrap_or_default()
}

/// An expression's value, or what is taken of its values over the sweep.
fn evaluate(
    text: &str,
    over: Option<Over>,
    sweep: &[u64],
    context: &HashMapContext,
) -> Result<f64, evalexpr::EvalexprError> {
    let Some(over) = over else {
        return evalexpr::eval_number_with_context(text, context);
    };
    let values = sweep
        .iter()
        .map(|v| evalexpr::eval_number_with_context(&text.replace('$', &v.to_string()), context))
        .collect::<Result<Vec<f64>, _>>()?;
    let n = values.len().max(1) as f64;
    Ok(match over {
        Over::Mean => values.iter().sum::<f64>() / n,
        Over::Geomean => (values.iter().map(|v| v.ln()).sum::<f64>() / n).exp(),
        Over::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Over::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

fn verdict(claim: &Claim, sweep: &[u64], context: &HashMapContext) -> Verdict {
    let ours = evaluate(&claim.ours, claim.over, sweep, context);
    let stated = claim.holds.as_ref().map(|text| {
        let mut context = context.clone();
        if let Ok(ours) = &ours {
            context.set_value("ours".into(), Value::Float(*ours))?;
        }
        evalexpr::eval_boolean_with_context(text, &context)
    });
    let error = ours
        .as_ref()
        .err()
        .or(stated.as_ref().and_then(|s| s.as_ref().err()))
        .map(ToString::to_string);
    let ours = ours.ok().filter(|v| v.is_finite());
    let ratio = ours.zip(claim.theirs).map(|(o, t)| o / t);
    let within = claim.within.unwrap_or(0.15);
    let holds = match stated {
        Some(stated) => stated.ok(),
        None => ratio.map(|r| (r - 1.0).abs() <= within),
    };
    Verdict {
        what: claim.what.clone(),
        theirs: claim.theirs,
        ours,
        ratio,
        holds,
        unit: claim.unit.clone(),
        error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn result(case: &str, times: &[f64]) -> CaseResult {
        let task = |&time_ns: &f64| TaskResult {
            name: "t".into(),
            cpu: 0,
            time_ns,
            accesses: 10,
            idle_ns: 0.0,
            instructions: 100,
            memory_bytes: 640,
            whole_ns: time_ns,
            spilled: 0,
            remote: 0.0,
            regulated: None,
        };
        CaseResult {
            case: case.into(),
            policy: case.into(),
            value: None,
            runs: vec![Run {
                seed: 0,
                tasks: times.iter().map(task).collect(),
            }],
        }
    }

    fn claim(ours: &str, theirs: f64) -> Claim {
        Claim {
            what: "w".into(),
            ours: ours.into(),
            theirs: Some(theirs),
            within: None,
            holds: None,
            over: None,
            unit: String::new(),
        }
    }

    #[test]
    fn claims_are_computed_from_measured_values_only() {
        let results = [result("a", &[100.0, 300.0]), result("b", &[100.0])];
        let mut context = HashMapContext::new();
        for (k, v) in values(&results) {
            context.set_value(k, Value::Float(v)).unwrap();
        }
        for (expression, theirs, expected, holds) in [
            ("a_t_latency / b_t_latency", 2.1, 2.0, true),
            ("a_t_time_max / a_t_time_min", 2.0, 3.0, false),
        ] {
            let v = verdict(&claim(expression, theirs), &[], &context);
            assert!((v.ours.unwrap() - expected).abs() < 1e-9, "{v:?}");
            assert_eq!(v.holds, Some(holds));
        }
        let v = verdict(&claim("c_t_time", 2.0), &[], &context);
        assert!(v.error.is_some() && v.holds.is_none());
    }
}
