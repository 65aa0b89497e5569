//! How programs that are made from counters come to their instructions per
//! cycle: each is played alone on the machine's model, at one pace after
//! another, and the pace in between is taken that gives what was counted.
//!
//! What is lost when a program runs beside others is then the model's to say;
//! its speed alone is given, and claims on it are fits.

use soloist_memory::Platform;

use crate::placement::FreeMemory;
use crate::policy::linux::BUDDY;
use crate::programs::counted::Counted;
use crate::programs::counters::{Counters, Pace};
use crate::programs::{Program, Step};
use crate::stage::{Seat, Stage, StageError};
use crate::warm::{Caches, Warmed};

/// Misses in a group that are tried.
const GROUPS: [f64; 10] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Misses that each is tried for.
const MISSES: u64 = 6000;
/// Memory that they lie in.
const BYTES: u64 = 64 << 20;

/// A program at one pace after another, with a mark between.
struct Paces {
    program: Counted,
    at: usize,
}

impl Paces {
    /// Of a program with these counters.
    fn new(counters: Counters, line: u64) -> Self {
        let even = Counters {
            uneven: 0.0,
            ..counters
        };
        let program = Counted::new(even, pace(0), BYTES, line, MISSES, 1);
        Self { program, at: 0 }
    }
}

fn pace(at: usize) -> Pace {
    Pace {
        group: GROUPS[at],
        slow: 1.0,
    }
}

impl Program for Paces {
    fn step(&mut self) -> Step {
        match self.program.step() {
            Step::Done if self.at + 1 < GROUPS.len() => {
                self.at += 1;
                self.program.go_on(pace(self.at), MISSES);
                Step::Mark
            }
            step => step,
        }
    }

    fn bytes(&self) -> u64 {
        self.program.bytes()
    }

    fn moves_on(&self) -> bool {
        self.program.moves_on()
    }
}

/// What a machine can do of a program's counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The pace at which the program comes nearest to its instructions per cycle.
    pub pace: Pace,
    /// The most instructions per cycle that the machine comes to; `None`: as many as
    /// the program has.
    pub most: Option<f64>,
}

/// Why a program has no pace.
#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    /// No machine like this runs it as fast as it was.
    #[error("ipc {ipc} with mpki {mpki} cannot be on this machine: it comes to {most:.2} alone")]
    TooFast {
        /// Its instructions per cycle.
        ipc: f64,
        /// Its misses per thousand instructions.
        mpki: f64,
        /// The most instructions per cycle that the machine comes to.
        most: f64,
    },
    /// It can't be played.
    #[error(transparent)]
    Stage(#[from] StageError),
}

impl Found {
    /// The pace, if the machine is fast enough for a program with these counters.
    ///
    /// # Errors
    /// [`PaceError::TooFast`].
    pub fn exact(self, counters: Counters) -> Result<Pace, PaceError> {
        match self.most {
            None => Ok(self.pace),
            Some(most) => Err(PaceError::TooFast {
                ipc: counters.ipc,
                mpki: counters.mpki,
                most,
            }),
        }
    }
}

/// The pace at which a program with these counters has its instructions per cycle when
/// it runs alone on `core`.
///
/// # Errors
/// When it can't be played.
pub fn find(
    platform: &Platform,
    memory: FreeMemory,
    core: usize,
    counters: Counters,
) -> Result<Found, StageError> {
    let line = u64::from(platform.memory.map.line_size());
    let paces = Box::new(Paces::new(counters, line));
    let caches = Caches {
        platform,
        core,
        busy: &[core],
    };
    let program = Warmed::new(paces, caches, counters.writes, 0);
    let played = Stage {
        memory,
        ..Stage::new(
            platform,
            &BUDDY,
            vec![Seat::new(Box::new(program), core)],
            1,
        )
    }
    .play()?;
    let stats = &played.cores[core];
    let mut marks = stats.marks_ps.clone();
    marks.push(stats.finished_ps);
    Ok(choose(platform, counters, &marks))
}

/// The pace at which a program has its instructions per cycle, from the times
/// at which [`Paces`] began each of its own and ended.
fn choose(platform: &Platform, counters: Counters, marks_ps: &[u64]) -> Found {
    let reached_at = |pace| Found { pace, most: None };
    let of_miss = |pair: &[u64]| (pair[1] - pair[0]) as f64 / MISSES as f64;
    let times: Vec<f64> = marks_ps.windows(2).map(of_miss).collect();
    let instruction_ps = platform.instruction_fs as f64 / 1000.0;
    let cycle_ps = instruction_ps / platform.core.cpi;
    let wanted = counters.instructions() / counters.ipc * cycle_ps;
    if wanted >= times[0] {
        let lost = (wanted - times[0]) / (counters.instructions() * instruction_ps);
        return reached_at(Pace {
            group: 1.0,
            slow: 1.0 + lost,
        });
    }
    let reached = times.iter().position(|&t| t <= wanted);
    let Some(at) = reached else {
        let fastest = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
        let at = fastest.unwrap_or(0);
        return Found {
            pace: pace(at),
            most: Some(counters.instructions() * cycle_ps / times[at]),
        };
    };
    // Time is about linear in the number of groups.
    let (slow, fast) = (times[at - 1], times[at]);
    let share = (slow - wanted) / (slow - fast);
    let groups = 1.0 / GROUPS[at - 1] + share * (1.0 / GROUPS[at] - 1.0 / GROUPS[at - 1]);
    reached_at(Pace {
        group: 1.0 / groups,
        slow: 1.0,
    })
}
