//! Timing model of a machine's memory: caches, interconnect, controllers, DRAM.
//!
//! Everything is event driven and deterministic. From the bottom up:
//! [`device`] holds a data sheet's figures, [`timing`] the distances between
//! commands that follow, [`channel`] the DRAM's state, [`controller`] queues
//! and scheduling. [`replay`] plays traces against controllers alone; [`system`]
//! puts [`core`]s, [`cache`]s and links ([`platform`]) before them. [`checker`]
//! judges command streams by the data sheet's rules and shares no code with the
//! scheduler. docs/memory-model.md says what is modelled and what is not.

pub mod cache;
pub mod channel;
pub mod checker;
pub mod controller;
pub mod core;
pub mod decoder;
pub mod device;
pub mod error;
pub mod latency;
mod link;
pub mod machine;
pub mod platform;
mod prefetch;
mod queue;
pub mod replay;
pub mod system;
pub mod timing;
pub mod trace;

pub use channel::Geometry;
pub use controller::{Completion, Controller, Policy, Request, RowOutcome};
pub use decoder::{Decoder, Place};
pub use device::Device;
pub use error::{Error, Result};
pub use machine::Machine;
pub use platform::Platform;
pub use system::System;
pub use timing::Cycle;
