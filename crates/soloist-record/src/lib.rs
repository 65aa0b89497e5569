//! Recorded programs: what leaves a processor's private caches, in a file.
//!
//! A recording is a directory. `recording.json` ([`meta`]) says what ran where, through
//! which caches, with which map and threads. Each recorded processor has a `cpu-N.rec`:
//! a stream of [`event`]s in checksummed, compressed frames ([`frame`]). [`write`] makes
//! streams, [`read`] reads them back and sorts them by thread.
//!
//! # The format, byte by byte
//!
//! All numbers are little-endian.
//!
//! ```text
//! file    "SOLOREC\n"  version:u32 = 2  cpu:u32  frame...
//! frame   "SRFR"  raw:u32  packed:u32  records:u32  crc32:u32  payload[packed]
//! ```
//!
//! `payload` is a zstd frame of `raw` bytes. The CRC-32 is of the 12 bytes before it and of
//! the payload. Each frame is packed from a fresh state, about 1 MiB of events. A reader
//! gives all frames before a damaged or missing one, and the offset of that.
//!
//! An event's first byte has its number in bits 0 to 2. Numbers are LEB128, signed ones
//! zigzag.
//!
//! | number | event | what follows |
//! |---|---|---|
//! | 0, 1, 2 | line read by a load, by a store, by a fetch | page (signed difference; not with bit 5), line in page (a byte; not with bit 6), instructions since the last event |
//! | 3 | dirty line pushed out | page, line, as above |
//! | 4 | page, numbered from 0 in each file | virtual and physical page (signed differences), order of first touch |
//! | 5 | another thread runs | its number, order of switches, instructions |
//! | 6 | marker | code, instructions |
//! | 7 | the thread ends another's wait; with bit 3: it could only go on after that | number of the wake; for the first, instructions |
//!
//! Of a line, bit 3 says: in the kernel. Bit 4: dependent. Bit 5: same page as the last
//! line. Bit 6: the line right behind the last. A program makes a marker by an 8-byte store
//! of `0x736f6c6f6973 << 16 | code` at offset 0x5c0 of a page; codes from 0x100 on are its
//! own. Readers also take version 1, which has no event 7.
//!
//! A thread is a task of the kernel, by its address and its number (`pid`). A kernel without
//! BTF says no numbers: there a task that lies where one lay that has ended is the same thread.
//!
//! A line takes 0.1 to 3 bytes on disk and 8 in memory when it is played. `--limit` bounds
//! the first (a frame more for each processor; the programs run on), `--lines` the second.
//! `recording.json` has `limited: true` where the limit was reached, and `failed` with the
//! reason where the disk was full.

pub mod drmemtrace;
pub mod error;
pub mod event;
pub mod export;
pub mod frame;
mod load;
pub mod meta;
pub mod plan;
mod program;
mod read;
mod step;
mod stream;
pub mod write;

pub use error::{Error, Result};
pub use event::{Access, Event, Kind};
pub use meta::Meta;
pub use program::{Cursor, Lane, Page, Program};
pub use read::{Lines, Recording};
pub use step::Step;
pub use stream::Found;
pub use write::Writer;
