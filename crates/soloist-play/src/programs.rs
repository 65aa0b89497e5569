//! What programs do to memory: generators of accesses, each deterministic.
//!
//! Most are shaped like a program's inner loop; [`counted`] is made from
//! published counters.

pub mod chase;
pub mod cluster;
pub mod counted;
pub mod counters;
pub mod generate;
pub mod images;
pub mod kind;
pub mod matrix;
pub mod order;
pub mod recorded;
pub mod rounds;
pub mod slower;
pub mod sort;
pub mod step;
pub mod stride;
pub mod swaps;
pub mod table_1;
#[cfg(test)]
mod tests;
pub mod triad;
pub mod video;

pub use generate::ProgramSpec;
pub use kind::ProgramKind;
pub use step::{Access, Program, Step};
