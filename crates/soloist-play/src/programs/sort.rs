//! The NAS parallel benchmarks' integer sort.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::step::{load, malloced, store, Program, Step};

/// NAS IS: reads keys in order and counts each in a bucket array at random.
pub struct IntegerSort {
    keys: u64,
    buckets: u64,
    line: u64,
    at: u64,
    phase: u8,
    left: u64,
    rng: ChaCha8Rng,
}

impl IntegerSort {
    /// `keys` and `buckets` in bytes (4 bytes each), `count` keys sorted.
    pub fn new(keys: u64, buckets: u64, line: u64, count: u64, seed: u64) -> Self {
        Self {
            keys,
            buckets,
            line,
            at: 0,
            phase: 0,
            left: count,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl Program for IntegerSort {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        if self.phase == 0 && self.at % self.line == 0 {
            self.phase = 1;
            return load(2, self.at % self.keys);
        }
        self.phase = 0;
        self.at += 4;
        self.left -= 1;
        let bucket = self.rng.gen_range(0..self.buckets / 4) * 4;
        store(5, malloced(self.keys) + bucket)
    }

    fn bytes(&self) -> u64 {
        malloced(self.keys) + malloced(self.buckets)
    }
}
