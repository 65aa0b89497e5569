//! The memory of this machine.
//!
//! It takes the largest pages that the kernel gives: of 1 GiB, huge ones of 2 MiB (32 MiB on
//! a kernel with pages of 16 KiB), or small ones. What the addresses mean depends on who
//! asks: with CAP_SYS_ADMIN on bare metal /proc/self/pagemap tells physical addresses; without
//! it, or in a virtual machine (whose physical addresses are not the memory controller's),
//! only the bits inside a page are known, though pagemap still tells what the guest calls a
//! page. Reading pagemap is the only privileged step, and optional.

mod mapper;

use std::fs::File;
use std::time::{Duration, Instant};

use self::mapper::{huge_shift, running, small_shift, Mapper, Page};
use crate::timing::cpu;
use crate::timing::pool::{fetch, gather, Limits, Pool};
use crate::timing::streams;
use crate::timing::{Addresses, TimingSource};
use crate::Options;
use soloist_core::format_size;
use soloist_host::machine::guest::{emulator, is_bare_metal};
use soloist_host::machine::{available_bytes, memory_ranges};
use soloist_machine::RamRange;
use soloist_map::sources::bridge::{self, Lifted};

/// Bytes that are measured, unless told otherwise.
const KEEP: u64 = 512 << 20;
/// Readings of the clock in one sample.
const READINGS: usize = 5;

/// Why the machine's memory can't be timed.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// No instructions for it here.
    #[error("timing needs x86-64 or arm64")]
    Architecture,
    /// A program plays the processor.
    #[error("this processor is emulated ({0}): how long it takes says nothing of memory")]
    Emulated(String),
    /// The kernel gave no memory.
    #[error("no memory for the measurement ({0}); try a smaller --memory")]
    Memory(std::io::Error),
    /// More memory was asked for than is available.
    #[error("{} of memory are more than may be taken, three quarters of what is available: give --memory {} or less", format_size(*.wanted), format_size(*.most >> 20 << 20))]
    TooMuch {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that may be taken.
        most: u64,
    },
    /// Less than a page was asked for.
    #[error("--memory {}: less than a page, of {}", format_size(*.memory), format_size(*.page))]
    TooLittle {
        /// Bytes asked for.
        memory: u64,
        /// Bytes of a page.
        page: u64,
    },
    /// The page size asked for is not to be had.
    #[error("no pages of {size} bytes: reserve some (echo 1 > /sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages), or leave --pages out")]
    Pages {
        /// Bytes.
        size: u64,
        /// KiB, as the kernel names the folder.
        kib: u64,
    },
}

/// Memory of this machine.
pub struct Hardware {
    /// Ascending, as in the pool.
    pages: Vec<Page>,
    pool: Pool,
    addresses: Addresses,
    ranges: Vec<RamRange>,
    /// Holds the mappings of all pages.
    mapper: Mapper,
    /// Bytes that the kernel may be asked for at a time.
    most: u64,
    /// The memory that the host bridge says is lifted, where physical addresses are told.
    lifted: Option<Lifted>,
    /// Processors that streams run on; none: wherever the caller may run.
    cpus: Vec<usize>,
    pages_are_whole: bool,
}

/// Bytes that a measurement may take here: three quarters of what is available; `None`: the
/// kernel does not say.
#[must_use]
pub fn most_memory() -> Option<u64> {
    available_bytes(&running()).map(|bytes| bytes / 4 * 3)
}

/// What to measure with.
#[derive(Debug, Clone, Copy, Default)]
pub struct HardwareOptions {
    /// Bytes to map at most; `None`: three quarters of what is available where
    /// physical addresses are told (most of it only for a moment, to choose
    /// pages from), else 512 MiB.
    pub memory: Option<u64>,
    /// log2 of the page size; `None`: the largest there is.
    pub page_shift: Option<u32>,
    /// Use physical addresses in a virtual machine too: right only when the
    /// host backs the guest with one piece of memory at the same offsets.
    pub trust_guest: bool,
    /// Ask for no physical addresses, even where they are told: pages get classes.
    pub unprivileged: bool,
    /// The kernel is asked for pages no longer than this, half of it before anything is
    /// measured; `None`: as long as it takes.
    pub deadline: Option<Duration>,
}

impl Hardware {
    /// The same memory, which streams read from these processors, a thread each.
    #[must_use]
    pub fn with_cpus(self, cpus: Vec<usize>) -> Self {
        Self { cpus, ..self }
    }

