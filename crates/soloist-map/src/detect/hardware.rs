//! The memory of this machine.
//!
//! Pages of 1 GiB, 2 MiB or 4 KiB, whichever the kernel gives. What the
//! addresses mean depends on who asks: with CAP_SYS_ADMIN on bare metal
//! /proc/self/pagemap tells physical addresses; without it, or in a virtual
//! machine (whose physical addresses are not the memory controller's), only
//! the bits inside a page are known, though pagemap still tells what the guest
//! calls a page. Reading pagemap is the only privileged step, and optional.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::cpu;
use super::source::{Addresses, OsRange, TimingSource};
use crate::host;

/// Page sizes that are tried, largest first (log2).
const PAGE_SHIFTS: [u32; 3] = [30, 21, 12];
/// Readings of the clock in one sample.
const READINGS: usize = 5;

/// Why the machine's memory can't be timed.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// No instructions for it here.
    #[error("timing needs x86-64 or arm64")]
    Architecture,
    /// The kernel gave no memory.
    #[error("no memory for the measurement ({0}); try a smaller --memory")]
    Memory(std::io::Error),
    /// The page size asked for is not to be had.
    #[error("no pages of {size} bytes: reserve some (echo 1 > /sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages), or leave --pages out")]
    Pages {
        /// Bytes.
        size: u64,
        /// KiB, as the kernel names the folder.
        kib: u64,
    },
}

/// A page of the pool.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// Address as the detector sees it.
    address: u64,
    /// Its address as this kernel numbers it, where pagemap tells.
    guest: Option<u64>,
    /// Where it is mapped.
    at: *const u8,
}

/// Memory of this machine.
pub struct Hardware {
    pages: Vec<Page>,
    page_shift: u32,
    addresses: Addresses,
    ranges: Vec<OsRange>,
    mapping: Mapping,
}

/// What to measure with.
#[derive(Debug, Clone, Copy)]
pub struct HardwareOptions {
    /// Bytes to map.
    pub memory: u64,
    /// log2 of the page size; `None`: the largest there is.
    pub page_shift: Option<u32>,
    /// Use physical addresses in a virtual machine too: right only when the
    /// host backs the guest with one piece of memory at the same offsets.
    pub trust_guest: bool,
}

struct Mapping {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

impl Hardware {
    /// Maps and touches memory.
    ///
    /// # Errors
    /// When there is none, or not in the pages asked for.
    pub fn new(options: &HardwareOptions) -> Result<Self, HardwareError> {
        if !cpu::SUPPORTED {
            return Err(HardwareError::Architecture);
        }
        let shifts: Vec<u32> = match options.page_shift {
            Some(shift) => vec![shift],
            None => PAGE_SHIFTS.to_vec(),
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

    fn with_pages(options: &HardwareOptions, shift: u32) -> Result<Self, HardwareError> {
        let size = 1u64 << shift;
        let missing = || HardwareError::Pages {
            size,
            kib: size >> 10,
        };
        let bytes = (options.memory.max(size) >> shift << shift) as usize;
        let (mapping, first) = if shift == 12 {
            let mapping = map(bytes, 0).map_err(HardwareError::Memory)?;
            let first = mapping.at as usize;
            (mapping, first)
        } else {
            match map_huge(bytes, shift) {
                Some(mapping) => {
                    let first = mapping.at as usize;
                    (mapping, first)
                }
                None if shift == 21 => map_transparent(bytes, size as usize).ok_or_else(missing)?,
                None => return Err(missing()),
            }
        };
        let physical = host::is_bare_metal() || options.trust_guest;
        let pagemap = File::open("/proc/self/pagemap").ok();
        let count = ((mapping.at as usize + mapping.bytes - first) >> shift).min(bytes >> shift);
        let mut pages: Vec<Page> = Vec::with_capacity(count);
        for i in 0..count {
            let at = (first + (i << shift)) as *mut u8;
            // SAFETY: inside the mapping; a write gives every page a frame of
            // its own.
            unsafe { std::ptr::write_volatile(at, 1) };
            let frame = pagemap.as_ref().and_then(|file| frame_of(file, at as u64));
            if shift == 12 || is_huge(at, size, pagemap.as_ref(), frame) {
                let guest = frame.map(|frame| frame << 12);
                pages.push(Page {
                    address: guest.filter(|_| physical).unwrap_or((i as u64) << shift),
                    guest,
                    at,
                });
            }
        }
        if pages.is_empty() {
            return Err(missing());
        }
        let known = physical && pages.iter().all(|page| page.guest.is_some());
        pages.sort_by_key(|page| page.address);
        Ok(Self::assemble(mapping, pages, shift, known))
    }

    fn assemble(mapping: Mapping, mut pages: Vec<Page>, shift: u32, known: bool) -> Self {
        let (addresses, ranges) = if known {
            (Addresses::Physical, host::memory_ranges())
        } else {
            for (i, page) in pages.iter_mut().enumerate() {
                page.address = (i as u64) << shift;
            }
            let ranges = pages.iter().map(|page| OsRange {
                start: page.address,
                end: page.address + (1 << shift),
                node: 0,
            });
            (
                Addresses::InsidePages { page_shift: shift },
                ranges.collect(),
            )
        };
        Self {
            pages,
            page_shift: shift,
            addresses,
            ranges,
            mapping,
        }
    }

    /// log2 of the page size that was got.
    #[must_use]
    pub fn page_shift(&self) -> u32 {
        self.page_shift
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
        self.mapping.bytes
    }

    /// Where the line at `address` is mapped; `None`: not in the pool.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<*const u8> {
        let page = self.page_of(address)?;
        Some(page.at.wrapping_add((address - page.address) as usize))
    }

    fn page_of(&self, address: u64) -> Option<&Page> {
        let start = address >> self.page_shift << self.page_shift;
        let at = self.pages.binary_search_by_key(&start, |page| page.address);
        self.pages.get(at.ok()?)
    }
}

impl TimingSource for Hardware {
    fn ranges(&self) -> Vec<OsRange> {
        self.ranges.clone()
    }

