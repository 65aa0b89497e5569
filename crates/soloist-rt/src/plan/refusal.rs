//! Why there is no plan at all, with the line of the task file and what to change.

use soloist_core::format_size;
use soloist_core::time::Time;
use soloist_machine::FileError;
use soloist_memory::Platform;
use soloist_play::pace::PaceError;

use super::alone::with_core;
use crate::analysis::interference::{Costs, Surroundings};
use crate::analysis::linux::PERIODS;
use crate::analysis::response::analyse;
use crate::analysis::ProfiledSet;
use crate::model::cores::PlayError;
use crate::model::profile::Profile;
use crate::tasks::{Order, Task, TaskSet, HIGHEST};

/// The reason why there is no plan at all.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Memory does not fit.
    #[error(transparent)]
    Memory(FileError),
    /// A core that is not there, too little processor time, or a machine that no bound is for.
    #[error(transparent)]
    Task(FileError),
    /// A task can't be played.
    #[error(transparent)]
    Play(#[from] PlayError),
}

impl PlanError {
    /// That the memory of `task`, by its number, does not fit.
    pub(crate) fn no_place(set: &TaskSet, task: Option<usize>, why: &PlayError) -> Self {
        Self::Memory(of_task(set, task.unwrap_or(0), why.to_string()))
    }
}

fn of_task(set: &TaskSet, task: usize, what: String) -> FileError {
    FileError::in_line(set.file.clone(), set.tasks[task].line, what)
}

/// What is wrong with a task, by its number.
pub(crate) fn in_task(set: &TaskSet, task: usize, what: String) -> PlanError {
    PlanError::Task(of_task(set, task, what))
}

/// A task that can't be played, with its line.
pub(crate) fn with_line(set: &TaskSet, error: PlayError) -> PlanError {
    let name = match &error {
        PlayError::Pace(task, _)
        | PlayError::Lines { task, .. }
        | PlayError::Memory { task, .. } => task,
        _ => return error.into(),
    };
    let task = set.tasks.iter().position(|t| t.name == *name);
    let what = match &error {
        PlayError::Pace(name, too_fast @ PaceError::TooFast { .. }) => {
            format!("task {name:?}: {too_fast}: lower `ipc` or `mpki`")
        }
        other => other.to_string(),
    };
    task.map_or(error.into(), |i| in_task(set, i, what))
}

/// That it can't be by its numbers alone.
pub(crate) fn refuse(platform: &Platform, set: &TaskSet) -> Result<(), PlanError> {
    let cores = platform.node_of_core.len();
    let machine = &platform.memory.name;
    if platform.memory.policy.refresh_management > 0 {
        let what = format!("{machine} has controller.refresh_management, and no bound has the refreshes that it adds: plan for a machine without it");
        let file = set.file.clone();
        return Err(PlanError::Task(FileError::in_line(
            file,
            set.machine_line,
            what,
        )));
    }
    for (i, task) in set.tasks.iter().enumerate() {
        if let Some(core) = task.core.filter(|&c| c as usize >= cores) {
            let last = cores - 1;
            let what = format!(
                "task {:?} is bound to core {core}: {machine} has 0 to {last}",
                task.name
            );
            return Err(in_task(set, i, what));
        }
    }
    // Before it is played, which would take as much of this host's.
    let memory = platform.memory.map.bytes();
    if let Some(i) = set.tasks.iter().position(|task| task.bytes > memory) {
        let what = format!(
            "task {:?} needs {}: {machine} has {}",
            set.tasks[i].name,
            format_size(set.tasks[i].bytes),
            format_size(memory)
        );
        return Err(in_task(set, i, what));
    }
    for i in 0..set.tasks.len() {
        linux_takes(set, i).map_err(|what| in_task(set, i, what))?;
    }
    if let (Some(i), true) = (
        set.tasks.iter().position(|t| t.release.is_some()),
        set.tasks.iter().map(|t| t.utilisation()).sum::<f64>() > cores as f64,
    ) {
        return Err(in_task(set, i, overfull_words(platform, set)));
    }
    // Before it is played, which takes long where jobs are too many to be done.
    if let Some(error) = held_by_none(platform, set) {
        return Err(error);
    }
    if set.tasks.iter().all(|t| t.release.is_none()) {
        return Err(in_task(
            set,
            0,
            "no task has a period: there is nothing to plan for".to_owned(),
        ));
    }
    Ok(())
}

