//! A program like canneal.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::step::{load, store, Access, Program, Step};

/// Like canneal: picks two elements at random, follows the pointers of each to
/// its neighbours, and sometimes swaps them.
pub struct RandomSwaps {
    bytes: u64,
    neighbours: u32,
    at: [u64; 2],
    phase: u32,
    left: u64,
    rng: ChaCha8Rng,
}

impl RandomSwaps {
    /// Instructions before a look: canneal misses last-level caches some 13
    /// times in a thousand instructions.
    const WORK: u32 = 75;

    /// `swaps` attempts over a net of `bytes`, 64 bytes an element, each with
    /// `neighbours` others to look at.
    pub fn new(bytes: u64, neighbours: u32, swaps: u64, seed: u64) -> Self {
        Self {
            bytes,
            neighbours,
            at: [0; 2],
            phase: 0,
            left: swaps,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn anywhere(&mut self) -> u64 {
        self.rng.gen_range(0..self.bytes / 64) * 64
    }
}

impl Program for RandomSwaps {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let looks = 2 * self.neighbours;
        let phase = self.phase;
        self.phase += 1;
        match phase {
            0 | 1 => {
                let at = self.anywhere();
                self.at[phase as usize] = at;
                load(Self::WORK, at)
            }
            p if p < 2 + looks => Step::Access(Access {
                work: Self::WORK,
                at: self.anywhere(),
                write: false,
                dependent: true,
            }),
            p if p < 4 + looks => {
                if p == 3 + looks {
                    self.phase = 0;
                    self.left -= 1;
                }
                store(8, self.at[(p - 2 - looks) as usize])
            }
            _ => unreachable!("phases end with the second store"),
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
