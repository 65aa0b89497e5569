//! Matrix multiplication.

use super::step::{load, malloced, store, Program, Step};

/// C = A * B over n x n doubles, row by column; `block` 0 is the naive loop.
pub struct MatMult {
    n: u64,
    line: u64,
    block: u64,
    i: u64,
    j: u64,
    k: u64,
    phase: u8,
    /// First column and depth of the current block.
    corner: (u64, u64),
    left: u64,
}

impl MatMult {
    /// `inner` iterations of the innermost loop.
    pub fn new(n: u64, line: u64, block: u64, inner: u64) -> Self {
        Self {
            n,
            line,
            block,
            i: 0,
            j: 0,
            k: 0,
            phase: 0,
            corner: (0, 0),
            left: inner,
        }
    }

    fn matrix(&self) -> u64 {
        malloced(self.n * self.n * 8)
    }

    /// The next (i, j, k) of the naive or of the blocked order.
    fn advance(&mut self) {
        let (j0, k0) = self.corner;
        let span = if self.block == 0 { self.n } else { self.block };
        self.k += 1;
        if self.k < (k0 + span).min(self.n) {
            return;
        }
        self.k = k0;
        self.j += 1;
        if self.j < (j0 + span).min(self.n) {
            return;
        }
        self.j = j0;
        self.i += 1;
        if self.i < self.n {
            return;
        }
        self.i = 0;
        self.corner = match (j0 + span, k0 + span) {
            (j, _) if j < self.n => (j, k0),
            (_, k) if k < self.n => (0, k),
            _ => (0, 0),
        };
        (self.j, self.k) = self.corner;
    }
}

impl Program for MatMult {
    fn step(&mut self) -> Step {
        loop {
            if self.left == 0 {
                return Step::Done;
            }
            let per_line = self.line / 8;
            let step = match self.phase {
                0 if self.k % per_line == 0 => Some(load(2, (self.i * self.n + self.k) * 8)),
                1 => Some(load(4, self.matrix() + (self.k * self.n + self.j) * 8)),
                2 if self.k + 1 == self.n => {
                    Some(store(2, 2 * self.matrix() + (self.i * self.n + self.j) * 8))
                }
                _ => None,
            };
            self.phase += 1;
            if self.phase == 3 {
                self.phase = 0;
                self.left -= 1;
                self.advance();
            }
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn bytes(&self) -> u64 {
        3 * self.matrix()
    }
}
