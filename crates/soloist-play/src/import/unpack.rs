//! Packed files, told by their content: gzip, xz and Zstandard are unpacked as they are
//! read, other packings refused by name.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// What packs, but is not unpacked here: how it begins, and what unpacks it.
const OTHERS: [(&[u8], &str); 6] = [
    (b"BZh", "bzip2 packed it: bunzip2"),
    (b"PK\x03\x04", "zip packed it: unzip"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4 packed it: unlz4"),
    (&[0x5d, 0, 0], "lzma packed it: unlzma"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip packed it: 7z x"),
    (b"LZIP", "lzip packed it: lzip -d"),
];
/// What a file holds, unpacked where it is packed.
///
/// # Errors
/// When it can't be read, or is packed in a way that is not known here.
pub fn unpacked<'a>(file: impl Read + 'a) -> Result<Box<dyn Read + 'a>> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let begins = beginning(&mut file)?;
    let is = |magic: &[u8]| begins.starts_with(magic);
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| is(magic)) {
        return Err(refused(format!("{what} first")));
    }
    Ok(if is(GZIP) {
        Box::new(MultiGzDecoder::new(whole(begins, file)))
    } else if is(XZ) {
        Box::new(XzReader::new(whole(begins, file), true))
    } else if is(ZSTD) || is_skippable(&begins) {
        Box::new(Frames::new(whole(begins, file)))
    } else {
        Box::new(whole(begins, file))
    })
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, why.into())
}

/// What was looked at, and the rest.
fn whole<R: BufRead>(begins: Vec<u8>, rest: R) -> impl BufRead {
    std::io::Cursor::new(begins).chain(rest)
}

/// Up to eight bytes.
fn beginning(file: &mut impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(8).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Zstandard's frames that hold no data (pzstd writes one before each block).
fn is_skippable(begins: &[u8]) -> bool {
    matches!(begins, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Frames of Zstandard, one behind the other.
struct Frames<R> {
    packed: R,
    decoder: FrameDecoder,
    is_running: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(packed: R) -> Self {
        Self {
            packed,
            decoder: FrameDecoder::new(),
            is_running: false,
        }
    }

    /// Begins the next frame that holds data; `false`: there is none.
    fn begin(&mut self) -> Result<bool> {
        loop {
            if self.packed.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.packed) {
                Ok(()) => break,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let frame = &mut self.packed.by_ref().take(length.into());
                    std::io::copy(frame, &mut std::io::sink())?;
                }
                Err(why) => return Err(refused(why.to_string())),
            }
        }
        self.is_running = true;
        Ok(true)
    }

    /// Ends a frame whose data must be what was packed.
    fn end(&mut self) -> Result<()> {
        self.is_running = false;
        let (said, is) = (
            self.decoder.get_checksum_from_data(),
            self.decoder.get_calculated_checksum(),
        );
        match said.is_some() && said != is {
            true => Err(refused("its checksum is wrong: the file is damaged")),
            false => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        while self.is_running || self.begin()? {
            let decoder = &mut self.decoder;
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(to.len().max(1));
                let decoded = decoder.decode_blocks(&mut self.packed, some);
                decoded.map_err(|why| refused(why.to_string()))?;
            }
            match decoder.read(to)? {
                0 if !to.is_empty() => self.end()?,
                got => return Ok(got),
            }
        }
        Ok(0)
    }
}
