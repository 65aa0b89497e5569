//! A modelled machine cut to a slice: one node, one channel, few banks, a page in each.

use soloist_core::AddrMap;
use soloist_memory::cache::Shape;
use soloist_memory::dram::Geometry;
use soloist_memory::Platform;

use crate::error::SiliconError;

/// First address bit of a page's number.
const FRAME_BITS: u32 = 12;
/// log2 of the slice's bytes: room for the programs, and for what was there before.
const LEAST_BITS: u32 = 28;
const MOST_BITS: u32 = 40;

/// The machine, cut.
#[derive(Debug, Clone)]
pub struct Cut {
    /// With the slice as its memory; caches, cores and timing are the machine's.
    pub platform: Platform,
    /// Banks.
    pub banks: usize,
}

impl Cut {
    /// Cuts `platform` to so many banks, with room for `pages` four times over.
    ///
    /// # Errors
    /// When the number of banks is no power of two, or the machine's lines have not 64 bytes.
    pub fn new(mut platform: Platform, banks: usize, pages: u64) -> Result<Self, SiliconError> {
        let wrong = |why: String| SiliconError::Misfit(why);
        if !banks.is_power_of_two() || !(2..=1024).contains(&banks) {
            return Err(wrong(format!(
                "{banks} banks: a slice has a power of two of them, 4 to 1024"
            )));
        }
        let line = platform.memory.map.line_size();
        if line != 64 {
            let name = &platform.memory.name;
            return Err(wrong(format!(
                "{name}: lines of {line} bytes; a slice has lines of 64"
            )));
        }
        let device = &platform.memory.device;
        let of_rank = (device.banks as usize).min(banks);
        let ranks = banks / of_rank;
        let bits = (4 * pages).next_power_of_two().trailing_zeros() + FRAME_BITS;
        let text = map_text(of_rank, ranks, bits.clamp(LEAST_BITS, MOST_BITS));
        let map = AddrMap::parse(&text).map_err(|why| wrong(why.to_string()))?;
        platform.memory.geometry = Geometry::of_device(device, ranks as u32);
        platform.memory.map = map;
        platform.node_of_core.fill(0);
        platform.hops = vec![vec![0]];
        Ok(Self { platform, banks })
    }

    /// The same with a last level that holds nothing: scripts have been through it.
    #[must_use]
    pub fn without_cache(&self) -> Platform {
        let mut platform = self.platform.clone();
        platform.llc.shape = Shape::NONE;
        platform
    }

    /// The number by which the last level finds its set for a line of `frame`.
    ///
    /// The whole machine's hash takes in address bits that a slice does not have. Without
    /// them the few banks of a program would leave it a part of a hashed cache, which no
    /// page colour divides. So its bank is what the hash folds in last.
    #[must_use]
    pub fn cached(&self, frame: u32) -> u64 {
        match self.platform.llc.shape.hashed {
            true => self.bank(frame) as u64 * self.slots() + self.slot(frame) as u64,
            false => frame.into(),
        }
    }

    /// Frames of a bank.
    fn slots(&self) -> u64 {
        self.platform.memory.map.end_pfn() / self.banks as u64
    }

    /// The bank of a frame, 0 up to the banks.
    #[must_use]
    pub fn bank(&self, frame: u32) -> usize {
        frame as usize & (self.banks - 1)
    }

    /// The number of a frame in its bank.
    #[must_use]
    pub fn slot(&self, frame: u32) -> usize {
        frame as usize / self.banks
    }
}

/// A page's number has its bank in the low bits, then the rank, then the row.
fn map_text(banks: usize, ranks: usize, bits: u32) -> String {
    let list =
        |range: std::ops::Range<u32>| -> String { range.map(|bit| format!(" {bit}")).collect() };
    let rank = FRAME_BITS + banks.trailing_zeros();
    let row = rank + ranks.trailing_zeros();
    let ranks = match ranks {
        1 => String::new(),
        _ => format!("rank{}\n", list(rank..row)),
    };
    format!(
        "soloist-map 1\nname slice\nline 64\nlayout\n{ranks}bank{}\nrow{}\ncol{}\nrange 0x0 {:#x} node 0\n",
        list(FRAME_BITS..rank),
        list(row..bits),
        list(6..FRAME_BITS),
        1u64 << bits
    )
}
