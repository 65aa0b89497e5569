//! The guest's cpus and memory: how many nodes, how large, what lies below 4 GiB.

use soloist_machine::{FileError, Machine};

/// QEMU's `pc` machine aligns the hole below 4 GiB to whole gibibytes.
const PC_BELOW_4G: u64 = 3 << 30;

/// The guest's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNodes {
    /// Bytes of memory of each node, from node 0 up.
    pub node_memory: Vec<u64>,
    /// Cpus, dealt to the nodes in order and as evenly as can be.
    pub cpus: u32,
    /// Where memory below 4 GiB ends; what is above it continues at 4 GiB.
    pub max_ram_below_4g: Option<u64>,
    /// From node to node, as ACPI's SLIT has it; empty: as the firmware likes.
    pub distances: Vec<Vec<u32>>,
}

impl GuestNodes {
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

    /// What the `[vm]` table of a machine file asks for.
    ///
    /// # Errors
    /// When it has none, or its nodes are others than those of `[topology]`.
    pub fn of(machine: &Machine) -> Result<Self, FileError> {
        let wrong = |message: String| Err(FileError::whole(&machine.file, message));
        let Some(vm) = &machine.vm else {
            return wrong("[vm]: missing: this machine has no virtual form".into());
        };
        let nodes = vm.memory.len();
        let distances = &machine.topology.distances;
        if !distances.is_empty() && distances.len() != nodes {
            return wrong(format!(
                "[topology] distances: expected {nodes} rows of {nodes}, one per node of [vm] memory"
            ));
        }
        Ok(Self {
            node_memory: vm.memory.iter().map(|size| size.0).collect(),
            cpus: vm.cpus.unwrap_or(nodes as u32),
            max_ram_below_4g: vm.max_ram_below_4g.map(|limit| limit.0),
            distances: distances.clone(),
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

    /// The node of a cpu.
    pub fn node_of(&self, cpu: u32) -> u32 {
        let of = |node: &usize| {
            self.cpus_of(*node)
                .is_some_and(|(first, last)| (first..=last).contains(&cpu))
        };
        (0..self.node_memory.len()).find(of).unwrap_or(0) as u32
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
    use soloist_machine::known;

    #[test]
    fn the_machine_says_what_its_guest_is() {
        let machine = known::find("opteron-6128").unwrap();
        let guest = GuestNodes::of(&machine).unwrap();
        assert_eq!(guest.memory(), 32 << 30);
        assert_eq!(guest.cpus, 16);
        assert_eq!(guest.max_ram_below_4g, Some(0xd800_0000));
        assert_eq!(guest.distances[0], [10, 16, 22, 22]);
    }

    #[test]
    fn refuses_with_words() {
        let mut machine = known::find("opteron-6128").unwrap();
        machine.vm.as_mut().unwrap().memory.pop();
        let why = GuestNodes::of(&machine).unwrap_err().to_string();
        assert!(why.contains("3 rows") && why.contains("opteron"), "{why}");
        machine.vm = None;
        let why = GuestNodes::of(&machine).unwrap_err().to_string();
        assert!(why.contains("missing"), "{why}");
    }

    #[test]
    fn what_lies_above_4g_stays_where_it_is() {
        let guest = GuestNodes {
            node_memory: vec![8 << 30, 8 << 30],
            max_ram_below_4g: Some(0xd800_0000),
            ..GuestNodes::even(0, 2, 2)
        };
        let sizes = guest.node_sizes();
        let end_of_node_0 = (4 << 30) + sizes[0] - guest.below_4g().unwrap();
        assert_eq!(end_of_node_0, 0x2_2800_0000);
        assert_eq!(sizes[1], 8 << 30);
    }

    #[test]
    fn cpus_are_dealt_evenly() {
        let guest = GuestNodes::even(4 << 30, 4, 6);
        let dealt: Vec<_> = (0..4).map(|node| guest.cpus_of(node)).collect();
        assert_eq!(
            dealt,
            [Some((0, 0)), Some((1, 2)), Some((3, 3)), Some((4, 5))]
        );
        let one = GuestNodes::even(2 << 30, 2, 1);
        assert_eq!((one.cpus_of(0), one.cpus_of(1)), (Some((0, 0)), None));
    }
}
