//! The files that a plan is made from, each with its hash, as sha256sum(1) prints
//! it.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use soloist_record::meta::{Meta, FILE};

use crate::tasks::TaskSet;

/// A file that something was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// A description, for people.
    pub what: String,
    /// Its name.
    pub file: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

impl Input {
    /// Returns the input for a file that was read already.
    #[must_use]
    pub fn of(what: &str, file: &str, bytes: &[u8]) -> Self {
        Self {
            what: what.to_owned(),
            file: file.to_owned(),
            sha256: format!("{:x}", Sha256::digest(bytes)),
        }
    }

    fn read(what: &str, path: &Path) -> io::Result<Self> {
        let mut hash = Sha256::new();
        File::open(path)
            .and_then(|mut file| io::copy(&mut file, &mut hash))
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        Ok(Self {
            what: what.to_owned(),
            file: path.display().to_string(),
            sha256: format!("{:x}", hash.finalize()),
        })
    }
}

/// All files of the recordings that tasks of the set play, or have their counters
/// from.
///
/// # Errors
/// If one of them cannot be read.
pub fn recordings(set: &TaskSet) -> io::Result<Vec<Input>> {
    let mut found = Vec::new();
    for task in &set.tasks {
        let Some(dir) = &task.recording else { continue };
        let what = format!("recording of {}", task.name);
        let meta = Meta::read(dir).map_err(io::Error::other)?;
        let streams = meta.streams.streams.into_iter().map(|s| s.file);
        let files = std::iter::once(FILE.to_owned()).chain(streams);
        for file in files {
            found.push(Input::read(&what, &dir.join(file))?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf abc | sha256sum` prints it.
    #[test]
    fn a_hash_is_sha256sums() {
        let input = Input::of("a file", "abc", b"abc");
        assert_eq!(
            input.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