/// Has the kernel a priority or a budget for the task?
fn linux_takes(set: &TaskSet, i: usize) -> Result<(), String> {
    let task = &set.tasks[i];
    let Some(release) = task.release else {
        return Ok(());
    };
    if set.order == Order::Edf {
        let [least, most] = PERIODS;
        return match (least..=most).contains(&release.period) {
            true => Ok(()),
            false => Err(format!(
                "task {:?}: order = \"edf\" is SCHED_DEADLINE, which takes periods of {least} to {most}: change its period, or the order",
                task.name
            )),
        };
    }
    let Some(core) = task.core else {
        return Ok(());
    };
    let timed = |t: &&Task| t.core == Some(core) && t.release.is_some();
    let before = set.tasks[..i].iter().filter(timed).count();
    match before < HIGHEST as usize {
        true => Ok(()),
        false => Err(format!(
            "task {:?}: core {core} has {before} tasks with deadlines before it, and SCHED_FIFO's priorities {HIGHEST} to 1 are theirs: bind it to another core, or leave `core` out",
            task.name
        )),
    }
}

/// Under EDF each core with deadlines is a cpuset of its own.
pub(crate) fn no_core_left(platform: &Platform, set: &TaskSet) -> PlanError {
    let first = set.tasks.iter().position(|t| t.release.is_some());
    let what = format!(
        "order = \"edf\" is SCHED_DEADLINE, which wants each core with deadlines in a cpuset of its own, and these are on all {} of {}: leave a core to the rest of the host, or take fixed priorities",
        platform.node_of_core.len(),
        platform.memory.name
    );
    in_task(set, first.unwrap_or(0), what)
}

fn overfull_words(platform: &Platform, set: &TaskSet) -> String {
    let all: f64 = set.tasks.iter().map(|t| t.utilisation()).sum();
    format!(
        "the tasks need {all:.2} cores even alone and don't fit the {} of {}: lengthen periods, shorten wcets or take tasks away",
        platform.node_of_core.len(),
        platform.memory.name
    )
}

/// A task that no core holds, even alone.
fn held_by_none(platform: &Platform, set: &TaskSet) -> Option<PlanError> {
    let around = Surroundings::alone(Costs::of(platform));
    let short = |i: &usize| {
        let mut only = set.clone();
        only.tasks = vec![with_core(&set.tasks[*i], 0)];
        let profiles = [Profile::default()];
        let tasks = ProfiledSet::new(&only, &profiles);
        let answers = analyse(tasks, only.tasks[0].core.unwrap_or(0), &around);
        answers.iter().any(|a| !a.holds)
    };
    let i = (0..set.tasks.len()).find(short)?;
    let what = format!(
        "task {:?} can't be held by any core, even alone: its deadline leaves less than {} to its wcet, and refreshes of memory take that; lengthen deadline and period, or shorten wcet",
        set.tasks[i].name,
        Time(around.delay(0, 0))
    );
    Some(in_task(set, i, what))
}

/// No way to deal the tasks over cores, though there seem to be enough of them.
pub(crate) fn overfull(platform: &Platform, set: &TaskSet) -> PlanError {
    let all: f64 = set.tasks.iter().map(Task::utilisation).sum();
    let first = set.tasks.iter().position(|t| t.release.is_some());
    let what = format!(
        "the tasks need {all:.2} of the {} cores of {} even alone, but no way was found to deal them over these so that each core has time for its own: lengthen periods, shorten wcets or take tasks away",
        platform.node_of_core.len(),
        platform.memory.name
    );
    in_task(set, first.unwrap_or(0), what)
}
