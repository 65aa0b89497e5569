//! A program of which only counters are known: instructions per cycle, lines
//! from memory per instruction and the share of them that it writes to.
//!
//! It is as bound by latency as its instructions per cycle allow: misses come
//! in groups, each waits for the last of the group before, and groups are as
//! small as the time between misses permits. Where even single misses leave
//! time over, the core itself is slower ([`Pace`]).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::counters::{Counters, Pace};
use super::step::{Access, Program, Step};

/// What comes next in a group.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Its misses.
    Miss,
    /// Waits for the last of them.
    Wait,
    /// Writes to some of its lines.
    Write,
}

/// A program of which only counters are known.
pub struct Counted {
    counters: Counters,
    pace: Pace,
    line: u64,
    /// Lines of memory, and besides one that never leaves the cache.
    lines: u64,
    left: u64,
    phase: Phase,
    /// Misses of the group, and how many of them are done.
    size: u64,
    done: u64,
    dirty: Vec<u64>,
    /// What rounding owes of misses, dirty lines, instructions, lost time.
    owed: [f64; 4],
    walked: u64,
    /// Misses until the next spell of computing, instructions saved for it.
    spell: f64,
    saved: f64,
    /// To compute before the next group, in instructions; of these, as many
    /// only stand for time.
    work: u64,
    idle: u64,
    stepped_idle: u32,
    rng: ChaCha8Rng,
}

impl Counted {
    /// `misses` misses over `bytes` of memory in lines of `line` bytes.
    pub fn new(
        counters: Counters,
        pace: Pace,
        bytes: u64,
        line: u64,
        misses: u64,
        seed: u64,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let lines = (bytes / line).max(u64::from(counters.arrays) + 1);
        let mut task = Self {
            counters,
            pace,
            line,
            lines: match u64::from(counters.arrays) {
                0 => 1 << lines.ilog2(),
                n => lines / n * n,
            },
            left: misses,
            phase: Phase::Miss,
            size: 1,
            done: 0,
            dirty: Vec::new(),
            owed: [0.0; 4],
            walked: rng.gen_range(0..lines),
            spell: 0.0,
            saved: 0.0,
            work: 0,
            idle: 0,
            stepped_idle: 0,
            rng,
        };
        task.next_spell();
        task
    }

    /// Goes on from where it is, `misses` more at another pace.
    pub fn go_on(&mut self, pace: Pace, misses: u64) {
        self.pace = pace;
        self.left = misses;
    }

    /// The whole part of what is owed after another `share`.
    fn whole(&mut self, which: usize, share: f64) -> u64 {
        self.owed[which] += share;
        let whole = self.owed[which].floor();
        self.owed[which] -= whole;
        whole as u64
    }

    fn next_spell(&mut self) {
        self.spell += self.counters.spell.max(1.0) * self.rng.gen_range(0.5..1.5);
    }

    fn next_line(&mut self) -> u64 {
        let at = match u64::from(self.counters.arrays) {
            0 => {
                // Every line once a round, in an order without pattern.
                let next = self.walked.wrapping_mul(0x5851_f42d_4c95_7f2d);
                self.walked = next.wrapping_add(1) % self.lines;
                self.walked
            }
            n => {
                let at = self.walked % self.lines;
                self.walked += 1;
                // Arrays don't begin in the same bank.
                let skewed = at / n + at % n * 37 * 128;
                at % n * (self.lines / n) + skewed % (self.lines / n)
            }
        };
        at * self.line
    }

    fn miss(&mut self) -> Step {
        let at = self.next_line();
        if self.whole(1, self.counters.writes) > 0 {
            self.dirty.push(at);
        }
        self.done += 1;
        self.left -= 1;
        if self.done == self.size {
            self.phase = Phase::Wait;
        }
        let work = std::mem::take(&mut self.work).min(u64::from(u32::MAX)) as u32;
        self.stepped_idle = std::mem::take(&mut self.idle).min(u64::from(work)) as u32;
        Step::Access(Access {
            work,
            at,
            write: false,
            dependent: false,
        })
    }

