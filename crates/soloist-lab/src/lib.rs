//! Tasks, allocators and experiments over the memory model.

pub mod alloc;
pub mod buddy;
pub mod policy;
pub mod task;
