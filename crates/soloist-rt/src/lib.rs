//! Real time: from a description of tasks and a machine to a schedule that holds.
//!
//! A task file ([`file`]) becomes a [`TaskSet`](task::TaskSet). One [`scheduler`]
//! a core, partitioned and preemptive, decides who runs; it is driven by given
//! execution times ([`times`]) or by the memory model ([`cores`]), on which a task's
//! jobs do what [`program`] makes and [`profile`] measures; [`recorded`] has a task's counters from a real run. What came of it is a
//! [`timeline`](soloist_trace::timeline). [`policy`] is how the papers give such a set its memory, and
//! [`mission`] an experiment with claims. [`response`] proves deadlines, with what other cores
//! can do through memory ([`interference`]) and as [`linux`] schedules tasks; [`random`] draws sets to try that on. What can't be at all is a [`refusal`]. [`plan`] searches for
//! cores, [`colors`] and bandwidth under which all of it holds; [`grounds`] says what of the machine that rests on; [`evidence`] writes it down with the
//! [`inputs`] that it was made from, and [`share`] is what share of
//! random sets holds under it and under the papers' isolation. Each names only what stands before it.

mod alone;
pub mod colors;
pub mod cores;
mod edf;
pub mod evidence;
pub mod file;
pub mod grounds;
pub mod inputs;
pub mod interference;
pub mod linux;
pub mod mission;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod program;
pub mod random;
pub mod recorded;
pub mod refusal;
mod relax;
pub mod response;
pub mod scheduler;
pub mod share;
pub mod task;
pub mod times;

pub use soloist_core::time;
