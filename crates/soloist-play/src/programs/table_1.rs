//! MemGuard's Table 1: SPEC CPU2006, each benchmark alone.
//!
//! SPEC is not free. What Table 1 prints, instructions per cycle and bandwidth
//! (last-level misses times 64 bytes, prefetchers off), fixes how many
//! instructions lie between two misses and how much time passes. The rest
//! follows one rule for all:
//!
//! - Floating-point codes and libquantum walk arrays, integer codes access
//!   lines at random.
//! - A fifth of the lines are written to (Jaleel, MemGuard's reference 16);
//!   lbm, which copies one grid into another, writes half.
//! - How uneven the accesses are over time is known of four only (figure 2):
//!   lbm uniform, libquantum and soplex highly variable, zeusmp mixed; all
//!   others are taken as mixed. A variable one does all of its computing in
//!   spells of its own between spells of accesses, a mixed one half of it.

use super::counters::Counters;

/// Clock of the machine that Table 1 was measured on, MHz.
const CLOCK_MHZ: f64 = 2667.0;
/// Bytes of a line there.
const LINE: f64 = 64.0;
/// Between two spells of computing, on average, alone: two of MemGuard's
/// periods. Figure 2 samples periods, and some vary from each to the next.
const SPELL_US: u64 = 2000;
/// Arrays that a floating-point code walks.
const ARRAYS: u32 = 4;

/// A benchmark as Table 1 has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benchmark {
    /// Number in SPEC CPU2006.
    pub spec: u32,
    /// Its name.
    pub name: &'static str,
    /// Instructions per cycle, alone.
    pub ipc: f64,
    /// Last-level misses times the line, alone, MB/s.
    pub bandwidth: f64,
}

const fn b(spec: u32, name: &'static str, ipc: f64, bandwidth: f64) -> Benchmark {
    Benchmark {
        spec,
        name,
        ipc,
        bandwidth,
    }
}

/// Table 1, most memory intensive first.
pub const TABLE_1: [Benchmark; 29] = [
    b(470, "lbm", 0.52, 2121.0),
    b(437, "leslie3d", 0.51, 1581.0),
    b(462, "libquantum", 0.60, 1543.0),
    b(410, "bwaves", 0.62, 1485.0),
    b(471, "omnetpp", 0.83, 1373.0),
    b(459, "GemsFDTD", 0.50, 1203.0),
    b(482, "sphinx3", 0.58, 1181.0),
    b(429, "mcf", 0.18, 1076.0),
    b(450, "soplex", 0.54, 1025.0),
    b(433, "milc", 0.59, 989.0),
    b(434, "zeusmp", 0.93, 808.0),
    b(483, "xalancbmk", 0.54, 681.0),
    b(436, "cactusADM", 0.68, 562.0),
    b(403, "gcc", 0.98, 419.0),
    b(456, "hmmer", 1.53, 317.0),
    b(473, "astar", 0.58, 307.0),
    b(401, "bzip2", 0.97, 221.0),
    b(400, "perlbench", 1.36, 120.0),
    b(447, "dealII", 1.41, 118.0),
    b(454, "calculix", 1.53, 113.0),
    b(464, "h264ref", 1.42, 101.0),
    b(445, "gobmk", 0.97, 95.0),
    b(458, "sjeng", 1.10, 74.0),
    b(435, "gromacs", 0.86, 60.0),
    b(481, "wrf", 1.73, 38.0),
    b(444, "namd", 1.47, 18.0),
    b(465, "tonto", 1.38, 2.0),
    b(416, "gamess", 1.34, 1.0),
    b(453, "povray", 1.17, 1.0),
];

impl Benchmark {
    /// The benchmark of this SPEC number.
    pub fn find(spec: u64) -> Option<Self> {
        TABLE_1.iter().find(|b| u64::from(b.spec) == spec).copied()
    }

    /// Misses in so many microseconds, alone.
    pub fn misses(&self, us: u64) -> u64 {
        ((us as f64 * self.bandwidth / LINE) as u64).max(1)
    }

    /// What its counters say.
    pub fn counters(&self) -> Counters {
        Counters {
            ipc: self.ipc,
            mpki: 1000.0 * self.bandwidth / (self.ipc * CLOCK_MHZ * LINE),
            writes: if self.spec == 470 { 0.5 } else { 0.2 },
            arrays: self.arrays(),
            uneven: self.uneven(),
            spell: self.misses(SPELL_US) as f64,
        }
    }

    /// Does it walk arrays? How many at once.
    fn arrays(&self) -> u32 {
        match self.spec {
            462 => 1,
            // CINT2006; the rest is CFP2006.
            400 | 401 | 403 | 429 | 445 | 456 | 458 | 464 | 471 | 473 | 483 => 0,
            _ => ARRAYS,
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_found_by_their_number() {
        assert_eq!(Benchmark::find(470).unwrap().name, "lbm");
        assert_eq!(Benchmark::find(471).unwrap().counters().arrays, 0);
        assert!(Benchmark::find(1).is_none());
    }

    #[test]
    fn misses_are_bandwidth_over_lines() {
        let lbm = Benchmark::find(470).unwrap();
        let c = lbm.counters();
        let per_second = c.ipc * CLOCK_MHZ * 1e6 * c.mpki / 1000.0;
        assert!((per_second * LINE / 1e6 - 2121.0).abs() < 1e-6);
    }
}
