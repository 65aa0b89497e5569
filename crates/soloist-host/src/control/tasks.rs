//! Tasks in words: who is in a group, and whose cpuset keeps it out of colour.

use std::mem::size_of_val;

use serde::Serialize;
use soloist_core::{cpu_list, AddrMap, NumList, MAX_CPUS};

use crate::control::group::{nodes_of, Group};
use crate::control::interface::Control;
use crate::machine::{cgroup, process_of, Host};
use crate::words::counted;
use crate::HostError;

/// So many processes are named, the others counted.
const NAMED: usize = 8;

/// `4711 sleep, 4712 x264 and 3 more` of threads: their processes, by number.
pub fn named(host: &Host, tids: &[i32]) -> String {
    let mut pids: Vec<i32> = tids.iter().map(|&tid| process_of(host, tid)).collect();
    pids.sort_unstable();
    pids.dedup();
    let one = |&pid: &i32| match host.text(&format!("/proc/{pid}/comm")) {
        Some(comm) => format!("{pid} {comm}"),
        None => pid.to_string(),
    };
    let words: Vec<String> = pids.iter().take(NAMED).map(one).collect();
    match pids.len().saturating_sub(NAMED) {
        0 => words.join(", "),
        more => format!("{} and {more} more", words.join(", ")),
    }
}

/// Of `groups` those that have tasks, with their names: `video (2 tasks: 4711
/// x264)`.
pub fn in_use(host: &Host, groups: &[Group]) -> Result<Vec<String>, HostError> {
    let mut used = Vec::new();
    for group in groups {
        let tasks = group.tasks()?;
        if !tasks.is_empty() {
            let (n, who) = (counted(tasks.len() as u64, "task"), named(host, &tasks));
            used.push(format!("{} ({n}: {who})", group.name()));
        }
    }
    Ok(used)
}

// ---- Where tasks may allocate ----

/// The memory nodes that the cpuset of thread `tid` allows; `None` where the
/// kernel does not say.
fn cpuset_nodes(host: &Host, tid: i32) -> Option<NumList> {
    let status = host.read(&format!("/proc/{tid}/status")).ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    cpu_list(list).ok()
}

/// The nodes that this process' memory policy binds it to, as `numactl --membind`
/// does; `None`: it may allocate on any.
fn bound_nodes() -> Option<NumList> {
    const MPOL_BIND: libc::c_int = 2;
    let mut mode: libc::c_int = 0;
    let mut mask = [0u64; 16];
    let bits = 8 * size_of_val(&mask);
    // SAFETY: the kernel writes one int and at most `bits` bits.
    let done = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &mut mode,
            mask.as_mut_ptr(),
            bits,
            0usize,
            0usize,
        )
    };
    if done != 0 || mode & 0xff != MPOL_BIND {
        return None;
    }
    let mut nodes = NumList::new(MAX_CPUS);
    for node in 0..bits as u32 {
        if mask[node as usize / 64] >> (node % 64) & 1 == 1 {
            nodes.insert(node);
        }
    }
    Some(nodes)
}

/// May this process allocate on memory node `node`?
pub(crate) fn may_allocate_on(host: &Host) -> impl Fn(u32) -> bool {
    let cpuset = cpuset_nodes(host, std::process::id() as i32);
    let policy = host.is_live().then(bound_nodes).flatten();
    move |node| {
        let allows = |list: &Option<NumList>| list.as_ref().is_none_or(|l| l.contains(node));
        allows(&cpuset) && allows(&policy)
    }
}

