//! The analysis of all cores of a set, on Linux.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::interference::{surroundings, Conditions};
use crate::analysis::linux::{stretched, Server};
use crate::analysis::response::{analyse, servers, Answer};
use crate::analysis::ProfiledSet;
use crate::tasks::TaskSet;

/// Analyses every core that has deadlines. Nothing stops a job at its deadline, so what a task
/// that misses does to other cores is known as little as of one without deadlines.
pub(crate) fn analyse_all(tasks: ProfiledSet, conditions: Conditions) -> Vec<Answer> {
    // Of each the first answer that misses, which says most.
    let mut late = BTreeMap::new();
    loop {
        let answers = analyse_beside(tasks, conditions, &late);
        let before = late.len();
        for answer in answers.iter().filter(|a| !a.holds) {
            late.entry(answer.task.clone())
                .or_insert_with(|| answer.clone());
        }
        if late.len() == before {
            let answers = answers.into_iter();
            return answers
                .map(|a| late.get(&a.task).cloned().unwrap_or(a))
                .collect();
        }
    }
}

/// The same, but each core beside others all of whose tasks hold.
pub(crate) fn analyse_if_others_hold(tasks: ProfiledSet, conditions: Conditions) -> Vec<Answer> {
    analyse_beside(tasks, conditions, &BTreeMap::new())
}

/// Analyses each core beside others on which the tasks `late` have no deadlines.
fn analyse_beside(
    tasks: ProfiledSet,
    conditions: Conditions,
    late: &BTreeMap<String, Answer>,
) -> Vec<Answer> {
    let answers = timed_cores(tasks.set).map(|core| {
        let mut set = tasks.set.clone();
        let others = set.tasks.iter_mut().filter(|t| t.core != Some(core));
        for task in others.filter(|t| late.contains_key(&t.name)) {
            task.release = None;
        }
        let tasks = ProfiledSet::new(&set, tasks.profiles);
        let around = surroundings(tasks, core, conditions).on_linux();
        analyse(tasks, core, &around)
    });
    answers.flatten().collect()
}

/// What each task has under SCHED_DEADLINE where all of them hold.
pub(crate) fn budgets(tasks: ProfiledSet, conditions: Conditions) -> Vec<Option<Server>> {
    let mut found = vec![None; tasks.set.tasks.len()];
    for core in timed_cores(tasks.set) {
        let around = surroundings(tasks, core, conditions).on_linux();
        let (numbers, needed): (Vec<usize>, Vec<Server>) =
            servers(tasks, core, &around).into_iter().unzip();
        for (task, server) in numbers.into_iter().zip(stretched(&needed)) {
            found[task] = Some(server);
        }
    }
    found
}

/// Does every core hold, by processor time and memory alone? The first that does
/// not ends the search.
#[must_use]
pub fn all_hold(tasks: ProfiledSet, conditions: Conditions) -> bool {
    timed_cores(tasks.set).all(|core| {
        let around = surroundings(tasks, core, conditions);
        analyse(tasks, core, &around).iter().all(|a| a.holds)
    })
}

/// Cores that have deadlines.
fn timed_cores(set: &TaskSet) -> impl Iterator<Item = u32> {
    let timed = set.tasks.iter().filter(|t| t.release.is_some());
    let cores: BTreeSet<u32> = timed.filter_map(|t| t.core).collect();
    cores.into_iter()
}
