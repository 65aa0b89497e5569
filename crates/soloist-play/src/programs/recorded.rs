//! A recorded program among generators: what left a real program's private
//! caches, step by step (`soloist vm record`; docs/how-to/record.md).
//!
//! Instructions between two lines take the model's time, and what follows a fetch of
//! instructions waits for it. That the private caches were hit meanwhile is not
//! charged. Each of the program's threads ([`Lane`]) is played on a core; they share
//! their pages. What the kernel alone used is never coloured.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use soloist_core::FRAME_SIZE;
use soloist_record::{Cursor, Kind, Lane, Lines, Program as Recording, Step as Event};

use super::order::{Turn, Wakes};
use super::step::{Access, Program, Step};

/// A recorded program in memory, which any number of seats may play.
#[derive(Clone)]
pub struct Recorded {
    program: Arc<Recording>,
    /// What each thread did, or each processor.
    lanes: Arc<[Lane]>,
    /// The thread that touches each page first.
    first: Arc<[u16]>,
    /// Of each thread; counted when first asked for.
    counts: Arc<OnceLock<Vec<Counts>>>,
    fingerprint: Arc<OnceLock<u64>>,
}

/// What a thread asks for.
#[derive(Default)]
struct Counts {
    /// Lines, and of those to write.
    asked: u64,
    written: u64,
    /// Wakes, and how many lines it had asked for before each.
    wakes: Vec<(u32, u64)>,
}

impl Counts {
    fn new(program: &Recording, lane: &Lane) -> Self {
        let mut counts = Self::default();
        for step in program.steps(lane) {
            match step {
                Event::Access(a) => {
                    counts.asked += u64::from(a.kind != Kind::WriteBack);
                    counts.written += u64::from(a.kind == Kind::Write);
                }
                Event::Wake(id) => counts.wakes.push((id, counts.asked)),
                Event::Mark(_) | Event::Wait(_) => {}
            }
        }
        counts
    }

    /// Lines before the `lines` in the middle of those that it asked for.
    fn before(&self, lines: u64) -> u64 {
        self.asked.saturating_sub(lines) / 2
    }
}

/// FNV-1a, of words instead of bytes; a word's high bits come down before the next.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }

    fn add_step(&mut self, step: Event) {
        let (kind, value) = match step {
            Event::Access(a) => {
                let of_line = u64::from(a.page) << 6 | u64::from(a.line);
                let of_work = u64::from(a.work) << 2;
                self.add(of_work | u64::from(a.kernel) << 1 | u64::from(a.dependent));
                (a.kind as u64, of_line)
            }
            Event::Mark(id) => (5, id.into()),
            Event::Wake(id) => (6, id.into()),
            Event::Wait(id) => (7, id.into()),
        };
        self.add(value << 3 | kind);
    }
}

/// How much of a recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    Whole,
    /// So many of the lines that it asks for, those in the middle: the first are the
    /// program's start.
    Middle(u64),
    /// Over and over, from its start.
    Endless,
    /// Over and over, at first from its middle.
    EndlessFromMiddle,
}

impl Recorded {
    /// The first program of the recording in `dir`.
    ///
    /// # Errors
    /// When it can't be read, is damaged, or has more than 255 threads.
    pub fn load(dir: &Path) -> Result<Self, String> {
        let load = || soloist_record::Recording::open(dir)?.load(0, Lines::ALL);
        let mut program = load().map_err(|e| e.to_string())?;
        if let Some(damage) = program.damage.pop() {
            return Err(damage.to_string());
        }
        let recorded = Self::new(Arc::new(program));
        match recorded.threads() {
            1..=255 => Ok(recorded),
            threads => Err(format!(
                "{}: its first program has {threads} threads: 1 to 255 can be played",
                dir.display()
            )),
        }
    }

    /// A program whose recording has been read.
    #[must_use]
    pub fn new(program: Arc<Recording>) -> Self {
        let lanes: Arc<[Lane]> = program.lanes().into();
        let first = program.pages.iter().map(|page| {
            let has_it = |lane: &Lane| program.is_of(lane, page.thread);
            lanes.iter().position(has_it).unwrap_or(0) as u16
        });
        Self {
            first: first.collect(),
            counts: Arc::default(),
            fingerprint: Arc::default(),
            lanes,
            program,
        }
    }

    fn counts(&self) -> &[Counts] {
        let count = |lane| Counts::new(&self.program, lane);
        self.counts
            .get_or_init(|| self.lanes.iter().map(count).collect())
    }

    /// What tells one recording from another: of its pages, and of what each thread does.
    pub fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| {
            let mut sum = Sum::default();
            for page in &self.program.pages {
                let of_page = [page.phys, page.virt, page.user.into(), page.thread.into()];
                of_page.into_iter().for_each(|value| sum.add(value));
            }
            for lane in &*self.lanes {
                sum.add(u64::MAX);
                self.program.steps(lane).for_each(|step| sum.add_step(step));
            }
            sum.0
        })
    }

    /// Its threads: so many tasks it is.
    pub fn threads(&self) -> usize {
        self.lanes.len()
    }

    /// Bytes of its pages.
    pub fn bytes(&self) -> u64 {
        self.program.pages.len() as u64 * FRAME_SIZE
    }

    /// Bytes of the pages that thread number `thread` touches first.
    pub fn bytes_of(&self, thread: usize) -> u64 {
        let its = |&&first: &&u16| usize::from(first) == thread;
        self.first.iter().filter(its).count() as u64 * FRAME_SIZE
    }

    /// Share of the lines that it asks for that it writes to.
    pub fn writes(&self) -> f64 {
        let written: u64 = self.counts().iter().map(|c| c.written).sum();
        let asked: u64 = self.counts().iter().map(|c| c.asked).sum();
        written as f64 / asked.max(1) as f64
    }

    /// Lines that it asks for: its thread that has most of them.
    pub fn lines(&self) -> u64 {
        self.counts().iter().map(|c| c.asked).max().unwrap_or(0)
    }

    /// Played from its middle in jobs of `lines` lines each: dirty lines that leave
    /// the private caches in the job that has most of them.
    pub fn write_backs(&self, lines: u64) -> u64 {
        let mut all = Playback::new(self, 0, Span::EndlessFromMiddle, &Wakes::default());
        let (mut most, mut mine, mut asked) = (0, 0, 0);
        while asked < self.lines() {
            match all.step() {
                Step::WriteBack(_) => mine += 1,
                Step::Access(_) | Step::Fetch(_) => {
                    if asked % lines.max(1) == 0 {
                        most = mine.max(most);
                        mine = 0;
                    }
                    asked += 1;
                }
                _ => break,
            }
        }
        most.max(mine)
    }
}

