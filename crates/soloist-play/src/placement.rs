//! Where pages come from: Linux' allocator, and core's lists of coloured frames.

pub mod buddy;
pub mod memory;
mod module;

use buddy::History;
use memory::Exhaust;

/// A machine's free memory before anybody has a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FreeMemory {
    /// What happened before.
    pub history: History,
    /// What a program gets when its colours have no page left.
    pub exhaust: Exhaust,
    /// Coloured pages come in the module's order, not in that of the papers'
    /// algorithms ([`memory::Memory::as_the_module`]).
    pub as_the_module: bool,
}

impl FreeMemory {
    /// A machine that has just booted; who runs out of colours gets any page.
    pub const FRESH: Self = Self {
        history: History::FRESH,
        exhaust: Exhaust::Spill,
        as_the_module: false,
    };
}

/// For tests: two nodes of 128 MiB.
#[cfg(test)]
pub(crate) const SMALL_MAP: &str =
    "soloist-map 1\nname small\nline 64\nllc 12 13 14 15 16\nlayout\n\
    channel 6^16^17^18^19^20\nrank 17\nbank 15 16 18\n\
    row 20 21 22 23 24 25 26 19\ncol 3 4 5 7 8 9 10 11 12 13 14\n\
    range 0x0 0x8000000 node 0\nrange 0x8000000 0x10000000 node 1\n";
