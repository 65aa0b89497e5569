//! Timing model of a machine's memory: caches, interconnect, controllers, DRAM.
//!
//! Everything is event driven and deterministic. From the bottom up:
//! [`rules`] holds each standard's distances between commands, for the figures of a
//! data sheet ([`soloist_machine::dram`]), [`channel`] the DRAM's state, [`controller`] queues
//! and scheduling. [`replay`] plays traces against controllers alone; [`system`]
//! puts [`core`]s, [`cache`]s and links ([`platform`]) before them. [`checker`]
//! judges command streams by the data sheet's rules and shares no code with the
//! scheduler. docs/design/memory-model.md says what is modelled and what is not.

pub mod blame;
pub mod cache;
pub mod channel;
pub mod checker;
pub mod controller;
pub mod core;
pub mod decoder;
pub mod error;
mod event;
pub mod filter;
pub mod latency;
mod link;
mod llc;
pub mod machine;
mod node;
pub mod platform;
mod prefetch;
mod queue;
pub mod replay;
pub mod rules;
pub mod system;
pub mod timing;
pub mod trace;
mod waits;
mod window;

pub use channel::Geometry;
pub use controller::{Completion, Controller, Request, RowOutcome};
pub use decoder::{Decoder, Place};
pub use error::{Error, Result};
pub use machine::Machine;
pub use platform::Platform;
pub use system::System;
pub use timing::Cycle;
