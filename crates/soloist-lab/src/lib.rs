//! Tasks, allocators and experiments over the memory model.

pub mod alloc;
pub mod buddy;
pub mod outcome;
pub mod policy;
pub mod scenario;
pub mod task;