    fn addresses(&self) -> Addresses {
        self.addresses
    }

    fn random(&mut self, range: &OsRange, rng: &mut ChaCha8Rng) -> Option<u64> {
        let size = 1u64 << self.page_shift;
        let low = self
            .pages
            .partition_point(|page| page.address + size <= range.start);
        let high = self.pages.partition_point(|page| page.address < range.end);
        for _ in 0..64 {
            if low >= high {
                return None;
            }
            let page = self.pages[rng.gen_range(low..high)].address;
            let (from, to) = (page.max(range.start), (page + size).min(range.end));
            let line = rng.gen_range(from..to) & !63;
            if line >= from {
                return Some(line);
            }
        }
        None
    }

    fn has(&self, address: u64) -> bool {
        self.locate(address).is_some()
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
}

fn map(bytes: usize, flags: i32) -> std::io::Result<Mapping> {
    // SAFETY: a fresh anonymous mapping, nothing of ours lies there.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    Ok(Mapping { at, bytes })
}

/// Reserved huge pages: as many as there are, down to one.
fn map_huge(mut bytes: usize, shift: u32) -> Option<Mapping> {
    let flags = libc::MAP_HUGETLB | libc::MAP_POPULATE | (shift as i32) << libc::MAP_HUGE_SHIFT;
    while bytes >= 1 << shift {
        if let Ok(mapping) = map(bytes, flags) {
            return Some(mapping);
        }
        bytes = ((bytes / 2) >> shift) << shift;
    }
    None
}

/// Transparent huge pages, where the kernel has them: the mapping and the
/// first aligned address.
fn map_transparent(bytes: usize, size: usize) -> Option<(Mapping, usize)> {
    let mapping = map(bytes + size, 0).ok()?;
    let first = (mapping.at as usize).next_multiple_of(size);
    // SAFETY: inside the mapping.
    let advised = unsafe { libc::madvise(first as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
    (advised == 0).then_some((mapping, first))
}

/// The frame behind an address, when pagemap tells.
fn frame_of(pagemap: &File, at: u64) -> Option<u64> {
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, at / 4096 * 8).ok()?;
    let entry = u64::from_ne_bytes(entry);
    let frame = entry & ((1 << 55) - 1);
    (entry >> 63 == 1 && frame != 0).then_some(frame)
}

/// Whether the page at `at` is one huge page: by its frames, else by what the
/// kernel says of the mapping.
fn is_huge(at: *mut u8, size: u64, pagemap: Option<&File>, frame: Option<u64>) -> bool {
    if let (Some(file), Some(first)) = (pagemap, frame) {
        let last = frame_of(file, at as u64 + size - 4096);
        return first % (size >> 12) == 0 && last == Some(first + (size >> 12) - 1);
    }
    host::huge_bytes_at(at as u64) >= size
}
