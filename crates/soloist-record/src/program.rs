//! A recorded program in memory: its pages, and what its threads did.

use std::collections::HashSet;

use crate::error::Error;
use crate::step::{unpack, Step};

/// A recorded program in memory.
pub struct Program {
    /// Pages in the order of their first touch.
    pub pages: Vec<Page>,
    /// Streams that are damaged; what lies before is here.
    pub damage: Vec<Error>,
    /// Runs of its threads that ran in user mode, in the order of their begin.
    pub(crate) pieces: Vec<Piece>,
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
    pub(crate) fn endless_wait(&self) -> Option<u32> {
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

/// A run of one thread on one processor.
pub(crate) struct Piece {
    pub(crate) thread: u32,
    pub(crate) cpu: u32,
    pub(crate) order: u64,
    /// Steps with page numbers of the loader.
    pub(crate) steps: Vec<u64>,
}
