//! What is to hold: the configuration file, and the steps that make it true.

mod check;
mod check_here;
mod difference;
mod file;
mod order;
mod read;
mod steps;
mod transaction;

pub use difference::plan;
pub use file::{Config, GroupConfig, RuleConfig};
pub use steps::{Step, Steps};
pub use transaction::{Transaction, Wanted};
