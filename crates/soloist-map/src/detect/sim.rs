//! A simulated memory: a map from a machine file, with the noise of a real
//! machine. Addresses are decoded by core, as everywhere.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::AddrMap;

use super::source::{Addresses, OsRange, TimingSource};
use crate::machine::Machine;

/// Pair in different banks, cycles.
const FAST: f64 = 260.0;
/// What a row conflict adds, cycles.
const CONFLICT: f64 = 80.0;
/// What every further node adds, cycles.
const REMOTE: f64 = 45.0;
/// What a refresh adds to the access that meets it, cycles.
const REFRESH: f64 = 420.0;
/// Samples of one turn of the drift.
const DRIFT_PERIOD: f64 = 60_000.0;

/// How noisy the simulated memory is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of every sample, cycles.
    pub sigma: f64,
    /// Amplitude of a slow drift, cycles.
    pub drift: f64,
    /// Share of samples that meet a refresh.
    pub refresh: f64,
    /// Share of samples that say nothing: uniform from 70 % to 300 %.
    pub outliers: f64,
}

impl Noise {
    /// None at all.
    pub const NONE: Self = Self {
        sigma: 0.0,
        drift: 0.0,
        refresh: 0.0,
        outliers: 0.0,
    };
    /// A quiet machine.
    pub const LOW: Self = Self {
        sigma: 6.0,
        drift: 8.0,
        refresh: 0.02,
        outliers: 0.02,
    };
    /// A busy virtual machine.
    pub const HIGH: Self = Self {
        sigma: 14.0,
        drift: 40.0,
        refresh: 0.05,
        outliers: 0.2,
    };
}

impl Default for Noise {
    fn default() -> Self {
        Self::LOW
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sigma={},drift={},refresh={},outliers={}",
            self.sigma, self.drift, self.refresh, self.outliers
        )
    }
}

impl FromStr for Noise {
    type Err = String;

    /// `none`, `low`, `high`, or `sigma=14,drift=40,refresh=0.05,outliers=0.2`;
    /// what is not named is as in `low`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut noise = Self::LOW;
        for part in text.split(',') {
            match part.trim() {
                "none" => noise = Self::NONE,
                "low" => noise = Self::LOW,
                "high" => noise = Self::HIGH,
                other => noise.set(other)?,
            }
        }
        Ok(noise)
    }
}

impl Noise {
    fn set(&mut self, part: &str) -> Result<(), String> {
        let wrong = || {
            format!("`{part}`: expected none, low, high, or sigma=, drift= (cycles), refresh=, outliers= (0 to 1)")
        };
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let (slot, max) = match key.trim() {
            "sigma" => (&mut self.sigma, 1000.0),
            "drift" => (&mut self.drift, 1000.0),
            "refresh" => (&mut self.refresh, 1.0),
            "outliers" => (&mut self.outliers, 1.0),
            _ => return Err(wrong()),
        };
        if !(0.0..=max).contains(&value) {
            return Err(format!("`{part}`: expected 0 to {max}"));
        }
        *slot = value;
        Ok(())
    }
}

/// Which memory the simulated detector gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimPool {
    /// All memory, physical addresses known (1 GiB pages as root).
    Everything,
    /// One page in `1 << sparse` of 4 KiB each, physical addresses known.
    Frames {
        /// log2 of the share.
        sparse: u32,
    },
    /// Pages whose physical addresses are not known.
    Unprivileged {
        /// log2 of the page size.
        page_shift: u32,
        /// How many.
        pages: u32,
    },
}

/// The simulated memory.
pub struct SimSource {
    map: AddrMap,
    ranges: Vec<OsRange>,
    pool: SimPool,
    /// Physical addresses of the pages of an unprivileged pool.
    pages: Vec<u64>,
    noise: Noise,
    rng: ChaCha8Rng,
    samples: u64,
}

impl SimSource {
    /// Memory with the map of `machine`.
    #[must_use]
    pub fn new(machine: &Machine, pool: SimPool, noise: Noise, seed: u64) -> Self {
        let physical = os_ranges(machine);
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0f50_1015);
        let (ranges, pages) = match pool {
            SimPool::Unprivileged { page_shift, pages } => {
                pick_pages(&physical, page_shift, pages, &mut rng)
            }
            _ => (physical, Vec::new()),
        };
        Self {
            map: machine.addr_map(),
            ranges,
            pool,
            pages,
            noise,
            rng,
            samples: 0,
        }
    }

    /// The physical address behind an address of this source: what an
    /// unprivileged detector can't know, and tests compare with.
    #[must_use]
    pub fn physical(&self, address: u64) -> u64 {
        match self.pool {
            SimPool::Unprivileged { page_shift, .. } => {
                let page = self.pages[(address >> page_shift) as usize];
                page | (address & ((1 << page_shift) - 1))
            }
            _ => address,
        }
    }

    /// Time without noise.
    fn truth(&self, a: u64, b: u64) -> f64 {
        let (Ok(a), Ok(b)) = (
            self.map.decode(self.physical(a)),
            self.map.decode(self.physical(b)),
        ) else {
            return FAST;
        };
        let remote = REMOTE * f64::from(a.node + b.node) / 2.0;
        let conflict = a.color == b.color && a.row != b.row;
        FAST + remote + if conflict { CONFLICT } else { 0.0 }
    }
}

