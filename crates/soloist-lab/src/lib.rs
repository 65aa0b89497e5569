//! Experiments over the memory model: a pipeline.
//!
//! A scenario file ([`spec`]) has [`cases`]; each case is run, once per seed
//! ([`jobs`]), by soloist-play. What came of it ([`measurements`]) is held
//! against the claims ([`judgement`]) and shown ([`report`]). [`known`] holds the
//! papers' experiments. Each names only what stands before it.

pub mod cases;
pub mod jobs;
pub mod judgement;
pub mod known;
pub mod measurements;
pub mod report;
pub mod sensitivity;
pub mod spec;
