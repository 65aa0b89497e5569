//! A program like streamcluster.

use super::step::{load, store, Program, Step};

/// Like streamcluster: reads all points in order for every candidate centre,
/// which stays in the cache; writes each point's assignment now and then. More
/// instructions than a window lie between two lines, so that it streams where
/// the machine has a prefetcher, as the real one does.
pub struct StreamCluster {
    points: u64,
    line: u64,
    at: u64,
    wrote: bool,
    left: u64,
}

impl StreamCluster {
    /// Instructions per line: 16 coordinates of 4 bytes, each subtracted,
    /// squared and added.
    const WORK: u32 = 80;

    /// `lines` lines of points read, over `points` bytes.
    pub fn new(points: u64, line: u64, lines: u64) -> Self {
        Self {
            points,
            line,
            at: 0,
            wrote: true,
            left: lines,
        }
    }
}

impl Program for StreamCluster {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let index = self.at / self.line;
        if !self.wrote && index % 8 == 0 {
            self.wrote = true;
            return store(4, self.points + index * 8);
        }
        self.left -= 1;
        let at = self.at;
        self.at = (at + self.line) % (self.points / self.line * self.line);
        self.wrote = false;
        load(Self::WORK, at)
    }

    fn bytes(&self) -> u64 {
        self.points + self.points / self.line * 8
    }
}
