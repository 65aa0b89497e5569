//! Memory nodes: their processors, how far they are, and whether this process may
//! allocate on them.

use std::fs;
use std::mem::size_of_val;

use soloist_core::{cpu_list, AddrMap, NumList, MAX_CPUS};

use crate::machine::host::Host;
use crate::machine::task::allowed_cpus;
use crate::HostError;

/// The memory node that processor `cpu` is on, where the kernel says.
pub fn node_of_cpu(host: &Host, cpu: u32) -> Option<u32> {
    let dir = host.path("/sys/devices/system/node");
    fs::read_dir(dir).ok()?.find_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let node = name.strip_prefix("node")?.parse().ok()?;
        let text = host.text(&format!("/sys/devices/system/node/{name}/cpulist"))?;
        let cpus = cpu_list(&text).ok()?;
        cpus.contains(cpu).then(|| real_node(host, node))
    })
}

/// A node's distance from itself.
pub(crate) const LOCAL: u32 = 10;

/// The nodes that are online, ascending; empty where the kernel does not say.
pub(crate) fn online_nodes(host: &Host) -> Vec<u32> {
    host.text("/sys/devices/system/node/online")
        .and_then(|list| cpu_list(&list).ok())
        .map_or_else(Vec::new, |list| list.iter().collect())
}

/// The node of the machine that the kernel's `node` is a part of, by its lowest number:
/// `numa=fake` makes several of one, which are as near to each other as to themselves.
pub(crate) fn real_node(host: &Host, node: u32) -> u32 {
    let is_near = |&other: &u32| distance(host, node, other) == Some(LOCAL);
    let first = online_nodes(host).into_iter().find(is_near);
    first.map_or(node, |first| first.min(node))
}

/// The machine's own nodes that are online, ascending.
pub(crate) fn real_nodes(host: &Host) -> Vec<u32> {
    let mut nodes = online_nodes(host);
    nodes.retain(|&node| real_node(host, node) == node);
    nodes
}

/// How many nodes of the kernel are made up, and of how many of the machine; `None`: all
/// are the machine's.
pub(crate) fn made_up_nodes(host: &Host) -> Option<(usize, usize)> {
    let (all, real) = (online_nodes(host).len(), real_nodes(host).len());
    (real < all).then_some((all, real))
}

/// The processors of a node, where the kernel says.
pub(crate) fn cpus_of_node(host: &Host, node: u32) -> Option<NumList> {
    let text = host.text(&format!("/sys/devices/system/node/node{node}/cpulist"))?;
    cpu_list(&text).ok()
}

/// Of the processors that this process may use, those of `nodes`.
pub fn usable_cpus(host: &Host, nodes: &NumList) -> NumList {
    let mut cpus = allowed_cpus();
    let of_nodes: Vec<NumList> = nodes
        .iter()
        .filter_map(|node| cpus_of_node(host, node))
        .collect();
    for cpu in cpus.clone().iter() {
        if !of_nodes.iter().any(|list| list.contains(cpu)) {
            cpus.remove(cpu);
        }
    }
    cpus
}

/// For each of `nodes` the one with memory in the map that is nearest: itself, if it
/// has any, else by the kernel's distances.
pub fn nearest_memory(host: &Host, map: &AddrMap, nodes: &[u32]) -> Vec<u32> {
    let with_memory = map.memory_nodes();
    let nearest = |&node: &u32| match with_memory.contains(&node) {
        true => Some(node),
        false => with_memory
            .iter()
            .copied()
            .min_by_key(|&to| distance(host, node, to).unwrap_or(u32::MAX)),
    };
    let mut found: Vec<u32> = nodes.iter().filter_map(nearest).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// As the kernel has it: a number for each node that is online.
pub(crate) fn distance(host: &Host, from: u32, to: u32) -> Option<u32> {
    let at = online_nodes(host).iter().position(|&node| node == to)?;
    let row = host.text(&format!("/sys/devices/system/node/node{from}/distance"))?;
    row.split_whitespace().nth(at)?.parse().ok()
}

/// The memory nodes that the cpuset of thread `tid` allows; `None` where the
/// kernel does not say.
pub(crate) fn cpuset_nodes(host: &Host, tid: i32) -> Option<NumList> {
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
    pages * host.page_size().bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// A Raspberry Pi 5 whose firmware asks for numa=fake, and two sockets.
    #[test]
    fn made_up_nodes_are_one() {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        let put = |rows: &[&str]| {
            for (node, row) in rows.iter().enumerate() {
                let folder = nodes.join(format!("node{node}"));
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("distance"), format!("{row}\n")).unwrap();
                std::fs::write(folder.join("cpulist"), "0-3\n").unwrap();
            }
            std::fs::write(nodes.join("online"), format!("0-{}\n", rows.len() - 1)).unwrap();
        };
        let host = Host::at(root.path());
        put(&["10 10 10 10"; 4]);
        assert_eq!(made_up_nodes(&host), Some((4, 1)));
        assert_eq!(node_of_cpu(&host, 2), Some(0));
        let halves = ["10 20 10 20", "20 10 20 10", "10 20 10 20", "20 10 20 10"];
        put(&halves);
        assert_eq!(made_up_nodes(&host), Some((4, 2)));
        assert_eq!(
            (0..4).map(|n| real_node(&host, n)).collect::<Vec<_>>(),
            [0, 1, 0, 1]
        );
        put(&["10 20 20 20", "20 10 20 20", "20 20 10 20", "20 20 20 10"]);
        assert_eq!(made_up_nodes(&host), None);
        assert_eq!(made_up_nodes(&Host::at(root.path().join("nothing"))), None);
    }

    /// Nodes 1 and 3 have processors alone, as node 4 of which the map knows nothing.
    #[test]
    fn a_node_without_memory_has_a_nearest_one() {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        let distances = [
            "10 20 30 40",
            "20 10 12 40",
            "30 12 10 40",
            "40 40 40 10",
            "17 16 15 40",
        ];
        for (node, row) in [0, 1, 2, 4].into_iter().zip(distances) {
            let folder = nodes.join(format!("node{node}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("distance"), format!("{row}\n")).unwrap();
        }
        std::fs::write(nodes.join("online"), "0-2,4\n").unwrap();
        let map = AddrMap::parse(
            "soloist-map 1\nlayout\nbank 13^17\nrow 17 18 19\ncol 6 7 8 9 10 11 12 14 15 16\n\
             range 0 0x100000 node 0\nrange 0x100000 0x200000 node 2\n",
        )
        .unwrap();
        assert_eq!(map.memory_nodes(), [0, 2]);
        let host = Host::at(root.path());
        let near = |nodes: &[u32]| nearest_memory(&host, &map, nodes);
        assert_eq!(near(&[0]), [0]);
        assert_eq!(near(&[1]), [2]);
        assert_eq!(near(&[1, 2]), [2]);
        assert_eq!(near(&[0, 1]), [0, 2]);
        // A node of which the kernel says nothing has colours all the same.
        assert_eq!(near(&[3]), [0]);
        assert_eq!(near(&[]), [0; 0]);
    }
}
