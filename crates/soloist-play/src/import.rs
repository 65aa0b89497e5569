//! Traces of other tools as recordings.
//!
//! A trace has no kernel, and mostly no physical pages: a page without one
//! gets a place where no machine has memory, so that only a placement anew can be
//! played. A trace that went through no cache goes through the private caches here,
//! as a recorded program does.

mod champsim;
mod drmemtrace;
mod unpack;

pub use unpack::unpacked;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use soloist_core::FRAME_SHIFT;
use soloist_machine::FileError;
use soloist_memory::cache::Filter;
use soloist_memory::trace::{self, Reader};
use soloist_record::meta::{self, Cache, Stream};
use soloist_record::{Access, Kind, Meta, Writer};

/// log2 of a line.
const LINE_SHIFT: u32 = 6;
/// Pages without a physical one lie from here on: above any machine's memory.
const NOWHERE: u64 = 1 << 40;

/// Pages end here, those that lie nowhere too: caches tell no lines beyond apart.
const END: u64 = 2 * NOWHERE;

/// The page of a physical address.
fn page_of(addr: u64) -> Result<u64, String> {
    let page = addr >> FRAME_SHIFT;
    match page < END {
        true => Ok(page),
        false => Err(format!("address {addr:#x} must be below 2^53")),
    }
}

/// A trace's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// DynamoRIO's drmemtrace: entries of 12 bytes, of one thread or several.
    Drmemtrace,
    /// ChampSim: instructions of 64 bytes; a thread a file.
    Champsim,
    /// Text: `0xADDR READ|WRITE CYCLE`; a thread a file.
    Dramsim3,
    /// Text: `0xADDR R|W` or `LD|ST ADDR`; a thread a file.
    Ramulator,
}

impl Format {
    /// What a recording from such a trace lacks, for people.
    #[must_use]
    pub fn lost(self) -> &'static str {
        match self {
            Self::Drmemtrace => {
                "lost: dependence, time, encodings, what the kernel did, prefetches and flushes; \
                 order between threads but by their entries"
            }
            Self::Champsim => {
                "lost: branches, order between threads; physical pages, sizes and what the kernel \
                 did are not in it"
            }
            Self::Dramsim3 => {
                "lost: nothing that was there; a write is a line that is written back, a cycle an \
                 instruction, addresses are physical and taken for virtual ones too"
            }
            Self::Ramulator => {
                "lost: nothing that was there; a store is a line that is written back, a line an \
                 instruction, addresses are physical and taken for virtual ones too"
            }
        }
    }
}

