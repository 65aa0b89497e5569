//! STREAM's triad.

use super::step::{load, malloced, store, Program, Step};

/// STREAM's triad, `a[i] = b[i] + s * c[i]`, by lines of 8-byte elements.
pub struct Triad {
    array: u64,
    line: u64,
    at: u64,
    phase: u8,
    left: u64,
}

impl Triad {
    /// Three arrays of `array` bytes each, `lines` lines of the result.
    pub fn new(array: u64, line: u64, lines: u64) -> Self {
        Self {
            array,
            line,
            at: 0,
            phase: 0,
            left: lines,
        }
    }
}

impl Program for Triad {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let per_line = (self.line / 8) as u32;
        let step = match self.phase {
            0 => load(per_line, malloced(self.array) + self.at),
            1 => load(per_line, 2 * malloced(self.array) + self.at),
            _ => store(2 * per_line, self.at),
        };
        self.phase = (self.phase + 1) % 3;
        if self.phase == 0 {
            self.left -= 1;
            self.at = (self.at + self.line) % (self.array / self.line * self.line);
        }
        step
    }

    fn bytes(&self) -> u64 {
        3 * malloced(self.array)
    }
}
