//! Maps out of the machine itself: its registers and its firmware.

pub mod amd10h;
pub mod bridge;
pub mod firmware;
pub mod registers;
