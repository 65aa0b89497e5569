//! Errors: what was wrong, where, and what was expected.

use std::path::Path;

use thiserror::Error;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong outside the model itself.
#[derive(Debug, Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A machine file was refused; the message names file and line.
    #[error("{0}")]
    Machine(String),
    /// What was to be changed of a machine's model was refused.
    #[error("{0}")]
    Model(String),
    /// A line could not be understood.
    #[error("{file}:{line}: {what}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What was wrong, and what was expected.
        what: String,
    },
    /// The figures of a file contradict each other.
    #[error("{file}: {what}")]
    Invalid {
        /// The file.
        file: String,
        /// What was wrong.
        what: String,
    },
}

impl Error {
    /// Wraps an I/O error with the file's name.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: path.display().to_string(),
            source,
        }
    }

    /// Turns a TOML error into `file:line: message`.
    pub fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at]
            .iter()
            .filter(|&&c| c == b'\n')
            .count()
            + 1;
        Self::Syntax {
            file: file.to_owned(),
            line,
            what: error.message().replace('\n', " "),
        }
    }
}
