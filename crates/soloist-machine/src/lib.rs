//! A machine, as its file describes it.
//!
//! Everything that reads a machine reads it through [`Machine`]: who it is
//! ([`about`]), its nodes and CPUs ([`topology`]), caches ([`cache`]), address
//! map ([`map`], [`spec`]), DRAM ([`dram`], [`memory`]) and its virtual form
//! ([`vm`]). What is wrong with a file is a [`FileError`], with file and line ([`file`]).
//! Conflict classes of single pages are a file of another kind ([`classmap`]).
//! Decoding is core's, by [`soloist_core::AddrMap`]; here a map is functions
//! ([`function`], [`gf2`]) and ranges ([`ram`]). Many addresses at a time go through a
//! [`codec`].

pub mod about;
mod built_in;
pub mod cache;
pub mod classmap;
pub mod codec;
pub mod dram;
pub mod file;
pub mod function;
pub mod gf2;
pub mod known;
pub mod machine;
mod map;
pub mod memory;
pub mod ram;
mod similar;
pub mod spec;
pub mod topology;
pub mod vm;
pub mod write;

pub use about::{About, HostFit, Trust};
pub use cache::{Bytes, Cache, Caches};
pub use file::{FileError, FileText, KeyError};
pub use machine::Machine;
pub use ram::RamRange;
pub use similar::{did_you_mean, similar};
pub use spec::{Layout, MapRange, MapSpec};
pub use topology::Topology;
