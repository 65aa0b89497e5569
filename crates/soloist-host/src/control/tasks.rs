//! Tasks in words: who is in a group, and whose cpuset keeps it out of colour.

use serde::Serialize;
use soloist_core::AddrMap;

use crate::control::group::{nodes_of, Group};
use crate::control::interface::Control;
use crate::machine::{
    cgroup, command_of, cpuset_nodes, named, process_of, Host, EVERYTHING_ELSE, NAMED,
};
use crate::words::counted;
use crate::HostError;

/// Of `groups` those that have tasks, with their names: `video (2 tasks: 4711
/// x264)`.
pub fn in_use(host: &Host, groups: &[Group]) -> Result<Vec<String>, HostError> {
    let mut used = Vec::new();
    for group in groups {
        // Nobody asked for each of everything else to be there.
        if group.cgroups()?.iter().any(|path| path == EVERYTHING_ELSE) {
            continue;
        }
        let (hidden, tasks) = (group.hidden_tasks()?, group.tasks()?);
        let mut who: Vec<String> = Vec::new();
        if !tasks.is_empty() {
            who.push(named(host, &tasks));
        }
        if hidden > 0 {
            who.push(format!("{hidden} of other pid namespaces"));
        }
        if !who.is_empty() {
            let n = counted(tasks.len() as u64 + hidden, "task");
            used.push(format!("{} ({n}: {})", group.name(), who.join(", ")));
        }
    }
    Ok(used)
}

/// A task that a group's colours can't be given to: its cpuset allows none of
/// their nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Barred {
    /// Its thread id.
    pub tid: i32,
    /// What it runs.
    pub command: String,
    /// The nodes that cpuset.mems allows.
    pub allowed: String,
    /// It is in the group, and its cpuset changed afterwards: it gets no page.
    /// Else it is in a cgroup of the group only, and runs uncoloured.
    pub member: bool,
}

impl Group {
    /// The tasks in it or in its cgroups whose cpuset allows no node of its colours.
    pub fn barred(&self, host: &Host, map: &AddrMap) -> Result<Vec<Barred>, HostError> {
        let colors = self.colors(map)?;
        if colors.sets().is_none() {
            return Ok(Vec::new());
        }
        let nodes = nodes_of(map, &colors);
        let members = self.tasks()?;
        let mut tids: Vec<(i32, bool)> = members.iter().map(|&tid| (tid, true)).collect();
        let own = self.cgroups()?;
        let others = match own.is_empty() {
            true => Vec::new(),
            false => self.control().bound_cgroups()?,
        };
        for path in own {
            let there = cgroup::threads_of(host, &path, &others);
            let come = there.into_iter().filter(|tid| !members.contains(tid));
            tids.extend(come.map(|tid| (tid, false)));
        }
        let barred = tids.into_iter().filter_map(|(tid, member)| {
            let allowed = cpuset_nodes(host, tid)?;
            let none = !allowed.iter().any(|node| nodes.contains(node));
            none.then(|| Barred {
                tid,
                command: command_of(host, tid).unwrap_or_default(),
                allowed: allowed.to_string(),
                member,
            })
        });
        Ok(barred.collect())
    }
}

/// What there is to say of tasks that [`Group::barred`] found; `None`: nothing.
pub fn barred_words(group: &str, nodes: &str, barred: &[Barred]) -> Option<String> {
    if barred.is_empty() {
        return None;
    }
    let describe = |task: &Barred| {
        let fate = if task.member { ", gets no page" } else { "" };
        format!(
            "{} {} (node {}{fate})",
            task.tid, task.command, task.allowed
        )
    };
    let mut words: Vec<String> = barred.iter().take(NAMED).map(describe).collect();
    if barred.len() > NAMED {
        words.push(format!("{} more", barred.len() - NAMED));
    }
    let tasks = counted(barred.len() as u64, "task");
    let (run, their) = match barred.len() {
        1 => ("runs", "its"),
        _ => ("run", "their"),
    };
    Some(format!(
        "{tasks} of group {group} {run} out of its colours: {their} cpuset.mems allows no memory \
         on node {nodes}, where these are: {}",
        words.join(", ")
    ))
}

/// Why process `pid`, which is in no group, is in none though its cgroup is a
/// group's, and why it gets no page though it is in one.
pub fn contradiction(
    host: &Host,
    control: &Control,
    map: &AddrMap,
    pid: i32,
) -> Result<Option<String>, HostError> {
    let of_process = |tid: i32| tid == pid || process_of(host, tid) == pid;
    let sentences = control.each_group(|group| {
        let mut barred = group.barred(host, map)?;
        barred.retain(|task| of_process(task.tid));
        let nodes = group.nodes(map)?.to_string();
        Ok(barred_words(group.name(), &nodes, &barred))
    })?;
    Ok(sentences.into_iter().flatten().next())
}

impl Control {
    /// For each group with such tasks a sentence.
    pub fn contradictions(&self, host: &Host, map: &AddrMap) -> Result<Vec<String>, HostError> {
        let sentences = self.each_group(|group| {
            let barred = group.barred(host, map)?;
            let nodes = group.nodes(map)?.to_string();
            Ok(barred_words(group.name(), &nodes, &barred))
        })?;
        Ok(sentences.into_iter().flatten().collect())
    }

    /// The cgroups that groups are bound to.
    fn bound_cgroups(&self) -> Result<Vec<String>, HostError> {
        Ok(self
            .each_group(Group::cgroups)?
            .into_iter()
            .flatten()
            .collect())
    }
}
