//! What is to hold: the configuration file, and the steps that make it true.

mod apply;
mod check;
mod file;
mod order;
mod read;
mod transaction;

pub use apply::{plan, Step, Steps};
pub use file::{Config, GroupConfig, RuleConfig};
pub use transaction::{Transaction, Wanted};
