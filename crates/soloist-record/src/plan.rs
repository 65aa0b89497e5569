//! What the recorder is told before the guest starts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{read_json, write_json, Result};
use crate::meta::Cache;

/// The recorder's orders, in a file of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The folder of the streams.
    pub out: PathBuf,
    /// Bytes after which recording stops.
    pub limit: u64,
    /// Bytes of a line; a power of two.
    pub line: u32,
    /// Caches to look through: `l1d`, `l1i` if instructions are fetched through
    /// one, then those behind both.
    pub caches: Vec<Cache>,
    /// Processors of each program.
    pub programs: Vec<Vec<u32>>,
    /// Bytes of each memory backend of the guest, in its order; none of them is 0.
    pub ram: Vec<u64>,
    /// Its first address.
    pub begins: u64,
    /// Bytes of the memory before a hole; the rest continues at 4 GiB.
    pub below_4g: u64,
}

impl Plan {
    /// Whether instruction fetches are to be recorded.
    pub fn fetches(&self) -> bool {
        self.caches.iter().any(|cache| cache.name == "l1i")
    }

    /// Reads it.
    pub fn read(file: &Path) -> Result<Self> {
        read_json(file)
    }

    /// Writes it.
    pub fn write(&self, file: &Path) -> Result<()> {
        write_json(file, self)
    }
}

/// Markers: 8-byte stores of `MARKER | code` by user code, at this offset in a page.
pub const MARKER_OFFSET: u64 = 0x5c0;
/// The upper 48 bits of a marker.
pub const MARKER: u64 = 0x736f_6c6f_6973 << 16;
/// [`SYMBOL_WORDS`] words follow, stored to the same place: where the kernel's
/// `__switch_to` begins and ends; the offset of the current task, which it notes there, among
/// its processor's variables; then where `__futex_queue`, `__futex_wake_mark` and
/// `futex_wake_mark` begin and end, 0 where there is none; then the offset of `pid` in
/// `task_struct`, 0 where it is not known.
pub const SYMBOLS: u16 = 1;
/// Number of words that follow [`SYMBOLS`].
pub const SYMBOL_WORDS: usize = 10;
/// The program of this processor begins.
pub const START: u16 = 2;
/// Recording ends, of all programs.
pub const STOP: u16 = 3;
/// The code is this plus the number of the processor that the store comes from.
pub const HERE: u16 = 0x80;
/// Processors that such a code can name.
pub const MAX_CPUS: usize = 64;
/// Codes from here on are the programs' own.
pub const FIRST_OWN: u16 = 0x100;

/// The processor that the marker `word` comes from, if it is one that says so.
pub fn here(word: u64) -> Option<u16> {
    let code = word as u16;
    let names = word & !0xffff == MARKER && (HERE..HERE + MAX_CPUS as u16).contains(&code);
    names.then(|| code - HERE)
}
