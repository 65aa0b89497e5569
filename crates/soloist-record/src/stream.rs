//! A stream of one processor, read to its end.

use std::io::Read;
use std::path::Path;

use crate::error::{foreign, Error, Result};
use crate::event::{Event, State};
use crate::frame;
use crate::meta::{Stream, FILE};

/// What a stream has that is read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The processor that its header names.
    pub cpu: u32,
    /// Lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Records: lines, pages and all else.
    pub records: u64,
}

/// A whole frame can be lost without a trace in the others.
pub(crate) fn ended(path: &Path, told: &Stream, found: &Found) -> Result<()> {
    if (found.lines, found.bytes) == (told.lines, told.bytes) {
        return Ok(());
    }
    let why = format!(
        "the stream ends here with {} lines, and {FILE} tells of {} lines in {} bytes",
        found.lines, told.lines, told.bytes
    );
    Err(Error::Damaged {
        file: path.to_path_buf(),
        offset: found.bytes,
        why,
        records: found.records,
    })
}

/// Reads all frames of the stream of `cpu`, behind its header.
pub(crate) fn frames(
    path: &Path,
    mut reader: impl Read,
    cpu: u32,
    mut see: impl FnMut(Event),
) -> Result<Found> {
    let mut found = Found {
        cpu,
        lines: 0,
        bytes: frame::FILE_HEADER,
        records: 0,
    };
    let (mut pages, mut unnamed) = (0, false);
    let mut look = |event| {
        match event {
            Event::Page { .. } => pages += 1,
            Event::Access(access) => {
                found.lines += 1;
                unnamed |= u64::from(access.page) >= pages;
            }
            _ => {}
        }
        if !unnamed {
            see(event);
        }
        !unnamed
    };
    let (mut bytes, mut records) = (frame::FILE_HEADER, 0);
    loop {
        let damaged = |why| Error::Damaged {
            file: path.to_path_buf(),
            offset: bytes,
            why,
            records,
        };
        let Some(frame) = frame::read(&mut reader).map_err(damaged)? else {
            break;
        };
        if !unpack_frame(&frame, &mut look).map_err(damaged)? {
            return Err(foreign(path, UNNAMED));
        }
        bytes += frame.bytes;
        records += u64::from(frame.records);
    }
    Ok(Found {
        bytes,
        records,
        ..found
    })
}

const UNNAMED: &str = "a line in a page that the stream never named: frames of it are lost or not \
                       in order, and pages cannot be told; copy it again, or record again";

/// Calls `look` for every event of a frame while it says true; whether it always did.
fn unpack_frame(
    frame: &frame::Frame,
    mut look: impl FnMut(Event) -> bool,
) -> std::result::Result<bool, String> {
    let mut state = State::default();
    let mut rest = frame.raw.as_slice();
    for n in 0..frame.records {
        match Event::unpack(&mut state, &mut rest) {
            Some(event) if !look(event) => return Ok(false),
            Some(_) => {}
            None => return Err(format!("record {n} of the frame is none")),
        }
    }
    match rest.len() {
        0 => Ok(true),
        n => Err(format!("{n} bytes behind the last record")),
    }
}
