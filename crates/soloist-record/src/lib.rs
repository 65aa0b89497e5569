//! Recorded programs: what leaves a processor's private caches, in a file.
//!
//! A recording is a directory: `recording.json` ([`meta`]) says what ran where,
//! and for each recorded processor there is a stream of [`event`]s in
//! checksummed, compressed frames ([`frame`]). [`write`] makes streams, [`read`]
//! reads them back and sorts them by thread. docs/reference/record-format.md has the format byte
//! by byte, and what is lost in it.

pub mod drmemtrace;
pub mod error;
pub mod event;
pub mod export;
pub mod frame;
pub mod meta;
pub mod plan;
pub mod read;
pub mod write;

pub use error::{Error, Result};
pub use event::{Access, Event, Kind};
pub use meta::Meta;
pub use read::{Cursor, Lane, Lines, Page, Program, Recording, Step};
pub use write::Writer;
