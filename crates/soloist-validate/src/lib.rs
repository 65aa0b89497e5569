//! Recorded programs on a machine's own memory, beside what the model says.
//!
//! A [`cut::Cut`] is a modelled machine of few banks, each page in one of them: as the
//! slice is that `soloist bench silicon` finds in real memory. A policy places pages on it
//! ([`place`]). A [`script::Script`] is what a program then asks memory for: its recorded
//! accesses but those that the modelled last level has, with their dependence and the time
//! between them. The same scripts go two ways: bank by bank onto lines of the slice, where
//! [`soloist_bench::recorded`] plays them, and into the timing model ([`model`]).
//! [`stage`] does all of it, and [`memory`] finds the lines.

pub mod cut;
pub mod error;
pub mod memory;
pub mod model;
pub mod place;
pub mod script;
pub mod stage;
