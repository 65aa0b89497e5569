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
    let other_ends = |(key, ends): (&String, &[toml::Value; 2])| {
        let own = at(&shipped, key);
        let other = |end: &&toml::Value| own != Some(*end);
        (key.clone(), ends.iter().filter(other).cloned().collect())
    };
    let ranges = memory.range.iter();
    ranges
        .filter(|(key, _)| at(&scenario.model, key).is_none())
        .map(other_ends)
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
    let ranges = |scenario| {
        of_machine(scenario)
            .into_iter()
            .chain(of_experiment(scenario))
    };
    scenarios
        .iter()
        .flat_map(ranges)
        .map(|(key, _)| key)
        .collect()
}

/// A value at an end of its range.
struct End {
    change: Change,
    value: toml::Value,
}

impl End {
    fn all(of: Of, ranges: Ranges, keys: &[String]) -> Vec<Self> {
        let asked = |(key, _): &(String, _)| keys.is_empty() || keys.contains(key);
        let ends = |(key, ends): (String, Vec<toml::Value>)| {
            ends.into_iter().map(move |value| Self {
                change: change(of, &key, &value),
                value,
            })
        };
        ranges.into_iter().filter(asked).flat_map(ends).collect()
    }

    /// `scenario` with it; nothing where that is no change.
    fn applied_to(&self, scenario: &Scenario) -> Option<Scenario> {
        let key = &self.change.key;
        if self.change.of == Of::Experiment {
            let changed = scenario.with_input(key, &self.value).ok();
            return changed.filter(|changed| differs(changed, scenario));
        }
        let mut changed = scenario.clone();
        let value = self.value.to_string();
        changed.change_model(key, &value).ok().map(|()| changed)
    }
}

/// Every change of `scenario` (only of `keys`, if there are any), with the scenario
/// that it makes; with `pairs`, of two at once: of its own inputs, or, where `keys`
/// name a constant of the machine, of that and each input (that they name, if any).
pub(super) fn all(scenario: &Scenario, keys: &[String], pairs: bool) -> Vec<(Change, Scenario)> {
    let mut ends = match pairs && keys.is_empty() {
        true => Vec::new(),
        false => End::all(Of::Machine, of_machine(scenario), keys),
    };
    let own = of_experiment(scenario);
    let beside = pairs && !own.iter().any(|(key, _)| keys.contains(key));
    ends.extend(End::all(
        Of::Experiment,
        own,
        if beside { &[] } else { keys },
    ));
    if pairs {
        return of_pairs(scenario, &ends);
    }
    let changed = |end: End| {
        let changed = end.applied_to(scenario)?;
        Some((end.change, changed))
    };
    ends.into_iter().filter_map(changed).collect()
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

fn of_pairs(scenario: &Scenario, ends: &[End]) -> Vec<(Change, Scenario)> {
    let mut changes = Vec::new();
    let constant = |end: &End| end.change.of == Of::Machine;
    let named = ends.iter().any(constant);
    for (i, first) in ends.iter().enumerate() {
        if named && !constant(first) {
            break;
        }
        let Some(changed) = first.applied_to(scenario) else {
            continue;
        };
        let (one, others) = (&first.change, &ends[i + 1..]);
        for other in others.iter().filter(|other| other.change.key != one.key) {
            if let Some(both) = other.applied_to(&changed) {
                let made = Change {
                    of: Of::Pair,
                    key: format!("{} + {}", one.key, other.change.key),
                    value: format!("{} + {}", one.value, other.change.value),
                };
                changes.push((made, both));
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_constant_that_is_named_is_paired_with_each_input() {
        let scenario = crate::known::find("memguard-figure-11").unwrap();
        let constant = of_machine(&scenario)[0].0.clone();
        let keys = |named: &[String]| {
            let all = all(&scenario, named, true);
            let keys = all.into_iter().map(|(change, _)| change.key);
            keys.collect::<BTreeSet<String>>()
        };
        let inputs = of_experiment(&scenario);
        let beside = |input: &str| format!("{constant} + {input}");
        let each = inputs.iter().map(|(input, _)| beside(input));
        assert_eq!(keys(std::slice::from_ref(&constant)), each.collect());
        let one = inputs[0].0.clone();
        assert_eq!(
            keys(&[constant.clone(), one.clone()]),
            [beside(&one)].into()
        );
    }
}
