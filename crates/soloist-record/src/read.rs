//! Reads a recording back, sorted by program and thread.
//!
//! A program's threads may have moved between its processors: each stream says
//! when it went on to which thread, in an order that all streams share, and a
//! thread's pieces are put together by it. Pages are numbered anew, by first
//! touch in the whole program. What a page *is* is its physical page: threads
//! that share memory share it, copies that fork() made do not.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{foreign, io, Error, Result};
use crate::event::Event;
use crate::frame;
use crate::load::Loader;
use crate::meta::{Meta, Stream, FILE};
use crate::program::Program;
use crate::stream::{ended, frames, Found};

/// A recording on disk.
pub struct Recording {
    /// The programs, the machine and the streams.
    pub meta: Meta,
    dir: PathBuf,
}

/// The part of the lines of each processor that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// The first ones, so many, with the program's start.
    First(usize),
    /// So many from the middle of what was recorded.
    Middle(usize),
    /// So many from a place in what was recorded, in per cent: 0 is its beginning,
    /// 100 its end.
    At(u32, usize),
}

impl Lines {
    /// All.
    pub const ALL: Self = Self::First(usize::MAX);

    /// As many, but no fewer than `least`.
    #[must_use]
    pub fn at_least(self, least: usize) -> Self {
        match self {
            Self::First(n) => Self::First(n.max(least)),
            Self::Middle(n) => Self::Middle(n.max(least)),
            Self::At(percent, n) => Self::At(percent, n.max(least)),
        }
    }

    /// Of `all` lines, the numbers of those.
    fn range(self, all: u64) -> Range<usize> {
        match self {
            Self::First(n) => 0..n,
            Self::Middle(n) => Self::At(50, n).range(all),
            Self::At(percent, n) => {
                // What a file says may be any number.
                let rest = u128::from(all).saturating_sub(n as u128);
                let before = rest * u128::from(percent) / 100;
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                before..before.saturating_add(n)
            }
        }
    }
}

impl Recording {
    /// Reads what the recording in `dir` is of.
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self {
            meta: Meta::read(dir)?,
            dir: dir.to_path_buf(),
        })
    }

    /// Reads program number `program` into memory; of each processor `lines`. All
    /// its pages are there, whichever of them those lines use.
    pub fn load(&self, program: usize, lines: Lines) -> Result<Program> {
        let Some(about) = self.meta.programs.get(program) else {
            let all = self.meta.programs.len();
            let why = format!("no program {program}: there are {all}, counted from 0");
            return Err(foreign(&self.dir, why));
        };
        let mut loader = Loader::default();
        for stream in &self.meta.streams.streams {
            if about.cpus.contains(&stream.cpu) {
                let see = loader.stream(stream.cpu, lines.range(stream.lines));
                match self.stream(stream, see) {
                    Err(e @ Error::Damaged { .. }) => loader.damage.push(e),
                    other => other?,
                }
            }
        }
        let thread = |id: u32| self.meta.streams.threads.get(id as usize);
        let is_ours = |id| thread(id).is_some_and(|t| t.program as usize == program);
        // Its lines would be missing as if it were the kernel's own.
        if let Some(piece) = loader.pieces.iter().find(|piece| !is_ours(piece.thread)) {
            let why = format!(
                "thread {} ran on cpu {}, and {FILE} does not tell that it is of `{}`: that is \
                 another recording's; copy it again, or record again",
                piece.thread, piece.cpu, about.name
            );
            return Err(foreign(&self.dir, why));
        }
        let loaded = loader.finish(|id| thread(id).is_some_and(|t| t.user));
        match loaded.endless_wait() {
            None => Ok(loaded),
            Some(id) => {
                let why = format!(
                    "`{}` waits for its wake {id}, which comes only after that wait: the \
                     recording is wrong; record again",
                    about.name
                );
                Err(foreign(&self.dir, why))
            }
        }
    }

    /// Calls `see` for every event of one of the recording's streams, in order.
    ///
    /// # Errors
    /// As [`Self::events`] has them; and when the file is not the one that
    /// `recording.json` tells of. One that ends early is [`Error::Damaged`].
    pub fn stream(&self, stream: &Stream, see: impl FnMut(Event)) -> Result<()> {
        let path = self.dir.join(&stream.file);
        let file = File::open(&path).map_err(io(&path))?;
        let bytes = file.metadata().map_err(io(&path))?.len();
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let cpu = frame::read_header(&mut reader).map_err(|why| foreign(&path, why))?;
        let what = if cpu != stream.cpu {
            format!("the stream of cpu {cpu}, not of cpu {}", stream.cpu)
        } else if bytes > stream.bytes {
            format!("{bytes} bytes, not {}", stream.bytes)
        } else {
            return ended(&path, stream, &frames(&path, reader, cpu, see)?);
        };
        Err(foreign(
            &path,
            format!("{what}, as {FILE} says: copy it again, or record again"),
        ))
    }

    /// Calls `see` for every event of a stream, in order; what it came to.
    ///
    /// # Errors
    /// When the file can't be read, is none, is damaged, or lacks pages that it uses.
    pub fn events(path: &Path, see: impl FnMut(Event)) -> Result<Found> {
        let mut reader = BufReader::with_capacity(1 << 18, File::open(path).map_err(io(path))?);
        let cpu = frame::read_header(&mut reader).map_err(|why| foreign(path, why))?;
        frames(path, reader, cpu, see)
    }
}
