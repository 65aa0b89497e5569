//! Lines in an order without pattern: one that waits for the one before, which is
//! latency and nothing else, and many at once, which is load on banks.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::step::{load, store, Access, Program, Step};

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
        let order = shuffled(bytes, line, seed);
        let mut next = vec![0; order.len()];
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

/// All lines of `bytes`, by chance.
fn shuffled(bytes: u64, line: u64, seed: u64) -> Vec<u32> {
    let n = (bytes / line).max(1) as u32;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..n as usize).rev() {
        order.swap(i, rng.gen_range(0..=i));
    }
    order
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

/// Reads or writes all lines in a shuffled order, again and again; no access waits
/// for another, so that as many are on their way as the core can have.
pub struct Scattered {
    order: Vec<u32>,
    line: u64,
    write: bool,
    at: usize,
    left: u64,
}

impl Scattered {
    /// `accesses` loads (or stores) over `bytes`.
    pub fn new(bytes: u64, line: u64, write: bool, accesses: u64, seed: u64) -> Self {
        Self {
            order: shuffled(bytes, line, seed),
            line,
            write,
            at: 0,
            left: accesses,
        }
    }
}

impl Program for Scattered {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let at = u64::from(self.order[self.at]) * self.line;
        self.at = (self.at + 1) % self.order.len();
        match self.write {
            true => store(3, at),
            false => load(3, at),
        }
    }

    fn bytes(&self) -> u64 {
        self.order.len() as u64 * self.line
    }
}
