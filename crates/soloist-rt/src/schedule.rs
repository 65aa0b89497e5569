//! Which task runs on a core, and when: what a kernel does with a task set.

pub mod scheduler;
pub mod times;
