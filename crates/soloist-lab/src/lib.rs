//! Tasks, allocators and experiments over the memory model.
//!
//! A scenario file ([`scenario`]) says who runs where under which policies.
//! [`run`] places the pages ([`alloc`], [`buddy`], [`policy`]) and plays the
//! tasks ([`task`], [`mod@generate`]) on soloist-memory's machine; [`outcome`]
//! judges the claims; [`report`] draws. [`known`] holds the papers'
//! experiments.

pub mod alloc;
pub mod buddy;
pub mod generate;
pub mod known;
pub mod outcome;
pub mod policy;
pub mod report;
pub mod run;
pub mod scenario;
pub mod task;