/// Why a trace can't be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A recording can't be written.
    #[error(transparent)]
    Record(#[from] soloist_record::Error),
    /// A text trace can't be read.
    #[error(transparent)]
    Text(#[from] soloist_memory::error::Error),
    /// A file can't be read or made, has nothing in it, or is no such trace, or not one
    /// that can be played.
    #[error(transparent)]
    File(#[from] FileError),
    /// A recording lies there already, or a part of one.
    #[error("{0}")]
    Taken(String),
    /// The machine has no caches that a trace could go through.
    #[error("no l1d among the machine's private caches")]
    NoCaches,
}

/// Where a recording goes, and what it is to look like.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    /// Directory; is made.
    pub out: &'a Path,
    /// Name of the program.
    pub name: String,
    /// Name of the machine.
    pub machine: String,
    /// Its map, as the module takes it.
    pub map: String,
    /// Its private caches, `l1d` first.
    pub caches: Vec<Cache>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// Threads.
    pub threads: usize,
    /// Lines that are in the recording.
    pub lines: u64,
    /// Instructions.
    pub instructions: u64,
    /// Pages, and of those the ones whose physical page was told.
    pub pages: usize,
    /// See [`Imported::pages`].
    pub located: usize,
    /// Entries that a recording has no word for, by what they are.
    pub dropped: Vec<(&'static str, u64)>,
    /// The trace had been through caches already.
    pub filtered: bool,
}

/// Makes a recording of one program from traces.
///
/// # Errors
/// When a trace can't be read or the recording not be written: then nothing of it is left.
pub fn import(
    files: &[PathBuf],
    format: Format,
    target: &Target<'_>,
) -> Result<Imported, ImportError> {
    // Nothing is made where it would be refused.
    meta::vacant(target.out).map_err(ImportError::Taken)?;
    let open = |file: &PathBuf| File::open(file).map_err(io(file));
    let opened = files.iter().map(open).collect::<Result<Vec<File>, _>>()?;
    let is_new = !target.out.exists();
    std::fs::create_dir_all(target.out).map_err(io(target.out))?;
    let _lock = meta::lock(target.out).map_err(ImportError::Taken)?;
    // Another one may have written there meanwhile.
    meta::vacant(target.out).map_err(ImportError::Taken)?;
    let imported = take(files.iter().zip(opened), format, target);
    if imported.is_err() {
        remove(target.out, is_new);
    }
    imported
}

fn io(file: &Path) -> impl FnOnce(std::io::Error) -> ImportError + '_ {
    |source| wrong(file, source.to_string())
}

fn foreign(file: &Path, offset: u64, why: String) -> ImportError {
    wrong(file, format!("byte {offset}: {why}"))
}

fn wrong(file: &Path, why: impl Into<String>) -> ImportError {
    FileError::whole(file.display().to_string(), why).into()
}

/// Removes what was written to `out`, where nothing of a recording was before, and `out` itself
/// if it was made for it.
fn remove(out: &Path, is_new: bool) {
    // What can't be removed is told by why the import failed.
    let _ = std::fs::remove_file(out.join(meta::FILE));
    let streams = (0..).map(|cpu| out.join(meta::stream_file(cpu)));
    streams
        .take_while(|file| std::fs::remove_file(file).is_ok())
        .for_each(drop);
    if is_new {
        let _ = std::fs::remove_dir(out);
    }
}

fn take<'a>(
    files: impl Iterator<Item = (&'a PathBuf, File)>,
    format: Format,
    target: &Target<'_>,
) -> Result<Imported, ImportError> {
    let mut taker = Taker::new(target);
    for (number, (file, open)) in files.enumerate() {
        let open = unpacked(open).map_err(io(file))?;
        let before = taker.taken();
        let mut open = BufReader::new(open);
        match format {
            Format::Drmemtrace => drmemtrace::read(&mut open, file, &mut taker)?,
            Format::Champsim => champsim::read(&mut open, file, number as u64, &mut taker)?,
            Format::Dramsim3 | Format::Ramulator => {
                text(open, file, format, number as u64, &mut taker)?;
            }
        }
        if taker.taken() == before {
            return Err(wrong(file, "nothing is in it"));
        }
    }
    taker.finish(target)
}

fn text(
    open: impl Read,
    file: &Path,
    format: Format,
    thread: u64,
    taker: &mut Taker<'_>,
) -> Result<(), ImportError> {
    let format = match format {
        Format::Dramsim3 => trace::Format::Dramsim3,
        _ => trace::Format::Ramulator,
    };
    let mut reader = Reader::new(open, &file.display().to_string(), format);
    taker.imported.filtered = true;
    taker.switch(thread, true)?;
    let mut before = 0;
    while let Some(access) = reader.next_access()? {
        let work = match format {
            trace::Format::Dramsim3 => access.cycle.saturating_sub(before),
            trace::Format::Ramulator => 1,
        };
        before = access.cycle;
        taker.instructions(work);
        let page = page_of(access.addr).map_err(|why| reader.error(why))?;
        taker.locate(0, page, page);
        let kind = match access.write {
            true => Kind::WriteBack,
            false => Kind::Read,
        };
        taker.line(kind, 0, access.addr)?;
    }
    Ok(())
}

/// A thread's stream.
struct Taken {
    writer: Writer,
    stream: Stream,
    /// `None`: its trace went through caches.
    filter: Option<Filter>,
    /// Instructions since the last event.
    work: u64,
    /// Line of instructions that was fetched last.
    code: u64,
}

/// Takes entries in, thread by thread.
struct Taker<'a> {
    target: &'a Target<'a>,
    threads: Vec<Taken>,
    by_id: HashMap<u64, usize>,
    now: usize,
    /// Physical page by process and virtual page.
    pages: HashMap<(u64, u64), u64>,
    touches: u64,
    /// The instruction's address comes from the last load.
    dependent: bool,
    imported: Imported,
}

impl<'a> Taker<'a> {
    fn new(target: &'a Target<'a>) -> Self {
        Self {
            target,
            threads: Vec::new(),
            by_id: HashMap::new(),
            now: 0,
            pages: HashMap::new(),
            touches: 0,
            dependent: false,
            imported: Imported::default(),
        }
    }

    /// What follows is of thread `id`.
    fn switch(&mut self, id: u64, filtered: bool) -> Result<(), ImportError> {
        if let Some(&at) = self.by_id.get(&id) {
            self.now = at;
            return Ok(());
        }
        let cpu = self.threads.len() as u32;
        let file = meta::stream_file(cpu);
        let mut writer = Writer::create(&self.target.out.join(&file), cpu)?;
        writer.switch(cpu, u64::from(cpu), 0)?;
        let caches = self.target.caches.iter();
        let named = caches.map(|c| (c.name.as_str(), c.sets, c.ways));
        let filter = match filtered {
            true => None,
            false => Some(Filter::new(named).ok_or(ImportError::NoCaches)?),
        };
        self.now = self.threads.len();
        self.by_id.insert(id, self.now);
        self.threads.push(Taken {
            writer,
            stream: Stream {
                cpu,
                file,
                lines: 0,
                bytes: 0,
                looked_at: 0,
                instructions: 0,
            },
            filter,
            work: 0,
            code: 0,
        });
        Ok(())
    }

