//! A recorded program among generators: what left a real program's private
//! caches, step by step (`soloist vm record`; docs/record.md).
//!
//! As in [`crate::replay`], instructions between two lines take the model's time,
//! and what follows a fetch of instructions waits for it. Here the whole of it is
//! one task: a program of one thread, whose pages are placed as a generator's
//! are, but for those that the kernel alone used: they are never coloured.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use soloist_record::{Cursor, Kind, Lane, Lines, Program as Recording, Step as Event};

use super::step::{Access, Program, Step};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A recorded program in memory, which any number of tasks may play.
#[derive(Clone)]
pub struct Recorded {
    program: Arc<Recording>,
    lane: Lane,
    /// Lines that it asked for, and of those to write.
    asked: u64,
    written: u64,
}

impl Recorded {
    /// The first program of the recording in `dir`.
    ///
    /// # Errors
    /// When it can't be read, is damaged, or has more than one thread.
    pub fn load(dir: &Path) -> Result<Self, String> {
        let load = || soloist_record::Recording::open(dir)?.load(0, Lines::ALL);
        let mut program = load().map_err(|e| e.to_string())?;
        if let Some(damage) = program.damage.pop() {
            return Err(damage.to_string());
        }
        let mut lanes = program.lanes();
        let Some(lane) = lanes.pop().filter(|_| lanes.is_empty()) else {
            return Err(format!(
                "{}: its first program has {} threads, and a task is one: `soloist sim replay` plays all",
                dir.display(),
                program.threads().len()
            ));
        };
        let count = |only: fn(Kind) -> bool| {
            let of = |step: &Event| matches!(step, Event::Access(a) if only(a.kind));
            program.steps(&lane).filter(of).count() as u64
        };
        Ok(Self {
            asked: count(|k| k != Kind::WriteBack),
            written: count(|k| k == Kind::Write),
            program: Arc::new(program),
            lane,
        })
    }

    /// Bytes of its pages.
    pub fn bytes(&self) -> u64 {
        self.program.pages.len() as u64 * PAGE
    }

    /// Share of the lines that it asks for that it writes to.
    pub fn writes(&self) -> f64 {
        self.written as f64 / self.asked.max(1) as f64
    }

    /// Lines that it asks for.
    pub fn lines(&self) -> u64 {
        self.asked
    }

    /// Played from its middle in jobs of `lines` lines each: dirty lines that leave
    /// the private caches in the job that has most of them.
    pub fn write_backs(&self, lines: u64) -> u64 {
        let mut all = Playback::new(self, u64::MAX, true);
        let (mut most, mut mine, mut asked) = (0, 0, 0);
        while asked < self.asked {
            match all.step() {
                Step::WriteBack(_) => mine += 1,
                Step::Access(_) => {
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
    cursor: Cursor,
    /// Lines to come, at most.
    left: u64,
    /// Begins again at its end.
    endless: bool,
    /// The step before was a fetch.
    fetched: bool,
}

impl Playback {
    /// So many of the lines that it asks for, those in the middle, for the first are
    /// its start; or from its middle on, over and over.
    pub fn new(recorded: &Recorded, lines: u64, endless: bool) -> Self {
        let mut all = Self {
            recorded: recorded.clone(),
            cursor: Cursor::default(),
            left: lines,
            endless,
            fetched: false,
        };
        let played = if endless { 0 } else { lines };
        let mut before = recorded.asked.saturating_sub(played) / 2;
        while before > 0 {
            match all.next() {
                Some(Event::Access(line)) => before -= u64::from(line.kind != Kind::WriteBack),
                Some(_) => {}
                None => break,
            }
        }
        all
    }

    fn next(&mut self) -> Option<Event> {
        let Recorded { program, lane, .. } = &self.recorded;
        let event = program.next(lane, &mut self.cursor);
        if event.is_none() && self.endless {
            self.cursor = Cursor::default();
            return program.next(lane, &mut self.cursor);
        }
        event
    }
}

impl Program for Playback {
    fn step(&mut self) -> Step {
        loop {
            let line = match self.next() {
                Some(Event::Access(line)) if self.left > 0 => line,
                // One thread waits for nobody that could be played.
                Some(Event::Mark(_) | Event::Wake(_) | Event::Wait(_)) => continue,
                _ => return Step::Done,
            };
            let at = u64::from(line.page) * PAGE + (u64::from(line.line) << 6);
            if line.kind == Kind::WriteBack {
                return Step::WriteBack(at);
            }
            self.left -= 1;
            let dependent = line.dependent || self.fetched;
            self.fetched = line.kind == Kind::Fetch;
            return Step::Access(Access {
                work: line.work.saturating_sub(1),
                at,
                write: line.kind == Kind::Write,
                dependent,
            });
        }
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
