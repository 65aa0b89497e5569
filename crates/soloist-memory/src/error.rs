//! Errors: what was wrong, where, and what was expected.

use soloist_machine::FileError;
use thiserror::Error;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong outside the model itself.
#[derive(Debug, Error)]
pub enum Error {
    /// A file was refused: its name, the line, what is wrong.
    #[error("{0}")]
    File(#[from] FileError),
    /// What was to be changed of a machine's model was refused.
    #[error("{0}")]
    Model(String),
    /// Commands that break the rules of their device.
    #[error("{0}")]
    Rules(String),
}
