//! What can be wrong with a recording.

use std::path::{Path, PathBuf};

/// What can be wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// `recording.json` is no description of a recording.
    #[error("{file}: {source}")]
    Meta {
        /// The file.
        file: PathBuf,
        /// The reason, with line and column.
        source: serde_json::Error,
    },
    /// The file is no stream, or one of another version.
    #[error("{file}: {why}")]
    Foreign {
        /// The file.
        file: PathBuf,
        /// What was found and what was expected.
        why: String,
    },
    /// A stream is damaged or cut off; what lies before is intact.
    #[error("{file}: damaged at byte {offset}: {why}; the {records} records before it are intact")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the damaged frame begins, bytes.
        offset: u64,
        /// What is wrong with it.
        why: String,
        /// Records in the frames before.
        records: u64,
    },
    /// The recording holds nothing that was asked for.
    #[error("{0}")]
    Missing(String),
}

/// A result whose error names the file.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn io(file: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |source| Error::Io {
        file: file.to_path_buf(),
        source,
    }
}
