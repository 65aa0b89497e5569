//! DynamoRIO's drmemtrace, as its documentation has it: entries of 12 bytes, type,
//! size, address, little endian (`trace_entry_t`). What a thread's file holds behind
//! the tracer's own post-processing; threads may also take turns in a file.

use std::io::Read;
use std::path::Path;

use soloist_core::FRAME_SHIFT;
use soloist_record::drmemtrace::{entry, marker};

use super::{ImportError, Taker};

/// Bytes of an entry.
const ENTRY: usize = 12;

/// Both instructions and data went through caches (`offline_file_type_t`).
const FILTERED: u64 = 0x80 | 0x100;

/// Reads one file.
pub(super) fn read(
    from: &mut impl Read,
    file: &Path,
    taker: &mut Taker<'_>,
) -> Result<(), ImportError> {
    let mut reader = Entries {
        offset: 0,
        file,
        filtered: false,
        process: 0,
        place: None,
        next: 0,
        running: false,
    };
    let mut bytes = [0; ENTRY];
    loop {
        let mut got = 0;
        while got < ENTRY {
            match from.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(super::io(file)(source)),
            }
        }
        match got {
            0 => return Ok(()),
            ENTRY => reader.take(bytes, taker)?,
            _ => return Err(reader.foreign(format!("{got} bytes behind the last whole entry"))),
        }
        reader.offset += ENTRY as u64;
    }
}

struct Entries<'a> {
    offset: u64,
    file: &'a Path,
    filtered: bool,
    process: u64,
    /// A physical address whose virtual one comes next.
    place: Option<u64>,
    /// Where the instruction after the last one begins.
    next: u64,
    /// A thread was named.
    running: bool,
}

impl Entries<'_> {
    fn foreign(&self, why: String) -> ImportError {
        super::foreign(self.file, self.offset, why)
    }

    fn take(&mut self, bytes: [u8; ENTRY], taker: &mut Taker<'_>) -> Result<(), ImportError> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (kind, size) = (half(0), half(2));
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[4..]);
        let addr = u64::from_le_bytes(word);
        if self.offset == 0 && kind != entry::HEADER {
            return Err(self.foreign(format!(
                "no drmemtrace: it begins with an entry of type {kind}, not with a header"
            )));
        }
        let accesses = matches!(
            kind,
            entry::READ
                | entry::WRITE
                | entry::INSTR..=entry::BUNDLE
                | entry::NO_FETCH..=entry::SYSENTER
                | entry::TAKEN
                | entry::UNTAKEN
        );
        if accesses && !self.running {
            return Err(self.foreign("an access before any thread was named".to_owned()));
        }
        match kind {
            entry::READ | entry::WRITE => {
                let write = kind == entry::WRITE;
                taker.data(self.process, addr, u64::from(size), write)?;
                Ok(())
            }
            entry::INSTR..=entry::LAST_BRANCH
            | entry::MAYBE_FETCH
            | entry::SYSENTER
            | entry::TAKEN
            | entry::UNTAKEN => self.instruction(addr, size, true, taker),
            entry::NO_FETCH => self.instruction(addr, size, false, taker),
            // Lengths of those behind the last one.
            entry::BUNDLE => (0..usize::from(size).min(8)).try_for_each(|i| {
                let at = self.next;
                self.instruction(at, u16::from(bytes[4 + i]), true, taker)
            }),
            entry::THREAD => {
                self.running = true;
                taker.imported.filtered |= self.filtered;
                taker.switch(addr, self.filtered)
            }
            entry::PID => {
                self.process = addr;
                Ok(())
            }
            entry::MARKER => self.marker(size, addr, taker),
            entry::HEADER | entry::FOOTER | entry::THREAD_EXIT | entry::ENCODING => Ok(()),
            entry::FIRST_PREFETCH..=entry::LAST_PREFETCH
            | entry::HARDWARE_PREFETCH
            | entry::FIRST_HINT..=entry::LAST_HINT => {
                taker.dropped("prefetches");
                Ok(())
            }
            entry::FIRST_FLUSH..=entry::LAST_FLUSH => {
                taker.dropped("cache flushes");
                Ok(())
            }
            other => Err(self.foreign(format!("an entry of type {other}, which is not known"))),
        }
    }

    fn instruction(
        &mut self,
        pc: u64,
        size: u16,
        fetches: bool,
        taker: &mut Taker<'_>,
    ) -> Result<(), ImportError> {
        self.next = pc.wrapping_add(u64::from(size));
        taker.instruction(self.process, pc, fetches)
    }

    fn marker(&mut self, kind: u16, value: u64, taker: &mut Taker<'_>) -> Result<(), ImportError> {
        match kind {
            marker::FILETYPE => self.filtered = value & FILTERED == FILTERED,
            marker::CACHE_LINE_SIZE if self.filtered && value != 64 => {
                return Err(self.foreign(format!("filtered by lines of {value} bytes, not 64")));
            }
            marker::PAGE_SIZE if value != 1 << FRAME_SHIFT => {
                return Err(self.foreign(format!("pages of {value} bytes; only 4096 are known")));
            }
            marker::PHYSICAL_ADDRESS => {
                self.place = Some(super::page_of(value).map_err(|why| self.foreign(why))?);
            }
            marker::VIRTUAL_ADDRESS => {
                if let Some(phys) = self.place.take() {
                    taker.locate(self.process, value >> FRAME_SHIFT, phys);
                }
            }
            marker::CACHE_LINE_SIZE | marker::PAGE_SIZE | marker::VERSION => {}
            // Functions, windows, system calls, time.
            _ => taker.dropped("markers"),
        }
        Ok(())
    }
}
