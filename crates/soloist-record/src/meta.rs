//! `recording.json`: what ran where, and through which caches.

use std::fs::File;
use std::path::Path;

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{foreign, io, read_json, write_json, Result};

/// The file's name.
pub const FILE: &str = "recording.json";
/// The file that the plugin writes at its end; it becomes part of [`FILE`].
pub const STREAMS: &str = "streams.json";
/// Bytes of a line: a page has 64 of them, and all that reads a recording counts on it.
pub const LINE: u32 = 64;

/// The file of the stream of processor `cpu`.
pub fn stream_file(cpu: u32) -> String {
    format!("cpu-{cpu}.rec")
}

/// Whether nothing of a recording lies in `dir`, so that one can go there: two would mix their
/// streams.
///
/// # Errors
/// Where something does, in words.
pub fn vacant(dir: &Path) -> std::result::Result<(), String> {
    if dir.as_os_str() == "-" {
        return Err(
            "a recording is a directory, which standard output can't take: name one".to_owned(),
        );
    }
    if dir.exists() && !dir.is_dir() {
        return Err(format!(
            "{} is no directory: name one, or a place where nothing is",
            dir.display()
        ));
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        let (name, dir) = (entry.file_name(), dir.display());
        match name.to_str() {
            Some(FILE) => return Err(format!("{dir} holds a recording already")),
            Some(name) if name == STREAMS || is_stream(name) => {
                return Err(format!(
                    "{dir} has {name}, of another recording: remove it, or name another directory"
                ))
            }
            _ => {}
        }
    }
    Ok(())
}

/// Keeps every other recording out of `dir` for as long as what is returned lives: so what
/// [`vacant`] says stays true.
///
/// # Errors
/// Where another one is being written there, or the directory can't be opened, in words.
pub fn lock(dir: &Path) -> std::result::Result<File, String> {
    let open = File::open(dir).map_err(|e| format!("cannot use {}: {e}", dir.display()))?;
    match flock(&open, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(format!(
            "{}: another recording is being written there: name another directory",
            dir.display()
        )),
        // A file system without locks: what lies there is looked at all the same.
        _ => Ok(open),
    }
}

fn is_stream(name: &str) -> bool {
    name.starts_with("cpu-") && name.ends_with(".rec")
}

/// A cache before the recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// `l1d`, `l1i`, `l2`.
    pub name: String,
    /// Sets.
    pub sets: u64,
    /// Lines per set.
    pub ways: usize,
}

/// A recorded program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its first word without directories.
    pub name: String,
    /// Command and arguments.
    pub argv: Vec<String>,
    /// The processors that it had to itself.
    pub cpus: Vec<u32>,
    /// Settings of its group, as `name=value`; none: Linux placed the pages.
    #[serde(default)]
    pub colors: Vec<String>,
}

/// A thread that ran on a recorded processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Number of its program, from 0.
    pub program: u32,
    /// Whether it ran in user mode; else it is the kernel's own.
    pub user: bool,
}

/// The file of one processor's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The processor.
    pub cpu: u32,
    /// File in the recording's directory.
    pub file: String,
    /// Lines in it.
    pub lines: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Loads, stores and blocks of instructions that were looked at.
    pub looked_at: u64,
    /// Instructions executed while recording.
    pub instructions: u64,
}

/// The state of the plugin at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// The threads, by number.
    pub threads: Vec<Thread>,
    /// The streams, one for each processor.
    pub streams: Vec<Stream>,
    /// Recording stopped before the end, at its limit.
    pub limited: bool,
    /// Recording stopped before the end, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A description of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of the format, [`crate::frame::VERSION`].
    pub version: u32,
    /// Name of the machine file.
    pub machine: String,
    /// The machine's address map, as the module took it.
    pub map: String,
    /// Node of each of the guest's processors.
    pub node_of_cpu: Vec<u32>,
    /// The guest's kernel.
    pub kernel: String,
    /// Placement of the pages, by name.
    pub policy: String,
    /// Bytes of a line: [`LINE`].
    pub line: u32,
    /// The caches before the recorder, `l1d` and `l1i` first.
    pub caches: Vec<Cache>,
    /// Foreground first.
    pub programs: Vec<Program>,
    /// Streams and threads.
    #[serde(flatten)]
    pub streams: Streams,
}

impl Meta {
    /// A recording of one program, a thread of it on the processor of each stream, all on node
    /// 0; nothing is said of the machine, its caches, the kernel and the policy.
    #[must_use]
    pub fn of_program(name: &str, streams: Vec<Stream>) -> Self {
        let thread = Thread {
            program: 0,
            user: true,
        };
        Self {
            version: crate::frame::VERSION,
            machine: String::new(),
            map: String::new(),
            node_of_cpu: vec![0; streams.len()],
            kernel: String::new(),
            policy: String::new(),
            line: LINE,
            caches: Vec::new(),
            programs: vec![Program {
                name: name.to_owned(),
                argv: vec![name.to_owned()],
                cpus: streams.iter().map(|stream| stream.cpu).collect(),
                colors: Vec::new(),
            }],
            streams: Streams {
                threads: vec![thread; streams.len()],
                streams,
                ..Streams::default()
            },
        }
    }

    /// Reads the file in `dir`.
    pub fn read(dir: &Path) -> Result<Self> {
        let file = dir.join(FILE);
        if !file.exists() {
            let why = "no recording: `soloist vm record` and `soloist sim import` make one";
            return Err(foreign(dir, why));
        }
        let meta: Self = read_json(&file)?;
        if !(1..=crate::frame::VERSION).contains(&meta.version) {
            let why = format!(
                "a recording of version {}; this program reads versions 1 to {}",
                meta.version,
                crate::frame::VERSION
            );
            return Err(foreign(&file, why));
        }
        if meta.line != LINE {
            let why = format!(
                "a recording of lines of {} bytes; this program reads those of {LINE}",
                meta.line
            );
            return Err(foreign(&file, why));
        }
        if meta.programs.is_empty() {
            return Err(foreign(&file, "a recording of no program"));
        }
        Ok(meta)
    }

    /// The stream of processor `cpu`.
    pub fn stream(&self, cpu: u32) -> Option<&Stream> {
        self.streams.streams.iter().find(|s| s.cpu == cpu)
    }

    /// Writes the file in `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join(FILE), self)
    }
}

/// Room for what is told at the end, even of a disk that has become full.
const RESERVED: usize = 64 << 10;

impl Streams {
    /// Takes up the room that [`Self::write`] and [`Meta::write`] will need in `dir`.
    pub fn reserve(dir: &Path) -> Result<()> {
        let file = dir.join(STREAMS);
        std::fs::write(&file, vec![b' '; RESERVED]).map_err(io(&file))
    }

    /// Reads what the plugin left in `dir`.
    pub fn read(dir: &Path) -> Result<Self> {
        read_json(&dir.join(STREAMS))
    }

    /// Writes it there.
    pub fn write(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join(STREAMS), self)
    }
}
