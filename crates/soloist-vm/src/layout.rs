//! The guest's cpus and memory: how many nodes, how large, what lies below 4 GiB.

use serde::Deserialize;

use crate::{parse_size, Error};

/// QEMU's `pc` machine aligns the hole below 4 GiB to whole gibibytes.
const PC_BELOW_4G: u64 = 3 << 30;

/// The guest's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of memory of each node, from node 0 up.
    pub node_memory: Vec<u64>,
    /// Cpus, dealt to the nodes in order and as evenly as can be.
    pub cpus: u32,
    /// Where memory below 4 GiB ends; what is above it continues at 4 GiB.
    pub max_ram_below_4g: Option<u64>,
    /// From node to node, as ACPI's SLIT has it; empty: as the firmware likes.
    pub distances: Vec<Vec<u8>>,
}

/// The `[vm]` table of a machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    memory: Vec<String>,
    cpus: Option<u32>,
    max_ram_below_4g: Option<String>,
}

#[derive(Deserialize)]
struct File {
    vm: Option<Table>,
    topology: Option<Topology>,
}

#[derive(Deserialize)]
struct Topology {
    #[serde(default)]
    distances: Vec<Vec<u8>>,
}

impl Layout {
    /// `nodes` equal parts of `memory` bytes.
    pub fn even(memory: u64, nodes: u32, cpus: u32) -> Self {
        let part = memory / u64::from(nodes.max(1));
        Self {
            node_memory: vec![part; nodes.max(1) as usize],
            cpus,
            max_ram_below_4g: None,
            distances: Vec::new(),
        }
    }

    /// The layout in a machine file's `[vm]` table; `file` is its name for
    /// messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        Self::read_table(text).map_err(|why| Error::Machine {
            file: file.to_owned(),
            why,
        })
    }

    fn read_table(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let table = file.vm.ok_or("missing: this machine has no virtual form")?;
        if table.memory.is_empty() || table.memory.len() > 8 {
            return Err("memory: expected 1 to 8 sizes, such as [\"1G\", \"1G\"]".into());
        }
        let size = |text: &String| parse_size(text).map_err(|e| e.to_string());
        let node_memory = table
            .memory
            .iter()
            .map(size)
            .collect::<Result<Vec<u64>, String>>()?;
        if node_memory
            .iter()
            .any(|size| size % (2 << 20) != 0 || *size == 0)
        {
            return Err("memory: sizes must be multiples of 2M".into());
        }
        let nodes = node_memory.len();
        let cpus = table.cpus.unwrap_or(nodes as u32);
        if !(1..=64).contains(&cpus) {
            return Err(format!("cpus: {cpus} is outside 1 to 64"));
        }
        let distances = file
            .topology
            .map(|topology| topology.distances)
            .unwrap_or_default();
        if !distances.is_empty()
            && (distances.len() != nodes || distances.iter().any(|row| row.len() != nodes))
        {
            return Err(format!(
                "[topology] distances: expected {nodes} rows of {nodes}, one per node of memory"
            ));
        }
        let max_ram_below_4g = table.max_ram_below_4g.as_ref().map(size).transpose()?;
        Ok(Self {
            node_memory,
            cpus,
            max_ram_below_4g,
            distances,
        })
    }

    /// All memory, bytes.
    pub fn memory(&self) -> u64 {
        self.node_memory.iter().sum()
    }

    /// What QEMU is told: its `pc` machine has at most 3 GiB below 4 GiB.
    pub(crate) fn below_4g(&self) -> Option<u64> {
        self.max_ram_below_4g.map(|limit| limit.min(PC_BELOW_4G))
    }

    /// The nodes' sizes as QEMU is told them. A machine with more below 4 GiB
    /// than `pc` can have loses the difference from node 0, so that all that
    /// lies above 4 GiB is at the addresses of the real machine.
    pub(crate) fn node_sizes(&self) -> Vec<u64> {
        let mut sizes = self.node_memory.clone();
        let lost = self
            .max_ram_below_4g
            .unwrap_or(0)
            .saturating_sub(PC_BELOW_4G);
        if sizes[0] > PC_BELOW_4G + lost {
            sizes[0] -= lost;
        }
        sizes
    }

    /// The cpus of `node`: first and last, or none. Too few for all nodes go
    /// to the first ones, since kernels expect some on node 0.
    pub(crate) fn cpus_of(&self, node: usize) -> Option<(u32, u32)> {
        let nodes = (self.node_memory.len() as u32).min(self.cpus);
        let node = node as u32;
        if node >= nodes {
            return None;
        }
        let first = node * self.cpus / nodes;
        let end = (node + 1) * self.cpus / nodes;
        Some((first, end - 1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn reads_the_table_and_ignores_the_others() {
        let text =
            "[machine]\nname = 'x'\n[topology]\nsockets = 1\ndistances = [[10, 20], [20, 10]]\n\
                    [vm]\nmemory = ['8G', '8G']\nmax_ram_below_4g = '3456M'\n";
        let layout = Layout::parse(text, "x.toml").unwrap();
        assert_eq!(layout.memory(), 16 << 30);
        assert_eq!(layout.cpus, 2);
        assert_eq!(layout.max_ram_below_4g, Some(0xd800_0000));
        assert_eq!(layout.distances[0], [10, 20]);
    }

    #[test]
    fn refuses_with_words() {
        for (text, word) in [
            ("", "missing"),
            ("[vm]\nmemory = []", "1 to 8"),
            ("[vm]\nmemory = ['1X']", "1X"),
            ("[vm]\nmemory = ['1K']", "2M"),
            ("[vm]\nmemory = ['1G']\ncpus = 65", "65"),
            ("[vm]\nmemory = ['1G']\nspeed = 1", "speed"),
            (
                "[topology]\ndistances = [[10]]\n[vm]\nmemory = ['1G', '1G']",
                "2 rows",
            ),
        ] {
            let why = Layout::parse(text, "x.toml").unwrap_err().to_string();
            assert!(
                why.contains(word) && why.contains("x.toml"),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn what_lies_above_4g_stays_where_it_is() {
        let layout = Layout {
            node_memory: vec![8 << 30, 8 << 30],
            max_ram_below_4g: Some(0xd800_0000),
            ..Layout::even(0, 2, 2)
        };
        let sizes = layout.node_sizes();
        let end_of_node_0 = (4 << 30) + sizes[0] - layout.below_4g().unwrap();
        assert_eq!(end_of_node_0, 0x2_2800_0000);
        assert_eq!(sizes[1], 8 << 30);
    }

    #[test]
    fn cpus_are_dealt_evenly() {
        let layout = Layout::even(4 << 30, 4, 6);
        let dealt: Vec<_> = (0..4).map(|node| layout.cpus_of(node)).collect();
        assert_eq!(
            dealt,
            [Some((0, 0)), Some((1, 2)), Some((3, 3)), Some((4, 5))]
        );
        let one = Layout::even(2 << 30, 2, 1);
        assert_eq!((one.cpus_of(0), one.cpus_of(1)), (Some((0, 0)), None));
    }
}
