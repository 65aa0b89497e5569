//! Where address maps come from without timing: registers, firmware, decodes, other tools'
//! files.
//!
//! A map says which bits of a physical address select node, channel, rank,
//! bank, row and column. It ends in a machine file ([`soloist_machine`]), where
//! it is functions and ranges; decoding is core's. [`ruler`] draws a map, [`summary`] says what
//! its colours are, and [`compare`] whether two maps are the same. `soloist-detect` finds maps by timing.

pub mod compare;
pub mod formats;
pub mod ruler;
pub mod solve;
pub mod sources;
pub mod summary;
