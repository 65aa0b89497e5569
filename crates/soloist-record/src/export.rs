//! Recordings for other simulators, as far as they can say what we know.

use std::io::{self, Write};

use crate::event::{Access, Kind};
use crate::program::{Lane, Program};
use crate::step::Step;

mod closed_loop;
mod drmemtrace;

pub use closed_loop::export_placed;

/// Another simulator's trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// DRAMsim3: `0xADDR READ|WRITE CYCLE`, the cycle counting instructions.
    Dramsim3,
    /// Ramulator 2's load-store trace: `LD|ST ADDR`.
    Ramulator,
    /// ChampSim: 64 bytes an instruction, with virtual addresses (its
    /// `inc/trace_instruction.h`, `input_instr`).
    Champsim,
    /// DynamoRIO's drmemtrace: 12 bytes an entry, one thread, virtual addresses with
    /// markers that tell each page's physical one.
    Drmemtrace,
}

impl Format {
    /// Returns what a trace of this format cannot say, for people.
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
            Self::Champsim => {
                "lost: physical pages, threads, user or kernel, write-backs; what the private \
                 caches hit is not in it, so let ChampSim have none; instructions between lines \
                 do nothing, one after the other in the line last fetched; 64 bytes each"
            }
            Self::Drmemtrace => {
                "lost: dependence, user or kernel, write-backs, time, branches; what the private \
                 caches hit is not in it (it is marked as filtered); instructions are 4 bytes, \
                 one after the other in the line last fetched, loads and stores 8; a page that \
                 lies at several virtual addresses has its first; 12 bytes an entry"
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
    let mut code = Code::default();
    let mut trace = drmemtrace::Trace::default();
    if format == Format::Drmemtrace {
        trace.begin(to)?;
    }
    for step in program.steps(lane) {
        let Step::Access(a) = step else { continue };
        instructions += u64::from(a.work);
        let page = program.pages[a.page as usize];
        let addr = page.phys << 12 | u64::from(a.line) << 6;
        let write = a.kind == Kind::WriteBack;
        match format {
            Format::Dramsim3 => {
                let word = if write { "WRITE" } else { "READ" };
                writeln!(to, "{addr:#x} {word} {instructions}")?;
            }
            Format::Ramulator => writeln!(to, "{} {addr}", if write { "ST" } else { "LD" })?,
            Format::Champsim => code.play(&a, page.virt << 12 | u64::from(a.line) << 6, to)?,
            Format::Drmemtrace => trace.play(&a, page, to)?,
        }
        lines += 1;
    }
    if format == Format::Drmemtrace {
        drmemtrace::Trace::end(to)?;
    }
    Ok(lines)
}

/// Instructions as ChampSim reads them: in turn through the line that was fetched last.
struct Code {
    line: u64,
    turn: u64,
}

impl Default for Code {
    /// Where programs lie, until a line is fetched: no instruction lies at 0.
    fn default() -> Self {
        Self {
            line: 0x40_0000,
            turn: 0,
        }
    }
}

/// The register that each load writes, so that the next may depend on it.
const LOADED: u8 = 1;

impl Code {
    /// The instructions since the last line, the last of which asks for this one.
    fn play(&mut self, a: &Access, addr: u64, to: &mut impl Write) -> io::Result<()> {
        for _ in 1..a.work {
            self.instruction(to, None)?;
        }
        match a.kind {
            Kind::WriteBack => Ok(()),
            Kind::Fetch => {
                self.line = addr;
                self.instruction(to, None)
            }
            Kind::Read | Kind::Write => self.instruction(to, Some((a, addr))),
        }
    }

    fn instruction(
        &mut self,
        to: &mut impl Write,
        access: Option<(&Access, u64)>,
    ) -> io::Result<()> {
        let mut record = [0; 64];
        let ip = self.line + self.turn % 16 * 4;
        self.turn += 1;
        record[..8].copy_from_slice(&ip.to_le_bytes());
        // Behind two bytes of branches: two registers written, four read; then two
        // addresses written, four read.
        if let Some((access, addr)) = access {
            let load = access.kind == Kind::Read;
            record[10] = u8::from(load) * LOADED;
            record[12] = u8::from(access.dependent) * LOADED;
            let at = if load { 32 } else { 16 };
            record[at..at + 8].copy_from_slice(&addr.to_le_bytes());
        }
        to.write_all(&record)
    }
}
