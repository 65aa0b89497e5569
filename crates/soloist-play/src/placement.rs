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
