//! Set-associative caches: write-back, write-allocate, least recently used.
//!
//! A cache holds line numbers, not data. Sets are indexed by the physical
//! address, so page colours partition a cache here as they do in hardware,
//! unless its index is hashed.

/// Shape of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sets.
    pub sets: u64,
    /// Lines per set.
    pub ways: usize,
    /// The index mixes upper address bits, as sliced last levels do.
    pub hashed: bool,
}

/// One cache. Each set lists its lines, the last used first; the lowest bit
/// of an entry says "dirty".
#[derive(Clone, Debug)]
pub struct Cache {
    shape: Shape,
    lines: Vec<u64>,
}

/// An entry without a line.
const EMPTY: u64 = u64::MAX - 1;

/// A line that had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The line.
    pub line: u64,
    /// It was written to.
    pub dirty: bool,
}

impl Cache {
    /// An empty cache.
    pub fn new(shape: Shape) -> Self {
        Self {
            lines: vec![EMPTY; shape.sets as usize * shape.ways],
            shape,
        }
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        let Shape { sets, ways, hashed } = self.shape;
        let index = if hashed {
            line ^ (line / sets) ^ (line / sets / sets)
        } else {
            line
        };
        let first = (index % sets) as usize * ways;
        &mut self.lines[first..first + ways]
    }

    /// Uses `line` if it is here; `write` makes it dirty.
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|&l| l >> 1 == line) else {
            return false;
        };
        set[..=at].rotate_right(1);
        set[0] |= u64::from(write);
        true
    }

    /// Puts `line` in (or uses it); returns the line that had to go.
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        if self.touch(line, dirty) {
            return None;
        }
        let set = self.set(line);
        set.rotate_right(1);
        let old = std::mem::replace(&mut set[0], line << 1 | u64::from(dirty));
        (old != EMPTY).then_some(Victim {
            line: old >> 1,
            dirty: old & 1 == 1,
        })
    }
}
