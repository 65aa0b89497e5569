//! What isolation a host has.

use serde::Serialize;
use soloist_core::{cpu_list, AddrMap};
use soloist_host::machine::{event_units, topology, Host};
use soloist_machine::Machine;

use super::weaknesses::{hashed_cache, no_channel_colors, weaknesses, Weakness};

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Nodes that have processors and memory.
    pub nodes: usize,
    /// Processors.
    pub processors: usize,
    /// Cache allocation of the last level; `None`: nobody knows, as of a simulated machine.
    pub has_cat: Option<bool>,
    /// Memory bandwidth allocation.
    pub has_mba: Option<bool>,
    /// Events of the processor that a reservation can count.
    pub has_events: Option<bool>,
    /// Cache colours of the map that is loaded.
    pub cache_colors: Option<u32>,
    /// Why pages have no channel colours by that map; `None`: they may have.
    pub no_channel_colors: Option<String>,
    /// What the colours of that map can't keep apart.
    pub weaknesses: Vec<Weakness>,
    /// Why that map's cache colours divide nothing, by its machine file; `None`: no file
    /// says so.
    pub hashed_cache: Option<String>,
    /// A board: the model's figures of one are nearer than those of larger machines.
    pub is_board: bool,
}

impl Facts {
    /// Of a machine that is only simulated, with so many processors, by its map.
    #[must_use]
    pub fn simulated(map: &AddrMap, processors: usize) -> Self {
        Self {
            nodes: map.memory_nodes().len(),
            processors,
            cache_colors: Some(map.n_llc()),
            no_channel_colors: no_channel_colors(map),
            weaknesses: weaknesses(map, processors),
            ..Self::default()
        }
    }

    /// Looks at the host; of this map.
    #[must_use]
    pub fn with_map(host: &Host, map: Option<&AddrMap>) -> Self {
        let flags = host.text("/proc/cpuinfo").unwrap_or_default();
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        let topology = topology(host);
        let of_nodes = topology.cpus_of_nodes();
        let processors = topology.processors();
        let with_memory = host.text("/sys/devices/system/node/has_memory");
        let with_memory = with_memory.and_then(|list| cpu_list(&list).ok());
        // A board may have nodes whose slots are empty.
        let has_memory = |node: usize| {
            let node = u32::try_from(node).unwrap_or(u32::MAX);
            with_memory.as_ref().is_none_or(|list| list.contains(node))
        };
        let own = of_nodes.iter().enumerate();
        let own = own.filter(|(node, cpus)| !cpus.is_empty() && has_memory(*node));
        Self {
            nodes: own.count(),
            processors,
            has_cat: Some(has("cat_l3")),
            has_mba: Some(has("mba")),
            has_events: Some(!event_units(host).is_empty()),
            cache_colors: map.map(AddrMap::n_llc),
            no_channel_colors: map.and_then(no_channel_colors),
            weaknesses: map.map_or_else(Vec::new, |map| weaknesses(map, processors)),
            hashed_cache: None,
            is_board: host.has("/proc/device-tree/model"),
        }
    }

    /// The same with what the file of the map's machine says. A simulated machine is a board
    /// if it has no L3.
    #[must_use]
    pub fn described_by(self, machine: &Machine) -> Self {
        let is_simulated = self.has_events.is_none();
        let caches = machine.cache.as_ref();
        let has_l3 = caches.is_none_or(|caches| caches.l3.is_some());
        Self {
            hashed_cache: hashed_cache(self.cache_colors.unwrap_or(1), machine),
            is_board: if is_simulated { !has_l3 } else { self.is_board },
            ..self
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Boards name their unit by the type of their cores.
    #[test]
    fn every_unit_of_processors_counts() {
        for (unit, counts) in [
            ("cpu", true),
            ("armv8_cortex_a76", true),
            ("armv8_cortex_a53", true),
            ("msr", false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let events = format!("sys/bus/event_source/devices/{unit}/events");
            std::fs::create_dir_all(root.path().join(events)).unwrap();
            let facts = Facts::with_map(&Host::at(root.path()), None);
            assert_eq!(facts.has_events, Some(counts), "{unit}");
        }
    }

    /// A node whose slots are empty is none to run on alone.
    #[test]
    fn a_node_without_memory_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        for (node, cpus, row) in [(0, "0-3", "10 20"), (1, "4-7", "20 10")] {
            let folder = nodes.join(format!("node{node}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("cpulist"), format!("{cpus}\n")).unwrap();
            std::fs::write(folder.join("distance"), format!("{row}\n")).unwrap();
        }
        std::fs::write(nodes.join("online"), "0-1\n").unwrap();
        let count = || Facts::with_map(&Host::at(root.path()), None).nodes;
        // An old kernel does not say.
        assert_eq!(count(), 2);
        std::fs::write(nodes.join("has_memory"), "0\n").unwrap();
        assert_eq!(count(), 1);
    }
}
