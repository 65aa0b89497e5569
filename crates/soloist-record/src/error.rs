//! What can be wrong with a recording.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::Serialize;
use soloist_machine::file::{plain, read_bytes};
use soloist_machine::FileError;

/// An error of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read or written, is no part of a recording, or lacks what was
    /// asked for.
    #[error(transparent)]
    File(#[from] FileError),
    /// A stream is damaged or cut off; what lies before is intact.
    #[error("{file}: damaged at byte {offset}: {why}; the {records} records before it are intact")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the damaged frame begins, bytes.
        offset: u64,
        /// A description, for people.
        why: String,
        /// Records in the frames before.
        records: u64,
    },
}

/// A result whose error names the file.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn foreign(file: &Path, why: impl Into<String>) -> Error {
    FileError::whole(file.display().to_string(), why).into()
}

pub(crate) fn io(file: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |error| foreign(file, error.to_string())
}

/// Reads a file of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T> {
    serde_json::from_slice(&read_bytes(file)?).map_err(|error| json(file, &error))
}

/// Writes one, for people to read.
pub(crate) fn write_json(file: &Path, what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec_pretty(what).map_err(|error| json(file, &error))?;
    std::fs::write(file, text).map_err(io(file))
}

fn json(file: &Path, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    // The parser's own words for the line, which stands before the message here.
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(what, _)| what);
    FileError::in_line(file.display().to_string(), error.line(), plain(what)).into()
}
