//! A simulated memory: a map from a machine file, pages as a kernel hands them
//! out, and the noise of a real machine. Addresses are decoded by core, as
//! everywhere; which pages are measured is chosen as on a real machine
//! ([`crate::timing::pool`]).

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{AddrMap, Dram};
use soloist_machine::dram::Device;
use soloist_machine::ram::{join, RamRange};
use soloist_machine::{FileError, Machine};

use crate::timing::noise::Noise;
use crate::timing::pool::{fetch, gather, Limits, Pool, Supply};
use crate::timing::{Addresses, TimingSource};
use soloist_map::sources::bridge::Lifted;

/// Pair in different banks, cycles.
const FAST: f64 = 260.0;
/// What a row conflict adds, cycles.
const CONFLICT: f64 = 80.0;
/// What every further node adds, cycles.
const REMOTE: f64 = 45.0;

/// How the simulated kernel hands out pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimPool {
    /// log2 of the page size.
    pub page_shift: u32,
    /// Memory that is kept, and that the kernel has to give.
    pub limits: Limits,
    /// From all over memory, as one that has run for long does; else in one
    /// piece from some place on.
    pub scattered: bool,
    /// Whether the detector is told physical addresses.
    pub physical: bool,
}

impl SimPool {
    /// Pages of 2 MiB from all over memory, as root on a machine that has run.
    #[must_use]
    pub fn everywhere() -> Self {
        Self {
            page_shift: 21,
            limits: Limits {
                keep: 1 << 30,
                most: u64::MAX >> 8,
            },
            scattered: true,
            physical: true,
        }
    }

    /// All memory, in pages of 2 MiB.
    #[must_use]
    pub fn all() -> Self {
        Self {
            limits: Limits {
                keep: u64::MAX >> 8,
                most: u64::MAX >> 8,
            },
            ..Self::everywhere()
        }
    }

    /// Pages whose physical addresses are not known.
    #[must_use]
    pub fn unprivileged(page_shift: u32, pages: u64) -> Self {
        let bytes = pages << page_shift;
        Self {
            page_shift,
            limits: Limits {
                keep: bytes,
                most: bytes,
            },
            physical: false,
            ..Self::everywhere()
        }
    }

    /// At most `bytes` in one piece.
    #[must_use]
    pub fn one_piece(bytes: u64) -> Self {
        Self {
            limits: Limits {
                keep: bytes,
                most: bytes,
            },
            scattered: false,
            ..Self::everywhere()
        }
    }
}

/// The simulated kernel's free pages: each is given once.
struct Free {
    page_shift: u32,
    ranges: Vec<(u64, u64)>,
    pages: u64,
    scattered: bool,
    handed: u64,
    start: u64,
    /// Keys of the scattered order.
    keys: [u64; 4],
    rng: ChaCha8Rng,
}

impl Free {
    fn new(ranges: &[RamRange], pool: SimPool, mut rng: ChaCha8Rng) -> Self {
        let shift = pool.page_shift;
        let ranges: Vec<(u64, u64)> = ranges
            .iter()
            .map(|range| (range.start.div_ceil(1 << shift), range.end >> shift))
            .filter(|(first, end)| first < end)
            .collect();
        let pages: u64 = ranges.iter().map(|(first, end)| end - first).sum();
        let start = rng.gen_range(0..pages.max(1));
        Self {
            page_shift: shift,
            ranges,
            pages,
            scattered: pool.scattered,
            handed: 0,
            start,
            keys: rng.gen(),
            rng,
        }
    }

    /// The page by its number among all.
    fn page(&self, mut number: u64) -> u64 {
        for (first, end) in &self.ranges {
            if number < end - first {
                return (first + number) << self.page_shift;
            }
            number -= end - first;
        }
        0
    }

    /// The number of the page that is given as the `turn`th of all.
    fn number(&self, turn: u64) -> u64 {
        if !self.scattered {
            return (self.start + turn) % self.pages;
        }
        // A permutation of the numbers of so many bits (Feistel's), until one is a page.
        let half = (64 - self.pages.leading_zeros()).div_ceil(2);
        let mask = (1u64 << half) - 1;
        let mut number = turn;
        loop {
            for key in self.keys {
                let (left, right) = (number >> half, number & mask);
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 31;
                number = right << half | ((left ^ mixed) & mask);
            }
            if number < self.pages {
                return number;
            }
        }
    }
}

impl Supply for Free {
    fn more(&mut self, bytes: u64) -> Vec<u64> {
        let count = (bytes >> self.page_shift).min(self.pages - self.handed);
        let turns = self.handed..self.handed + count;
        self.handed += count;
        let mut pages: Vec<u64> = turns.map(|turn| self.page(self.number(turn))).collect();
        pages.shuffle(&mut self.rng);
        pages
    }
}

