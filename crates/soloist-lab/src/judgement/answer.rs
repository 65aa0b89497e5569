//! What policies do to the tasks of a scenario without claims: each beside the
//! others against itself alone.

use serde::Serialize;

use super::interval::Estimate;
use crate::cases::alone_name;
use crate::measurements::{CaseResult, Waits};

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
    /// Its time over its time alone under Linux.
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
            let alone = alone_name(name, &case.point());
            let alone = results.iter().find(|c| c.case == alone);
            all.extend(alone.and_then(|alone| answer(case, name, alone)));
        }
    }
    all
}

fn answer(case: &CaseResult, name: &str, alone: &CaseResult) -> Option<Answer> {
    let time = case.spread(name, "time")?.mean;
    let beside = mean_waits(case, name)?;
    let beyond = beside.less(&mean_waits(alone, name)?);
    let ratio = |case: &CaseResult, alone: &CaseResult| {
        let mean = |c: &CaseResult| c.spread(name, "time").map(|spread| spread.mean);
        Some(mean(case)? / mean(alone)?)
    };
    let seeds = case.runs.len().min(alone.runs.len());
    let without: Vec<f64> = (0..if seeds > 1 { seeds } else { 0 })
        .filter_map(|i| ratio(&case.without(i), &alone.without(i)))
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
        slowdown: Estimate::jackknife(ratio(case, alone)?, &without),
        p99_ns: beside.latency_ns[2],
        beyond,
        culprit,
    })
}

/// Mean over runs and tasks of that name.
fn mean_waits(case: &CaseResult, name: &str) -> Option<Waits> {
    let tasks = case.runs.iter().flat_map(|r| &r.tasks);
    let all: Vec<&Waits> = tasks
        .filter(|t| t.name == name)
        .filter_map(|t| t.waits.as_ref())
        .collect();
    (!all.is_empty()).then(|| Waits::mean(&all))
}
