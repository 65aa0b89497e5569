//! Memory traces in the formats of established simulators, streamed.
//!
//! - DRAMsim3: `0xADDR READ|WRITE CYCLE`
//! - Ramulator: `0xADDR R|W`, or its load-store form `LD|ST ADDR`; no cycle:
//!   requests come as fast as the controller takes them
//!
//! Empty lines and lines that begin with `#` are skipped.

use std::io::{BufRead, Read};

use soloist_machine::FileError;

use crate::dram::Cycle;
use crate::error::{Error, Result};

/// Layout of a trace's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `0xADDR READ|WRITE CYCLE`.
    Dramsim3,
    /// `0xADDR R|W`, `R|W ADDR`, `LD|ST ADDR`.
    Ramulator,
}

/// Cycles of a trace are below this: what follows from them never overflows.
const LAST: Cycle = 1 << 62;

impl Format {
    fn expected(self) -> &'static str {
        match self {
            Self::Dramsim3 => "expected `0xADDR READ|WRITE CYCLE`, the cycle below 2^62",
            Self::Ramulator => "expected `0xADDR R|W` or `LD|ST ADDR`",
        }
    }

    /// What is wrong with a line: whose it is, where another tool's is known.
    fn refusal(self, line: &[u8]) -> String {
        let expected = self.expected();
        match foreign(line) {
            Some((is, _)) if is == self => expected.to_owned(),
            Some((_, whose)) => format!("{whose}; {expected}"),
            None => match others(line) {
                Some(whose) => format!("{whose}; {expected}"),
                None => expected.to_owned(),
            },
        }
    }
}

/// The layout whose line it is, and which that is in words.
fn foreign(line: &[u8]) -> Option<(Format, &'static str)> {
    let all = [
        (
            Format::Dramsim3,
            "this is DRAMsim3's layout: --format dramsim3",
        ),
        (
            Format::Ramulator,
            "this is Ramulator's layout: --format ramulator",
        ),
    ];
    let fits = |(format, _): &(Format, _)| matches!(parse(line, *format), Line::Access(_));
    all.into_iter().find(fits)
}

/// Traces that are known and not read.
fn others(line: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(line);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &&str| number(word.as_bytes()).is_some();
    match words[..] {
        ["R" | "W", place] if place.contains(',') => {
            Some("a request by channel, rank, bank, row and column (Ramulator 2) has no address")
        }
        [_, "P_MEM_RD" | "P_MEM_WR" | "BOFF", _] => Some("DRAMSim2's traces are not read"),
        [cycle, "Read" | "Write" | "read" | "write", ..] if cycle.ends_with(':') => {
            Some("DRAMSys' traces are not read")
        }
        [_, _] | [_, _, _] if words.iter().all(is_number) => Some(
            "a trace of a core (instructions between, what it loads, what it stores) is not read",
        ),
        _ => None,
    }
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Physical address.
    pub addr: u64,
    /// Write or read.
    pub write: bool,
    /// Cycle before which it does not arrive.
    pub cycle: Cycle,
}