    /// Maps and touches memory.
    ///
    /// # Errors
    /// When there is none, or not in the pages asked for; when the processor is emulated.
    pub fn new(options: &HardwareOptions) -> Result<Self, HardwareError> {
        if !cpu::SUPPORTED {
            return Err(HardwareError::Architecture);
        }
        if let Some(sign) = emulator(&running()) {
            return Err(HardwareError::Emulated(sign));
        }
        // All of it is touched: the kernel would end other programs to make room.
        if let (Some(wanted), Some(most)) = (options.memory, most_memory()) {
            if wanted > most {
                return Err(HardwareError::TooMuch { wanted, most });
            }
        }
        let shifts: Vec<u32> = match options.page_shift {
            Some(shift) => vec![shift],
            None => vec![30, huge_shift(), small_shift()],
        };
        let mut last = None;
        for shift in shifts {
            match Self::with_pages(options, shift) {
                Ok(pool) => return Ok(pool),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(HardwareError::Architecture))
    }

    /// Maps memory within the deadline of a measurement; the measurement with what is left
    /// of it.
    ///
    /// # Errors
    /// As [`Hardware::new`].
    pub fn within(
        options: &HardwareOptions,
        measurement: &Options,
    ) -> Result<(Self, Options), HardwareError> {
        let started = Instant::now();
        let memory = Self::new(&HardwareOptions {
            deadline: Some(measurement.deadline),
            ..*options
        })?;
        let left = Options {
            deadline: measurement.deadline.saturating_sub(started.elapsed()),
            ..measurement.clone()
        };
        Ok((memory, left))
    }

    fn with_pages(options: &HardwareOptions, shift: u32) -> Result<Self, HardwareError> {
        let page = 1 << shift;
        if let Some(memory) = options.memory.filter(|&memory| memory < page) {
            return Err(HardwareError::TooLittle { memory, page });
        }
        let host = running();
        let are_shown = is_bare_metal(&host) || options.trust_guest;
        let physical = are_shown && !options.unprivileged;
        let pagemap = File::open("/proc/self/pagemap").ok();
        let mut mapper = Mapper {
            shift,
            pagemap,
            pages: Vec::new(),
            mappings: Vec::new(),
            known: false,
            error: None,
            until: None,
        };
        // The first page shows whether addresses are told.
        let probe = mapper.map(1 << shift);
        mapper.mappings.clear();
        let known = physical && probe.first().is_some_and(|page| page.guest.is_some());
        if probe.is_empty() {
            return Err(match mapper.error {
                Some(error) if shift == small_shift() => HardwareError::Memory(error),
                _ => HardwareError::Pages {
                    size: 1 << shift,
                    kib: (1 << shift) >> 10,
                },
            });
        }
        let keep = KEEP.min(options.memory.unwrap_or(KEEP)).max(1 << shift);
        let (addresses, ranges, most) = if known {
            let most = most_memory().unwrap_or(KEEP);
            let ranges = memory_ranges(&host);
            (Addresses::Physical, ranges, options.memory.unwrap_or(most))
        } else {
            let inside = Addresses::InsidePages { page_shift: shift };
            let most = most_memory().map_or(KEEP, |most| most.min(KEEP));
            // One page where a page is more: of 1 GiB, which is set aside anyway.
            (inside, Vec::new(), options.memory.unwrap_or(most.max(page)))
        };
        let limits = match known {
            true => Limits { keep, most },
            false => Limits { keep: most, most },
        };
        mapper.known = known;
        let started = Instant::now();
        let after = |time| started.checked_add(time);
        mapper.until = options.deadline.and_then(|deadline| after(deadline / 2));
        let kept = gather(&mut mapper, &ranges, shift, limits).chosen;
        mapper.until = options.deadline.and_then(after);
        Ok(Self {
            pages_are_whole: are_shown,
            ..Self::assemble(mapper, &kept, addresses, ranges, most)
        })
    }

    fn assemble(
        mut mapper: Mapper,
        kept: &[u64],
        addresses: Addresses,
        ranges: Vec<RamRange>,
        most: u64,
    ) -> Self {
        let shift = mapper.shift;
        let mut pages = mapper.keep(kept);
        pages.sort_by_key(|page| page.address);
        let lifted = match addresses {
            Addresses::Physical => bridge::read_with(&running(), &ranges).ok(),
            Addresses::InsidePages { .. } => None,
        };
        let lifted = lifted.and_then(|bridge| bridge.lifted());
        let ranges = match addresses {
            Addresses::Physical => ranges,
            Addresses::InsidePages { .. } => pages
                .iter()
                .map(|page| RamRange {
                    start: page.address,
                    end: page.address + (1 << shift),
                    node: 0,
                })
                .collect(),
        };
        Self {
            pool: Pool::new(pages.iter().map(|page| page.address).collect(), shift),
            pages,
            addresses,
            ranges,
            mapper,
            most,
            lifted,
            cpus: Vec::new(),
            pages_are_whole: true,
        }
    }

    /// log2 of the page size that was got.
    #[must_use]
    pub fn page_shift(&self) -> u32 {
        self.pool.page_shift()
    }

    /// Whether a page is one piece of memory: no hypervisor may have put it together.
    #[must_use]
    pub fn pages_are_whole(&self) -> bool {
        self.pages_are_whole
    }

    /// Pages in the pool.
    #[must_use]
    pub fn n_pages(&self) -> usize {
        self.pages.len()
    }

    /// First address of each page, ascending.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.iter().map(|page| page.address)
    }

