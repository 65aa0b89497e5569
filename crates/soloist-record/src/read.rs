//! Reads a recording back, sorted by program and thread.
//!
//! A program's threads may have moved between its processors: each stream says
//! when it went on to which thread, in an order that all streams share, and a
//! thread's pieces are put together by it. Pages are numbered anew, by first
//! touch in the whole program. What a page *is* is its physical page: threads
//! that share memory share it, copies that fork() made do not.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{foreign, io, Error, Result};
use crate::event::{Access, Event, Kind, State};
use crate::frame;
use crate::meta::{Meta, Stream, FILE};

/// Lowest virtual page of the kernel's half.
const KERNEL_HALF: u64 = 1 << 51;

/// A recording on disk.
pub struct Recording {
    /// The programs, the machine and the streams.
    pub meta: Meta,
    dir: PathBuf,
}

/// The part of the lines of each processor that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// The first ones, so many, with the program's start.
    First(usize),
    /// So many from the middle of what was recorded.
    Middle(usize),
    /// So many from a place in what was recorded, in per cent: 0 is its beginning,
    /// 100 its end.
    At(u32, usize),
}

impl Lines {
    /// All.
    pub const ALL: Self = Self::First(usize::MAX);

    /// As many, but no fewer than `least`.
    #[must_use]
    pub fn at_least(self, least: usize) -> Self {
        match self {
            Self::First(n) => Self::First(n.max(least)),
            Self::Middle(n) => Self::Middle(n.max(least)),
            Self::At(percent, n) => Self::At(percent, n.max(least)),
        }
    }

    /// Of `all` lines, the numbers of those.
    fn range(self, all: u64) -> Range<usize> {
        match self {
            Self::First(n) => 0..n,
            Self::Middle(n) => Self::At(50, n).range(all),
            Self::At(percent, n) => {
                // What a file says may be any number.
                let rest = u128::from(all).saturating_sub(n as u128);
                let before = rest * u128::from(percent) / 100;
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                before..before.saturating_add(n)
            }
        }
    }
}

/// A recorded program in memory.
pub struct Program {
    /// Pages in the order of their first touch.
    pub pages: Vec<Page>,
    /// Streams that are damaged; what lies before is here.
    pub damage: Vec<Error>,
    /// Runs of its threads that ran in user mode, in the order of their begin.
    pieces: Vec<Piece>,
}

/// A page of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Physical page number: where it was when recorded.
    pub phys: u64,
    /// Virtual page number of its first touch.
    pub virt: u64,
    /// Some thread saw it in user space; else it is the kernel's.
    pub user: bool,
    /// The thread that touched it first.
    pub thread: u32,
    /// Its number among all first touches of the recording.
    pub order: u64,
}

/// The part that one core plays: runs of one thread, or all of one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    pieces: Vec<usize>,
}

/// A position in a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    piece: usize,
    step: usize,
}

