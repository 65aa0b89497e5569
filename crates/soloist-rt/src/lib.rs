//! Real time: from a description of tasks and a machine to a schedule that holds.
//!
//! A task file ([`file`]) becomes a [`TaskSet`](task::TaskSet). One [`scheduler`]
//! a core, partitioned and preemptive, decides who runs; it is driven by given
//! execution times ([`times`]). What came of it is a [`timeline`], which
//! [`gantt`] draws. Each names only what stands before it.

pub mod file;
pub mod gantt;
pub mod scheduler;
pub mod task;
pub mod time;
pub mod timeline;
pub mod times;
