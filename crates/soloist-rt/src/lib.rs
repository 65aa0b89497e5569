//! Real time: from a description of tasks and a machine to a schedule that holds.
//!
//! A task file ([`file`]) becomes a [`TaskSet`](task::TaskSet). One [`scheduler`]
//! a core, partitioned and preemptive, decides who runs; it is driven by given
//! execution times ([`times`]) or by the memory model ([`cores`]), on which a task's
//! jobs do what [`program`] makes and [`profile`] measures; [`recorded`] has a task's counters from a real run. What came of it is a [`timeline`], which
//! [`gantt`] draws. [`policy`] is how the papers give such a set its memory, and
//! [`mission`] an experiment with claims. [`response`] proves deadlines, with what other cores
//! can do through memory ([`interference`]) and as [`linux`] schedules tasks; [`random`] draws sets to try that on. What can't be at all is a [`refusal`]. [`plan`] searches for
//! cores, [`colors`] and bandwidth under which all of it holds; [`grounds`] says what of the machine that rests on; [`evidence`] writes it down with the
//! [`inputs`] that it was made from, and [`share`] is what share of
//! random sets holds under it and under the papers' isolation. From a running kernel, [`schedtrace`] reads
//! lines, [`track`] makes jobs of what a task did, and [`observe`] a timeline of all; [`responses`] is how long jobs took, [`measured`] all of that in figures,
//! and [`perfetto`] a file for that viewer. Each names only what stands before it.

mod alone;
pub mod colors;
pub mod cores;
mod edf;
pub mod evidence;
pub mod file;
pub mod gantt;
pub mod grounds;
pub mod inputs;
pub mod interference;
pub mod linux;
pub mod measured;
pub mod mission;
pub mod observe;
pub mod perfetto;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod program;
pub mod random;
pub mod recorded;
pub mod refusal;
mod relax;
pub mod response;
pub mod responses;
pub mod schedtrace;
pub mod scheduler;
pub mod share;
pub mod task;
pub mod timeline;
pub mod times;
pub mod track;

pub use soloist_core::time;
