//! Response times and processor demand, with what memory and the kernel add.
//!
//! [`interference`] bounds what other cores do through memory, [`linux`] is what
//! the kernel keeps for others, and [`response`] proves deadlines with both.

mod edf;
pub mod interference;
pub mod linux;
pub mod response;