impl Program {
    /// Numbers of its threads, ascending.
    pub fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<u32> = self.pieces.iter().map(|p| p.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Returns all that a thread did.
    pub fn thread(&self, thread: u32) -> Lane {
        self.lane(|piece| piece.thread == thread)
    }

    /// One lane for each thread if there are no more threads than processors,
    /// else one for each processor: threads that took turns do so again.
    pub fn lanes(&self) -> Vec<Lane> {
        let mut cpus: Vec<u32> = self.pieces.iter().map(|p| p.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let threads = self.threads();
        if threads.len() <= cpus.len() {
            threads.into_iter().map(|t| self.thread(t)).collect()
        } else {
            let lane_of_cpu = |cpu: u32| self.lane(move |piece| piece.cpu == cpu);
            cpus.into_iter().map(lane_of_cpu).collect()
        }
    }

    /// Returns whether a lane has something of a thread.
    pub fn is_of(&self, lane: &Lane, thread: u32) -> bool {
        let mut pieces = lane.pieces.iter();
        pieces.any(|&at| self.pieces[at].thread == thread)
    }

    /// A wake that a lane waits for and that never comes, since who would wake it waits as
    /// well; such a program can't be played. What really happened has none.
    fn endless_wait(&self) -> Option<u32> {
        let is_order = |step: &Step| matches!(step, Step::Wake(_) | Step::Wait(_));
        let lanes = self.lanes();
        let mut lanes: Vec<_> = lanes
            .iter()
            .map(|lane| self.steps(lane).filter(is_order).peekable())
            .collect();
        let mut came = HashSet::new();
        loop {
            let (mut moved, mut waits) = (false, None);
            for lane in &mut lanes {
                while let Some(&step) = lane.peek() {
                    match step {
                        Step::Wake(id) => drop(came.insert(id)),
                        Step::Wait(id) if !came.contains(&id) => {
                            waits = Some(id);
                            break;
                        }
                        _ => {}
                    }
                    lane.next();
                    moved = true;
                }
            }
            match (waits, moved) {
                (None, _) => return None,
                (waits, false) => return waits,
                _ => {}
            }
        }
    }

    fn lane(&self, wanted: impl Fn(&Piece) -> bool) -> Lane {
        let pieces = 0..self.pieces.len();
        Lane {
            pieces: pieces.filter(|&at| wanted(&self.pieces[at])).collect(),
        }
    }

    /// The step at `cursor`, which moves on; `None` at the end.
    #[inline]
    pub fn next(&self, lane: &Lane, cursor: &mut Cursor) -> Option<Step> {
        loop {
            let piece = &self.pieces[*lane.pieces.get(cursor.piece)?];
            if let Some(&packed) = piece.steps.get(cursor.step) {
                cursor.step += 1;
                return Some(unpack(packed));
            }
            cursor.piece += 1;
            cursor.step = 0;
        }
    }

    /// All steps of a lane in order.
    pub fn steps<'a>(&'a self, lane: &'a Lane) -> impl Iterator<Item = Step> + 'a {
        let mut cursor = Cursor::default();
        std::iter::from_fn(move || self.next(lane, &mut cursor))
    }
}

/// One step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A line; `page` is an index into [`Program::pages`].
    Access(Access),
    /// A marker.
    Mark(u16),
    /// What waits for this wake can go on.
    Wake(u32),
    /// Goes on only after this wake, which is in the program.
    Wait(u32),
}

/// Widths of a packed step: kind 2, kernel 1, dependent 1, line 6, page 26,
/// work 28. A write-back with work is none: its work says what it is.
const PAGE_BITS: u32 = 26;
const WORK_BITS: u32 = 28;

fn pack(a: &Access, page: u32) -> u64 {
    let work = u64::from(a.work).min((1 << WORK_BITS) - 1);
    (a.kind as u64)
        | u64::from(a.kernel) << 2
        | u64::from(a.dependent) << 3
        | u64::from(a.line) << 4
        | u64::from(page) << 10
        | work << (10 + PAGE_BITS)
}

const MARK: u32 = 1;
const WAKE: u32 = 2;
const WAIT: u32 = 3;

/// What is no line: `number` in the place of page and line.
fn pack_other(what: u32, number: u32) -> u64 {
    Kind::WriteBack as u64 | u64::from(number) << 4 | u64::from(what) << (10 + PAGE_BITS)
}

fn unpack(packed: u64) -> Step {
    let kind = Kind::of(packed as u8);
    let page = (packed >> 10) as u32 & ((1 << PAGE_BITS) - 1);
    let work = (packed >> (10 + PAGE_BITS)) as u32;
    if kind == Kind::WriteBack && work > 0 {
        let number = (packed >> 4) as u32;
        return match work {
            MARK => Step::Mark(number as u16),
            WAKE => Step::Wake(number),
            _ => Step::Wait(number),
        };
    }
    Step::Access(Access {
        kind,
        page,
        line: (packed >> 4) as u8 & 63,
        work,
        kernel: packed & 4 != 0,
        dependent: packed & 8 != 0,
    })
}

impl Recording {
    /// Reads what the recording in `dir` is of.
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self {
            meta: Meta::read(dir)?,
            dir: dir.to_path_buf(),
        })
    }

    /// Reads program number `program` into memory; of each processor `lines`. All
    /// its pages are there, whichever of them those lines use.
    pub fn load(&self, program: usize, lines: Lines) -> Result<Program> {
        let Some(about) = self.meta.programs.get(program) else {
            let all = self.meta.programs.len();
            let why = format!("no program {program}: there are {all}, counted from 0");
            return Err(foreign(&self.dir, why));
        };
        let mut loader = Loader::default();
        for stream in &self.meta.streams.streams {
            if about.cpus.contains(&stream.cpu) {
                match loader.stream(self, stream, lines.range(stream.lines)) {
                    Err(e @ Error::Damaged { .. }) => loader.damage.push(e),
                    other => other?,
                }
            }
        }
        let thread = |id: u32| self.meta.streams.threads.get(id as usize);
        let is_ours = |id| thread(id).is_some_and(|t| t.program as usize == program);
        // Its lines would be missing as if it were the kernel's own.
        if let Some(piece) = loader.pieces.iter().find(|piece| !is_ours(piece.thread)) {
            let why = format!(
                "thread {} ran on cpu {}, and {FILE} does not tell that it is of `{}`: that is \
                 another recording's; copy it again, or record again",
                piece.thread, piece.cpu, about.name
            );
            return Err(foreign(&self.dir, why));
        }
        let loaded = loader.finish(|id| thread(id).is_some_and(|t| t.user));
        match loaded.endless_wait() {
            None => Ok(loaded),
            Some(id) => {
                let why = format!(
                    "`{}` waits for its wake {id}, which comes only after that wait: the \
                     recording is wrong; record again",
                    about.name
                );
                Err(foreign(&self.dir, why))
            }
        }
    }

    /// Calls `see` for every event of one of the recording's streams, in order.
    ///
    /// # Errors
    /// As [`Self::events`] has them; and when the file is not the one that
    /// `recording.json` tells of. One that ends early is [`Error::Damaged`].
    pub fn stream(&self, stream: &Stream, see: impl FnMut(Event)) -> Result<()> {
        let path = self.dir.join(&stream.file);
        let file = File::open(&path).map_err(io(&path))?;
        let bytes = file.metadata().map_err(io(&path))?.len();
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let cpu = frame::read_header(&mut reader).map_err(|why| foreign(&path, why))?;
        let what = if cpu != stream.cpu {
            format!("the stream of cpu {cpu}, not of cpu {}", stream.cpu)
        } else if bytes > stream.bytes {
            format!("{bytes} bytes, not {}", stream.bytes)
        } else {
            return ended(&path, stream, &frames(&path, reader, cpu, see)?);
        };
        Err(foreign(
            &path,
            format!("{what}, as {FILE} says: copy it again, or record again"),
        ))
    }

    /// Calls `see` for every event of a stream, in order; what it came to.
    ///
    /// # Errors
    /// When the file can't be read, is none, is damaged, or lacks pages that it uses.
    pub fn events(path: &Path, see: impl FnMut(Event)) -> Result<Found> {
        let mut reader = BufReader::with_capacity(1 << 18, File::open(path).map_err(io(path))?);
        let cpu = frame::read_header(&mut reader).map_err(|why| foreign(path, why))?;
        frames(path, reader, cpu, see)
    }
}

