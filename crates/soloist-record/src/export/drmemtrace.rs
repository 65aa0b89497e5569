//! A thread's trace as DynamoRIO's drmemtrace keeps it behind its tracer.
//!
//! Twelve bytes an entry: type, size, address, little endian (its `common/trace_entry.h`,
//! `_trace_entry_t`). An instruction stands before what it loads or stores; the addresses
//! are virtual, and a pair of markers tells where each page was when it is first named.

use std::collections::HashSet;
use std::io::{self, Write};

use crate::drmemtrace::{entry, marker};
use crate::event::{Access, Kind};
use crate::program::Page;

/// The last version that asks for no branch targets, which a recording does not have.
const VERSION: u64 = 4;
/// x86-64; instructions and data went through a cache before (`offline_file_type_t`).
const FILETYPE: u64 = 0x40 | 0x80 | 0x100;
/// How long an instruction is and how much it loads or stores, bytes: neither is recorded.
const INSTRUCTION: u16 = 4;
const OPERAND: u16 = 8;
/// The only thread, and its process.
const THREAD: u64 = 1;

/// A trace that is being written.
#[derive(Default)]
pub struct Trace {
    /// Pages whose place has been told.
    told: HashSet<u32>,
    /// The line that was fetched last, and how many instructions of it are gone.
    line: u64,
    turn: u64,
}

impl Trace {
    /// Writes what stands before the entries of the one thread.
    pub fn begin(&self, to: &mut impl Write) -> io::Result<()> {
        put(to, entry::HEADER, 0, VERSION)?;
        put(to, entry::MARKER, marker::VERSION, VERSION)?;
        put(to, entry::MARKER, marker::FILETYPE, FILETYPE)?;
        put(to, entry::THREAD, OPERAND, THREAD)?;
        put(to, entry::PID, OPERAND, THREAD)?;
        put(to, entry::MARKER, marker::CACHE_LINE_SIZE, 64)?;
        put(to, entry::MARKER, marker::PAGE_SIZE, 4096)?;
        // A recording has no time of day, and schedulers want some.
        put(to, entry::MARKER, marker::TIMESTAMP, 1)?;
        put(to, entry::MARKER, marker::CPU_ID, 0)
    }

    /// The instructions since the last line, the last of which asks for this one. The
    /// format has no word for a line that is written back.
    pub fn play(&mut self, a: &Access, page: Page, to: &mut impl Write) -> io::Result<()> {
        let virt = page.virt << 12 | u64::from(a.line) << 6;
        if a.kind == Kind::WriteBack {
            return Ok(());
        }
        if self.told.insert(a.page) {
            put(to, entry::MARKER, marker::PHYSICAL_ADDRESS, page.phys << 12)?;
            put(to, entry::MARKER, marker::VIRTUAL_ADDRESS, page.virt << 12)?;
        }
        for _ in 1..a.work {
            self.instruction(to)?;
        }
        let data = match a.kind {
            Kind::Write => entry::WRITE,
            Kind::Read => entry::READ,
            Kind::Fetch | Kind::WriteBack => {
                (self.line, self.turn) = (virt, 0);
                return self.instruction(to);
            }
        };
        // A second line of one instruction has none of its own; the trace's first has.
        if a.work > 0 || self.turn == 0 {
            self.instruction(to)?;
        }
        put(to, data, OPERAND, virt)
    }

    /// Writes what stands behind them.
    pub fn end(to: &mut impl Write) -> io::Result<()> {
        put(to, entry::THREAD_EXIT, OPERAND, THREAD)?;
        put(to, entry::FOOTER, 0, 0)
    }

    fn instruction(&mut self, to: &mut impl Write) -> io::Result<()> {
        let at = self.line + self.turn % 16 * u64::from(INSTRUCTION);
        self.turn += 1;
        put(to, entry::INSTR, INSTRUCTION, at)
    }
}

fn put(to: &mut impl Write, kind: u16, size: u16, addr: u64) -> io::Result<()> {
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&kind.to_le_bytes());
    bytes[2..4].copy_from_slice(&size.to_le_bytes());
    bytes[4..].copy_from_slice(&addr.to_le_bytes());
    to.write_all(&bytes)
}
