//! What belongs to the memory of a node: the queue before its controllers and
//! the data paths.

use std::collections::VecDeque;

use soloist_machine::memory::NorthbridgeConfig;

use super::in_order::InOrder;
use super::link::Wire;

/// A node's northbridge. The queue is shared by all banks and channels and
/// served in order: a request whose controller is full holds up those behind.
pub(super) struct Node {
    pub queue: VecDeque<u32>,
    /// Where answers come in the order of requests.
    pub order: Option<InOrder>,
    /// From memory; to memory as well, if they share it.
    from: Wire,
    to: Option<Wire>,
}

impl Node {
    pub fn new(config: &NorthbridgeConfig) -> Self {
        Self {
            queue: VecDeque::new(),
            order: InOrder::new(config),
            from: Wire::new(config.bytes_per_us),
            to: (!config.shared).then(|| Wire::new(config.bytes_per_us)),
        }
    }

    /// The data path from memory.
    pub fn read_path(&mut self) -> &mut Wire {
        &mut self.from
    }

    /// The data path to memory.
    pub fn write_path(&mut self) -> &mut Wire {
        self.to.as_mut().unwrap_or(&mut self.from)
    }
}
