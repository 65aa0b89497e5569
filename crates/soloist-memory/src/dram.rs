//! The DRAM of one channel: what the standards demand between commands, and the
//! state of ranks, bank groups and banks that it takes to keep to it.

pub mod rules;

mod channel;
mod timing;

pub(crate) use channel::{Bank, NO_ROW};
pub use channel::{Channel, Command, Geometry, Issued};
pub use timing::{Cycle, Timing};
