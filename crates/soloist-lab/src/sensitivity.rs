//! What an experiment's main figure would be if what no document says of the
//! machine were otherwise: at both ends of each `[memory.range]` of its file.

use std::collections::BTreeSet;

use serde::Serialize;
use soloist_machine::known;

use crate::jobs::{run_all, Options, RunError};
use crate::judgement::{judge, Estimate};
use crate::spec::{Claim, ClaimKind, Scenario};

/// One figure at both ends of one range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name of the experiment.
    pub experiment: String,
    /// The claim in words.
    pub claim: String,
    /// Its unit.
    pub unit: String,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What is changed, such as `core.window`; empty: nothing.
    pub key: String,
    /// To what, and what came out.
    pub ends: Vec<(String, Option<Estimate>)>,
}

/// A scenario with one value of its machine's model changed.
struct Variant {
    line: usize,
    value: String,
}

/// The lines of one experiment: as shipped, and one for each range of its
/// machine (only those in `keys` if there are any). Nothing where it claims no
/// figure.
fn lines(scenario: &Scenario, keys: &[String]) -> Vec<Line> {
    let Some(claim) = main_claim(scenario) else {
        return Vec::new();
    };
    let line = |key: &str, ends: Vec<String>| Line {
        experiment: scenario.experiment.id.clone(),
        claim: claim.what.clone(),
        unit: claim.unit.clone(),
        theirs: claim.theirs,
        key: key.to_owned(),
        ends: ends.into_iter().map(|end| (end, None)).collect(),
    };
    let mut all = vec![line("", vec![String::new()])];
    for (key, ends) in ranges(scenario) {
        if keys.is_empty() || keys.contains(&key) {
            all.push(line(&key, ends.iter().map(ToString::to_string).collect()));
        }
    }
    all
}

/// What no document says of the scenario's machine, with its ends.
fn ranges(scenario: &Scenario) -> Vec<(String, Vec<toml::Value>)> {
    let machine = known::find(&scenario.experiment.machine).ok();
    let ranges = machine.and_then(|m| m.memory).map(|m| m.range);
    let of = |(key, ends): (String, _)| (key, Vec::from(ends));
    ranges.into_iter().flatten().map(of).collect()
}

/// The names in `[memory.range]` of the scenarios' machines.
#[must_use]
pub fn keys(scenarios: &[Scenario]) -> BTreeSet<String> {
    let all = scenarios.iter().flat_map(ranges);
    all.map(|(key, _)| key).collect()
}

/// The first figure that a paper prints and nothing was fitted to.
fn main_claim(scenario: &Scenario) -> Option<&Claim> {
    let ablation = scenario.experiment.ablation;
    let printed = |c: &&Claim| c.theirs.is_some() && c.kind(ablation) == ClaimKind::Predicted;
    scenario.claims.iter().find(printed)
}

/// The scenario with nothing but its main claim and the policies that it names.
fn trimmed(scenario: &Scenario) -> Option<Scenario> {
    let claim = main_claim(scenario)?.clone();
    let mut trimmed = scenario.clone();
    let named = |policy: &String| {
        let case = policy.replace(|c: char| !c.is_alphanumeric(), "_");
        claim.ours.contains(case.trim_end_matches('_'))
    };
    trimmed.policies.retain(named);
    trimmed.claims = vec![claim];
    Some(trimmed)
}

/// Runs every scenario at both ends of every range.
///
/// # Errors
/// The first run that failed.
pub fn table(
    scenarios: &[Scenario],
    keys: &[String],
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Line>, RunError> {
    let mut all: Vec<Line> = Vec::new();
    let mut variants = Vec::new();
    let mut jobs = Vec::new();
    for scenario in scenarios {
        let Some(trimmed) = trimmed(scenario) else {
            continue;
        };
        for line in lines(scenario, keys) {
            for (value, _) in &line.ends {
                let mut changed = trimmed.clone();
                if !line.key.is_empty() && changed.change_model(&line.key, value).is_err() {
                    continue;
                }
                variants.push(Variant {
                    line: all.len(),
                    value: value.clone(),
                });
                jobs.push((changed, options));
            }
            all.push(line);
        }
    }
    let runs = jobs.iter().map(|(s, options)| options.runs(s)).sum();
    let mut failed = None;
    run_all(&jobs, &|| progress(runs), |job, cases| {
        match cases {
            Ok(cases) => {
                let verdict = judge(&jobs[job].0, &cases).into_iter().next();
                let Variant { line, value } = &variants[job];
                let mut ends = all[*line].ends.iter_mut();
                if let Some(end) = ends.find(|(known, _)| known == value) {
                    end.1 = verdict.and_then(|v| v.ours);
                }
            }
            Err(error) => failed = Some(error),
        }
        failed.is_none()
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(all),
    }
}
