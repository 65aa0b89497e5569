//! A program like streamcluster.

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::step::{load, Access, Program, Step};

/// Like the inner loop of PARSEC's streamcluster (`pgain`): for every candidate
/// centre, which stays in the cache, it takes point by point. A point says where
/// its coordinates lie; before the search begins the points are shuffled
/// (`shuffle`), so their coordinates are read in no order, 128 floats of each as
/// the large inputs have. It writes sums that stay in the cache, and of a point
/// only where a new centre pays.
///
/// More instructions than a window lie between two lines, so that it keeps more
/// than one line on its way where the machine has a prefetcher only.
pub struct StreamCluster {
    /// The points as they lie after the shuffle: where each has its coordinates.
    order: Vec<u32>,
    line: u64,
    point: usize,
    /// Bytes of the point's coordinates that have been read; `None`: not even
    /// where they lie.
    read: Option<u64>,
    left: u64,
}

impl StreamCluster {
    /// Instructions per line: 16 coordinates of 4 bytes, each subtracted,
    /// squared and added.
    const WORK: u32 = 80;
    /// Bytes of a point's coordinates, 128 floats.
    const COORDINATES: u64 = 512;
    /// Bytes of a point: weight, pointer, assignment, cost.
    const POINT: u64 = 32;

    /// `lines` lines of coordinates read, of as many points as `bytes` hold,
    /// shuffled by `seed`.
    pub fn new(bytes: u64, line: u64, lines: u64, seed: u64) -> Self {
        let points = (bytes / (Self::COORDINATES + Self::POINT)).max(1);
        let mut order: Vec<u32> = (0..points as u32).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Self {
            order,
            line,
            point: 0,
            read: None,
            left: lines,
        }
    }

    fn coordinates(&self) -> u64 {
        self.order.len() as u64 * Self::COORDINATES
    }
}

impl Program for StreamCluster {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let Some(read) = self.read else {
            self.read = Some(0);
            return load(4, self.coordinates() + self.point as u64 * Self::POINT);
        };
        self.left -= 1;
        let at = u64::from(self.order[self.point]) * Self::COORDINATES + read;
        self.read = Some(read + self.line).filter(|&read| read < Self::COORDINATES);
        if self.read.is_none() {
            self.point = (self.point + 1) % self.order.len();
        }
        Step::Access(Access {
            work: Self::WORK,
            at,
            write: false,
            // On the pointer.
            dependent: read == 0,
        })
    }

    fn bytes(&self) -> u64 {
        self.coordinates() + self.order.len() as u64 * Self::POINT
    }
}
