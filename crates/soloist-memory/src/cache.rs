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

/// One cache. Each set lists its lines, the last used first. An entry is the
/// line with a tag of the user's above it and "dirty" below it.
#[derive(Clone, Debug)]
pub struct Cache {
    shape: Shape,
    /// `sets` is a power of two: the index needs no division.
    mask: Option<u64>,
    lines: Vec<u64>,
}

/// Lines have 47 bits, tags 16.
const TAG: u32 = 48;
const LINE: u64 = (1 << TAG) - 2;
/// An entry without a line.
const EMPTY: u64 = LINE;

/// A line that had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The line.
    pub line: u64,
    /// It was written to.
    pub dirty: bool,
    /// What it was tagged with.
    pub tag: u16,
}

impl Cache {
    /// An empty cache.
    pub fn new(shape: Shape) -> Self {
        Self {
            lines: vec![EMPTY; shape.sets as usize * shape.ways],
            mask: shape.sets.is_power_of_two().then(|| shape.sets - 1),
            shape,
        }
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [u64] {
        let Shape { sets, ways, hashed } = self.shape;
        let index = match (self.mask, hashed) {
            (Some(mask), false) => line & mask,
            (Some(mask), true) => {
                let bits = mask.count_ones();
                (line ^ line >> bits ^ line >> (2 * bits)) & mask
            }
            (None, false) => line % sets,
            (None, true) => (line ^ (line / sets) ^ (line / sets / sets)) % sets,
        };
        let first = index as usize * ways;
        &mut self.lines[first..first + ways]
    }

    /// Is `line` here?
    pub fn holds(&mut self, line: u64) -> bool {
        self.set(line).iter().any(|&l| l & LINE == line << 1)
    }

    /// Uses `line` if it is here; `write` makes it dirty.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|&l| l & LINE == line << 1) else {
            return false;
        };
        let entry = set[at];
        set.copy_within(..at, 1);
        set[0] = entry | u64::from(write);
        true
    }

    /// Puts `line` in (or uses it); returns the line that had to go.
    #[inline]
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        self.insert_tagged(line, dirty, 0)
    }

    /// The same, the line being tagged when it comes in and when it is
    /// written to.
    #[inline]
    pub fn insert_tagged(&mut self, line: u64, dirty: bool, tag: u16) -> Option<Victim> {
        let new = u64::from(tag) << TAG | line << 1 | u64::from(dirty);
        if self.touch(line, dirty) {
            if dirty {
                self.set(line)[0] = new;
            }
            return None;
        }
        let ways = self.shape.ways;
        let set = self.set(line);
        let old = set[ways - 1];
        set.copy_within(..ways - 1, 1);
        set[0] = new;
        (old & LINE != EMPTY).then_some(Victim {
            line: (old & LINE) >> 1,
            dirty: old & 1 == 1,
            tag: (old >> TAG) as u16,
        })
    }

    /// As [`Self::insert_tagged`], no tag having more than `ways` lines in a
    /// set: the least recently used of its own goes where it has as many.
    pub fn insert_within(
        &mut self,
        line: u64,
        dirty: bool,
        tag: u16,
        ways: usize,
    ) -> Option<Victim> {
        let set = self.set(line);
        let own = |l: &u64| l & LINE != EMPTY && (l >> TAG) as u16 == tag;
        let mine = set.iter().filter(|l| own(l)).count();
        let goes = if mine >= ways {
            set.iter().rposition(own)
        } else {
            set.iter().rposition(|&l| l & LINE == EMPTY)
        };
        let here = set.iter().any(|&l| l & LINE == line << 1);
        if let Some(at) = goes.filter(|_| !here) {
            // What goes is the last one, then.
            set[at..].rotate_left(1);
        }
        self.insert_tagged(line, dirty, tag)
    }

    /// Tags `line` if it is here, without using it.
    pub fn tag(&mut self, line: u64, tag: u16) {
        let set = self.set(line);
        if let Some(entry) = set.iter_mut().find(|l| **l & LINE == line << 1) {
            *entry = *entry & (LINE | 1) | u64::from(tag) << TAG;
        }
    }

    /// Tags of the lines in the set of `line`.
    pub fn tags(&mut self, line: u64) -> impl Iterator<Item = u16> + '_ {
        let lines = self.set(line).iter().filter(|&&l| l & LINE != EMPTY);
        lines.map(|l| (l >> TAG) as u16)
    }

    /// Tag of `line` if it is here.
    pub fn tag_of(&mut self, line: u64) -> Option<u16> {
        let set = self.set(line);
        let entry = set.iter().find(|&&l| l & LINE == line << 1)?;
        Some((entry >> TAG) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_keeps_to_its_ways() {
        let mut cache = Cache::new(Shape {
            sets: 1,
            ways: 4,
            hashed: false,
        });
        for line in [10, 11] {
            cache.insert_within(line, false, 1, 2);
        }
        for line in 20..30 {
            cache.insert_within(line, false, 2, 2);
        }
        let held = [10, 11, 27, 28, 29].map(|line| cache.holds(line));
        assert_eq!(held, [true, true, false, true, true]);
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        for sets in [4, 6] {
            let mut cache = Cache::new(Shape {
                sets,
                ways: 2,
                hashed: false,
            });
            let nth = |i: u64| 3 + i * sets;
            assert_eq!(cache.insert_tagged(nth(0), true, 7), None);
            assert_eq!(cache.insert(nth(1), false), None);
            assert!(cache.touch(nth(0), false) && cache.holds(nth(1)));
            let gone = |i, dirty, tag| {
                Some(Victim {
                    line: nth(i),
                    dirty,
                    tag,
                })
            };
            assert_eq!(cache.insert(nth(2), false), gone(1, false, 0));
            cache.tag(nth(2), 9);
            assert_eq!(cache.tag_of(nth(2)), Some(9));
            assert_eq!(cache.insert(nth(3), false), gone(0, true, 7));
            assert_eq!(cache.insert(nth(4), false), gone(2, false, 9));
        }
    }
}
