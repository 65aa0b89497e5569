//! A program like a video encoder.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::step::{load, store, Program, Step};

/// Like a video encoder: for each 16x16 block of a frame, reads it, searches
/// around the same place of the reference frame, and writes the result.
pub struct BlockWalk {
    width: u64,
    height: u64,
    block: u64,
    row: u64,
    phase: u8,
    candidate: u32,
    origin: (i64, i64),
    left: u64,
    rng: ChaCha8Rng,
}

impl BlockWalk {
    /// Rows of candidate blocks looked at, per 16x16 block.
    const CANDIDATES: u32 = 8;

    /// `blocks` blocks of frames of `width` x `height` bytes.
    pub fn new(width: u64, height: u64, blocks: u64, seed: u64) -> Self {
        Self {
            width,
            height,
            block: 0,
            row: 0,
            phase: 0,
            candidate: 0,
            origin: (0, 0),
            left: blocks,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn frame(&self) -> u64 {
        (self.width * self.height).next_multiple_of(4096)
    }

    fn pixel(&self, frame: u64, dx: i64, dy: i64) -> u64 {
        let per_row = self.width / 16;
        let x = (self.block % per_row * 16) as i64 + dx;
        let y = (self.block / per_row % (self.height / 16) * 16 + self.row) as i64 + dy;
        let x = x.clamp(0, self.width as i64 - 16) as u64;
        let y = y.clamp(0, self.height as i64 - 1) as u64;
        frame * self.frame() + y * self.width + x
    }
}

impl Program for BlockWalk {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let step = match self.phase {
            0 => load(20, self.pixel(0, 0, 0)),
            1 => load(40, self.pixel(1, self.origin.0, self.origin.1)),
            _ => store(20, self.pixel(2, 0, 0)),
        };
        self.row += 1;
        if self.row == 16 {
            self.row = 0;
            self.origin = (self.rng.gen_range(-24..=24), self.rng.gen_range(-24..=24));
            match self.phase {
                1 if self.candidate + 1 < Self::CANDIDATES => self.candidate += 1,
                2 => {
                    self.phase = 0;
                    self.candidate = 0;
                    self.block += 1;
                    self.left -= 1;
                }
                _ => self.phase += 1,
            }
        }
        step
    }

    fn bytes(&self) -> u64 {
        3 * self.frame()
    }
}
