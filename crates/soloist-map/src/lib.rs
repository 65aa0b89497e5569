//! Where address maps come from: registers, decodes, other tools' files,
//! timing.
//!
//! A map says which bits of a physical address select node, channel, rank,
//! bank, row and column. It ends in a machine file ([`soloist_machine`]), where
//! it is functions and ranges; decoding is core's. Detection by timing
//! ([`detect`]) stands apart from the files.

pub mod advice;
pub mod choice;
pub mod compare;
pub mod detect;
pub mod formats;
pub mod ruler;
pub mod silicon;
pub mod solve;
pub mod sources;
