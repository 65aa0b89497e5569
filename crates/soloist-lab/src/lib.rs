//! Experiments over the memory model, a line of rooms.
//!
//! A scenario file ([`spec`]) has [`cases`]. What will be measured of them
//! ([`measurements`]) is what its [`claims`] name. Each case is played, once for each
//! seed, on soloist-play's stage ([`jobs`]); what came of it is held against the claims
//! ([`judgement`]) and shown ([`report`]). [`known`] holds the papers' experiments.
//!
//! A task set with deadlines is the other kind of experiment ([`taskset`]), played by
//! soloist-rt; an [`experiment`] is either. [`sensitivity`] runs scenarios with what no
//! document says otherwise. Each room names only what stands before it.

pub mod cases;
pub mod claims;
pub mod experiment;
pub mod jobs;
pub mod judgement;
pub mod known;
pub mod measurements;
pub mod report;
pub mod sensitivity;
pub mod spec;
pub mod taskset;
