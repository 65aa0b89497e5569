//! Generators fitted to published profiles: MemGuard's Table 1.
//!
//! SPEC CPU2006 is not free. What Table 1 prints of each benchmark alone,
//! instructions per cycle and bandwidth (last-level misses times 64 bytes,
//! prefetchers off), fixes how many instructions lie between two misses and
//! how much time passes. Everything else follows one rule for all:
//!
//! - A benchmark is as bound by latency as Table 1 allows. Misses come in
//!   groups, each waits for the last of the group before; groups are as small
//!   as the time between misses permits (`group`). Where even single misses
//!   leave time over, the core itself is slower (`slow`). These two are the
//!   fit, one of them is always 1.
//! - Floating-point codes and libquantum walk arrays, integer codes access
//!   lines at random.
//! - A fifth of the lines are written to (Jaleel, MemGuard's reference [16]);
//!   lbm, which copies one grid into another, writes half.
//! - How uneven the accesses are over time is known of four only (figure 2):
//!   lbm uniform, libquantum and soplex highly variable, zeusmp mixed; all
//!   others are taken as mixed. A variable one does all of its computing in
//!   spells of its own between spells of accesses, a mixed one half of it.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::task::{Access, Step, Task};

/// Clock of the machine that Table 1 was measured on, MHz.
const CLOCK_MHZ: f64 = 2667.0;
/// Bytes of a line there.
const LINE: u64 = 64;
/// Between two spells of computing, on average, alone: two of MemGuard's
/// periods. Figure 2 samples periods, and some vary from each to the next.
const SPELL_US: u64 = 2000;
/// Arrays that a floating-point code walks.
const ARRAYS: u64 = 4;

/// A benchmark as Table 1 has it, and its fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Number in SPEC CPU2006.
    pub spec: u32,
    /// Its name.
    pub name: &'static str,
    /// Instructions per cycle, alone.
    pub ipc: f64,
    /// Last-level misses times the line, alone, MB/s.
    pub bandwidth: f64,
    /// Misses in a group; between whole numbers, groups of both sizes.
    pub group: f64,
    /// Time of an instruction that misses nothing, over the machine's.
    pub slow: f64,
}

const fn p(
    spec: u32,
    name: &'static str,
    ipc: f64,
    bandwidth: f64,
    group: f64,
    slow: f64,
) -> Profile {
    Profile {
        spec,
        name,
        ipc,
        bandwidth,
        group,
        slow,
    }
}

/// Table 1, most memory intensive first; the fit by `--example fit_table_1`.
pub const TABLE_1: [Profile; 29] = [
    p(470, "lbm", 0.52, 2121.0, 5.763, 1.0),
    p(437, "leslie3d", 0.51, 1581.0, 2.592, 1.0),
    p(462, "libquantum", 0.60, 1543.0, 3.005, 1.0),
    p(410, "bwaves", 0.62, 1485.0, 2.857, 1.0),
    p(471, "omnetpp", 0.83, 1373.0, 3.715, 1.0),
    p(459, "GemsFDTD", 0.50, 1203.0, 1.962, 1.0),
    p(482, "sphinx3", 0.58, 1181.0, 1.85, 1.0),
    p(429, "mcf", 0.18, 1076.0, 1.685, 1.0),
    p(450, "soplex", 0.54, 1025.0, 1.477, 1.0),
    p(433, "milc", 0.59, 989.0, 1.535, 1.0),
    p(434, "zeusmp", 0.93, 808.0, 1.52, 1.0),
    p(483, "xalancbmk", 0.54, 681.0, 1.198, 1.0),
    p(436, "cactusADM", 0.68, 562.0, 1.0, 1.26),
    p(403, "gcc", 0.98, 419.0, 1.0, 1.109),
    p(456, "hmmer", 1.53, 317.0, 1.079, 1.0),
    p(473, "astar", 0.58, 307.0, 1.0, 2.559),
    p(401, "bzip2", 0.97, 221.0, 1.0, 1.845),
    p(400, "perlbench", 1.36, 120.0, 1.0, 1.567),
    p(447, "dealII", 1.41, 118.0, 1.0, 1.552),
    p(454, "calculix", 1.53, 113.0, 1.0, 1.434),
    p(464, "h264ref", 1.42, 101.0, 1.0, 1.529),
    p(445, "gobmk", 0.97, 95.0, 1.0, 2.266),
    p(458, "sjeng", 1.10, 74.0, 1.0, 2.06),
    p(435, "gromacs", 0.86, 60.0, 1.0, 2.729),
    p(481, "wrf", 1.73, 38.0, 1.0, 1.396),
    p(444, "namd", 1.47, 18.0, 1.0, 1.684),
    p(465, "tonto", 1.38, 2.0, 1.0, 1.823),
    p(416, "gamess", 1.34, 1.0, 1.0, 1.89),
    p(453, "povray", 1.17, 1.0, 1.0, 2.161),
];

impl Profile {
    /// The benchmark of this SPEC number.
    pub fn find(spec: u64) -> Option<Self> {
        TABLE_1.iter().find(|p| u64::from(p.spec) == spec).copied()
    }

