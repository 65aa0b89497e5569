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

/// Each program is bound to a node of its own (`numactl --membind`).
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

    /// The first program's is its home; the others follow it.
    fn node(&self, map: &AddrMap, home: u32, program: usize) -> Option<u32> {
        self.binds.then(|| map.node_in_turn(home, program))
    }
}