/// The simulated memory.
pub struct SimSource {
    map: AddrMap,
    ranges: Vec<RamRange>,
    kind: SimPool,
    pool: Pool,
    /// Physical addresses of the pages of an unprivileged pool.
    hidden: Vec<u64>,
    /// The kernel, pages that it gave, and bytes that it gives more.
    free: Free,
    given: Vec<u64>,
    left: u64,
    noise: Noise,
    rng: ChaCha8Rng,
    samples: u64,
    /// Bits of the bank that are its group.
    group: u32,
    streams: Option<SimStreams>,
    lifted: Option<Lifted>,
}

/// What limits several streams of reads.
#[derive(Debug, Clone)]
pub struct SimStreams {
    /// The DRAM.
    pub device: Device,
    /// The least time of a line, however many channels there are, for the processors ask
    /// for no more: cycles of the command clock.
    pub least: f64,
    /// Standard deviation of a reading, as a share of it.
    pub sigma: f64,
}

impl SimStreams {
    /// Streams on the DRAM of `machine`, DDR4-3200 where the file names none.
    ///
    /// # Errors
    /// When the device's file is wrong.
    pub fn of(machine: &Machine) -> Result<Self, FileError> {
        let memory = machine.memory.as_ref();
        let name = memory.map_or("ddr4-3200aa", |memory| memory.device.as_str());
        Ok(Self {
            device: Device::find(name, &machine.file)?,
            least: 0.5,
            sigma: 0.03,
        })
    }
}

impl SimSource {
    /// Memory with the map of `machine`.
    #[must_use]
    pub fn new(machine: &Machine, kind: SimPool, noise: Noise, seed: u64) -> Self {
        Self::with_streams(machine, kind, noise, seed, SimStreams::of(machine).ok())
    }

    /// Memory whose streams are limited by something else; by nothing that can
    /// be had, if `None`.
    #[must_use]
    pub fn with_streams(
        machine: &Machine,
        kind: SimPool,
        noise: Noise,
        seed: u64,
        streams: Option<SimStreams>,
    ) -> Self {
        // As an operating system shows it, whatever the layouts.
        let physical = join(machine.map.ranges.iter().map(|range| RamRange {
            start: range.start,
            end: range.end,
            node: range.node,
        }));
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0f50_1015);
        let own = ChaCha8Rng::seed_from_u64(rng.gen());
        // Without addresses a kernel gives what is near.
        let near = physical
            .iter()
            .filter(|range| range.node == physical[0].node);
        let near: Vec<RamRange> = near.copied().collect();
        let offered = if kind.physical { &physical } else { &near };
        let mut free = Free::new(offered, kind, own);
        let gathered = gather(&mut free, offered, kind.page_shift, kind.limits);
        let pages = gathered.chosen;
        let (ranges, hidden, pages) = match kind.physical {
            true => (physical, Vec::new(), pages),
            false => {
                let at = |i: usize| (i as u64) << kind.page_shift;
                let ranges = (0..pages.len()).map(|i| RamRange {
                    start: at(i),
                    end: at(i + 1),
                    node: 0,
                });
                let numbered = (0..pages.len()).map(at).collect();
                (ranges.collect(), pages, numbered)
            }
        };
        Self {
            map: machine.addr_map(),
            ranges,
            kind,
            pool: Pool::new(pages, kind.page_shift),
            hidden,
            free,
            given: gathered.all,
            left: kind.limits.most - gathered.asked.min(kind.limits.most),
            noise,
            rng,
            samples: 0,
            group: machine.map.layouts.first().map_or(0, |l| {
                l.bank_group.iter().fold(0, |all, &bit| all | 1 << bit)
            }),
            streams,
            lifted: None,
        }
    }

    /// As a host whose registers say this of its memory.
    #[must_use]
    pub fn with_lifted(self, lifted: Lifted) -> Self {
        let lifted = Some(lifted);
        Self { lifted, ..self }
    }

    /// The physical address behind an address of this source: what an
    /// unprivileged detector can't know, and tests compare with.
    #[must_use]
    pub fn physical(&self, address: u64) -> u64 {
        if self.kind.physical {
            return address;
        }
        let shift = self.kind.page_shift;
        self.hidden[(address >> shift) as usize] | (address & ((1 << shift) - 1))
    }

    /// The bank of an address of this source, numbered over all nodes; `None`:
    /// in a hole.
    #[must_use]
    pub fn bank(&self, address: u64) -> Option<u32> {
        let place = self.map.decode(self.physical(address)).ok()?;
        Some(place.node << 24 | place.color)
    }

    /// The channel of an address of this source, numbered over all nodes; `None`: in a
    /// hole.
    #[must_use]
    pub fn channel(&self, address: u64) -> Option<u32> {
        let place = self.map.decode(self.physical(address)).ok()?;
        Some(place.node << 24 | place.channel)
    }

    /// Time without noise.
    fn truth(&self, a: u64, b: u64) -> f64 {
        let (Ok(a), Ok(b)) = (
            self.map.decode(self.physical(a)),
            self.map.decode(self.physical(b)),
        ) else {
            return FAST;
        };
        let noise = &self.noise;
        let remote = REMOTE * f64::from(a.node + b.node) / 2.0;
        let same_bank = a.color == b.color;
        FAST + remote
            + match (same_bank, a.row == b.row) {
                (true, false) => CONFLICT,
                (true, true) if noise.closed => CONFLICT,
                (true, true) => -noise.hit,
                _ if a.node != b.node || a.channel != b.channel => 0.0,
                _ if self.is_told() => self.turnaround(&a, &b),
                // Four banks a group, two groups a rank.
                _ if a.color >> 2 == b.color >> 2 => noise.group,
                _ if (a.color ^ b.color) >> 3 & 1 == 1 => noise.rank,
                _ => 0.0,
            }
    }

    /// Whether the map says what its functions are.
    fn is_told(&self) -> bool {
        self.group != 0 || self.map.channels() > 1 || self.map.n_ranks() > 1
    }

    /// The time that two banks of a channel add.
    fn turnaround(&self, a: &Dram, b: &Dram) -> f64 {
        match (a.rank == b.rank, (a.bank ^ b.bank) & self.group == 0) {
            (true, true) => self.noise.group,
            (true, false) => 0.0,
            (false, _) => self.noise.rank,
        }
    }

    /// Cycles in which the DRAM gives these lines, reordered as well as can be:
    /// whatever of it has most to do.
    fn busy(&self, lines: &[u64], streams: &SimStreams) -> f64 {
        let device = &streams.device;
        let burst = device.burst_length / device.transfers_per_cycle.max(1);
        let has_groups = self.group != 0;
        let (ranks, banks) = (self.map.n_ranks(), self.map.n_banks());
        let size = (self.map.n_channels() * ranks * banks) as usize;
        let mut busy = vec![0u32; 5 * size];
        let mut rows = vec![None; self.map.n_colors() as usize];
        for &line in lines {
            let Ok(d) = self.map.decode(self.physical(line)) else {
                continue;
            };
            let mut add = |what: usize, rank: u32, bank: u32, cycles: u32| {
                let part = (d.channel * ranks + rank) * banks + bank;
                busy[what * size + part as usize] += cycles;
            };
            let group = d.bank & self.group;
            add(0, 0, 0, burst.max(device.tccd_s));
            if has_groups {
                add(1, d.rank, group, device.tccd_l);
            }
            if rows[d.color as usize].replace(d.row) != Some(d.row) {
                // Four activates a window.
                add(2, d.rank, 0, device.trrd_s.max(device.tfaw.div_ceil(4)));
                add(3, d.rank, d.bank, device.trc);
                if has_groups {
                    add(4, d.rank, group, device.trrd_l);
                }
            }
        }
        let most = f64::from(busy.into_iter().max().unwrap_or(0));
        most.max(streams.least * lines.len() as f64)
    }
}