    /// Instructions between two misses.
    pub fn instructions(&self) -> f64 {
        self.ipc * CLOCK_MHZ * LINE as f64 / self.bandwidth
    }

    /// Misses in so many microseconds, alone.
    pub fn misses(&self, us: u64) -> u64 {
        ((us as f64 * self.bandwidth / LINE as f64) as u64).max(1)
    }

    /// Does it walk arrays? How many at once.
    fn arrays(&self) -> Option<u64> {
        match self.spec {
            462 => Some(1),
            // CINT2006; the rest is CFP2006.
            400 | 401 | 403 | 429 | 445 | 456 | 458 | 464 | 471 | 473 | 483 => None,
            _ => Some(ARRAYS),
        }
    }

    /// Share of lines written to.
    fn dirty(&self) -> f64 {
        if self.spec == 470 {
            0.5
        } else {
            0.2
        }
    }

    /// Share of the computing that happens in spells of its own.
    fn uneven(&self) -> f64 {
        match self.spec {
            470 => 0.0,
            462 | 450 => 1.0,
            _ => 0.5,
        }
    }
}

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

/// The accesses of a profile.
pub struct Profiled {
    profile: Profile,
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

impl Profiled {
    /// `misses` misses over `bytes` of memory.
    pub fn new(profile: Profile, bytes: u64, misses: u64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let lines = (bytes / LINE).max(ARRAYS);
        let mut task = Self {
            profile,
            lines: match profile.arrays() {
                Some(n) => lines / n * n,
                None => 1 << lines.ilog2(),
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

    /// The whole part of what is owed after another `share`.
    fn whole(&mut self, which: usize, share: f64) -> u64 {
        self.owed[which] += share;
        let whole = self.owed[which].floor();
        self.owed[which] -= whole;
        whole as u64
    }

    fn next_spell(&mut self) {
        let mean = self.profile.misses(SPELL_US) as f64;
        self.spell += mean * self.rng.gen_range(0.5..1.5);
    }

    fn next_line(&mut self) -> u64 {
        let at = match self.profile.arrays() {
            Some(n) => {
                let at = self.walked % self.lines;
                self.walked += 1;
                // Arrays don't begin in the same bank.
                let skewed = at / n + at % n * 37 * 128;
                at % n * (self.lines / n) + skewed % (self.lines / n)
            }
            // Every line once a round, in an order without pattern.
            None => {
                let next = self.walked.wrapping_mul(0x5851_f42d_4c95_7f2d);
                self.walked = next.wrapping_add(1) % self.lines;
                self.walked
            }
        };
        at * LINE
    }

    fn miss(&mut self) -> Step {
        let at = self.next_line();
        if self.whole(1, self.profile.dirty()) > 0 {
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
        let instructions = group * self.profile.instructions();
        let share = self.profile.uneven();
        self.saved += instructions * share;
        self.spell -= group;
        let mut now = instructions * (1.0 - share);
        if self.spell < 0.0 {
            now += std::mem::take(&mut self.saved);
            self.next_spell();
        }
        let accesses = group + self.dirty.len() as f64 + 1.0;
        self.idle = self.whole(3, now * (self.profile.slow - 1.0));
        // What the accesses themselves count is owed to later groups.
        self.owed[2] -= accesses;
        self.work = self.idle;
        if self.owed[2] + now > 0.0 {
            self.work += self.whole(2, now);
        } else {
            self.owed[2] += now;
        }
        self.size = self.whole(0, self.profile.group).max(1);
        self.done = 0;
    }
}

impl Task for Profiled {
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
                    at: self.lines * LINE,
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
        (self.lines + 1) * LINE
    }

    fn idle_work(&self) -> u32 {
        self.stepped_idle
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Misses, instructions and writes of a whole run.
    fn play(profile: Profile, misses: u64) -> (u64, u64, u64) {
        let mut task = Profiled::new(profile, 1 << 22, misses, 7);
        let hot = task.bytes() - LINE;
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
                Step::Barrier => unreachable!("no rounds"),
                Step::Done => return (seen.len() as u64, instructions, writes),
            }
        }
    }

    #[test]
    fn instructions_between_misses_are_the_tables() {
        for profile in TABLE_1 {
            let misses = 40_000;
            let (lines, instructions, writes) = play(profile, misses);
            assert_eq!(lines, misses, "{}: every line once", profile.name);
            let per_miss = instructions as f64 / misses as f64;
            // A spell's computing may be cut off at the end.
            let low = profile.instructions() * (1.0 - profile.uneven()) * 0.99 - 1.0;
            let high = profile.instructions() * 1.01 + 1.0;
            assert!(
                (low..=high).contains(&per_miss),
                "{}: {per_miss}",
                profile.name
            );
            let share = writes as f64 / misses as f64;
            assert!((share - profile.dirty()).abs() < 0.01, "{}", profile.name);
        }
    }

    #[test]
    fn benchmarks_are_found_by_their_number() {
        assert_eq!(Profile::find(470).unwrap().name, "lbm");
        assert!(Profile::find(471).unwrap().arrays().is_none());
        assert!(Profile::find(1).is_none());
    }
}
