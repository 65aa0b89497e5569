//! Tasks, allocators and experiments over the memory model: a pipeline.
//!
//! A scenario file ([`spec`]) has [`cases`]; each case is run, once per seed
//! ([`jobs`]), on soloist-memory's machine: pages are placed ([`placement`]) and
//! tasks played ([`programs`]). What came of it ([`measurements`]) is held
//! against the claims ([`judgement`]) and shown ([`report`]). [`known`] holds the
//! papers' experiments. [`replay`] plays recorded programs by the same placement and
//! machine. Each names only what stands before it.

pub mod cases;
pub mod jobs;
pub mod judgement;
pub mod known;
mod linux;
pub mod measurements;
pub mod placement;
pub mod programs;
pub mod replay;
pub mod report;
pub mod sensitivity;
pub mod spec;
