//! Address maps: known, decoded, detected.
//!
//! A map says which bits of a physical address select node, channel, rank,
//! bank, row and column. This crate knows where maps come from: machine files
//! ([`machine`], [`known`]) ... Decoding itself is core's, by
//! [`soloist_core::AddrMap`]; here a map is functions and ranges ([`spec`])
//! that are printed as the text which core parses.

pub mod amd10h;
pub mod classmap;
pub mod compare;
pub mod detect;
pub mod formats;
pub mod function;
pub mod gf2;
pub mod host;
pub mod known;
pub mod machine;
pub mod pci;
pub mod ruler;
pub mod solve;
pub mod spec;
pub mod write;

pub use machine::{Machine, MachineError, Trust};
pub use spec::{Layout, MapRange, MapSpec};
