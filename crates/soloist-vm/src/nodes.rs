//! The guest's cpus and memory: how many nodes, how large, what lies below 4 GiB.

use soloist_core::format_size;
use soloist_machine::{FileError, Machine};

use crate::arch::Arch;

/// QEMU's `pc` machine aligns the hole below 4 GiB to whole gibibytes.
const PC_BELOW_4G: u64 = 3 << 30;

/// Memory comes in pieces of so many bytes.
const WHOLE: u64 = 2 << 20;

/// The guest's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNodes {
    /// Bytes of memory of each node, from node 0 up.
    pub node_memory: Vec<u64>,
    /// Cpus.
    pub cpus: u32,
    /// Those of each node as the machine has them; empty: they may be anywhere.
    pub own_cpus: Vec<Vec<u32>>,
    /// Where memory below 4 GiB ends; what is above it continues at 4 GiB.
    pub max_ram_below_4g: Option<u64>,
    /// From node to node, as ACPI's SLIT has it; empty: as the firmware likes.
    pub distances: Vec<Vec<u32>>,
}

impl GuestNodes {
    /// `nodes` equal parts of `memory` bytes, of whole MiB; the first has what is left.
    pub fn even(memory: u64, nodes: u32, cpus: u32) -> Self {
        let nodes = u64::from(nodes.max(1));
        let part = memory / nodes & !(WHOLE - 1);
        let mut node_memory = vec![part; nodes as usize];
        node_memory[0] += (memory - nodes * part) & !(WHOLE - 1);
        Self {
            node_memory,
            cpus,
            own_cpus: Vec::new(),
            max_ram_below_4g: None,
            distances: Vec::new(),
        }
    }

    /// What the `[vm]` table of a machine file asks for, its cpus where `[topology]`
    /// has them.
    ///
    /// # Errors
    /// When it has none, its nodes are others than those of `[topology]`, or one has
    /// neither cpus nor memory.
    pub fn of(machine: &Machine) -> Result<Self, FileError> {
        let wrong = |message: String| Err(FileError::whole(&machine.file, message));
        let Some(vm) = &machine.vm else {
            return wrong("[vm]: missing: this machine has no virtual form".into());
        };
        let nodes = vm.memory.len();
        let own_cpus = machine.topology.cpus_of_nodes();
        if own_cpus.len() != nodes {
            return wrong(format!(
                "[topology] cpus: {} nodes, [vm] memory has {nodes}: expected as many",
                own_cpus.len()
            ));
        }
        let empty = |&node: &usize| vm.memory[node].0 == 0 && own_cpus[node].is_empty();
        if let Some(node) = (0..nodes).find(empty) {
            return wrong(format!(
                "node {node} has neither memory ([vm] memory) nor cpus ([topology] cpus): no \
                 firmware tells of such a node"
            ));
        }
        let with_cpus = own_cpus.iter().filter(|cpus| !cpus.is_empty()).count();
        Ok(Self {
            node_memory: vm.memory.iter().map(|size| size.0).collect(),
            cpus: vm.cpus.unwrap_or(with_cpus as u32),
            own_cpus,
            max_ram_below_4g: vm.max_ram_below_4g.map(|limit| limit.0),
            distances: machine.topology.distances.clone(),
        })
    }

    /// The same on a machine of `arch`, whose memory may begin above 0: what the map has
    /// below that, node 0 loses, so that all else is at the addresses of the real machine.
    #[must_use]
    pub fn on(mut self, arch: Arch, machine: &Machine) -> Self {
        let lost = lost(arch, machine);
        if self.node_memory[0] > lost {
            self.node_memory[0] -= lost;
        }
        if arch == Arch::Arm64 {
            // QEMU's `virt` has no hole.
            self.max_ram_below_4g = None;
        }
        self
    }

    /// The same, where every page must be at an address of the real machine.
    ///
    /// # Errors
    /// When node 0 would have no memory then, or the map has a hole where the guest can't have
    /// one.
    pub fn exactly_on(self, arch: Arch, machine: &Machine) -> Result<Self, FileError> {
        let wrong = |why: String| {
            let why = format!("[vm] memory: {why}");
            Err(FileError::whole(&machine.file, why))
        };
        let (lost, has) = (lost(arch, machine), self.node_memory[0]);
        if lost != 0 && has <= lost {
            return wrong(format!(
                "node 0 has {}, all of it below {:#x}, where memory of guests of this \
                 architecture begins: expected more than {}",
                format_size(has),
                arch.memory_begins(),
                format_size(lost)
            ));
        }
        let guest = self.on(arch, machine);
        match guest.hole(machine).filter(|_| arch == Arch::Arm64) {
            Some((from, to)) => wrong(format!(
                "the map has none from {from:#x} to {to:#x}, and memory of guests of this \
                 architecture has no hole: expected less memory, or a map that goes on"
            )),
            None => Ok(guest),
        }
    }

