//! A pointer chase: latency and nothing else.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::step::{Access, Program, Step};

/// Follows a randomly shuffled linked list, one element per line: every load
/// waits for the one before (PALLOC's `latency`, CAMC 4.7.1).
pub struct PointerChase {
    next: Vec<u32>,
    line: u64,
    at: u32,
    left: u64,
}

impl PointerChase {
    /// `accesses` loads over a list that fills `bytes`.
    pub fn new(bytes: u64, line: u64, accesses: u64, seed: u64) -> Self {
        let n = (bytes / line).max(1) as u32;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..n as usize).rev() {
            order.swap(i, rng.gen_range(0..=i));
        }
        let mut next = vec![0; n as usize];
        for (i, &from) in order.iter().enumerate() {
            next[from as usize] = order[(i + 1) % order.len()];
        }
        Self {
            next,
            line,
            at: order[0],
            left: accesses,
        }
    }
}

impl Program for PointerChase {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.at = self.next[self.at as usize];
        Step::Access(Access {
            work: 1,
            at: u64::from(self.at) * self.line,
            write: false,
            dependent: true,
        })
    }

    fn bytes(&self) -> u64 {
        self.next.len() as u64 * self.line
    }
}
