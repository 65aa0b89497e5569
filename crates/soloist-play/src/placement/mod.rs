//! Where pages come from: Linux' allocator, and colours by policy.

pub mod buddy;
pub mod memory;
mod module;
pub mod policy;
