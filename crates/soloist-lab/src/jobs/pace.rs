//! How programs that are made from counters come to their instructions per
//! cycle: each is played alone on the machine's model, at one pace after
//! another, and the pace in between is taken that gives what was counted.
//!
//! What is lost when a program runs beside others is then the model's to say;
//! its speed alone is given, and claims on it are fits.

use soloist_memory::Platform;
use soloist_play::programs::counted::Counted;
use soloist_play::programs::counters::{Counters, Pace};
use soloist_play::programs::{Program, Step};

/// Misses in a group that are tried.
const GROUPS: [f64; 10] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Misses that each is tried for.
const MISSES: u64 = 6000;
/// Memory that they lie in.
pub(super) const BYTES: u64 = 64 << 20;

/// A program at one pace after another, with a mark between.
pub(super) struct Paces {
    program: Counted,
    at: usize,
}

impl Paces {
    /// Of a program with these counters.
    pub(super) fn new(counters: Counters, line: u64) -> Self {
        let even = Counters {
            uneven: 0.0,
            ..counters
        };
        let program = Counted::new((even, pace(0)), (BYTES, line), MISSES, 1);
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

/// The pace at which a program has its instructions per cycle, from the times
/// at which [`Paces`] began each of its own and ended. An error is the most
/// that the machine can, and at what pace.
pub(super) fn choose(
    platform: &Platform,
    counters: Counters,
    marks_ps: &[u64],
) -> Result<Pace, (f64, Pace)> {
    let of_miss = |pair: &[u64]| (pair[1] - pair[0]) as f64 / MISSES as f64;
    let times: Vec<f64> = marks_ps.windows(2).map(of_miss).collect();
    let instruction_ps = platform.instruction_fs as f64 / 1000.0;
    let cycle_ps = instruction_ps / platform.core.cpi;
    let wanted = counters.instructions() / counters.ipc * cycle_ps;
    if wanted >= times[0] {
        let lost = (wanted - times[0]) / (counters.instructions() * instruction_ps);
        return Ok(Pace {
            group: 1.0,
            slow: 1.0 + lost,
        });
    }
    let reached = times.iter().position(|&t| t <= wanted);
    let Some(at) = reached else {
        let fastest = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
        let at = fastest.unwrap_or(0);
        return Err((counters.instructions() * cycle_ps / times[at], pace(at)));
    };
    // Time is about linear in the number of groups.
    let (slow, fast) = (times[at - 1], times[at]);
    let share = (slow - wanted) / (slow - fast);
    let groups = 1.0 / GROUPS[at - 1] + share * (1.0 / GROUPS[at] - 1.0 / GROUPS[at - 1]);
    Ok(Pace {
        group: 1.0 / groups,
        slow: 1.0,
    })
}
