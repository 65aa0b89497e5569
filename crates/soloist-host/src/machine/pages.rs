//! The pages of a process: `/proc/PID/pagemap` and `/proc/kpageflags`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use procfs::process::{MemoryPageFlags, PageInfo};
use procfs::PhysicalPageFlags;

use crate::machine::host::Host;
use crate::machine::task::not_seen;
use crate::HostError;

/// Pages read from pagemap at once.
const CHUNK: u64 = 16 * 1024;

/// A page of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// Nothing there.
    Absent,
    /// On swap, or being moved.
    Swapped,
    /// In memory.
    Present {
        /// Its frame number; 0 where we may not know.
        pfn: u64,
        /// Of a file, or of shared memory.
        file: bool,
        /// Mapped once only.
        exclusive: bool,
    },
}

/// Reads the pages of one process.
pub struct PageReader {
    pagemap: File,
    path: PathBuf,
    pid: i32,
    flags: Option<File>,
    merging: bool,
}

impl PageReader {
    /// For process `pid`.
    pub fn open(host: &Host, pid: i32) -> Result<Self, HostError> {
        let path = host.path(&format!("/proc/{pid}/pagemap"));
        let pagemap = File::open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                HostError::NeedsRoot(format!("reading the pages of process {pid}"))
            }
            io::ErrorKind::NotFound => not_seen(host, pid),
            _ if e.raw_os_error() == Some(libc::ESRCH) => HostError::NoMemory(pid),
            _ => HostError::io(&path, e),
        })?;
        Ok(Self {
            pagemap,
            path,
            pid,
            flags: File::open(host.path("/proc/kpageflags")).ok(),
            merging: host
                .text("/sys/kernel/mm/ksm/pages_shared")
                .is_some_and(|n| n != "0"),
        })
    }

    /// Calls `each` with every page of the page numbers in `range` that is
    /// not absent. An error where the process ended, or began another program: its
    /// other pages can't be seen.
    pub fn each(
        &self,
        range: Range<u64>,
        mut each: impl FnMut(u64, Page),
    ) -> Result<(), HostError> {
        let mut buf = vec![0u8; (CHUNK * 8) as usize];
        let mut next = range.start;
        while next < range.end {
            let want = CHUNK.min(range.end - next) as usize * 8;
            let got = self.read(&mut buf[..want], next * 8)?;
            for (entry, number) in buf[..got].chunks_exact(8).zip(next..) {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                match page(entry) {
                    Page::Absent => {}
                    page => each(number, page),
                }
            }
            if got < 8 {
                return Err(HostError::NoMemory(self.pid));
            }
            next += got as u64 / 8;
        }
        Ok(())
    }

    /// The kernel's flags of a frame; `None` where we may not know. Linux 6.12
    /// says KSM of every anonymous page, so while nothing is merged anywhere
    /// that flag is left out.
    pub fn flags(&self, pfn: u64) -> Option<PhysicalPageFlags> {
        let mut entry = [0; 8];
        let file = self.flags.as_ref()?;
        file.read_exact_at(&mut entry, pfn * 8).ok()?;
        let mut flags = PhysicalPageFlags::parse_info(u64::from_ne_bytes(entry));
        flags.set(
            PhysicalPageFlags::KSM,
            self.merging && flags.contains(PhysicalPageFlags::KSM),
        );
        Some(flags)
    }

    fn read(&self, buf: &mut [u8], at: u64) -> Result<usize, HostError> {
        match self.pagemap.read_at(buf, at) {
            Err(e) if e.raw_os_error() == Some(libc::EFAULT) => Ok(0),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Err(HostError::NoMemory(self.pid)),
            done => done.map_err(|e| HostError::io(&self.path, e)),
        }
    }
}

fn page(entry: u64) -> Page {
    match PageInfo::parse_info(entry) {
        PageInfo::SwapPage(_) => Page::Swapped,
        PageInfo::MemoryPage(flags) if flags.contains(MemoryPageFlags::PRESENT) => Page::Present {
            pfn: flags.get_page_frame_number().0,
            file: flags.contains(MemoryPageFlags::FILE),
            exclusive: flags.contains(MemoryPageFlags::MMAP_EXCLUSIVE),
        },
        PageInfo::MemoryPage(_) => Page::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        assert_eq!(page(0), Page::Absent);
        assert_eq!(page(1 << 62 | 77), Page::Swapped);
        let present = Page::Present {
            pfn: 0x1234,
            file: true,
            exclusive: false,
        };
        assert_eq!(page(1 << 63 | 1 << 61 | 1 << 55 | 0x1234), present);
        let own = Page::Present {
            pfn: 7,
            file: false,
            exclusive: true,
        };
        assert_eq!(page(1 << 63 | 1 << 56 | 7), own);
    }
}
