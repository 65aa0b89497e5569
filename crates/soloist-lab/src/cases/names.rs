//! Names of cases and of what is measured of them: each is of one thing.

use std::collections::BTreeMap;
use std::fmt::Display;

use soloist_machine::KeyError;

use super::Case;
use crate::spec::{of_task, Scenario};

/// Refuses what would be measured under one name and is two things.
///
/// # Errors
/// Names the element that stands twice in a list, or the tasks whose values share a name.
pub(super) fn check(scenario: &Scenario, cases: &[Case]) -> Result<(), KeyError> {
    twice(&["policies"], &scenario.policies)?;
    if let Some(regulator) = &scenario.regulator {
        twice(&["regulator", "modes"], &regulator.modes)?;
    }
    for (number, sweep) in scenario.sweep.0.iter().enumerate() {
        match scenario.sweep.0.len() {
            1 => twice(&["sweep", "values"], &sweep.values)?,
            _ => twice(&["sweep", &number.to_string(), "values"], &sweep.values)?,
        }
    }
    stems(scenario, cases)
}

/// Each element of the list at `path` once.
fn twice<T: PartialEq + Display>(path: &[&str], list: &[T]) -> Result<(), KeyError> {
    match (1..list.len()).find(|&n| list[..n].contains(&list[n])) {
        Some(n) => {
            let key = path.last().copied().unwrap_or_default();
            let what = format!("`{}` is in `{key}` twice", list[n]);
            Err(KeyError::at(&[path, &[&n.to_string()]].concat(), what))
        }
        None => Ok(()),
    }
}

/// Values are named `CASE_TASK_METRIC`: those of `a_b` in `x` and of `b` in `x_a` alike.
fn stems(scenario: &Scenario, cases: &[Case]) -> Result<(), KeyError> {
    let mut known: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for case in cases {
        for task in &case.tasks {
            let this = (case.name.as_str(), task.name.as_str());
            let stem = format!("{}_{}", this.0, this.1);
            let first = *known.entry(stem.clone()).or_insert(this);
            if first != this {
                let what = format!(
                    "values of task `{}` in case `{}` and of task `{}` in case `{}` would have \
                     one name, {stem}_METRIC: name one task otherwise",
                    first.1, first.0, this.1, this.0
                );
                let number = scenario.tasks.iter().position(|t| t.name == this.1);
                return Err(of_task(number.unwrap_or(0), what));
            }
        }
    }
    Ok(())
}