/// The ranges as an operating system shows them: neighbours of one node are
/// one, whatever the layouts.
fn os_ranges(machine: &Machine) -> Vec<OsRange> {
    let mut ranges: Vec<OsRange> = Vec::new();
    for range in &machine.map.ranges {
        match ranges.last_mut() {
            Some(last) if last.end == range.start && last.node == range.node => {
                last.end = range.end;
            }
            _ => ranges.push(OsRange {
                start: range.start,
                end: range.end,
                node: range.node,
            }),
        }
    }
    ranges
}

fn pick_pages(
    physical: &[OsRange],
    shift: u32,
    count: u32,
    rng: &mut ChaCha8Rng,
) -> (Vec<OsRange>, Vec<u64>) {
    let node = physical[0].node;
    let spans: Vec<(u64, u64)> = physical
        .iter()
        .filter(|range| range.node == node)
        .map(|range| (range.start.div_ceil(1 << shift), range.end >> shift))
        .filter(|(first, end)| first < end)
        .collect();
    let mut pages = Vec::new();
    for _ in 0..count {
        if let Some(&(first, end)) = spans.get(rng.gen_range(0..spans.len().max(1))) {
            pages.push(rng.gen_range(first..end) << shift);
        }
    }
    pages.sort_unstable();
    pages.dedup();
    let ranges = (0..pages.len() as u64)
        .map(|i| OsRange {
            start: i << shift,
            end: (i + 1) << shift,
            node,
        })
        .collect();
    (ranges, pages)
}

impl TimingSource for SimSource {
    fn ranges(&self) -> Vec<OsRange> {
        self.ranges.clone()
    }

    fn addresses(&self) -> Addresses {
        match self.pool {
            SimPool::Unprivileged { page_shift, .. } => Addresses::InsidePages { page_shift },
            _ => Addresses::Physical,
        }
    }

    fn random(&mut self, range: &OsRange, rng: &mut ChaCha8Rng) -> Option<u64> {
        for _ in 0..10_000 {
            let address = rng.gen_range(range.start..range.end) & !63;
            if address >= range.start && self.has(address) {
                return Some(address);
            }
        }
        None
    }

    fn has(&self, address: u64) -> bool {
        let held = match self.pool {
            SimPool::Frames { sparse } => scatter(address >> 12) >> (64 - sparse.max(1)) == 0,
            _ => true,
        };
        held && self
            .ranges
            .iter()
            .any(|range| (range.start..range.end).contains(&address))
    }

    fn guest_address(&self, page: u64) -> Option<u64> {
        Some(self.physical(page))
    }

    fn sample(&mut self, a: u64, b: u64) -> u32 {
        self.samples += 1;
        let mut time = self.truth(a, b);
        let noise = self.noise;
        if noise.drift > 0.0 {
            let turn = self.samples as f64 / DRIFT_PERIOD * std::f64::consts::TAU;
            time += noise.drift * (turn.sin() + 0.3 * (turn * 3.7).sin());
        }
        if noise.sigma > 0.0 {
            // Sum of uniforms: close to normal, cheap, bounded.
            let sum: f64 = (0..6).map(|_| self.rng.gen::<f64>()).sum();
            time += noise.sigma * (sum - 3.0) * std::f64::consts::SQRT_2;
        }
        if noise.refresh > 0.0 && self.rng.gen::<f64>() < noise.refresh {
            time += REFRESH * self.rng.gen::<f64>();
        }
        if noise.outliers > 0.0 && self.rng.gen::<f64>() < noise.outliers {
            time = FAST * self.rng.gen_range(0.7..3.0);
        }
        time.max(1.0) as u32
    }
}

/// A hash that mixes (SplitMix64's finaliser): of a multiplicative one, no two
/// neighbouring frames would ever be held, which no real pool is like.
fn scatter(frame: u64) -> u64 {
    let mut x = frame.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
