//! What can be changed of a scenario that nobody has documented.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use soloist_machine::known;

use crate::spec::Scenario;

/// Whose value is changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Nobody's: as shipped.
    #[default]
    Nothing,
    /// The machine's, of its `[memory.range]`.
    Machine,
    /// The experiment's, of its `[range]`.
    Experiment,
    /// Two of the experiment's.
    Pair,
}

/// A change.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    /// Whose value.
    pub of: Of,
    /// What is changed, such as `core.window`; empty: nothing.
    pub key: String,
    /// To what.
    pub value: String,
}

type Ranges = Vec<(String, Vec<toml::Value>)>;

/// What no document says of the scenario's machine, with its ends; without what the
/// scenario sets itself.
fn of_machine(scenario: &Scenario) -> Ranges {
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

/// What the source does not print of the scenario, with its ends.
fn of_experiment(scenario: &Scenario) -> Ranges {
    // `known::parse` refuses a file whose ranges are wrong.
    let ranges = scenario.ranges().unwrap_or_default();
    ranges
        .into_iter()
        .map(|(key, ends)| (key, ends.to_vec()))
        .collect()
}

/// The value of a dotted key.
fn at<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((first, rest)) => at(table.get(first)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// The names in `[memory.range]` of the scenarios' machines and in their own `[range]`.
#[must_use]
pub fn keys(scenarios: &[Scenario]) -> BTreeSet<String> {
    let of = |scenario| {
        of_machine(scenario)
            .into_iter()
            .chain(of_experiment(scenario))
    };
    scenarios.iter().flat_map(of).map(|(key, _)| key).collect()
}

/// Every change of `scenario` (only of `keys`, if there are any), with the scenario
/// that it makes; with `pairs`, of two of its own inputs at once.
pub(super) fn all(scenario: &Scenario, keys: &[String], pairs: bool) -> Vec<(Change, Scenario)> {
    let asked = |(key, _): &(String, _)| keys.is_empty() || keys.contains(key);
    let own: Ranges = of_experiment(scenario).into_iter().filter(asked).collect();
    if pairs {
        return of_pairs(scenario, &own);
    }
    let mut changes = Vec::new();
    for (key, ends) in of_machine(scenario).into_iter().filter(asked) {
        for end in ends {
            let mut changed = scenario.clone();
            if changed.change_model(&key, &end.to_string()).is_ok() {
                changes.push((change(Of::Machine, &key, &end), changed));
            }
        }
    }
    for (key, ends) in own {
        for end in ends {
            // A value that the file has is no change.
            let changed = scenario.with_input(&key, &end).ok();
            if let Some(changed) = changed.filter(|c| differs(c, scenario)) {
                changes.push((change(Of::Experiment, &key, &end), changed));
            }
        }
    }
    changes
}

fn change(of: Of, key: &str, value: &toml::Value) -> Change {
    Change {
        of,
        key: key.to_owned(),
        value: value.to_string(),
    }
}

fn differs(a: &Scenario, b: &Scenario) -> bool {
    a.cases(1) != b.cases(1)
        || toml::Table::try_from(&a.experiment) != toml::Table::try_from(&b.experiment)
        || a.regulator != b.regulator
}

fn of_pairs(scenario: &Scenario, own: &Ranges) -> Vec<(Change, Scenario)> {
    let mut changes = Vec::new();
    for (i, (key, ends)) in own.iter().enumerate() {
        for (end, (other_key, other_ends)) in ends
            .iter()
            .flat_map(|end| own[i + 1..].iter().map(move |other| (end, other)))
        {
            let Ok(changed) = scenario.with_input(key, end) else {
                continue;
            };
            if !differs(&changed, scenario) {
                continue;
            }
            for other in other_ends {
                let both = changed.with_input(other_key, other).ok();
                if let Some(both) = both.filter(|b| differs(b, &changed)) {
                    let made = Change {
                        of: Of::Pair,
                        key: format!("{key} + {other_key}"),
                        value: format!("{end} + {other}"),
                    };
                    changes.push((made, both));
                }
            }
        }
    }
    changes
}
