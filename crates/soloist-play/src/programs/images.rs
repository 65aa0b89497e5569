//! MemGuard's `fps`: processes images in sequence, as quickly as it can.

use super::step::{Access, Program, Step};

/// Instructions that a pixel of four bytes takes.
const PER_PIXEL: u32 = 4;

/// Reads images line by line and writes them in place, again and again.
pub struct Images {
    bytes: u64,
    line: u64,
    at: u64,
    write: bool,
    left: u64,
}

impl Images {
    /// `lines` lines of images that take `bytes` together.
    pub fn new(bytes: u64, line: u64, lines: u64) -> Self {
        Self {
            bytes: (bytes / line).max(1) * line,
            line,
            at: 0,
            write: false,
            left: lines,
        }
    }
}

impl Program for Images {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let pixels = (self.line / 4) as u32;
        let (at, write) = (self.at, self.write);
        if write {
            self.at = (at + self.line) % self.bytes;
            self.left -= 1;
        }
        self.write = !write;
        // Half of a line's work comes before it is written, half after.
        Step::Access(Access {
            work: pixels * PER_PIXEL / 2,
            at,
            write,
            dependent: false,
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_then_written() {
        let mut task = Images::new(256, 64, 6);
        let mut seen = Vec::new();
        while let Step::Access(a) = task.step() {
            seen.push((a.at, a.write));
        }
        assert_eq!(seen.len(), 12);
        assert_eq!(seen[..4], [(0, false), (0, true), (64, false), (64, true)]);
        assert_eq!(seen[8], (0, false), "starts over");
    }
}
