//! Real time: from a description of tasks and a machine to a schedule that holds.
//!
//! The rooms, each of which names only those before it:
//!
//! - [`tasks`]: a task set, and the file that describes it.
//! - [`schedule`]: one preemptive scheduler for each core, and a set played over
//!   given execution times. The result is a
//!   [`timeline`](soloist_trace::timeline).
//! - [`model`]: a set on the memory model.
//! - [`analysis`]: response times and processor demand, with what other cores do
//!   through memory and what Linux keeps for itself.
//! - [`plan`]: cores, colours and bandwidth under which every deadline is proved,
//!   and the evidence of it.

pub mod analysis;
pub mod model;
pub mod plan;
pub mod schedule;
pub mod tasks;
