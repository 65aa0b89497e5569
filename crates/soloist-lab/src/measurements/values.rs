//! Every measured value by the name that expressions use.

use std::collections::BTreeMap;

use soloist_core::statistics::Spread;

use super::{CaseResult, METRICS};

/// Every measured value by the name that expressions use:
/// `CASE_TASK_METRIC`, and with `_min`, `_max`, `_std` behind it; further
/// `_runstd`, the standard deviation over runs of a run's mean, and
/// `_runspread`, the mean over runs of (max - min) between tasks. A deviation of one
/// value is no number.
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
                let n: usize = case.per_run(task, name).iter().map(Vec::len).sum();
                let means: Vec<f64> = runs.iter().map(|s| s.mean).collect();
                let gaps: Vec<f64> = runs.iter().map(|s| s.max - s.min).collect();
                let over_runs = Spread::of(&means);
                for (suffix, value) in [
                    ("", spread.mean),
                    ("_min", spread.min),
                    ("_max", spread.max),
                    ("_std", deviation(&spread, n)),
                    ("_runstd", deviation(&over_runs, means.len())),
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

fn deviation(spread: &Spread, n: usize) -> f64 {
    match n {
        0 | 1 => f64::NAN,
        _ => spread.deviation,
    }
}