    /// The group has come: plans what is computed before the next.
    fn plan(&mut self) {
        let group = self.size as f64;
        let instructions = group * self.counters.instructions();
        let share = self.counters.uneven;
        self.saved += instructions * share;
        self.spell -= group;
        let mut now = instructions * (1.0 - share);
        if self.spell < 0.0 {
            now += std::mem::take(&mut self.saved);
            self.next_spell();
        }
        let accesses = group + self.dirty.len() as f64 + 1.0;
        self.idle = self.whole(3, now * (self.pace.slow - 1.0));
        // What the accesses themselves count is owed to later groups.
        self.owed[2] -= accesses;
        self.work = self.idle;
        if self.owed[2] + now > 0.0 {
            self.work += self.whole(2, now);
        } else {
            self.owed[2] += now;
        }
        self.size = self.whole(0, self.pace.group).max(1);
        self.done = 0;
    }
}

impl Program for Counted {
    fn step(&mut self) -> Step {
        self.stepped_idle = 0;
        if self.left == 0 {
            return Step::Done;
        }
        match (self.phase, self.dirty.pop()) {
            (Phase::Miss, at) => {
                self.dirty.extend(at);
                self.miss()
            }
            (Phase::Wait, at) => {
                self.dirty.extend(at);
                self.plan();
                self.phase = Phase::Write;
                Step::Access(Access {
                    work: 0,
                    at: self.lines * self.line,
                    write: false,
                    dependent: true,
                })
            }
            (Phase::Write, Some(at)) => Step::Access(Access {
                work: 0,
                at,
                write: true,
                dependent: false,
            }),
            (Phase::Write, None) => {
                self.phase = Phase::Miss;
                self.miss()
            }
        }
    }

    fn bytes(&self) -> u64 {
        (self.lines + 1) * self.line
    }

    fn moves_on(&self) -> bool {
        true
    }

    fn idle_work(&self) -> u32 {
        self.stepped_idle
    }
}

#[cfg(test)]
mod tests {
    use super::super::table_1::TABLE_1;
    use super::*;
    use std::collections::HashSet;

    /// Lines, instructions and writes of a whole run.
    fn play(counters: Counters, misses: u64) -> (u64, u64, u64) {
        let pace = Pace {
            group: 1.5,
            slow: 1.2,
        };
        let mut task = Counted::new(counters, pace, 1 << 22, 64, misses, 7);
        let hot = task.bytes() - 64;
        let (mut seen, mut instructions, mut writes) = (HashSet::new(), 0, 0);
        loop {
            match task.step() {
                Step::Access(a) => {
                    assert!(a.at < task.bytes() && task.idle_work() <= a.work);
                    instructions += u64::from(a.work - task.idle_work()) + 1;
                    writes += u64::from(a.write);
                    if a.at != hot {
                        seen.insert(a.at);
                    }
                }
                Step::Done => return (seen.len() as u64, instructions, writes),
                other => unreachable!("{other:?}"),
            }
        }
    }

    #[test]
    fn instructions_between_misses_are_the_counters() {
        for benchmark in TABLE_1 {
            let counters = benchmark.counters();
            let misses = 40_000;
            let (lines, instructions, writes) = play(counters, misses);
            assert_eq!(lines, misses, "{}: every line once", benchmark.name);
            let per_miss = instructions as f64 / misses as f64;
            // A spell's computing may be cut off at the end.
            let low = counters.instructions() * (1.0 - counters.uneven) * 0.99 - 1.0;
            let high = counters.instructions() * 1.01 + 1.0;
            assert!(
                (low..=high).contains(&per_miss),
                "{}: {per_miss}",
                benchmark.name
            );
            let share = writes as f64 / misses as f64;
            assert!((share - counters.writes).abs() < 0.01, "{}", benchmark.name);
        }
    }
}
