//! Physical address to channel, bank and row, fast.
//!
//! The truth is core's map. Its functions are linear over GF(2) within a
//! range, so they compile into a table per byte of the offset: a decode is a
//! handful of loads and XORs. Where channels are interleaved by division, the
//! offset is normalised first. A test compares every table with core's decode.

use soloist_core::{AddrMap, Interleave};

/// Bytes of offset that tables cover: 48 bits.
const BYTES: usize = 6;

/// Where a line lives, as controllers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramAddress {
    /// Channel over the whole machine: `node * channels + channel`.
    pub channel: u16,
    /// Flat bank of the channel: `rank * banks + bank`.
    pub bank: u16,
    /// Row.
    pub row: u32,
}

#[derive(Clone, Debug)]
struct Range {
    start: u64,
    end: u64,
    base: u64,
    layout: usize,
    first_channel: u16,
    interleave: Option<Interleave>,
    ways: Vec<u16>,
}

/// A map compiled for speed.
#[derive(Clone, Debug)]
pub struct Decoder {
    ranges: Vec<Range>,
    tables: Vec<[[u64; 256]; BYTES]>,
    line_shift: u32,
    bytes: u64,
    channels_per_way: u16,
}

impl Decoder {
    /// Compiles `map`.
    pub fn new(map: &AddrMap) -> Self {
        let layouts: Vec<soloist_core::Layout> = map.layouts().collect();
        let ranges = map
            .ranges()
            .map(|r| Range {
                start: r.start,
                end: r.end,
                base: r.base,
                layout: r.layout as usize,
                first_channel: (r.node * map.n_channels()) as u16,
                interleave: layouts[r.layout as usize].interleave,
                ways: layouts[r.layout as usize]
                    .ways
                    .iter()
                    .map(|&way| way as u16)
                    .collect(),
            })
            .collect();
        let bank_bits = map.n_banks().trailing_zeros();
        let tables = map
            .layouts()
            .map(|l| {
                let mut functions: Vec<(u64, u32)> = Vec::new();
                functions.extend(l.row.iter().map(|b| (b.mask, b.at)));
                functions.extend(l.bank.iter().zip(32..).map(|(&m, at)| (m, at)));
                functions.extend(l.rank.iter().zip(32 + bank_bits..).map(|(&m, at)| (m, at)));
                functions.extend(l.channel.iter().zip(48..).map(|(&m, at)| (m, at)));
                compile(&functions)
            })
            .collect();
        Self {
            ranges,
            tables,
            line_shift: map.line_size().trailing_zeros(),
            bytes: map.bytes(),
            channels_per_way: map.channels_per_way() as u16,
        }
    }

    /// Decodes a physical address; `None` in a hole.
    #[inline]
    pub fn decode(&self, addr: u64) -> Option<DramAddress> {
        let r = self
            .ranges
            .iter()
            .find(|r| (r.start..r.end).contains(&addr))?;
        let offset = addr - r.start + r.base;
        let (turn, offset) = match r.interleave {
            Some(interleave) => interleave.split(offset),
            None => (0, offset),
        };
        let packed = self.tables[r.layout]
            .iter()
            .zip(offset.to_le_bytes())
            .fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)]);
        Some(DramAddress {
            row: packed as u32,
            bank: (packed >> 32) as u16,
            channel: (packed >> 48) as u16
                + r.ways[turn as usize] * self.channels_per_way
                + r.first_channel,
        })
    }

    /// First address of a line.
    #[inline]
    pub fn address(&self, line: u64) -> u64 {
        line << self.line_shift
    }

    /// Line number of an address.
    #[inline]
    pub fn line(&self, addr: u64) -> u64 {
        addr >> self.line_shift
    }

    /// An address beyond the memory of a machine whose memory has no holes,
    /// folded back into it, as trace-driven simulators do.
    pub fn wrap(&self, addr: u64) -> Option<u64> {
        match self.ranges.as_slice() {
            [only] if only.start == 0 => Some(addr % self.bytes),
            _ => None,
        }
    }
}

/// Tables such that XORing the entries of an offset's bytes gives every
/// function's parity at its position.
fn compile(functions: &[(u64, u32)]) -> [[u64; 256]; BYTES] {
    let mut tables = [[0; 256]; BYTES];
    for (byte, table) in tables.iter_mut().enumerate() {
        for (value, entry) in table.iter_mut().enumerate() {
            let bits = (value as u64) << (8 * byte);
            *entry = functions.iter().fold(0, |sum, &(mask, at)| {
                sum ^ (u64::from((bits & mask).count_ones() & 1) << at)
            });
        }
    }
    tables
}
