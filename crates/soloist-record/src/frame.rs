//! Frames: the unit in which a stream is compressed, checked and lost.
//!
//! ```text
//! file   = "SOLOREC\n" version:u32 cpu:u32 frame*
//! frame  = "SRFR" raw:u32 packed:u32 records:u32 check:u32 payload[packed]
//! ```
//! All numbers are little-endian. `payload` is one zstd frame of `raw` bytes of
//! packed events, `records` of them; `check` is the CRC-32 of the 12 bytes before
//! it and of the payload. A frame's events are packed from a fresh
//! [`State`](crate::event::State).

use std::io::{self, Read, Write};

/// Version of the file that is written. All versions from 1 on can be read; 2 added
/// waits and wakes.
pub const VERSION: u32 = 2;
const FILE: &[u8; 8] = b"SOLOREC\n";
const FRAME: &[u8; 4] = b"SRFR";
/// Bytes of events after which a frame is written.
pub const TARGET: usize = 1 << 20;
/// No honest frame holds more; a damaged length must not take all memory.
const LARGEST: usize = 4 * TARGET;
/// zstd's fastest levels are all we have time for while a guest runs.
const LEVEL: i32 = 1;

/// Bytes of the file's header.
pub const FILE_HEADER: u64 = 16;
/// Bytes of a frame's header.
pub const FRAME_HEADER: u64 = 20;

/// Writes the file's header.
pub fn write_header(to: &mut impl Write, cpu: u32) -> io::Result<()> {
    to.write_all(FILE)?;
    to.write_all(&VERSION.to_le_bytes())?;
    to.write_all(&cpu.to_le_bytes())
}

/// The cpu in the file's header, or what is wrong with it.
pub fn read_header(from: &mut impl Read) -> Result<u32, String> {
    let mut bytes = [0; FILE_HEADER as usize];
    from.read_exact(&mut bytes)
        .map_err(|_| "shorter than the header of a stream (16 bytes)".to_owned())?;
    if &bytes[..8] != FILE {
        return Err("no stream of a recording: it does not begin with \"SOLOREC\"".to_owned());
    }
    match number(&bytes, 8) {
        1..=VERSION => Ok(number(&bytes, 12)),
        other => Err(format!(
            "a stream of version {other}; this program reads versions 1 to {VERSION}"
        )),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn check(fields: &[u8], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(fields);
    sum.update(payload);
    sum.finalize()
}

/// Compresses `raw` and writes it; returns the bytes written.
pub fn write(to: &mut impl Write, raw: &[u8], records: u32) -> io::Result<u64> {
    let payload = zstd::bulk::compress(raw, LEVEL)?;
    let mut header = Vec::with_capacity(FRAME_HEADER as usize);
    header.extend(FRAME);
    header.extend((raw.len() as u32).to_le_bytes());
    header.extend((payload.len() as u32).to_le_bytes());
    header.extend(records.to_le_bytes());
    header.extend(check(&header[4..], &payload).to_le_bytes());
    to.write_all(&header)?;
    to.write_all(&payload)?;
    Ok((header.len() + payload.len()) as u64)
}

/// One frame's events, still packed.
#[derive(Debug)]
pub struct Frame {
    /// The packed events.
    pub raw: Vec<u8>,
    /// Number of its records.
    pub records: u32,
    /// Bytes that the frame takes in the file.
    pub bytes: u64,
}

/// The next frame; `Ok(None)` at the end of the file; else what is wrong.
pub fn read(from: &mut impl Read) -> Result<Option<Frame>, String> {
    let mut header = [0; FRAME_HEADER as usize];
    match fill(from, &mut header)? {
        0 => return Ok(None),
        n if n < header.len() => return Err(format!("cut off in a frame's header ({n} bytes)")),
        _ => {}
    }
    if &header[..4] != FRAME {
        return Err("no frame begins here".to_owned());
    }
    let (raw, packed) = (number(&header, 4) as usize, number(&header, 8) as usize);
    if raw > LARGEST || packed > LARGEST {
        return Err(format!("a frame of {packed} bytes ({raw} unpacked)"));
    }
    let mut payload = vec![0; packed];
    let n = fill(from, &mut payload)?;
    if n < packed {
        return Err(format!("cut off after {n} of a frame's {packed} bytes"));
    }
    let found = check(&header[4..16], &payload);
    if found != number(&header, 16) {
        return Err(format!(
            "checksum {found:08x}, not {:08x}",
            number(&header, 16)
        ));
    }
    let unpacked = zstd::bulk::decompress(&payload, raw).map_err(|e| format!("zstd: {e}"))?;
    if unpacked.len() != raw {
        return Err(format!("{} bytes unpacked, not {raw}", unpacked.len()));
    }
    Ok(Some(Frame {
        raw: unpacked,
        records: number(&header, 12),
        bytes: FRAME_HEADER + packed as u64,
    }))
}

/// Reads until `buffer` is full or the file ends; how much was read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize, String> {
    let mut n = 0;
    while n < buffer.len() {
        match from.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    Ok(n)
}
