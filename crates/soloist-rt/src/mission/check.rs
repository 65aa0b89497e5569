//! What TOML can't know of an experiment's file.

use std::iter::once;

use soloist_lab::spec::check_id;
use soloist_lab::spec::error::line_of;
use soloist_machine::{FileError, FileText};

use super::Mission;
use crate::tasks::TaskSet;

/// Of hyperperiods and seeds; a hyperperiod has an hour at most.
const MOST: u64 = 1000;

/// Of a period or a wcet, scaled: some fifty lines of memory.
const LEAST_PS: u64 = 1_000_000;

/// What stands on a line, and what is wrong with it.
type Wrong = (String, String);

/// Refuses what can't be played or judged, with its line.
pub(super) fn check(
    mission: &Mission,
    set: &TaskSet,
    place: FileText<'_>,
) -> Result<(), FileError> {
    let id = check_id(&mission.id).map_err(|what| ("id".to_owned(), what));
    let wrong = id.and_then(|()| numbers(mission));
    let wrong = wrong.and_then(|()| scale(mission, set));
    let wrong = wrong.and_then(|()| claims(mission, set));
    wrong.map_err(|(word, message)| FileError {
        file: place.file.to_owned(),
        line: line_of(place.text, &word),
        message,
    })
}

fn numbers(mission: &Mission) -> Result<(), Wrong> {
    for (key, value, least) in [
        ("scale", mission.scale, 1),
        ("warm", mission.warm, 0),
        ("hyperperiods", mission.hyperperiods, 1),
        ("seeds", mission.seeds, 1),
    ] {
        if !(least..=MOST).contains(&value) {
            let what = format!("`{key}` {value}: expected {least} to {MOST}");
            return Err((key.to_owned(), what));
        }
    }
    match mission.policies.is_empty() {
        true => Err((
            "policies".to_owned(),
            "no policies: nothing to play".to_owned(),
        )),
        false => Ok(()),
    }
}

fn scale(mission: &Mission, set: &TaskSet) -> Result<(), Wrong> {
    for task in &set.tasks {
        let Some(release) = &task.release else {
            continue;
        };
        let least = release.period.0.min(task.wcet.0) / mission.scale;
        if least < LEAST_PS {
            let what = format!(
                "`scale` {}: of task {:?} less than 1 us would be left",
                mission.scale, task.name
            );
            return Err(("scale".to_owned(), what));
        }
    }
    Ok(())
}

fn claims(mission: &Mission, set: &TaskSet) -> Result<(), Wrong> {
    for claim in &mission.claims {
        let there = |task: &&crate::tasks::Task| task.release.is_some() && task.name == claim.task;
        if !set.tasks.iter().any(|task| there(&task)) {
            let what = format!(
                "claim {:?}: no task {:?} with a deadline",
                claim.what, claim.task
            );
            return Err((format!("task = {:?}", claim.task), what));
        }
        let mut named = once(claim.policy).chain(claim.below);
        if let Some(policy) = named.find(|policy| !mission.policies.contains(policy)) {
            let name = policy.name();
            let what = format!("claim {:?}: `policies` has no {name:?}", claim.what);
            return Err((format!("what = {:?}", claim.what), what));
        }
    }
    Ok(())
}