/// Refuses colours on `nodes` if this process, and what it starts, may allocate on
/// none of them.
pub fn check_nodes(host: &Host, nodes: &NumList) -> Result<(), HostError> {
    let cpuset = cpuset_nodes(host, std::process::id() as i32);
    let policy = host.is_live().then(bound_nodes).flatten();
    let why = |what: &str, allowed: &NumList| {
        HostError::Request(format!(
            "the colours are on node {nodes}, {what} lets this process, and what it starts, \
             allocate on node {allowed} only: take colours there (--node {allowed}), or run it \
             elsewhere"
        ))
    };
    for (what, allowed) in [
        ("its cpuset (cpuset.mems)", cpuset),
        ("its memory policy (numactl --membind)", policy),
    ] {
        let allowed = allowed.as_ref();
        if let Some(allowed) = allowed.filter(|list| !nodes.iter().any(|n| list.contains(n))) {
            return Err(why(what, allowed));
        }
    }
    Ok(())
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
    /// Else it is in the group's cgroup only, and runs uncoloured.
    pub member: bool,
}

impl Group {
    /// The tasks in it or in its cgroup whose cpuset allows no node of its colours.
    pub fn barred(&self, host: &Host, map: &AddrMap) -> Result<Vec<Barred>, HostError> {
        let colors = self.colors(map)?;
        if colors.sets().is_none() {
            return Ok(Vec::new());
        }
        let nodes = nodes_of(map, &colors);
        let members = self.tasks()?;
        let mut tids: Vec<(i32, bool)> = members.iter().map(|&tid| (tid, true)).collect();
        if let Some(path) = self.cgroup()? {
            let others = self.control().bound_cgroups()?;
            let there = cgroup::threads_of(host, &path, &others);
            let come = there.into_iter().filter(|tid| !members.contains(tid));
            tids.extend(come.map(|tid| (tid, false)));
        }
        let barred = tids.into_iter().filter_map(|(tid, member)| {
            let allowed = cpuset_nodes(host, tid)?;
            let none = !allowed.iter().any(|node| nodes.contains(node));
            none.then(|| Barred {
                tid,
                command: host.text(&format!("/proc/{tid}/comm")).unwrap_or_default(),
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
    let one = |task: &Barred| {
        let fate = if task.member { ", gets no page" } else { "" };
        format!(
            "{} {} (node {}{fate})",
            task.tid, task.command, task.allowed
        )
    };
    let mut words: Vec<String> = barred.iter().take(NAMED).map(one).collect();
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
    let told = control.each_group(|group| {
        let mut barred = group.barred(host, map)?;
        barred.retain(|task| of_process(task.tid));
        let nodes = group.nodes(map)?.to_string();
        Ok(barred_words(group.name(), &nodes, &barred))
    })?;
    Ok(told.into_iter().flatten().next())
}

impl Control {
    /// For each group with such tasks a sentence.
    pub fn contradictions(&self, host: &Host, map: &AddrMap) -> Result<Vec<String>, HostError> {
        let told = self.each_group(|group| {
            let barred = group.barred(host, map)?;
            let nodes = group.nodes(map)?.to_string();
            Ok(barred_words(group.name(), &nodes, &barred))
        })?;
        Ok(told.into_iter().flatten().collect())
    }

    /// The cgroups that groups are bound to.
    fn bound_cgroups(&self) -> Result<Vec<String>, HostError> {
        Ok(self
            .each_group(Group::cgroup)?
            .into_iter()
            .flatten()
            .collect())
    }
}

/// Whether `nodes` of this machine have memory that the kernel keeps movable
/// (kernelcore=, movablecore=, hotplug): no page table can be there.
pub fn movable_bytes(host: &Host, nodes: &NumList) -> u64 {
    let Ok(text) = host.read("/proc/zoneinfo") else {
        return 0;
    };
    let (mut here, mut pages) = (false, 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            let mut words = rest.split([',', ' ']).filter(|word| !word.is_empty());
            let node = words.next().and_then(|word| word.parse().ok());
            let movable = words.nth(1) == Some("Movable");
            here = movable && node.is_some_and(|node| nodes.contains(node));
        } else if let Some(rest) = line.trim_start().strip_prefix("managed ") {
            if here {
                pages += rest.trim().parse::<u64>().unwrap_or(0);
            }
        }
    }
    // SAFETY: it asks for a constant.
    pages * u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
