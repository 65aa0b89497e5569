//! This machine: the control interface, processes and their pages, and what
//! the running kernel offers. The command line prints what is found here.
//!
//! Everything is read below a [`machine::Host`]'s root, so that tests put a made-up
//! machine into a directory. The rooms stand in this order; each uses those above it
//! in the list alone: [`machine`], [`control`], [`run`], [`observe`], [`config`].

pub mod config;
pub mod control;
mod error;
pub mod machine;
pub mod observe;
pub mod run;
mod signals;
pub mod words;

pub use error::HostError;
