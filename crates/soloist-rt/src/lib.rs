//! Real time: from a description of tasks and a machine to a schedule that holds.
//!
//! The rooms, each of which names only those before it:
//!
//! - [`tasks`]: a task set, and the file that describes it.
//! - [`schedule`]: one preemptive scheduler for each core, and a set played over
//!   given execution times. The result is a
//!   [`timeline`](soloist_trace::timeline).
//! - A set on the memory model: [`program`] is what a job does, [`cores`] plays the
//!   set, [`profile`] measures each task alone, [`recorded`] takes a task's counters
//!   from a real run, and [`policy`] gives it its memory as the papers do.
//! - [`analysis`]: response times and processor demand, with what other cores do
//!   through memory and what Linux keeps for itself.
//! - [`plan`]: cores, colours and bandwidth under which every deadline is proved,
//!   and the evidence of it.

pub mod analysis;
pub mod cores;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod program;
pub mod recorded;
pub mod schedule;
pub mod tasks;

pub use soloist_core::time;