/// What a stream has that is read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The processor that its header names.
    pub cpu: u32,
    /// Lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Records: lines, pages and all else.
    pub records: u64,
}

/// A whole frame can be lost without a trace in the others.
fn ended(path: &Path, told: &Stream, found: &Found) -> Result<()> {
    if (found.lines, found.bytes) == (told.lines, told.bytes) {
        return Ok(());
    }
    let why = format!(
        "the stream ends here with {} lines, and {FILE} tells of {} lines in {} bytes",
        found.lines, told.lines, told.bytes
    );
    Err(Error::Damaged {
        file: path.to_path_buf(),
        offset: found.bytes,
        why,
        records: found.records,
    })
}

/// Reads all frames of the stream of `cpu`, behind its header.
fn frames(
    path: &Path,
    mut reader: impl Read,
    cpu: u32,
    mut see: impl FnMut(Event),
) -> Result<Found> {
    let mut found = Found {
        cpu,
        lines: 0,
        bytes: frame::FILE_HEADER,
        records: 0,
    };
    let (mut pages, mut unnamed) = (0, false);
    let mut look = |event| {
        match event {
            Event::Page { .. } => pages += 1,
            Event::Access(access) => {
                found.lines += 1;
                unnamed |= u64::from(access.page) >= pages;
            }
            _ => {}
        }
        if !unnamed {
            see(event);
        }
        !unnamed
    };
    let (mut bytes, mut records) = (frame::FILE_HEADER, 0);
    loop {
        let damaged = |why| Error::Damaged {
            file: path.to_path_buf(),
            offset: bytes,
            why,
            records,
        };
        let Some(frame) = frame::read(&mut reader).map_err(damaged)? else {
            break;
        };
        if !unpack_frame(&frame, &mut look).map_err(damaged)? {
            return Err(foreign(path, UNNAMED));
        }
        bytes += frame.bytes;
        records += u64::from(frame.records);
    }
    Ok(Found {
        bytes,
        records,
        ..found
    })
}

const UNNAMED: &str = "a line in a page that the stream never named: frames of it are lost or not \
                       in order, and pages cannot be told; copy it again, or record again";

/// Calls `look` for every event of a frame while it says true; whether it always did.
fn unpack_frame(
    frame: &frame::Frame,
    mut look: impl FnMut(Event) -> bool,
) -> std::result::Result<bool, String> {
    let mut state = State::default();
    let mut rest = frame.raw.as_slice();
    for n in 0..frame.records {
        match Event::unpack(&mut state, &mut rest) {
            Some(event) if !look(event) => return Ok(false),
            Some(_) => {}
            None => return Err(format!("record {n} of the frame is none")),
        }
    }
    match rest.len() {
        0 => Ok(true),
        n => Err(format!("{n} bytes behind the last record")),
    }
}

