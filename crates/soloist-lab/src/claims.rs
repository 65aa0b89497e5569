//! What claims say, before anything runs: which measured values they name, and how they
//! compare them.

pub mod check;
pub mod comparison;
pub mod expression;
pub mod plot;

pub use check::{check_claims, name, needs};
pub use comparison::{comparisons, Comparison};
pub use plot::check_plot;
