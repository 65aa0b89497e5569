//! Pages that the kernel gives, mapped piece by piece, and what it calls them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use soloist_host::machine::{huge_bytes_at, Host};

use crate::timing::pool::Supply;

/// Bytes that the kernel is asked for at a time.
pub(super) const PIECE: u64 = 64 << 20;

/// A page of the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Address as the detector sees it.
    pub address: u64,
    /// Its address as this kernel numbers it, where pagemap tells.
    pub guest: Option<u64>,
    /// Where it is mapped.
    pub at: *const u8,
}

/// log2 of the bytes of the kernel's pages.
pub(super) fn small_shift() -> u32 {
    running().page_size().shift()
}

/// The same of those that one page of a page table maps, by entries of 8 bytes.
pub(super) fn huge_shift() -> u32 {
    2 * small_shift() - 3
}

/// It times the memory of the running machine, whatever root is set.
pub(super) fn running() -> Host {
    Host::at("/")
}

/// Memory that the kernel gave, until it is dropped.
pub(super) struct Mapping {
    at: *mut libc::c_void,
    pub bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Maps memory piece by piece.
pub(super) struct Mapper {
    pub shift: u32,
    pub pagemap: Option<File>,
    pub pages: Vec<Page>,
    pub mappings: Vec<Mapping>,
    pub known: bool,
    pub error: Option<std::io::Error>,
    /// When it asks for no more.
    pub until: Option<Instant>,
}

impl Mapper {
    /// Whether the time is up; a first piece is taken even so.
    fn is_late(&self) -> bool {
        let is_up = self.until.is_some_and(|until| Instant::now() >= until);
        is_up && !self.mappings.is_empty()
    }

    /// The pages mapped last that are `kept`, whose addresses ascend; all others of them
    /// go back.
    pub fn keep(&mut self, kept: &[u64]) -> Vec<Page> {
        let last = std::mem::take(&mut self.pages);
        let (pages, others): (Vec<Page>, Vec<Page>) = last
            .into_iter()
            .partition(|page| kept.binary_search(&page.address).is_ok());
        for page in others {
            // SAFETY: inside one of the mappings; nothing refers to it.
            unsafe { libc::madvise(page.at as *mut _, 1 << self.shift, libc::MADV_DONTNEED) };
        }
        pages
    }