    /// Bytes mapped.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let mappings = self.mapper.mappings.iter();
        mappings.map(|mapping| mapping.bytes).sum()
    }

    /// Where the line at `address` is mapped; `None`: not in the pool.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<*const u8> {
        let page = self.page_of(address)?;
        Some(page.at.wrapping_add((address - page.address) as usize))
    }

    /// The same pages, named as if they lay `by` higher in memory of these `ranges`.
    #[cfg(test)]
    pub(crate) fn moved_by(mut self, by: u64, ranges: Vec<RamRange>) -> Self {
        for page in &mut self.pages {
            page.address += by;
        }
        let pages = self.pages().collect();
        self.pool = Pool::new(pages, self.page_shift());
        self.addresses = Addresses::Physical;
        Self { ranges, ..self }
    }

    fn page_of(&self, address: u64) -> Option<&Page> {
        let shift = self.pool.page_shift();
        let start = address >> shift << shift;
        let at = self.pages.binary_search_by_key(&start, |page| page.address);
        self.pages.get(at.ok()?)
    }
}

impl TimingSource for Hardware {
    fn ranges(&self) -> Vec<RamRange> {
        self.ranges.clone()
    }

    fn addresses(&self) -> Addresses {
        self.addresses
    }

    fn lifted(&self) -> Option<Lifted> {
        self.lifted
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn fetch(&mut self, range: &RamRange) {
        if self.addresses != Addresses::Physical {
            return;
        }
        let shift = self.pool.page_shift();
        let held = (self.pages.len() as u64) << shift;
        let most = self.most.saturating_sub(held);
        let mut found = fetch(&mut self.mapper, range, shift, &[], most);
        found.retain(|&page| !self.pool.has(page));
        self.pages.extend(self.mapper.keep(&found));
        self.pages.sort_by_key(|page| page.address);
        self.pool.add(found);
    }

    fn is_fair(&self, a: u64, b: u64) -> bool {
        match (self.locate(a), self.locate(b)) {
            (Some(a), Some(b)) => !cpu::ways_collide(a, b),
            _ => false,
        }
    }

    fn guest_address(&self, page: u64) -> Option<u64> {
        let huge = self.page_of(page)?;
        Some(huge.guest? + (page - huge.address))
    }

    fn sample(&mut self, a: u64, b: u64) -> u32 {
        let (Some(a), Some(b)) = (self.locate(a), self.locate(b)) else {
            return 0;
        };
        let mut times = [0u32; READINGS];
        for time in &mut times {
            // SAFETY: both lie in pages of the mapping that `self` owns.
            *time = unsafe { cpu::time_pair(a, b) };
        }
        times.sort_unstable();
        // The second fastest: an interrupt only ever makes it slower.
        times[1]
    }

    fn frame_shift(&self) -> u32 {
        small_shift()
    }

    fn stream(&mut self, lines: &[u64]) -> Option<f64> {
        let lines: Vec<*const u8> = lines.iter().filter_map(|&line| self.locate(line)).collect();
        // SAFETY: all lie in pages of the mappings that `self` owns.
        unsafe { streams::time(&lines, &self.cpus) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::mapper::PIECE;
    use super::*;

    /// Touching all memory of a server takes minutes.
    #[test]
    fn no_pages_are_asked_for_after_the_deadline() {
        let bytes = |deadline| {
            let options = HardwareOptions {
                memory: Some(3 * PIECE),
                page_shift: Some(small_shift()),
                unprivileged: true,
                deadline,
                ..HardwareOptions::default()
            };
            let memory = Hardware::new(&options).unwrap();
            (memory.n_pages() as u64) << memory.page_shift()
        };
        assert_eq!(bytes(Some(Duration::ZERO)), PIECE);
        assert_eq!(bytes(None), 3 * PIECE);
    }
}
