//! What policies do to the tasks of a scenario without claims: each beside the
//! others against itself alone.

use serde::Serialize;
use soloist_core::statistics::mean;

use super::interval::Estimate;
use crate::measurements::{CaseResult, TaskResult, Waits};

/// A task under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The case.
    pub case: String,
    /// Its policy.
    pub policy: String,
    /// The task.
    pub task: String,
    /// Its time, ms.
    pub time_ms: f64,
    /// Its time over its time alone under Linux, of several copies the mean of both.
    pub slowdown: Estimate,
    /// 99th percentile of the latency of its lines, ns.
    pub p99_ns: f64,
    /// What its time has beyond that alone: adds up to the difference, ns.
    pub beyond: Waits,
    /// Whom it waited for most, why, and how long, ns.
    pub culprit: Option<(String, String, f64)>,
}

/// An answer for each case and task that has a run by itself.
pub fn answers(results: &[CaseResult]) -> Vec<Answer> {
    let mut all = Vec::new();
    for case in results.iter().filter(|c| !c.case.starts_with("alone_")) {
        let mut names: Vec<&str> = Vec::new();
        for task in case.runs.iter().flat_map(|r| &r.tasks) {
            if !names.contains(&task.name.as_str()) {
                names.push(&task.name);
            }
        }
        for name in names {
            all.extend(answer(case, name, &alone(case, name, results)));
        }
    }
    all
}

/// The case in which the copy of a task that a run of `case` has was by itself.
#[must_use]
pub fn alone_of<'a>(
    results: &'a [CaseResult],
    case: &CaseResult,
    task: &TaskResult,
) -> Option<&'a CaseResult> {
    let same = |t: &TaskResult| t.name == task.name && t.cpu == task.cpu;
    let mut alone = results.iter().filter(|c| c.case.starts_with("alone_"));
    alone.find(|alone| {
        let run = alone.runs.first();
        alone.point() == case.point() && run.is_some_and(|run| run.tasks.iter().any(same))
    })
}

/// The cases of the copies of a task by themselves, each once.
fn alone<'a>(case: &CaseResult, name: &str, results: &'a [CaseResult]) -> Vec<&'a CaseResult> {
    let tasks = case.runs.first().map_or(&[][..], |run| &run.tasks);
    let copies = tasks.iter().filter(|task| task.name == name);
    let mut all: Vec<&CaseResult> = Vec::new();
    for alone in copies.filter_map(|copy| alone_of(results, case, copy)) {
        if !all.iter().any(|known| known.case == alone.case) {
            all.push(alone);
        }
    }
    all
}

fn answer(case: &CaseResult, name: &str, alone: &[&CaseResult]) -> Option<Answer> {
    let time = case.spread(name, "time")?.mean;
    let beside = mean_waits(&[case], name)?;
    let beyond = beside.less(&mean_waits(alone, name)?);
    let seeds = alone.iter().map(|alone| alone.runs.len()).min()?;
    let seeds = seeds.min(case.runs.len());
    let without = |i: usize| {
        let alone: Vec<CaseResult> = alone.iter().map(|alone| alone.without(i)).collect();
        slowdown(&case.without(i), name, &alone.iter().collect::<Vec<_>>())
    };
    let without: Vec<f64> = (0..if seeds > 1 { seeds } else { 0 })
        .filter_map(without)
        .collect();
    let culprits = beyond.culprits();
    let first = culprits
        .into_iter()
        .find(|(who, ns)| who != name && *ns > 0.0);
    let culprit = first.map(|(who, ns)| {
        let cause = beyond.main_cause(&who).unwrap_or_default().to_owned();
        (who, cause, ns)
    });
    Some(Answer {
        case: case.case.clone(),
        policy: case.policy.clone(),
        task: name.to_owned(),
        time_ms: time,
        slowdown: Estimate::jackknife(slowdown(case, name, alone)?, &without),
        p99_ns: beside.latency_ns[2],
        beyond,
        culprit,
    })
}

/// A task's time over the mean of its copies' times by themselves.
fn slowdown(case: &CaseResult, name: &str, alone: &[&CaseResult]) -> Option<f64> {
    let time = |c: &CaseResult| c.spread(name, "time").map(|spread| spread.mean);
    let alone: Option<Vec<f64>> = alone.iter().map(|alone| time(alone)).collect();
    Some(time(case)? / mean(&alone?))
}

/// Mean over runs and tasks of that name.
fn mean_waits(cases: &[&CaseResult], name: &str) -> Option<Waits> {
    let tasks = cases.iter().flat_map(|case| &case.runs);
    let all: Vec<&Waits> = tasks
        .flat_map(|run| &run.tasks)
        .filter(|t| t.name == name)
        .filter_map(|t| t.waits.as_ref())
        .collect();
    (!all.is_empty()).then(|| Waits::mean(&all))
}
