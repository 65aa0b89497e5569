//! Kernels that stride through memory: alternating, and front to back.

use super::step::{load, store, Program, Step};

/// Writes at M, M+1C, M-1C, M+2C, ...: strides that alternate and grow, one
/// access per line, from the middle of the memory (CAMC 4.2, TintMalloc V.A).
pub struct AlternatingStride {
    bytes: u64,
    line: u64,
    left: u64,
    k: u64,
    up: bool,
}

impl AlternatingStride {
    /// `accesses` writes over `bytes`; starts over from the middle at the end.
    pub fn new(bytes: u64, line: u64, accesses: u64) -> Self {
        Self {
            bytes,
            line,
            left: accesses,
            k: 0,
            up: true,
        }
    }
}

impl Program for AlternatingStride {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let middle = self.bytes / 2 / self.line * self.line;
        let offset = self.k * self.line;
        let at = if self.up {
            middle + offset
        } else {
            middle - offset
        };
        // After +kC comes -kC, then +(k+1)C; M itself once.
        if self.up && self.k > 0 {
            self.up = false;
        } else {
            self.up = true;
            self.k += 1;
            if (self.k + 1) * self.line > self.bytes / 2 {
                self.k = 0;
            }
        }
        store(4, at)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// "We use large strides to defeat hardware prefetching" (CAMC 4.2).
    fn defeats_prefetch(&self) -> bool {
        true
    }
}

/// One access per line, front to back, again and again (IsolBench's
/// `bandwidth`).
pub struct Bandwidth {
    bytes: u64,
    line: u64,
    write: bool,
    at: u64,
    left: u64,
}

impl Bandwidth {
    /// `accesses` loads (or stores) over `bytes`.
    pub fn new(bytes: u64, line: u64, write: bool, accesses: u64) -> Self {
        Self {
            bytes,
            line,
            write,
            at: 0,
            left: accesses,
        }
    }
}

impl Program for Bandwidth {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let at = self.at;
        self.at = (at + self.line) % (self.bytes / self.line * self.line);
        if self.write {
            store(3, at)
        } else {
            load(3, at)
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
