//! Nodes, CPUs, distances: `[topology]`.

use serde::{Deserialize, Serialize};
use soloist_core::cpu_list;
use toml::Spanned;

use crate::file::Wrong;

/// `[topology]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Processor packages.
    pub sockets: u32,
    /// CPUs of each node, in the kernel's list syntax.
    pub cpus: Vec<String>,
    /// Distances between nodes, 10 is local (ACPI SLIT).
    #[serde(default)]
    pub distances: Vec<Vec<u32>>,
    /// Core clock, MHz.
    pub clock_mhz: Option<u32>,
}

impl Topology {
    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.cpus.len()
    }

    /// Number of CPUs.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.cpus_of_nodes().iter().map(Vec::len).sum()
    }

    /// The CPUs of each node, ascending.
    #[must_use]
    pub fn cpus_of_nodes(&self) -> Vec<Vec<u32>> {
        self.cpus
            .iter()
            .map(|list| cpu_list(list).map_or_else(|_| Vec::new(), |cpus| cpus.iter().collect()))
            .collect()
    }
}

pub(crate) fn check_topology(topology: &Spanned<Topology>) -> Result<(), Wrong> {
    let wrong = |message: String| Err((topology.span(), message));
    let t = topology.get_ref();
    if t.cpus.is_empty() || t.cpus.len() > 64 {
        return wrong(format!(
            "cpus: expected 1 to 64 nodes, found {}",
            t.cpus.len()
        ));
    }
    if t.sockets == 0 || t.sockets as usize > t.cpus.len() {
        return wrong(format!("sockets: expected 1 to {} (nodes)", t.cpus.len()));
    }
    let mut seen = std::collections::BTreeSet::new();
    for list in &t.cpus {
        match cpu_list(list) {
            Ok(cpus) => {
                for cpu in cpus.iter() {
                    if !seen.insert(cpu) {
                        return wrong(format!("cpus: cpu {cpu} is in two nodes"));
                    }
                }
            }
            Err(message) => return wrong(format!("cpus: {message}")),
        }
    }
    if seen.is_empty() {
        return wrong("cpus: no node has a CPU".to_owned());
    }
    let square = t.distances.len() == t.cpus.len()
        && t.distances.iter().all(|row| row.len() == t.cpus.len());
    if !t.distances.is_empty() && !square {
        return wrong(format!(
            "distances: expected {0} rows of {0} numbers",
            t.cpus.len()
        ));
    }
    for (i, row) in t.distances.iter().enumerate() {
        if row[i] != 10 || row.iter().any(|&d| !(10..=254).contains(&d)) {
            return wrong(format!(
                "distances: row {i}: expected 10 to itself and 10 to 254 to the others"
            ));
        }
    }
    Ok(())
}