    /// Instructions and lines so far.
    fn taken(&self) -> u64 {
        let steps = |thread: &Taken| thread.stream.instructions + thread.writer.accesses;
        self.threads.iter().map(steps).sum()
    }

    fn dropped(&mut self, what: &'static str) {
        let known = self.imported.dropped.iter_mut().find(|(w, _)| *w == what);
        match known {
            Some((_, count)) => *count += 1,
            None => self.imported.dropped.push((what, 1)),
        }
    }

    /// A virtual page lies there from here on.
    fn locate(&mut self, process: u64, virt: u64, phys: u64) {
        if self.pages.insert((process, virt), phys) != Some(phys) {
            self.imported.located += 1;
        }
    }

    fn physical(&mut self, process: u64, virt: u64) -> u64 {
        let next = NOWHERE + self.pages.len() as u64;
        *self.pages.entry((process, virt)).or_insert(next)
    }

    fn instructions(&mut self, count: u64) {
        let thread = &mut self.threads[self.now];
        thread.work += count;
        thread.stream.instructions += count;
    }

    /// An instruction at `pc`, which `fetches` it or has it already.
    fn instruction(&mut self, process: u64, pc: u64, fetches: bool) -> Result<(), ImportError> {
        self.instructions(1);
        let line = pc >> LINE_SHIFT;
        let thread = &mut self.threads[self.now];
        if !fetches || thread.code == line {
            return Ok(());
        }
        thread.code = line;
        self.access(Kind::Fetch, process, pc)?;
        Ok(())
    }

    /// A load or store of `size` bytes; whether any of it left the private caches.
    fn data(
        &mut self,
        process: u64,
        addr: u64,
        size: u64,
        write: bool,
    ) -> Result<bool, ImportError> {
        let kind = if write { Kind::Write } else { Kind::Read };
        let last = addr.saturating_add(size.max(1) - 1) >> LINE_SHIFT;
        let mut left = false;
        for line in addr >> LINE_SHIFT..=last {
            left |= self.access(kind, process, line << LINE_SHIFT)?;
        }
        Ok(left)
    }

    /// An access, through the private caches if it was not yet; whether it left them.
    fn access(&mut self, kind: Kind, process: u64, addr: u64) -> Result<bool, ImportError> {
        let virt = addr >> FRAME_SHIFT;
        let in_page = FRAME_SHIFT - LINE_SHIFT;
        let low = (addr >> LINE_SHIFT) & ((1 << in_page) - 1);
        let line = self.physical(process, virt) << in_page | low;
        let thread = &mut self.threads[self.now];
        thread.stream.looked_at += 1;
        let (leaves, victims) = match &mut thread.filter {
            None => (true, Vec::new()),
            Some(filter) => {
                let leaves = match kind {
                    Kind::Fetch => filter.fetch(line),
                    _ => filter.data(line, kind == Kind::Write),
                };
                (leaves, filter.pushed_out().collect())
            }
        };
        if leaves {
            self.line(kind, process, addr)?;
        }
        let thread = &mut self.threads[self.now];
        for victim in victims {
            let low = (victim & ((1 << in_page) - 1)) as u8;
            thread.writer.write_back(victim >> in_page, low, false)?;
        }
        Ok(leaves)
    }

    /// A line of the recording.
    fn line(&mut self, kind: Kind, process: u64, addr: u64) -> Result<(), ImportError> {
        let virt = addr >> FRAME_SHIFT;
        let phys = self.physical(process, virt);
        let thread = &mut self.threads[self.now];
        let work = match kind {
            Kind::WriteBack => 0,
            _ => std::mem::take(&mut thread.work),
        };
        let access = Access {
            kind,
            page: 0,
            line: (addr >> LINE_SHIFT) as u8 & 63,
            work: u32::try_from(work).unwrap_or(u32::MAX),
            kernel: false,
            dependent: self.dependent && matches!(kind, Kind::Read | Kind::Write),
        };
        let touches = &mut self.touches;
        let order = || {
            *touches += 1;
            *touches - 1
        };
        Ok(thread.writer.access(access, virt, phys, order)?)
    }

    fn finish(mut self, target: &Target<'_>) -> Result<Imported, ImportError> {
        let mut streams = Vec::new();
        for mut thread in self.threads {
            thread.writer.flush()?;
            let stream = Stream {
                lines: thread.writer.accesses,
                bytes: thread.writer.bytes,
                ..thread.stream
            };
            self.imported.lines += stream.lines;
            self.imported.instructions += stream.instructions;
            streams.push(stream);
        }
        self.imported.threads = streams.len();
        self.imported.pages = self.pages.len();
        let meta = Meta {
            machine: target.machine.clone(),
            map: target.map.clone(),
            kernel: "none: an imported trace".to_owned(),
            policy: "imported".to_owned(),
            caches: target.caches.clone(),
            ..Meta::of_program(&target.name, streams)
        };
        meta.write(target.out)?;
        Ok(self.imported)
    }
}
