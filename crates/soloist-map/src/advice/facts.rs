//! What isolation a host has.

use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::control::Control;
use soloist_host::machine::{event_units, topology, Host};

use super::weaknesses::{no_channel_colors, weaknesses, Weakness};

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Memory nodes that have processors.
    pub nodes: usize,
    /// Processors.
    pub processors: usize,
    /// Cache allocation of the last level.
    pub has_cat: bool,
    /// Memory bandwidth allocation.
    pub has_mba: bool,
    /// Events of the processor that a reservation can count.
    pub has_events: bool,
    /// Cache colours of the map that is loaded.
    pub cache_colors: Option<u32>,
    /// Why pages have no channel colours by that map; `None`: they may have.
    pub no_channel_colors: Option<String>,
    /// What the colours of that map can't keep apart.
    pub weaknesses: Vec<Weakness>,
}

impl Facts {
    /// Looks at the host, and at the map that the module has.
    #[must_use]
    pub fn of(host: &Host) -> Self {
        let map = Control::open(host)
            .ok()
            .and_then(|control| control.map().ok());
        Self::with_map(host, map.as_ref())
    }

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

    /// The same with this map.
    #[must_use]
    pub fn with_map(host: &Host, map: Option<&AddrMap>) -> Self {
        let flags = host.text("/proc/cpuinfo").unwrap_or_default();
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        let topology = topology(host);
        let of_nodes = topology.cpus_of_nodes();
        let processors = topology.processors();
        Self {
            nodes: of_nodes.iter().filter(|cpus| !cpus.is_empty()).count(),
            processors,
            has_cat: has("cat_l3"),
            has_mba: has("mba"),
            has_events: !event_units(host).is_empty(),
            cache_colors: map.map(AddrMap::n_llc),
            no_channel_colors: map.and_then(no_channel_colors),
            weaknesses: map.map_or_else(Vec::new, |map| weaknesses(map, processors)),
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
            assert_eq!(facts.has_events, counts, "{unit}");
        }
    }
}
