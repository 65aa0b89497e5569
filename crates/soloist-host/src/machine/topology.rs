//! The processor's name, memory nodes, their CPUs and distances.

use std::collections::BTreeSet;
use std::fs;

use soloist_machine::Topology;

use crate::machine::host::Host;
use crate::machine::node::{distance, real_nodes, LOCAL};

/// The largest distance that a machine file takes.
const UNREACHABLE: u32 = 254;

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
/// all that `numa=fake` makes of it. A row's place is the node's number: a number that no
/// node has (firmware leaves some out) has a row without CPUs, as far away as can be.
#[must_use]
pub fn topology(host: &Host) -> Topology {
    let root = "/sys/devices/system";
    let real = real_nodes(host);
    let is_real = |node: u32| real.contains(&node);
    let rows = || 0..real.last().map_or(0, |last| last + 1);
    let lists: Option<Vec<String>> = rows()
        .map(|node| match is_real(node) {
            true => host.text(&format!("{root}/node/node{node}/cpulist")),
            false => Some(String::new()),
        })
        .collect();
    let Some(cpus) = lists.filter(|lists| !lists.is_empty()) else {
        let all = host
            .text(&format!("{root}/cpu/online"))
            .unwrap_or_else(|| "0".into());
        return Topology {
            sockets: 1,
            cpus: vec![all],
            distances: Vec::new(),
            clock_mhz: None,
        };
    };
    let to = |from: u32, node: u32| match (is_real(from) && is_real(node), from == node) {
        (true, _) => distance(host, from, node),
        (false, true) => Some(LOCAL),
        (false, false) => Some(UNREACHABLE),
    };
    let row = |from: u32| rows().map(|node| to(from, node)).collect::<Option<_>>();
    let distances: Option<Vec<Vec<u32>>> = rows().map(row).collect();
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
        distances: distances.unwrap_or_default(),
        clock_mhz: None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Nodes 0 and 2, as firmware numbers them where a socket is empty.
    #[test]
    fn a_node_keeps_its_number() {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        for (node, cpus, row) in [(0, "0-3", "10 21"), (2, "4-7", "21 10")] {
            let folder = nodes.join(format!("node{node}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpulist"), format!("{cpus}\n")).unwrap();
            fs::write(folder.join("distance"), format!("{row}\n")).unwrap();
        }
        fs::write(nodes.join("online"), "0,2\n").unwrap();
        let found = topology(&Host::at(root.path()));
        assert_eq!(found.cpus, ["0-3", "", "4-7"]);
        assert_eq!(
            found.distances,
            [[10, 254, 21], [254, 10, 254], [21, 254, 10]]
        );
        assert_eq!(found.cpus_of_nodes()[1], [0; 0]);
    }
}