/// Reads a trace line by line; holds one buffer however long the trace is.
pub struct Reader<R> {
    source: std::io::BufReader<R>,
    file: String,
    format: Format,
    line: usize,
    long: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`; `file` is its name in errors.
    pub fn new(source: R, file: &str, format: Format) -> Self {
        Self {
            source: std::io::BufReader::with_capacity(1 << 18, source),
            file: file.to_owned(),
            format,
            line: 0,
            long: Vec::new(),
        }
    }

    /// Number of the line that the last access came from.
    pub fn line(&self) -> usize {
        self.line
    }

    /// An error about the line read last.
    pub fn error(&self, what: impl Into<String>) -> Error {
        Error::File(FileError {
            file: self.file.clone(),
            line: self.line,
            message: what.into(),
        })
    }

    /// The next access, or `None` at the end.
    #[inline]
    pub fn next_access(&mut self) -> Result<Option<Access>> {
        loop {
            let file = &self.file;
            let buffer = self
                .source
                .fill_buf()
                .map_err(|e| FileError::whole(file, e.to_string()))?;
            if buffer.is_empty() {
                return Ok(None);
            }
            self.line += 1;
            let Some(end) = buffer.iter().position(|&c| c == b'\n') else {
                return self.across_buffers();
            };
            match parse(&buffer[..end], self.format) {
                Line::Access(access) => {
                    self.source.consume(end + 1);
                    return Ok(Some(access));
                }
                Line::Empty => self.source.consume(end + 1),
                Line::Wrong => {
                    let why = self.format.refusal(&buffer[..end]);
                    return Err(self.error(why));
                }
            }
        }
    }

    /// A line that the buffer cuts, or the last one without a newline.
    fn across_buffers(&mut self) -> Result<Option<Access>> {
        const LONGEST: u64 = 4096;
        self.long.clear();
        let file = &self.file;
        let read = (&mut self.source)
            .take(LONGEST)
            .read_until(b'\n', &mut self.long)
            .map_err(|e| FileError::whole(file, e.to_string()))?;
        if read as u64 == LONGEST && !self.long.ends_with(b"\n") {
            return Err(self.error(format!("line longer than {LONGEST} bytes; not a trace?")));
        }
        match parse(&self.long, self.format) {
            Line::Access(access) => Ok(Some(access)),
            Line::Empty => self.next_access(),
            Line::Wrong => Err(self.error(self.format.refusal(&self.long))),
        }
    }
}

enum Line {
    Access(Access),
    Empty,
    Wrong,
}

#[inline]
fn parse(line: &[u8], format: Format) -> Line {
    let mut words = Words(line);
    let first = words.next();
    if first.is_empty() || first[0] == b'#' {
        return Line::Empty;
    }
    let access = match format {
        Format::Dramsim3 => dramsim3(first, &mut words),
        Format::Ramulator => ramulator(first, &mut words),
    };
    match access {
        Some(access) if words.next().is_empty() => Line::Access(access),
        _ => Line::Wrong,
    }
}

#[inline]
fn dramsim3(first: &[u8], words: &mut Words<'_>) -> Option<Access> {
    Some(Access {
        addr: number(first)?,
        write: match words.next() {
            b"READ" => false,
            b"WRITE" => true,
            _ => return None,
        },
        cycle: number(words.next()).filter(|&c| c < LAST)?,
    })
}

#[inline]
fn ramulator(first: &[u8], words: &mut Words<'_>) -> Option<Access> {
    let second = words.next();
    let (kind, addr) = if first[0].is_ascii_digit() {
        (second, first)
    } else {
        (first, second)
    };
    Some(Access {
        addr: number(addr)?,
        write: match kind {
            b"R" | b"LD" => false,
            b"W" | b"ST" => true,
            _ => return None,
        },
        cycle: 0,
    })
}

/// Words between blanks; an empty one at the end.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    #[inline]
    fn next(&mut self) -> &'a [u8] {
        let line = self.0;
        let blank = |c: &u8| matches!(*c, b' ' | b'\t' | b'\r' | b'\n');
        let start = line.iter().position(|c| !blank(c)).unwrap_or(line.len());
        let line = &line[start..];
        let end = line.iter().position(blank).unwrap_or(line.len());
        self.0 = &line[end..];
        &line[..end]
    }
}

/// A number, decimal or `0x` hexadecimal, below 2^64.
#[inline]
fn number(word: &[u8]) -> Option<u64> {
    match word {
        [b'0', b'x' | b'X', digits @ ..] => {
            if digits.is_empty() || digits.len() > 16 {
                return None;
            }
            digits.iter().try_fold(0_u64, |sum, &c| {
                let digit = match c {
                    b'0'..=b'9' => c - b'0',
                    b'a'..=b'f' => c - b'a' + 10,
                    b'A'..=b'F' => c - b'A' + 10,
                    _ => return None,
                };
                Some(sum << 4 | u64::from(digit))
            })
        }
        [] => None,
        digits => digits.iter().try_fold(0_u64, |sum, &c| {
            if !c.is_ascii_digit() {
                return None;
            }
            sum.checked_mul(10)?.checked_add(u64::from(c - b'0'))
        }),
    }
}