/// The same recording in memory.
impl PartialEq for Recorded {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorded({} pages)", self.program.pages.len())
    }
}

/// Plays a recorded program.
pub struct Playback {
    recorded: Recorded,
    thread: usize,
    cursor: Cursor,
    /// Lines to come, at most.
    left: u64,
    /// Begins again at its end.
    endless: bool,
    /// Among the program's threads.
    turn: Turn,
    /// Wakes of other threads that are not among the lines played.
    left_out: HashSet<u32>,
}

impl Playback {
    /// Thread number `thread` of a program; all its threads have `wakes`.
    #[must_use]
    pub fn new(recorded: &Recorded, thread: usize, span: Span, wakes: &Wakes) -> Self {
        let mut left_out = HashSet::new();
        if let Span::Middle(lines) = span {
            for other in recorded.counts() {
                let before = other.before(lines);
                let played = before..=before.saturating_add(lines);
                let out = other.wakes.iter().filter(|(_, at)| !played.contains(at));
                left_out.extend(out.map(|&(id, _)| id));
            }
        }
        let mut all = Self {
            recorded: recorded.clone(),
            thread,
            cursor: Cursor::default(),
            left: match span {
                Span::Middle(lines) => lines,
                _ => u64::MAX,
            },
            endless: matches!(span, Span::Endless | Span::EndlessFromMiddle),
            turn: Turn::new(wakes),
            left_out,
        };
        let before = match span {
            Span::Whole | Span::Endless => 0,
            Span::Middle(lines) => recorded.counts()[thread].before(lines),
            Span::EndlessFromMiddle => recorded.counts()[thread].before(0),
        };
        all.skip(before);
        all
    }

    /// Leaves out so many of the lines that it asks for.
    fn skip(&mut self, mut lines: u64) {
        while lines > 0 {
            match self.next() {
                Some(Event::Access(line)) => lines -= u64::from(line.kind != Kind::WriteBack),
                Some(_) => {}
                None => break,
            }
        }
    }

    fn next(&mut self) -> Option<Event> {
        let Recorded { program, lanes, .. } = &self.recorded;
        let lane = &lanes[self.thread];
        let event = program.next(lane, &mut self.cursor);
        if event.is_none() && self.endless {
            self.cursor = Cursor::default();
            self.turn.again();
            return program.next(lane, &mut self.cursor);
        }
        event
    }

    /// The next step, the threads' order kept if it is known what time it is.
    fn advance(&mut self, now_ps: Option<u64>) -> Step {
        loop {
            if let Some(until) = now_ps.and_then(|now| self.turn.held(now)) {
                return Step::Until(until);
            }
            let line = match (self.next(), now_ps) {
                (Some(Event::Access(line)), _) if self.left > 0 => line,
                (Some(Event::Wake(id)), Some(now)) => {
                    self.turn.wake(id, now);
                    continue;
                }
                (Some(Event::Wait(id)), Some(_)) if !self.left_out.contains(&id) => {
                    self.turn.wait(id);
                    continue;
                }
                (Some(Event::Mark(_) | Event::Wake(_) | Event::Wait(_)), _) => continue,
                _ => return Step::Done,
            };
            let at = u64::from(line.page) * FRAME_SIZE + (u64::from(line.line) << 6);
            if line.kind == Kind::WriteBack {
                return Step::WriteBack(at);
            }
            self.left -= 1;
            let access = Access {
                work: line.work.saturating_sub(1),
                at,
                write: line.kind == Kind::Write,
                dependent: line.dependent,
            };
            return match line.kind {
                Kind::Fetch => Step::Fetch(access),
                _ => Step::Access(access),
            };
        }
    }
}

impl Program for Playback {
    fn step(&mut self) -> Step {
        self.advance(None)
    }

    fn step_at(&mut self, now_ps: u64) -> Step {
        self.advance(Some(now_ps))
    }

    fn shared_pages(&self) -> u64 {
        match self.recorded.threads() {
            1 => 0,
            _ => self.recorded.program.pages.len() as u64,
        }
    }

    fn first_thread(&self, page: u64) -> usize {
        let first = self.recorded.first.get(page as usize);
        first.map_or(0, |&first| usize::from(first))
    }

    fn bytes(&self) -> u64 {
        self.recorded.bytes()
    }

    /// It begins with a program's start, in caches that others have filled.
    fn moves_on(&self) -> bool {
        true
    }

    fn behind_caches(&self) -> bool {
        true
    }

    fn colored(&self, page: u64) -> bool {
        let page = self.recorded.program.pages.get(page as usize);
        page.is_none_or(|page| page.user)
    }
}
