//! A task set on the memory model.
//!
//! [`program`] is what a job does, [`cores`] plays the set, [`profile`] measures each
//! task alone, [`in_colors`] in its own colours, [`recorded`] takes a task's counters
//! from a real run, and [`policy`] gives tasks their memory as the papers do.

pub mod cores;
pub mod in_colors;
pub mod policy;
pub mod profile;
pub mod program;
pub mod recorded;
