//! What experiments' figures would be if what no document says of their machines
//! were otherwise: at both ends of each `[memory.range]` of the machine's file, one
//! value changed at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use soloist_machine::known;

use crate::jobs::{run_all, Options, RunError};
use crate::judgement::table::{claims, ClaimLine};
use crate::judgement::Outcome;
use crate::spec::Scenario;

/// A claim with one value of its machine's model changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// What is changed, such as `core.window`; empty: nothing.
    pub key: String,
    /// To what.
    pub value: String,
    /// What becomes of the claim.
    #[serde(flatten)]
    pub claim: ClaimLine,
}

impl Line {
    fn holds(&self) -> bool {
        self.claim.verdict == "holds"
    }

    fn setting(&self) -> (&str, &str) {
        (&self.key, &self.value)
    }
}

/// What no document says of the scenario's machine, with its ends; without what the
/// scenario sets itself.
fn ranges(scenario: &Scenario) -> Vec<(String, Vec<toml::Value>)> {
    let memory = known::find(&scenario.experiment.machine).map(|m| m.memory);
    let Some(memory) = memory.ok().flatten() else {
        return Vec::new();
    };
    let shipped = toml::Table::try_from(&memory).unwrap_or_default();
    let of = |(key, ends): (&String, &[toml::Value; 2])| {
        let own = at(&shipped, key);
        let other = |end: &&toml::Value| own != Some(*end);
        (key.clone(), ends.iter().filter(other).cloned().collect())
    };
    let ranges = memory.range.iter();
    ranges
        .filter(|(key, _)| at(&scenario.model, key).is_none())
        .map(of)
        .collect()
}

/// The value of a dotted key.
fn at<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((first, rest)) => at(table.get(first)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// The names in `[memory.range]` of the scenarios' machines.
#[must_use]
pub fn keys(scenarios: &[Scenario]) -> BTreeSet<String> {
    let all = scenarios.iter().flat_map(ranges);
    all.map(|(key, _)| key).collect()
}

/// All claims of `scenarios` as shipped, and at both ends of every range of their
/// machines (only of `keys`, if there are any) that is not what the file has. A
/// setting with which an experiment can't run has claims that are not judged.
///
/// # Errors
/// The first experiment that does not run as shipped.
pub fn table(
    scenarios: &[Scenario],
    keys: &[String],
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Line>, RunError> {
    let mut settings = Vec::new();
    let mut jobs = Vec::new();
    for scenario in scenarios {
        settings.push((String::new(), String::new()));
        jobs.push((scenario.clone(), options));
        for (key, ends) in ranges(scenario) {
            if !keys.is_empty() && !keys.contains(&key) {
                continue;
            }
            for end in ends.iter().map(ToString::to_string) {
                let mut changed = scenario.clone();
                if changed.change_model(&key, &end).is_ok() {
                    settings.push((key.clone(), end));
                    jobs.push((changed, options));
                }
            }
        }
    }
    let runs = jobs.iter().map(|(s, options)| options.runs(s)).sum();
    let mut judged: Vec<Vec<ClaimLine>> = vec![Vec::new(); jobs.len()];
    let mut failed = None;
    run_all(&jobs, &|| progress(runs), |job, cases| {
        let (scenario, options) = &jobs[job];
        let (cases, error) = match cases {
            Ok(cases) => (cases, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        judged[job] = claims(&[Outcome::new(scenario.clone(), *options, cases)]);
        failed = error.filter(|_| settings[job].0.is_empty());
        failed.is_none()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let lines = settings
        .into_iter()
        .zip(judged)
        .flat_map(|((key, value), claims)| {
            claims.into_iter().map(move |claim| {
                let (key, value) = (key.clone(), value.clone());
                Line { key, value, claim }
            })
        });
    Ok(lines.collect())
}

/// The lines as comma-separated values.
///
/// # Errors
/// None that a writer into memory has.
pub fn csv(lines: &[Line]) -> Result<String, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer.write_record([
        "key",
        "value",
        "experiment",
        "claim",
        "kind",
        "theirs",
        "ours",
        "interval",
        "effect",
        "verdict",
        "converged",
    ])?;
    for line in lines {
        writer.serialize((&line.key, &line.value, &line.claim))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A claim over all settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// As shipped.
    pub shipped: ClaimLine,
    /// Its least figure of all settings, as shipped included.
    pub least: Option<f64>,
    /// Its greatest.
    pub most: Option<f64>,
    /// The settings that change its verdict, with the figure there.
    pub flips: Vec<(String, Option<f64>)>,
}

/// All claims, in the order of `lines`.
#[must_use]
pub fn spreads(lines: &[Line]) -> Vec<Spread> {
    let mut spreads: Vec<Spread> = Vec::new();
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in lines {
        let name = (line.claim.experiment.as_str(), line.claim.claim.as_str());
        let ours = line.claim.ours;
        if line.key.is_empty() {
            known.insert(name, spreads.len());
            spreads.push(Spread {
                shipped: line.claim.clone(),
                least: ours,
                most: ours,
                flips: Vec::new(),
            });
            continue;
        }
        let Some(spread) = known.get(&name).map(|&at| &mut spreads[at]) else {
            continue;
        };
        let pick = |a: Option<f64>, pick: fn(f64, f64) -> f64| match (a, ours) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        (spread.least, spread.most) = (pick(spread.least, f64::min), pick(spread.most, f64::max));
        if line.claim.verdict != spread.shipped.verdict {
            let setting = format!("{} = {}", line.key, line.value);
            spread.flips.push((setting, ours));
        }
    }
    spreads
}

/// What a setting does to all claims of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// What is changed.
    pub key: String,
    /// To what.
    pub value: String,
    /// Claims of experiments that have the setting.
    pub of: usize,
    /// They hold as shipped.
    pub shipped: usize,
    /// They hold then.
    pub hold: usize,
    /// They hold only then.
    pub won: usize,
    /// They hold only as shipped.
    pub lost: usize,
}

/// Each setting's effect on the claims of `kind`.
#[must_use]
pub fn settings(lines: &[Line], kind: &str) -> Vec<Moved> {
    let shipped: BTreeMap<(&str, &str), bool> = lines
        .iter()
        .filter(|line| line.key.is_empty())
        .map(|l| ((&*l.claim.experiment, &*l.claim.claim), l.holds()))
        .collect();
    let mut all: BTreeMap<(&str, &str), Moved> = BTreeMap::new();
    let of_kind = |line: &&Line| line.claim.kind == kind && !line.key.is_empty();
    for line in lines.iter().filter(of_kind) {
        let before = shipped.get(&(&*line.claim.experiment, &*line.claim.claim));
        let (before, now) = (before == Some(&true), line.holds());
        let moved = all.entry(line.setting()).or_insert_with(|| Moved {
            key: line.key.clone(),
            value: line.value.clone(),
            ..Moved::default()
        });
        moved.of += 1;
        moved.shipped += usize::from(before);
        moved.hold += usize::from(now);
        moved.won += usize::from(now && !before);
        moved.lost += usize::from(before && !now);
    }
    all.into_values().collect()
}