/// A run of one thread on one processor.
struct Piece {
    thread: u32,
    cpu: u32,
    order: u64,
    /// Steps with page numbers of the loader.
    steps: Vec<u64>,
}

#[derive(Default)]
struct Loader {
    pieces: Vec<Piece>,
    seen: Vec<Page>,
    by_phys: HashMap<u64, u32>,
    damage: Vec<Error>,
}

impl Loader {
    fn stream(&mut self, of: &Recording, stream: &Stream, lines: Range<usize>) -> Result<()> {
        let cpu = stream.cpu;
        // Page numbers of the stream, as indices into `seen`.
        let mut pages: Vec<u32> = Vec::new();
        let mut owed: HashMap<u32, u32> = HashMap::new();
        let mut next = 0;
        let mut thread = u32::MAX;
        of.stream(stream, |event| match event {
            Event::Switch {
                thread: next,
                order,
                work,
            } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                thread = next;
                self.pieces.push(Piece {
                    thread,
                    cpu,
                    order,
                    steps: Vec::new(),
                });
            }
            Event::Page { virt, phys, order } => pages.push(self.page(virt, phys, order, thread)),
            Event::Mark { code, work } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                if let Some(piece) = self.pieces.last_mut() {
                    piece.steps.push(pack_other(MARK, u32::from(code)));
                }
            }
            Event::Wake { id, work } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                if let Some(piece) = self.pieces.last_mut().filter(|_| lines.contains(&next)) {
                    piece.steps.push(pack_other(WAKE, id));
                }
            }
            Event::Wait { id } => {
                if let Some(piece) = self.pieces.last_mut().filter(|_| lines.contains(&next)) {
                    piece.steps.push(pack_other(WAIT, id));
                }
            }
            Event::Access(mut access) => {
                let Some(&page) = pages.get(access.page as usize) else {
                    return;
                };
                next += 1;
                if !lines.contains(&(next - 1)) {
                    owed.clear();
                    return;
                }
                if access.kind != Kind::WriteBack {
                    let debt = owed.entry(thread).or_default();
                    access.work = access.work.saturating_add(std::mem::take(debt));
                }
                if let Some(piece) = self.pieces.last_mut() {
                    piece.steps.push(pack(&access, page));
                }
            }
        })
    }

    fn page(&mut self, virt: u64, phys: u64, order: u64, thread: u32) -> u32 {
        let user = virt < KERNEL_HALF;
        let next = self.seen.len() as u32;
        let at = *self.by_phys.entry(phys).or_insert(next);
        if at == next {
            self.seen.push(Page {
                phys,
                virt,
                user,
                thread,
                order,
            });
        } else {
            let seen = &mut self.seen[at as usize];
            // The kernel clears a page before its owner ever sees it.
            if (user && !seen.user) || (user == seen.user && order < seen.order) {
                seen.virt = virt;
                seen.thread = thread;
            }
            seen.user |= user;
            seen.order = seen.order.min(order);
        }
        at
    }

    fn finish(mut self, user: impl Fn(u32) -> bool) -> Program {
        let mut by_order: Vec<u32> = (0..self.seen.len() as u32).collect();
        by_order.sort_by_key(|&at| self.seen[at as usize].order);
        let mut number = vec![0; self.seen.len()];
        for (new, &old) in by_order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        self.pieces
            .retain(|piece| user(piece.thread) && !piece.steps.is_empty());
        self.pieces.sort_by_key(|piece| piece.order);
        // Who woke it may be another program, or not among the lines.
        let steps = self.pieces.iter().flat_map(|piece| &piece.steps);
        let wakes: HashSet<u32> = steps
            .filter_map(|&packed| match unpack(packed) {
                Step::Wake(id) => Some(id),
                _ => None,
            })
            .collect();
        for piece in &mut self.pieces {
            piece.steps.retain(|&packed| match unpack(packed) {
                Step::Wait(id) => wakes.contains(&id),
                _ => true,
            });
        }
        for piece in &mut self.pieces {
            for packed in &mut piece.steps {
                *packed = renumber(*packed, &number);
            }
        }
        Program {
            pages: by_order.iter().map(|&at| self.seen[at as usize]).collect(),
            damage: self.damage,
            pieces: self.pieces,
        }
    }
}

fn renumber(packed: u64, number: &[u32]) -> u64 {
    match unpack(packed) {
        Step::Mark(_) | Step::Wake(_) | Step::Wait(_) => packed,
        Step::Access(access) => pack(&access, number[access.page as usize]),
    }
}
