//! The guest's cpus and memory: how many nodes, how large, what lies below 4 GiB.

use std::path::Path;

use serde::Deserialize;

use crate::{io, parse_size, Error};

/// The guest's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of memory of each node, from node 0 up.
    pub node_memory: Vec<u64>,
    /// Cpus, dealt to the nodes in order and as evenly as can be.
    pub cpus: u32,
    /// Where memory below 4 GiB ends; the rest of node 0 continues at 4 GiB.
    pub max_ram_below_4g: Option<u64>,
}

/// The `[vm]` table of a machine file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    node_memory: Vec<String>,
    cpus: Option<u32>,
    max_ram_below_4g: Option<u64>,
}

#[derive(Deserialize)]
struct File {
    vm: Option<Table>,
}

impl Layout {
    /// `nodes` equal parts of `memory` bytes.
    pub fn even(memory: u64, nodes: u32, cpus: u32) -> Self {
        let part = memory / u64::from(nodes.max(1));
        Self {
            node_memory: vec![part; nodes.max(1) as usize],
            cpus,
            max_ram_below_4g: None,
        }
    }

    /// The layout in the `[vm]` table of a machine file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(io(format!("cannot read {file}")))?;
        Self::parse(&text).map_err(|why| Error::Machine { file, why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let table = file.vm.ok_or("missing: this machine has no virtual form")?;
        if table.node_memory.is_empty() || table.node_memory.len() > 8 {
            return Err("node_memory: expected 1 to 8 sizes, such as [\"1G\", \"1G\"]".into());
        }
        let sizes = table
            .node_memory
            .iter()
            .map(|size| parse_size(size).map_err(|e| e.to_string()));
        let node_memory = sizes.collect::<Result<Vec<u64>, String>>()?;
        if node_memory
            .iter()
            .any(|size| size % (2 << 20) != 0 || *size == 0)
        {
            return Err("node_memory: sizes must be multiples of 2M".into());
        }
        let cpus = table.cpus.unwrap_or(node_memory.len() as u32);
        if !(1..=64).contains(&cpus) {
            return Err(format!("cpus: {cpus} is outside 1 to 64"));
        }
        Ok(Self {
            node_memory,
            cpus,
            max_ram_below_4g: table.max_ram_below_4g,
        })
    }

    /// All memory, bytes.
    pub fn memory(&self) -> u64 {
        self.node_memory.iter().sum()
    }

    /// The cpus of `node`: first and last, or none.
    pub(crate) fn cpus_of(&self, node: usize) -> Option<(u32, u32)> {
        let nodes = self.node_memory.len() as u32;
        let node = node as u32;
        let first = node * self.cpus / nodes;
        let end = (node + 1) * self.cpus / nodes;
        (first < end).then(|| (first, end - 1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn reads_the_table_and_ignores_the_others() {
        let text = "[machine]\nname = 'x'\n[vm]\nnode_memory = ['8G', '8G']\nmax_ram_below_4g = 0xd8000000\n";
        let layout = Layout::parse(text).unwrap();
        assert_eq!(layout.memory(), 16 << 30);
        assert_eq!(layout.cpus, 2);
        assert_eq!(layout.max_ram_below_4g, Some(0xd800_0000));
    }

    #[test]
    fn refuses_with_words() {
        for (text, word) in [
            ("", "missing"),
            ("[vm]\nnode_memory = []", "1 to 8"),
            ("[vm]\nnode_memory = ['1X']", "1X"),
            ("[vm]\nnode_memory = ['1K']", "2M"),
            ("[vm]\nnode_memory = ['1G']\ncpus = 65", "65"),
            ("[vm]\nnode_memory = ['1G']\nspeed = 1", "speed"),
        ] {
            let why = Layout::parse(text).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }

    #[test]
    fn cpus_are_dealt_evenly() {
        let layout = Layout::even(4 << 30, 4, 6);
        let dealt: Vec<_> = (0..4).map(|node| layout.cpus_of(node)).collect();
        assert_eq!(
            dealt,
            [Some((0, 0)), Some((1, 2)), Some((3, 3)), Some((4, 5))]
        );
        assert_eq!(Layout::even(2 << 30, 2, 1).cpus_of(0), None);
    }
}
