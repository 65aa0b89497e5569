//! Tasks, allocators and experiments over the memory model.
//!
//! A scenario file ([`scenario`]) says who runs where under which policies.
//! [`run`] places the pages ([`alloc`], [`buddy`], [`policy`]) and plays the
//! tasks ([`task`], [`mod@generate`]) on soloist-memory's machine; [`outcome`]
//! judges the claims; [`report`] draws. [`known`] holds the papers'
//! experiments. [`regulation`] and [`governor`] are MemGuard; [`profile`] fits
//! generators to what it prints of SPEC.

pub mod alloc;
pub mod buddy;
pub mod generate;
pub mod governor;
pub mod images;
pub mod known;
pub mod outcome;
pub mod policy;
pub mod profile;
pub mod regulation;
pub mod report;
pub mod run;
pub mod scenario;
pub mod task;