/// Whether a hash of the addresses makes the first-level ways of two lines one,
/// as on AMD's family 17h (see [`crate::timing::cpu::ways_collide`]).
fn ways_collide(a: u64, b: u64) -> bool {
    let differ = a ^ b;
    let same_tag = (0..8).all(|i| (differ >> (12 + i) ^ differ >> (27 - i)) & 1 == 0);
    differ & 0xfc0 == 0 && same_tag
}

impl TimingSource for SimSource {
    fn ranges(&self) -> Vec<RamRange> {
        self.ranges.clone()
    }

    fn addresses(&self) -> Addresses {
        match self.kind.physical {
            true => Addresses::Physical,
            false => Addresses::InsidePages {
                page_shift: self.kind.page_shift,
            },
        }
    }

    fn lifted(&self) -> Option<Lifted> {
        self.lifted
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn fetch(&mut self, range: &RamRange) {
        if self.kind.physical {
            let shift = self.kind.page_shift;
            let pages = fetch(&mut self.free, range, shift, &self.given, self.left);
            self.pool.add(pages);
        }
    }

    fn guest_address(&self, page: u64) -> Option<u64> {
        Some(self.physical(page))
    }

    fn sample(&mut self, a: u64, b: u64) -> u32 {
        self.samples += 1;
        let mut time = self.truth(a, b);
        if self.noise.aliases && ways_collide(a, b) {
            time = time.max(FAST + CONFLICT);
        }
        self.noise.reading(time, FAST, self.samples, &mut self.rng)
    }

    fn stream(&mut self, lines: &[u64]) -> Option<f64> {
        let streams = self.streams.as_ref()?;
        let sum: f64 = (0..6).map(|_| self.rng.gen::<f64>()).sum();
        let normal = (sum - 3.0) * std::f64::consts::SQRT_2;
        let mut slower = 1.0 + streams.sigma * normal;
        if self.rng.gen::<f64>() < self.noise.outliers {
            slower += self.rng.gen::<f64>();
        }
        Some(self.busy(lines, streams) * slower)
    }
}
