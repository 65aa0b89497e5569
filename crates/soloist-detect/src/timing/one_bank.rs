//! The bandwidth of one bank, all row misses: what a machine guarantees
//! whatever its other tasks do (MemGuard 4.1, r_min).
//!
//! Lines that the map puts into one bank are read as fast as a core can, each
//! in another row than the one before, so that the bank must open a row for
//! every line. Reads don't depend on each other; what keeps them apart is the
//! bank. The same is done with as many lines anywhere, which shows whether the
//! map is right: one bank must be slower.

use std::collections::BTreeMap;
use std::time::Instant;

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use soloist_core::AddrMap;

use crate::timing::cpu;
use crate::timing::hardware::Hardware;
use crate::timing::{Addresses, TimingSource};

/// Bytes of a line.
const LINE: u64 = 64;
/// Lines that are read in one go: more than any queue holds, and few enough
/// for their addresses to stay in the first-level cache.
const LINES: usize = 2048;
/// Bytes of memory that are looked through for them.
const LOOKED_THROUGH: u64 = 256 << 20;
/// How often they are read.
const READINGS: usize = 41;
/// With fewer rows a controller's queue sees some of them twice, and serves
/// these together.
pub const ENOUGH_ROWS: usize = 64;

/// What was measured; bandwidths in bytes per second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OneBank {
    /// Rows of the bank that were read from.
    pub rows: usize,
    /// Lines in each reading.
    pub lines: usize,
    /// Median of all readings: r_min.
    pub r_min: u64,
    /// The slowest reading.
    pub least: u64,
    /// The fastest reading.
    pub most: u64,
    /// Median for as many lines anywhere.
    pub anywhere: u64,
}

impl OneBank {
    /// Whether the lines were slowed by each other, as those of one bank are.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        (self.r_min as f64) < 0.8 * self.anywhere as f64
    }
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum OneBankError {
    /// The map is of another machine.
    #[error("the map has next to none of this machine's memory: it is another machine's, or these are not physical addresses (in a virtual machine without --trust-guest only the bits inside pages are taken)")]
    Elsewhere,
    /// The pages are too small.
    #[error("no two rows of one bank by this map in memory of which only the last {bits} address bits are known; larger pages show more (--memory, huge pages), root on bare metal all")]
    TooFewBits {
        /// Bits inside a page.
        bits: u32,
    },
}

/// Measures on `memory`, whose lines lie where `map` says.
///
/// # Errors
/// When no two lines in different rows of a bank are in `memory`.
pub fn one_bank(memory: &Hardware, map: &AddrMap, seed: u64) -> Result<OneBank, OneBankError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let known = known_addresses(memory, map);
    let bank = largest_bank(map, &known);
    if bank.len() < 2 {
        return Err(match memory.addresses() {
            Addresses::Physical => OneBankError::Elsewhere,
            Addresses::InsidePages { page_shift } => OneBankError::TooFewBits { bits: page_shift },
        });
    }
    let lines = by_turns(&bank);
    let at = |address: &u64| memory.locate(*address);
    let here: Vec<*const u8> = lines.iter().filter_map(at).collect();
    let mut all: Vec<u64> = known.iter().map(|(address, _)| *address).collect();
    all.shuffle(&mut rng);
    let anywhere: Vec<*const u8> = all.iter().take(here.len()).filter_map(at).collect();
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..READINGS {
        for (rates, lines) in rates.iter_mut().zip([&here, &anywhere]) {
            // SAFETY: all lie in pages that `memory` owns.
            rates.push(unsafe { rate(lines) });
        }
    }
    rates.iter_mut().for_each(|rates| rates.sort_unstable());
    let [own, other] = rates;
    Ok(OneBank {
        rows: bank.len(),
        lines: here.len(),
        r_min: own[READINGS / 2],
        least: own[0],
        most: own[READINGS - 1],
        anywhere: other[READINGS / 2],
    })
}

