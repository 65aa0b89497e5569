//! Linux' own placement: the nearest node, a node each (`numactl --membind`), or all
//! nodes in turn (`numactl --interleave`).

use soloist_core::AddrMap;

use super::Policy;

pub(super) static POLICIES: &[&dyn Policy] = &[&BUDDY, &MEMBIND, &INTERLEAVE];

/// Any page, the local node first.
pub static BUDDY: Linux = Linux {
    name: "buddy",
    title: "Linux",
    binds: false,
    interleaves: false,
};

/// Each program is bound to a node of its own (`numactl --membind`), as long as there are any.
pub static MEMBIND: Linux = Linux {
    name: "membind",
    title: "Linux, a node each",
    binds: true,
    interleaves: false,
};

/// Pages come from all nodes in turn (`numactl --interleave`).
pub static INTERLEAVE: Linux = Linux {
    name: "interleave",
    title: "Linux, nodes in turn",
    binds: false,
    interleaves: true,
};

/// Linux' allocator, by one of its memory policies.
pub struct Linux {
    name: &'static str,
    title: &'static str,
    binds: bool,
    interleaves: bool,
}

impl Policy for Linux {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn interleaves(&self) -> bool {
        self.interleaves
    }

    /// A slice has one node, on which the others would be the same.
    fn fits_slice(&self) -> bool {
        !self.binds && !self.interleaves
    }

    fn nodes(&self, map: &AddrMap, homes: &[u32]) -> Vec<Option<u32>> {
        match self.binds {
            true => own_nodes(map, homes).into_iter().map(Some).collect(),
            false => vec![None; homes.len()],
        }
    }
}

/// Each program's home where no earlier one has it, else the next node behind the first one's
/// that nobody has, and where all are taken the nodes in turn.
fn own_nodes(map: &AddrMap, homes: &[u32]) -> Vec<u32> {
    let mut given = Vec::new();
    for (program, &home) in homes.iter().enumerate() {
        let in_turn = |index| map.node_in_turn(homes[0], index);
        let behind = (0..map.memory_nodes().len()).map(in_turn);
        let mut nodes = std::iter::once(home).chain(behind);
        let free = nodes.find(|node| !given.contains(node));
        given.push(free.unwrap_or_else(|| in_turn(program)));
    }
    given
}
