//! What can go wrong on a machine, in words that name the way out.

use std::io;
use std::path::{Path, PathBuf};

use soloist_machine::{FileError, KeyError};

/// Reading or controlling the machine failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No control interface.
    #[error("soloist.ko is not loaded: run `soloist up` first (`soloist doctor` says what this machine lacks)")]
    NotLoaded,
    /// No map was written.
    #[error("no address map is loaded: run `soloist up --machine NAME` (`soloist map list` shows the known ones)")]
    NoMap,
    /// The kernel refused a command and said why.
    #[error("{what}: the kernel refused: {why}")]
    Refused {
        /// What was tried: `groups/core0/bank_set = 0-3`.
        what: String,
        /// `last_cmd_status`, or the errno's words where that is empty.
        why: String,
        /// The errno.
        errno: i32,
    },
    /// One step of several was refused; those before it were taken back.
    #[error("groups, rules and reservations are as they were{but}: {error}")]
    TakenBack {
        /// ` but that groups/video is gone`, or nothing.
        but: String,
        /// Why.
        error: Box<HostError>,
    },
    /// A file was refused after its map was loaded, and the earlier map can't come back.
    #[error("{error}; but the map of {map} stays loaded: {why}")]
    MapStays {
        /// Why it was refused.
        error: Box<HostError>,
        /// Name of the map.
        map: String,
        /// Why it stays.
        why: String,
    },
    /// CAP_SYS_ADMIN is missing.
    #[error("{0} needs root (CAP_SYS_ADMIN): run it with sudo")]
    NeedsRoot(String),
    /// No such group or rule.
    #[error("there is no {kind} {name:?}{like}; `soloist {kind} list` shows those there are")]
    NoSuch {
        /// `group` or `rule`.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// ` (did you mean "video"?)`, or nothing.
        like: String,
    },
    /// A group or rule of that name is there already.
    #[error("{kind} {name:?} exists already: take another name, change it with `soloist {kind} set`, or remove it with `soloist {kind} rm {name}`")]
    Exists {
        /// `group` or `rule`.
        kind: &'static str,
        /// The name asked for.
        name: String,
    },
    /// A group without a directory, which can't be changed.
    #[error("{0} was made by a rule or an mmap() call, and goes with its last page: it can be shown and recoloured, and others be evicted from its colours, but it can't be changed, joined or removed; `soloist rule list` shows the rules")]
    Implicit(String),
    /// Not usable as a name in configfs.
    #[error(
        "{0:?} is no name: use up to 64 letters, digits, `-`, `_` and `.`, not starting with `.` or `-`"
    )]
    BadName(String),
    /// A configuration, or the kernel's own text, is not what it should be.
    #[error(transparent)]
    File(#[from] FileError),
    /// Groups that have tasks.
    #[error("in use by {}: their tasks would go on uncoloured; end them, or take them out with --force", .0.join(", "))]
    InUse(Vec<String>),
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// A process without memory of its own.
    #[error(
        "process {0} has no memory of its own: it is a thread of the kernel, or has just ended or begun another program"
    )]
    NoMemory(i32),
    /// The command to run was not found or cannot be run.
    #[error("{command}: {source}")]
    Exec {
        /// The command.
        command: String,
        /// Why not.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The request contradicts itself or cannot be met; misuse.
    #[error("{0}")]
    Request(String),
    /// A key of a configuration has a value that cannot be; misuse.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl HostError {
    /// A file or directory was not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The kernel had not enough of what was asked for.
    pub(crate) fn is_no_room(&self) -> bool {
        matches!(self, Self::Refused { errno, .. } if *errno == libc::ENOSPC)
    }

    /// The kernel's text at `path` is not what it should be.
    pub(crate) fn unexpected(path: &Path, text: impl Into<String>) -> Self {
        FileError::whole(path.display().to_string(), text).into()
    }

    /// An I/O error at `path`.
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }
}