    /// Maps and touches up to `bytes`; the pages that are of the right size.
    pub fn map(&mut self, bytes: u64) -> Vec<Page> {
        let (shift, size) = (self.shift, 1u64 << self.shift);
        let bytes = (bytes >> shift << shift) as usize;
        // The kernel gives small and reserved pages as they are asked for, others perhaps.
        let whole = |mapping: Mapping| {
            let first = mapping.at as usize;
            (mapping, first, true)
        };
        let mapped = match shift {
            _ if shift == small_shift() => map(bytes, 0).map(whole),
            _ if shift == huge_shift() => map_huge(bytes, shift)
                .map(whole)
                .or_else(|| map_transparent(bytes, size as usize))
                .ok_or_else(std::io::Error::last_os_error),
            _ => map_huge(bytes, shift)
                .map(whole)
                .ok_or_else(std::io::Error::last_os_error),
        };
        let (mapping, first, is_sure) = match mapped {
            Ok(mapped) => mapped,
            Err(error) => {
                self.error = Some(error);
                return Vec::new();
            }
        };
        let count = ((mapping.at as usize + mapping.bytes - first) >> shift).min(bytes >> shift);
        let mut pages: Vec<Page> = Vec::with_capacity(count);
        let pagemap = self.pagemap.as_ref();
        let before = self.pages.len();
        // The mapping may continue one before it.
        let mut huge = if is_sure {
            0
        } else {
            huge_bytes_at(first as u64)
        };
        for i in 0..count {
            let at = (first + (i << shift)) as *mut u8;
            // SAFETY: inside the mapping; a write gives every page a frame of
            // its own.
            unsafe { std::ptr::write_volatile(at, 1) };
            let frame = pagemap.and_then(|file| frame_of(file, at as u64));
            if is_sure || is_huge(at, size, pagemap, frame, &mut huge) {
                let guest = frame.map(|frame| frame << small_shift());
                let number = ((before + pages.len()) as u64) << shift;
                pages.push(Page {
                    address: guest.filter(|_| self.known).unwrap_or(number),
                    guest,
                    at,
                });
            }
        }
        self.mappings.push(mapping);
        pages
    }
}

impl Supply for Mapper {
    fn more(&mut self, bytes: u64) -> Vec<u64> {
        // In pieces, so that a kernel that can't give all gives some.
        let mut given = Vec::new();
        let mut left = bytes;
        while left >> self.shift > 0 && !self.is_late() {
            let pages = self.map(left.min(PIECE.max(1 << self.shift)));
            if pages.is_empty() {
                break;
            }
            left = left.saturating_sub((pages.len() as u64) << self.shift);
            given.extend(pages.iter().map(|page| page.address));
            // A page whose address is not told like the others' is no use.
            let is_located = |page: &Page| !self.known || page.guest.is_some();
            self.pages.extend(pages.into_iter().filter(is_located));
        }
        given
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
fn map_transparent(bytes: usize, size: usize) -> Option<(Mapping, usize, bool)> {
    let mapping = map(bytes + size, 0).ok()?;
    let first = (mapping.at as usize).next_multiple_of(size);
    // SAFETY: inside the mapping.
    let advised = unsafe { libc::madvise(first as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
    (advised == 0).then_some((mapping, first, false))
}

/// The frame behind an address, when pagemap tells.
fn frame_of(pagemap: &File, at: u64) -> Option<u64> {
    let mut entry = [0; 8];
    pagemap
        .read_exact_at(&mut entry, (at >> small_shift()) * 8)
        .ok()?;
    let entry = u64::from_ne_bytes(entry);
    let frame = entry & ((1 << 55) - 1);
    (entry >> 63 == 1 && frame != 0).then_some(frame)
}

/// Whether the page at `at` is one huge page: by its frames, else by how many bytes in huge pages
/// the kernel says that the mapping has, which were `huge` before the page was touched.
fn is_huge(
    at: *mut u8,
    size: u64,
    pagemap: Option<&File>,
    frame: Option<u64>,
    huge: &mut u64,
) -> bool {
    if let (Some(file), Some(first)) = (pagemap, frame) {
        let small = small_shift();
        let last = frame_of(file, at as u64 + size - (1 << small));
        let frames = size >> small;
        return first % frames == 0 && last == Some(first + frames - 1);
    }
    let before = std::mem::replace(huge, huge_bytes_at(at as u64));
    *huge >= before + size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where frame numbers are not told, one huge page doesn't make the next one huge. The kernel
    /// gives small pages where some of them lie already.
    #[test]
    fn each_page_is_judged_alone() {
        let (shift, n) = (huge_shift(), 4);
        let size = 1usize << shift;
        let Some((mapping, first, _)) = map_transparent(n * size, size) else {
            return;
        };
        let at = |i: usize| (first + i * size) as *mut u8;
        let advise = |i: usize, advice| {
            // SAFETY: inside the mapping.
            unsafe { libc::madvise(at(i).cast(), size, advice) }
        };
        let touch = |i: usize, huge: &mut u64| {
            // SAFETY: inside the mapping.
            unsafe { std::ptr::write_volatile(at(i), 1) };
            is_huge(at(i), size as u64, None, None, huge)
        };
        advise(1, libc::MADV_NOHUGEPAGE);
        assert!(!touch(1, &mut huge_bytes_at(at(1) as u64)));
        // One mapping again, in which the second page is of small ones.
        advise(1, libc::MADV_HUGEPAGE);
        let mut huge = huge_bytes_at(first as u64);
        let is_huge: Vec<bool> = (0..n).map(|i| touch(i, &mut huge)).collect();
        let may_be = is_huge[0]; // not where this kernel gives none
        assert_eq!(is_huge, [may_be, false, may_be, may_be]);
        drop(mapping);
    }
}
