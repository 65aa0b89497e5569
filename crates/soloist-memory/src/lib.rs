//! Timing model of a machine's memory: caches, interconnect, controllers, DRAM.
//!
//! Everything is event driven and deterministic. The rooms, from the bottom up; each names
//! only those before it:
//!
//! | room | what |
//! |---|---|
//! | [`error`] | what can go wrong outside the model |
//! | [`latency`] | a distribution of latencies |
//! | [`blame`] | who waited for whom, and why |
//! | [`cache`] | set-associative caches: one, a core's private ones, a shared last level |
//! | [`dram`] | a channel's banks: the standards' rules, and the state that they need |
//! | [`controller`] | a channel's memory controller: queues, scheduler, drain, refresh, row policy |
//! | [`platform`] | a machine file as the model needs it |
//! | [`core`] | a core: what runs on it, what it asks for; prefetchers |
//! | [`system`] | a whole machine: events, nodes, links, and the order in which a line meets them |
//! | [`trace`], [`replay`] | traces of requests, played against controllers alone |
//! | [`checker`] | judges command streams by the data sheets; shares no code with the scheduler |
//!
//! docs/design/memory-model.md says what is modelled and what is not.

pub mod blame;
pub mod cache;
pub mod checker;
pub mod controller;
pub mod core;
pub mod dram;
pub mod error;
pub mod latency;
pub mod platform;
pub mod replay;
pub mod system;
pub mod trace;

pub use controller::{Completion, Controller, Request, RowOutcome};
pub use dram::Geometry;
pub use error::{Error, Result};
pub use platform::{Decoder, DramAddress, Machine, Platform};
pub use system::System;
