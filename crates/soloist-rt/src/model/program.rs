//! What a task's jobs do, as the memory model plays it.
//!
//! A task is a program without end, and a job so many accesses of it: the next
//! job goes on where the last one stopped, as a filter goes on in its frames.

use soloist_memory::Platform;
use soloist_play::pace::{self, PaceError};
use soloist_play::placement::FreeMemory;
use soloist_play::programs::counters::{Counters, Pace};
use soloist_play::programs::order::Wakes;
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::{Access, Program, ProgramKind, ProgramSpec, Step};

use crate::tasks::{Behaviour, Task};

/// Instructions between two accesses at which a core looks up whether it must
/// preempt.
pub const CHUNK: u32 = 400;

/// The program of a task, ready to be played as often as one likes.
#[derive(Debug, Clone)]
pub struct Maker {
    spec: ProgramSpec,
    pace: Pace,
    line: u64,
    behaviour: Behaviour,
    /// Instructions before each access, of [`Behaviour::Lines`].
    pub work: u32,
}

impl Maker {
    /// For a task on this machine. Programs that are known by their counters are
    /// played to find their pace.
    ///
    /// # Errors
    /// When the machine can't be as fast as the counters say.
    pub fn new(platform: &Platform, task: &Task) -> Result<Self, PaceError> {
        let (kind, counters) = match task.behaviour {
            Behaviour::Compute | Behaviour::Lines(_) => (ProgramKind::Stream, None),
            Behaviour::Program {
                kind: ProgramKind::Program,
                ipc,
                mpki,
                writes,
            } => {
                let counters = Counters {
                    ipc,
                    mpki,
                    writes,
                    arrays: 4,
                    uneven: 0.0,
                    spell: 0.0,
                };
                (ProgramKind::Program, Some(counters))
            }
            Behaviour::Program { kind, .. } => (kind, None),
        };
        let find = |counters| pace::find(platform, FreeMemory::FRESH, 0, counters)?.exact(counters);
        Ok(Self {
            pace: counters.map_or(Ok(Pace::SERIAL), find)?,
            spec: ProgramSpec {
                bytes: task.bytes,
                counters,
                recorded: task.recorded.clone(),
                ..ProgramSpec::endless(kind)
            },
            line: u64::from(platform.memory.map.line_size()),
            behaviour: task.behaviour,
            work: 0,
        })
    }

    /// The recording that it plays, if any.
    #[must_use]
    pub fn recorded(&self) -> Option<&Recorded> {
        self.spec.recorded.as_ref()
    }

    /// After so many jobs of `accesses` each it begins again; `None`: never.
    #[must_use]
    pub fn cycle(&self, accesses: u64) -> Option<u64> {
        let recorded = self.recorded()?;
        Some((recorded.lines() / accesses.max(1)).max(1))
    }

    /// The program from its beginning.
    #[must_use]
    pub fn make(&self, seed: u64) -> Box<dyn Program> {
        match self.behaviour {
            Behaviour::Compute => Box::new(Even::new(self.line, self.line, CHUNK)),
            Behaviour::Lines(_) => Box::new(Even::new(self.spec.bytes, self.line, self.work)),
            Behaviour::Program { .. } => {
                let wakes = Wakes::default();
                self.spec.generator(self.pace, self.line, seed, &wakes)
            }
        }
    }
}

/// A load of the next line after every so many instructions; each waits for the
/// one before.
struct Even {
    bytes: u64,
    line: u64,
    work: u32,
    at: u64,
}

impl Even {
    fn new(bytes: u64, line: u64, work: u32) -> Self {
        Self {
            bytes: (bytes / line).max(1) * line,
            line,
            work,
            at: 0,
        }
    }
}

impl Program for Even {
    fn step(&mut self) -> Step {
        self.at = (self.at + self.line) % self.bytes;
        Step::Access(Access {
            work: self.work,
            at: self.at,
            write: false,
            dependent: true,
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
