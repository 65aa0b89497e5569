//! Writes one processor's stream.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{io, Result};
use crate::event::{Access, Event, Kind, State};
use crate::frame;

/// A stream that is being written.
pub struct Writer {
    file: File,
    path: PathBuf,
    state: State,
    raw: Vec<u8>,
    in_frame: u32,
    /// Number of a page, by thread, virtual and physical page.
    pages: HashMap<(u32, u64, u64), u32>,
    /// The page seen last with a physical page number.
    last_of: HashMap<u64, u32>,
    next_page: u32,
    thread: u32,
    /// Bytes in the file.
    pub bytes: u64,
    /// Lines recorded.
    pub accesses: u64,
    /// Those that are not yet in the file.
    unwritten: u64,
}

impl Writer {
    /// Makes the file anew.
    pub fn create(path: &Path, cpu: u32) -> Result<Self> {
        let mut file = File::create(path).map_err(io(path))?;
        frame::write_header(&mut file, cpu).map_err(io(path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            state: State::default(),
            raw: Vec::with_capacity(frame::TARGET + 64),
            in_frame: 0,
            pages: HashMap::new(),
            last_of: HashMap::new(),
            next_page: 0,
            thread: 0,
            bytes: frame::FILE_HEADER,
            accesses: 0,
            unwritten: 0,
        })
    }

    /// Lines in the file: fewer than were recorded where the disk was full.
    pub fn lines(&self) -> u64 {
        self.accesses - self.unwritten
    }

    /// Another thread runs from here on; `work` instructions of the one before
    /// have passed since the last event.
    pub fn switch(&mut self, thread: u32, order: u64, work: u32) -> Result<()> {
        self.thread = thread;
        self.event(&Event::Switch {
            thread,
            order,
            work,
        })
    }

    /// The program stored a marker.
    pub fn mark(&mut self, code: u16, work: u32) -> Result<()> {
        self.event(&Event::Mark { code, work })
    }

    /// The running thread ends another's wait, by wake number `id`.
    pub fn wake(&mut self, id: u32, work: u32) -> Result<()> {
        self.event(&Event::Wake { id, work })
    }

    /// The running thread went on after that wake.
    pub fn wait(&mut self, id: u32) -> Result<()> {
        self.event(&Event::Wait { id })
    }

    /// A line left, or was asked for. `access.page` is set here, from the
    /// page numbers; `order` is asked where the page is new.
    pub fn access(
        &mut self,
        mut access: Access,
        virt: u64,
        phys: u64,
        order: impl FnOnce() -> u64,
    ) -> Result<()> {
        access.page = self.page(virt, phys, order)?;
        self.last_of.insert(phys, access.page);
        self.line(access)
    }

    /// The thread sees a page, whether or not a line of it leaves the caches; its
    /// number.
    pub fn page(&mut self, virt: u64, phys: u64, order: impl FnOnce() -> u64) -> Result<u32> {
        let key = (self.thread, virt, phys);
        if let Some(&page) = self.pages.get(&key) {
            return Ok(page);
        }
        let page = self.next_page;
        self.next_page += 1;
        self.pages.insert(key, page);
        self.last_of.insert(phys, page);
        let order = order();
        self.event(&Event::Page { virt, phys, order })?;
        Ok(page)
    }

    /// A dirty line of physical page `phys` left; false: nobody touched that
    /// page since recording began, so nothing is written.
    pub fn write_back(&mut self, phys: u64, line: u8, kernel: bool) -> Result<bool> {
        let Some(&page) = self.last_of.get(&phys) else {
            return Ok(false);
        };
        self.line(Access {
            kind: Kind::WriteBack,
            page,
            line,
            work: 0,
            kernel,
            dependent: false,
        })?;
        Ok(true)
    }

    fn line(&mut self, access: Access) -> Result<()> {
        self.accesses += 1;
        self.unwritten += 1;
        self.event(&Event::Access(access))
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        event.pack(&mut self.state, &mut self.raw);
        self.in_frame += 1;
        if self.raw.len() >= frame::TARGET {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is not yet in the file.
    pub fn flush(&mut self) -> Result<()> {
        if self.in_frame == 0 {
            return Ok(());
        }
        match frame::write(&mut self.file, &self.raw, self.in_frame) {
            Ok(bytes) => self.bytes += bytes,
            Err(e) => {
                // Half a frame is none; if it can't go, readers stop before it.
                let _ = self.file.set_len(self.bytes);
                let _ = self.file.seek(SeekFrom::Start(self.bytes));
                return Err(io(&self.path)(e));
            }
        }
        self.raw.clear();
        self.in_frame = 0;
        self.unwritten = 0;
        self.state = State::default();
        Ok(())
    }
}