/// Lines of the pool, each with the physical address that it has or, where only
/// the bits inside pages are known, could have: lines of one page then.
fn known_addresses(memory: &Hardware, map: &AddrMap) -> Vec<(u64, u64)> {
    let size = 1u64 << memory.page_shift();
    let lines = |page: u64| (page..page + size).step_by(LINE as usize);
    let most = (LOOKED_THROUGH / LINE) as usize;
    match memory.addresses() {
        Addresses::Physical => {
            let all = memory.pages().flat_map(lines).take(most);
            all.map(|line| (line, line)).collect()
        }
        Addresses::InsidePages { .. } => {
            let (Some(page), Some(base)) = (memory.pages().next(), whole_page(map, size)) else {
                return Vec::new();
            };
            let all = lines(page).take(most);
            all.map(|line| (line, base + (line - page))).collect()
        }
    }
}

/// The first page of `size` bytes that the map has whole.
fn whole_page(map: &AddrMap, size: u64) -> Option<u64> {
    map.ranges()
        .map(|range| (range.start.next_multiple_of(size), range.end))
        .find(|(start, end)| start + size <= *end)
        .map(|(start, _)| start)
}

/// The bank with the most rows: its lines by row. The last level cache holds
/// none of them for long, whatever its sets: they are flushed.
fn largest_bank(map: &AddrMap, lines: &[(u64, u64)]) -> Vec<Vec<u64>> {
    let mut banks: BTreeMap<[u32; 4], BTreeMap<u32, Vec<u64>>> = BTreeMap::new();
    for (line, physical) in lines {
        if let Ok(d) = map.decode(*physical) {
            let bank = banks.entry([d.node, d.channel, d.rank, d.bank]);
            bank.or_default().entry(d.row).or_default().push(*line);
        }
    }
    let largest = banks.into_values().max_by_key(BTreeMap::len);
    largest.map_or_else(Vec::new, |rows| rows.into_values().collect())
}

/// Up to [`LINES`] lines, one of each row in turn.
fn by_turns(rows: &[Vec<u64>]) -> Vec<u64> {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| rows.iter().filter_map(move |row| row.get(turn)))
        .copied()
        .take(LINES)
        .collect()
}

/// Bytes per second of reading `lines` from memory.
///
/// # Safety
/// All point into mapped memory.
unsafe fn rate(lines: &[*const u8]) -> u64 {
    for line in lines {
        // SAFETY: the caller's.
        unsafe { cpu::flush(*line) };
    }
    let start = Instant::now();
    let mut sum = 0u8;
    for line in lines {
        // SAFETY: the caller's.
        sum = sum.wrapping_add(unsafe { std::ptr::read_volatile(*line) });
    }
    // The sum is not there before the last line is.
    std::hint::black_box(sum);
    let ns = start.elapsed().as_nanos().max(1) as u64;
    lines.len() as u64 * LINE * 1_000_000_000 / ns
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_another_row_of_the_same_bank() {
        let map = soloist_machine::known::find("opteron-6128")
            .unwrap()
            .addr_map();
        let pool: Vec<(u64, u64)> = (0..64 << 20)
            .step_by(LINE as usize)
            .map(|offset| (offset, 0x2800_0000 + offset))
            .collect();
        let bank = largest_bank(&map, &pool);
        // 64 MiB: rows of 16 KiB, 16 banks in each of two channels.
        assert_eq!(bank.len(), 128);
        let lines = by_turns(&bank);
        assert_eq!(lines.len(), LINES);
        let places: Vec<_> = lines
            .iter()
            .map(|line| map.decode(0x2800_0000 + line).unwrap())
            .collect();
        for pair in places.windows(2) {
            let bank = |i: usize| (pair[i].node, pair[i].channel, pair[i].rank, pair[i].bank);
            assert_eq!(bank(0), bank(1));
            assert_ne!(pair[0].row, pair[1].row);
        }
    }
}