    /// The first part of the memory that the map leaves out, where memory is in one piece.
    fn hole(&self, machine: &Machine) -> Option<(u64, u64)> {
        let mut at = Arch::Arm64.memory_begins();
        let end = at + self.memory();
        for range in &machine.map.ranges {
            if range.start > at {
                return (at < end).then_some((at, range.start));
            }
            at = at.max(range.end);
        }
        (at < end).then_some((at, end))
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
        let has = |node: &usize| self.cpus_of(*node).contains(&cpu);
        (0..self.node_memory.len()).find(has).unwrap_or(0) as u32
    }

    /// The node whose memory is nearest to a cpu: its own, where that has any.
    pub fn home(&self, cpu: u32) -> u32 {
        let from = self.node_of(cpu) as usize;
        let far = |to: &usize| match self.distances.get(from) {
            Some(row) => row[*to],
            None => u32::from(*to != from),
        };
        let nodes = (0..self.node_memory.len()).filter(|&node| self.node_memory[node] > 0);
        nodes.min_by_key(far).unwrap_or(0) as u32
    }

    /// The cpus of `node`: those of the machine where it has as many, else dealt in
    /// order and as evenly as can be to the nodes that have some there. Too few for
    /// these go to the first ones, since kernels expect some on node 0.
    pub(crate) fn cpus_of(&self, node: usize) -> Vec<u32> {
        let mut all = self.own_cpus.concat();
        all.sort_unstable();
        if !all.is_empty() && all.iter().copied().eq(0..self.cpus) {
            return self.own_cpus[node].clone();
        }
        let has_some = |node: &usize| all.is_empty() || !self.own_cpus[*node].is_empty();
        let having: Vec<usize> = (0..self.node_memory.len()).filter(has_some).collect();
        let nodes = (having.len() as u32).min(self.cpus);
        match having.iter().position(|&of| of == node) {
            Some(at) if (at as u32) < nodes => {
                let at = at as u32;
                (at * self.cpus / nodes..(at + 1) * self.cpus / nodes).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Sockets for QEMU: cpus of one share a last-level cache, so one spans no nodes.
    pub(crate) fn sockets(&self) -> u32 {
        let cpus_of = |node| self.cpus_of(node);
        let nodes: Vec<Vec<u32>> = (0..self.node_memory.len()).map(cpus_of).collect();
        let mut nodes = nodes.iter().filter(|cpus| !cpus.is_empty());
        let whole = |cpus: &Vec<u32>, each: usize| {
            let first = cpus[0];
            cpus.len() == each
                && first % each as u32 == 0
                && cpus.iter().copied().eq(first..first + each as u32)
        };
        let Some(each) = nodes.clone().next().map(Vec::len) else {
            return self.cpus;
        };
        match nodes.all(|cpus| whole(cpus, each)) {
            true => self.cpus / each as u32,
            false => self.cpus,
        }
    }
}

/// What the map has below the first address of a guest's memory.
fn lost(arch: Arch, machine: &Machine) -> u64 {
    let begins = arch.memory_begins();
    let first = machine.map.ranges.iter().map(|range| range.start).min();
    begins.saturating_sub(first.unwrap_or(begins))
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
    fn parts_are_whole() {
        let guest = GuestNodes::even(2 << 30, 18, 18);
        assert_eq!(guest.memory(), 2 << 30);
        assert!(guest.node_memory.iter().all(|size| size % WHOLE == 0));
        assert_eq!(guest.node_memory[17], 112 << 20);
    }

    #[test]
    fn refuses_with_words() {
        let mut machine = known::find("opteron-6128").unwrap();
        machine.vm.as_mut().unwrap().memory.pop();
        let why = GuestNodes::of(&machine).unwrap_err().to_string();
        assert!(why.contains("4 nodes") && why.contains("opteron"), "{why}");
        machine.vm = None;
        let why = GuestNodes::of(&machine).unwrap_err().to_string();
        assert!(why.contains("missing"), "{why}");
    }

    #[test]
    fn what_is_below_the_first_address_is_lost() {
        let exactly = |name: &str, arch| {
            let machine = known::find(name).unwrap();
            GuestNodes::of(&machine).unwrap().exactly_on(arch, &machine)
        };
        let memory = |name, arch| exactly(name, arch).unwrap().node_memory;
        assert_eq!(memory("raspberry-pi-4", Arch::Arm64), [2 << 30]);
        assert_eq!(memory("raspberry-pi-4", Arch::X86_64), [3 << 30]);
        let both = [1 << 30, 1 << 30];
        assert_eq!(memory("qemu-arm64-2node", Arch::Arm64), both);
        let why = exactly("qemu-2node", Arch::Arm64).unwrap_err().to_string();
        assert!(
            why.contains("node 0") && why.contains("0x40000000"),
            "{why}"
        );
    }

    /// Memory of a guest of arm64 has none, and a node behind one would begin elsewhere.
    #[test]
    fn a_map_with_a_hole_is_refused_where_memory_has_none() {
        let machine = known::find("opteron-6128").unwrap();
        let guest = GuestNodes::of(&machine).unwrap();
        let why = guest.clone().exactly_on(Arch::Arm64, &machine).unwrap_err();
        let why = why.to_string();
        assert!(why.contains("none from 0xd8000000 to 0x100000000"), "{why}");
        assert!(guest.exactly_on(Arch::X86_64, &machine).is_ok());
        // Behind the guest's memory a hole is in nobody's way.
        let mut machine = machine;
        machine.topology.cpus.truncate(1);
        machine.topology.distances = Vec::new();
        let memory = |machine: &mut Machine, bytes: u64| {
            machine.vm.as_mut().unwrap().memory = vec![soloist_machine::Bytes(bytes)];
            let guest = GuestNodes::of(machine).unwrap();
            guest.exactly_on(Arch::Arm64, machine).unwrap().node_sizes()
        };
        assert_eq!(memory(&mut machine, 0xd800_0000), [0x9800_0000]);
        // What `pc` has no room for below 4 GiB, `virt` has.
        machine.map.ranges.truncate(1);
        machine.map.ranges[0].end = 8 << 30;
        assert_eq!(memory(&mut machine, 8 << 30), [7 << 30]);
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
        assert_eq!(dealt, [vec![0], vec![1, 2], vec![3], vec![4, 5]]);
        assert_eq!(guest.sockets(), 6);
        assert_eq!(GuestNodes::even(4 << 30, 4, 8).sockets(), 4);
        let uneven = GuestNodes::even(2 << 30, 2, 1);
        assert_eq!((uneven.cpus_of(0), uneven.cpus_of(1)), (vec![0], vec![]));
    }

    /// A node without cpus, one without memory, cpus of two nodes by turns.
    #[test]
    fn cpus_are_where_the_machine_has_them() {
        let guest = |memory: &[u64], cpus: &[&str], said: Option<u32>| {
            let mut machine = known::find("qemu-2node").unwrap();
            let vm = machine.vm.as_mut().unwrap();
            vm.memory = memory
                .iter()
                .map(|&gib| soloist_machine::Bytes(gib << 30))
                .collect();
            vm.cpus = said;
            machine.topology.cpus = cpus.iter().map(|&list| list.to_owned()).collect();
            machine.topology.distances = Vec::new();
            GuestNodes::of(&machine)
        };
        let cpus_of_nodes = |guest: &GuestNodes| -> Vec<Vec<u32>> {
            (0..guest.node_memory.len())
                .map(|node| guest.cpus_of(node))
                .collect()
        };
        let cpuless = guest(&[1, 1], &["0-1", ""], Some(2)).unwrap();
        assert_eq!(cpus_of_nodes(&cpuless), [vec![0, 1], vec![]]);
        assert_eq!((cpuless.node_of(1), cpuless.home(1)), (0, 0));
        let three = GuestNodes { cpus: 3, ..cpuless };
        assert_eq!(cpus_of_nodes(&three), [vec![0, 1, 2], vec![]]);
        let mut memoryless = guest(&[1, 0, 1], &["0", "1", ""], Some(2)).unwrap();
        assert_eq!(cpus_of_nodes(&memoryless), [vec![0], vec![1], vec![]]);
        memoryless.distances = vec![vec![10, 20, 30], vec![20, 10, 15], vec![30, 15, 10]];
        assert_eq!((memoryless.node_of(1), memoryless.home(1)), (1, 2));
        let turns = guest(&[1, 1], &["0,2", "1,3"], Some(4)).unwrap();
        assert_eq!(cpus_of_nodes(&turns), [vec![0, 2], vec![1, 3]]);
        assert_eq!(turns.sockets(), 4);
        let fewer = guest(&[1, 1], &["0-7", "8-15"], Some(4)).unwrap();
        assert_eq!(cpus_of_nodes(&fewer), [vec![0, 1], vec![2, 3]]);
        let why = guest(&[1, 0], &["0-1", ""], Some(2))
            .unwrap_err()
            .to_string();
        assert!(why.contains("node 1 has neither"), "{why}");
    }
}
