//! The processor's name, memory nodes, their CPUs and distances.

use std::collections::BTreeSet;
use std::fs;

use soloist_machine::Topology;

use crate::machine::host::Host;
use crate::machine::node::{online_nodes, real_node};

/// The CPU's model name; on arm64, where cpuinfo has none, the board's.
#[must_use]
pub fn cpu_name(host: &Host) -> Option<String> {
    let info = host.read("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    field("model name").or_else(|| {
        let model = fs::read(host.path("/proc/device-tree/model")).ok()?;
        Some(
            String::from_utf8_lossy(&model)
                .trim_end_matches('\0')
                .to_owned(),
        )
    })
}

/// Nodes, their CPUs and distances, from sysfs; one node where it tells none, and one for
/// all that `numa=fake` makes of it.
#[must_use]
pub fn topology(host: &Host) -> Topology {
    let root = "/sys/devices/system";
    let online = online_nodes(host);
    let is_real = |node: &u32| real_node(host, *node) == *node;
    let nodes: Vec<u32> = online.iter().copied().filter(is_real).collect();
    // A row has a distance for each that is online.
    let of_real = |row: &str| -> Vec<u32> {
        let all = row.split_whitespace().map(str::parse);
        let real = online.iter().zip(all).filter(|(node, _)| is_real(node));
        real.filter_map(|(_, distance)| distance.ok()).collect()
    };
    let cpus: Vec<String> = nodes
        .iter()
        .filter_map(|node| host.text(&format!("{root}/node/node{node}/cpulist")))
        .collect();
    let distances = nodes
        .iter()
        .filter_map(|node| host.text(&format!("{root}/node/node{node}/distance")))
        .map(|row| of_real(&row))
        .collect();
    if cpus.is_empty() || cpus.len() != nodes.len() {
        let all = host
            .text(&format!("{root}/cpu/online"))
            .unwrap_or_else(|| "0".into());
        return Topology {
            sockets: 1,
            cpus: vec![all],
            distances: Vec::new(),
            clock_mhz: None,
        };
    }
    let packages: BTreeSet<String> = fs::read_dir(host.path(&format!("{root}/cpu")))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path().join("topology/physical_package_id");
            fs::read_to_string(path).ok()
        })
        .collect();
    Topology {
        sockets: (packages.len().clamp(1, cpus.len())) as u32,
        cpus,
        distances,
        clock_mhz: None,
    }
}
