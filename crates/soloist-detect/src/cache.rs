//! The last-level cache: which address bits choose its sets, and its page colours.

pub mod eviction;
pub mod llc;
