//! Recordings for other simulators, as far as they can say what we know.

use std::io::{self, Write};

use crate::event::Kind;
use crate::read::{Lane, Program, Step};

/// Another simulator's trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// DRAMsim3: `0xADDR READ|WRITE CYCLE`, the cycle counting instructions.
    Dramsim3,
    /// Ramulator 2's load-store trace: `LD|ST ADDR`.
    Ramulator,
}

impl Format {
    /// What a trace of this format can't say, for people.
    pub fn lost(self) -> &'static str {
        match self {
            Self::Dramsim3 => {
                "lost: dependence, threads, virtual pages, user or kernel; fetches are reads, \
                 write-backs are writes, a cycle is an instruction"
            }
            Self::Ramulator => {
                "lost: instructions between lines, dependence, threads, virtual pages, user or \
                 kernel; fetches are loads, write-backs are stores"
            }
        }
    }
}

/// Writes a lane as a trace of `format`, pages lying where they were recorded; how many
/// lines. A line that a store asks for is read; it is written when it is pushed out.
pub fn export(
    program: &Program,
    lane: &Lane,
    format: Format,
    to: &mut impl Write,
) -> io::Result<u64> {
    let (mut instructions, mut lines) = (0u64, 0);
    for step in program.steps(lane) {
        let Step::Access(a) = step else { continue };
        instructions += u64::from(a.work);
        let addr = program.pages[a.page as usize].phys << 12 | u64::from(a.line) << 6;
        let write = a.kind == Kind::WriteBack;
        match format {
            Format::Dramsim3 => {
                let word = if write { "WRITE" } else { "READ" };
                writeln!(to, "{addr:#x} {word} {instructions}")?;
            }
            Format::Ramulator => writeln!(to, "{} {addr}", if write { "ST" } else { "LD" })?,
        }
        lines += 1;
    }
    Ok(lines)
}
