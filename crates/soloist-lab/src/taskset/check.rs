//! What TOML can't know of an experiment's file.

use std::iter::once;

use soloist_machine::{FileError, FileText, KeyError};
use soloist_rt::tasks::{Task, TaskSet};

use super::TaskSetSpec;
use crate::claims::check::said_twice;
use crate::spec::check_id;

/// Of hyperperiods and seeds; a hyperperiod has an hour at most.
const MOST: u64 = 1000;

/// Of a period or a wcet, scaled: some fifty lines of memory.
const LEAST_PS: u64 = 1_000_000;

/// Refuses what can't be played or judged, with its line.
pub(super) fn check(
    spec: &TaskSetSpec,
    set: &TaskSet,
    place: FileText<'_>,
) -> Result<(), FileError> {
    cores(set)?;
    let id = check_id(&spec.id).map_err(|what| KeyError::at(&["id"], what));
    let wrong = id.and_then(|()| numbers(spec));
    let wrong = wrong.and_then(|()| scale(spec, set));
    let wrong = wrong.and_then(|()| claims(spec, set));
    wrong.map_err(|wrong| place.of_key(wrong))
}

/// Nothing chooses a core here, as `soloist plan` does: a task without one would not run.
fn cores(set: &TaskSet) -> Result<(), FileError> {
    match set.tasks.iter().find(|task| task.core.is_none()) {
        None => Ok(()),
        Some(task) => {
            let what = format!(
                "task {:?} has no `core`: an experiment plays each task on its own",
                task.name
            );
            Err(FileError::in_line(set.file.clone(), task.line, what))
        }
    }
}

fn numbers(spec: &TaskSetSpec) -> Result<(), KeyError> {
    for (key, value, least) in [
        ("scale", spec.scale, 1),
        ("warm", spec.warm, 0),
        ("hyperperiods", spec.hyperperiods, 1),
        ("seeds", spec.seeds, 1),
    ] {
        if !(least..=MOST).contains(&value) {
            let what = format!("`{key}` {value}: expected {least} to {MOST}");
            return Err(KeyError::at(&[key], what));
        }
    }
    if spec.policies.is_empty() {
        return Err(KeyError::at(&["policies"], "no policies: nothing to play"));
    }
    let policies = &spec.policies;
    match (1..policies.len()).find(|&n| policies[..n].contains(&policies[n])) {
        Some(n) => {
            let what = format!("policy {:?} is named twice", policies[n].name());
            Err(KeyError::at(&["policies", &n.to_string()], what))
        }
        None => Ok(()),
    }
}

fn scale(spec: &TaskSetSpec, set: &TaskSet) -> Result<(), KeyError> {
    for task in &set.tasks {
        let Some(release) = &task.release else {
            continue;
        };
        let least = release.period.0.min(task.wcet.0) / spec.scale;
        if least < LEAST_PS {
            let what = format!(
                "`scale` {}: of task {:?} less than 1 us would be left",
                spec.scale, task.name
            );
            return Err(KeyError::at(&["scale"], what));
        }
    }
    Ok(())
}

fn claims(spec: &TaskSetSpec, set: &TaskSet) -> Result<(), KeyError> {
    for (number, claim) in spec.claims.iter().enumerate() {
        let wrong = |key, what| KeyError::at(&["claim", &number.to_string(), key], what);
        let there = |task: &&Task| task.release.is_some() && task.name == claim.task;
        if !set.tasks.iter().any(|task| there(&task)) {
            let what = format!(
                "claim {:?}: no task {:?} with a deadline",
                claim.what, claim.task
            );
            return Err(wrong("task", what));
        }
        let mut named = once(claim.policy).chain(claim.below);
        if let Some(policy) = named.find(|policy| !spec.policies.contains(policy)) {
            let name = policy.name();
            let what = format!("claim {:?}: `policies` has no {name:?}", claim.what);
            return Err(wrong("what", what));
        }
        if spec.claims[..number].iter().any(|c| c.what == claim.what) {
            return Err(wrong("what", said_twice(&claim.what)));
        }
        if claim.below.is_some() && claim.theirs.or(claim.from).is_some() {
            let what = format!(
                "claim {:?}: `below` is instead of `theirs` and `from`: make two claims",
                claim.what
            );
            return Err(wrong("below", what));
        }
    }
    Ok(())
}
