//! Ways to put tasks on cores, and their memory on nodes: what a plan tries, in this
//! order.
//!
//! Tasks with deadlines have the first nodes, all else the others, if there are any.
//! The fewest cores come first, and a controller each before several cores to a
//! controller; on each choice of cores, tasks that are not bound go to the first core
//! that still holds, the heaviest first, or to the emptiest one.

use std::collections::BTreeSet;

use soloist_memory::Platform;

use crate::analysis::interference::{Costs, Surroundings};
use crate::analysis::response::analyse;
use crate::analysis::ProfiledSet;
use crate::model::profile::Profile;
use crate::tasks::{Task, TaskSet, HIGHEST};

/// A way to put the tasks on cores, and their memory on nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Core of each task.
    pub cores: Vec<u32>,
    /// Node of each task's memory.
    pub nodes: Vec<u32>,
}

impl Candidate {
    /// The set with each task on its core.
    #[must_use]
    pub fn bind(&self, set: &TaskSet) -> TaskSet {
        let mut set = set.clone();
        for (task, &core) in set.tasks.iter_mut().zip(&self.cores) {
            task.core = Some(core);
        }
        set
    }
}

/// Ways to put the tasks on cores, the fewest cores first.
#[must_use]
pub fn candidates(platform: &Platform, set: &TaskSet) -> Vec<Candidate> {
    let nodes = platform.memory.map.n_nodes() as usize;
    let cores_of = |node: usize| {
        let all = platform.node_of_core.iter().enumerate();
        let here = all
            .filter(move |(_, &n)| n == node)
            .map(|(core, _)| core as u32);
        here.collect::<Vec<u32>>()
    };
    let widest = (0..nodes).map(|n| cores_of(n).len()).max().unwrap_or(1);
    let mut all: Vec<Candidate> = Vec::new();
    for each in 1..=widest {
        for timed in 1..=nodes {
            let ranked =
                |rank: usize| (0..timed).filter_map(move |n| cores_of(n).get(rank).copied());
            let allowed: Vec<u32> = (0..each).flat_map(ranked).collect();
            // The fewest cores, then all of them: apart, tasks don't preempt
            // each other and keep their caches.
            for spread in [false, true] {
                let found = fill(platform, set, &allowed, timed, spread);
                all.extend(found.filter(|f| !all.contains(f)));
            }
        }
    }
    all
}

/// Is there a core without deadlines? SCHED_DEADLINE wants a cpuset for each that has
/// some, and what else runs on the host must be somewhere.
pub(crate) fn leaves_a_core(platform: &Platform, set: &TaskSet, candidate: &Candidate) -> bool {
    let timed = set.tasks.iter().zip(&candidate.cores);
    let timed = timed.filter(|(task, _)| task.release.is_some());
    let timed: BTreeSet<u32> = timed.map(|(_, &core)| core).collect();
    timed.len() < platform.node_of_core.len()
}

/// Tasks with deadlines on cores of the first `timed` nodes, all else beside them.
fn fill(
    platform: &Platform,
    set: &TaskSet,
    allowed: &[u32],
    timed: usize,
    spread: bool,
) -> Option<Candidate> {
    let mut placed = set.clone();
    place_timed(platform, &mut placed, allowed, spread)?;
    let nodes = place_others(platform, &mut placed, allowed, timed)?;
    Some(Candidate {
        cores: placed.tasks.iter().filter_map(|t| t.core).collect(),
        nodes,
    })
}

/// Gives each task with deadlines a core that holds it; `spread`: the emptiest one.
fn place_timed(
    platform: &Platform,
    placed: &mut TaskSet,
    allowed: &[u32],
    spread: bool,
) -> Option<()> {
    let mut order: Vec<usize> = (0..placed.tasks.len())
        .filter(|&i| placed.tasks[i].release.is_some() && placed.tasks[i].core.is_none())
        .collect();
    let utilisation = |i: usize| placed.tasks[i].utilisation();
    order.sort_by(|&a, &b| utilisation(b).total_cmp(&utilisation(a)));
    let alone = Surroundings::alone(Costs::of(platform));
    let profiles = vec![Profile::default(); placed.tasks.len()];
    for i in order {
        let load = |core: &u32| {
            let mine = placed.tasks.iter().filter(|t| t.core == Some(*core));
            mine.map(Task::utilisation).sum::<f64>()
        };
        let mut order = allowed.to_vec();
        if spread {
            order.sort_by(|a, b| load(a).total_cmp(&load(b)));
        }
        let core = order.into_iter().find(|&core| {
            placed.tasks[i].core = Some(core);
            let tasks = ProfiledSet::new(placed, &profiles);
            let answers = analyse(tasks, core, &alone);
            answers.len() <= HIGHEST as usize && answers.iter().all(|a| a.holds)
        });
        placed.tasks[i].core = Some(core?);
    }
    Some(())
}

/// Gives each task without deadlines a core; the node of every task's memory.
fn place_others(
    platform: &Platform,
    placed: &mut TaskSet,
    allowed: &[u32],
    timed: usize,
) -> Option<Vec<u32>> {
    let node_of = |core: u32| platform.node_of_core[core as usize] as u32;
    let rest = nodes_of_the_rest(platform, placed, timed);
    let busy: Vec<u32> = placed.tasks.iter().filter_map(|t| t.core).collect();
    let mut free: Vec<u32> = (0..platform.node_of_core.len() as u32)
        .filter(|c| !busy.contains(c))
        .collect();
    free.sort_by_key(|&c| (!rest.contains(&node_of(c)), c));
    let mut free = free.into_iter();
    let mut turn = 0;
    let mut nodes = Vec::new();
    for task in &mut placed.tasks {
        if task.release.is_some() {
            nodes.push(task.core.map_or(0, node_of));
            continue;
        }
        let core = task
            .core
            .or_else(|| free.next())
            .unwrap_or(*allowed.last()?);
        task.core = Some(core);
        // On its own node where that is one of them.
        let own = node_of(core);
        nodes.push(if rest.contains(&own) {
            own
        } else {
            turn += 1;
            rest[(turn - 1) % rest.len()]
        });
    }
    Some(nodes)
}

/// Nodes beyond the first `timed` on which no task has a deadline; where there are
/// none, all.
fn nodes_of_the_rest(platform: &Platform, placed: &TaskSet, timed: usize) -> Vec<u32> {
    let nodes = platform.memory.map.n_nodes();
    let lives = |task: &Task, node: u32| {
        let core = task.core.filter(|_| task.release.is_some());
        core.is_some_and(|core| platform.node_of_core[core as usize] as u32 == node)
    };
    let quiet: Vec<u32> = (timed as u32..nodes)
        .filter(|&node| !placed.tasks.iter().any(|task| lives(task, node)))
        .collect();
    match quiet.is_empty() {
        true => (0..nodes).collect(),
        false => quiet,
    }
}
