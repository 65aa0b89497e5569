//! Set-associative caches: write-back, write-allocate, least recently used.
//!
//! A cache holds line numbers, not data. Sets are indexed by the physical
//! address, so page colours partition a cache here as they do in hardware,
//! unless its index is hashed.

mod filter;
mod last_level;
mod levels;

pub use filter::Filter;
pub(crate) use last_level::LastLevel;
pub(crate) use levels::Levels;

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

impl Shape {
    /// Of a last level that holds nothing.
    pub const NONE: Self = Self {
        sets: 0,
        ways: 0,
        hashed: false,
    };

    /// Whether a cache of this shape holds nothing.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.sets == 0 || self.ways == 0
    }
}

/// One cache. Each set lists its lines, the last used first: the lower halves
/// of their numbers, which a search compares many at a time, then as many upper
/// halves, each with a tag of the user's above it and "dirty" below.
#[derive(Clone, Debug)]
pub struct Cache {
    ways: usize,
    index: Index,
    sets: Vec<u32>,
    /// Where the first set begins: at a line of the host's memory, so that a set touches as few
    /// as can be.
    first: usize,
}

/// Bytes of a line of the host's memory.
const HOST_LINE: usize = 64;

/// How a line's number becomes that of its set: without a division where there
/// is a power of two of sets.
#[derive(Clone, Copy, Debug)]
enum Index {
    Mask(u64),
    /// And the bits of the mask.
    HashMask(u64, u32),
    Modulo(u64),
    HashModulo(u64),
}

impl Index {
    fn of(shape: Shape) -> Self {
        let sets = shape.sets;
        match (sets.is_power_of_two(), shape.hashed) {
            (true, false) => Self::Mask(sets - 1),
            (true, true) => Self::HashMask(sets - 1, sets.trailing_zeros()),
            (false, false) => Self::Modulo(sets),
            (false, true) => Self::HashModulo(sets),
        }
    }
}

/// Lines have 47 bits, tags 16.
const TAG: u32 = 16;
const HIGH: u32 = (1 << TAG) - 2;

/// A line of a set: the lower half of its number, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    low: u32,
    rest: u32,
}

impl Entry {
    /// None.
    const EMPTY: Self = Self {
        low: u32::MAX,
        rest: HIGH,
    };

    #[inline]
    fn new(line: u64, dirty: bool, tag: u16) -> Self {
        let high = (line >> 32) as u32;
        Self {
            low: line as u32,
            rest: u32::from(tag) << TAG | high << 1 | u32::from(dirty),
        }
    }

    #[inline]
    fn tag(self) -> u16 {
        (self.rest >> TAG) as u16
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.low == Self::EMPTY.low && self.rest & HIGH == HIGH
    }

    #[inline]
    fn victim(self) -> Option<Victim> {
        (!self.is_empty()).then(|| Victim {
            line: u64::from(self.rest & HIGH) << 31 | u64::from(self.low),
            dirty: self.rest & 1 == 1,
            tag: self.tag(),
        })
    }
}

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

/// Where `low` first is.
#[inline]
fn position(lows: &[u32], low: u32) -> Option<usize> {
    let groups = lows.chunks_exact(8);
    let begun = lows.len() - groups.remainder().len();
    for (group, first) in groups.zip((0..).step_by(8)) {
        // All eight without a branch.
        if group.iter().fold(false, |any, &one| any | (one == low)) {
            return group
                .iter()
                .position(|&one| one == low)
                .map(|at| first + at);
        }
    }
    let at = lows[begun..].iter().position(|&one| one == low);
    at.map(|at| begun + at)
}

/// The set's entry at `at` moves to its front.
#[inline]
fn to_front(half: &mut [u32], at: usize) {
    let used = half[at];
    if at == 1 {
        half[1] = half[0];
    } else {
        half.copy_within(..at, 1);
    }
    half[0] = used;
}

/// A set: lower halves, and the rest.
struct Set<'a> {
    lows: &'a mut [u32],
    rests: &'a mut [u32],
}

impl Set<'_> {
    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        let Entry { low, rest } = Entry::new(line, false, 0);
        let mut at = position(self.lows, low)?;
        while self.rests[at] & HIGH != rest {
            at += 1 + position(&self.lows[at + 1..], low)?;
        }
        Some(at)
    }

    #[inline]
    fn get(&self, at: usize) -> Entry {
        Entry {
            low: self.lows[at],
            rest: self.rests[at],
        }
    }

    /// Moves the entry at `at` to the front.
    #[inline]
    fn used(&mut self, at: usize) {
        if at > 0 {
            to_front(self.lows, at);
            to_front(self.rests, at);
        }
    }
}

impl Cache {
    /// An empty cache.
    pub fn new(shape: Shape) -> Self {
        let (sets, ways) = (shape.sets as usize, shape.ways);
        let Entry { low, rest } = Entry::EMPTY;
        let words = 2 * ways * sets;
        let mut all: Vec<u32> = Vec::with_capacity(words + HOST_LINE / size_of::<u32>());
        let first = all
            .as_ptr()
            .align_offset(HOST_LINE)
            .min(HOST_LINE / size_of::<u32>());
        all.resize(first, 0);
        for _ in 0..sets {
            all.resize(all.len() + ways, low);
            all.resize(all.len() + ways, rest);
        }
        Self {
            ways,
            index: Index::of(shape),
            sets: all,
            first,
        }
    }

    /// The line's set.
    #[inline]
    fn set(&mut self, line: u64) -> Set<'_> {
        let index = match self.index {
            Index::Mask(mask) => line & mask,
            Index::HashMask(mask, bits) => (line ^ line >> bits ^ line >> (2 * bits)) & mask,
            Index::Modulo(sets) => line % sets,
            Index::HashModulo(sets) => (line ^ (line / sets) ^ (line / sets / sets)) % sets,
        };
        let first = self.first + index as usize * 2 * self.ways;
        let set = &mut self.sets[first..first + 2 * self.ways];
        let (lows, rests) = set.split_at_mut(self.ways);
        Set { lows, rests }
    }

    /// Is `line` here?
    #[inline]
    pub fn holds(&mut self, line: u64) -> bool {
        self.set(line).find(line).is_some()
    }

    /// Uses `line` if it is here; `write` makes it dirty.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let mut set = self.set(line);
        let Some(at) = set.find(line) else {
            return false;
        };
        set.used(at);
        set.rests[0] |= u32::from(write);
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
        let last = self.ways - 1;
        let new = Entry::new(line, dirty, tag);
        let mut set = self.set(line);
        if let Some(at) = set.find(line) {
            set.used(at);
            if dirty {
                set.rests[0] = new.rest;
            }
            return None;
        }
        let old = set.get(last);
        set.used(last);
        (set.lows[0], set.rests[0]) = (new.low, new.rest);
        old.victim()
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
        let mut all = (0..self.ways).rev();
        let set = self.set(line);
        let own = |&at: &usize| !set.get(at).is_empty() && set.get(at).tag() == tag;
        let goes = if all.clone().filter(own).count() >= ways {
            all.find(own)
        } else {
            all.find(|&at| set.get(at).is_empty())
        };
        if let Some(at) = goes.filter(|_| set.find(line).is_none()) {
            // Then the last one goes.
            set.lows[at..].rotate_left(1);
            set.rests[at..].rotate_left(1);
        }
        self.insert_tagged(line, dirty, tag)
    }

    /// Tags `line` if it is here, without using it.
    pub fn tag(&mut self, line: u64, tag: u16) {
        let set = self.set(line);
        if let Some(at) = set.find(line) {
            set.rests[at] = set.rests[at] & (HIGH | 1) | u32::from(tag) << TAG;
        }
    }

    /// Tags of the lines in the set of `line`.
    pub fn tags(&mut self, line: u64) -> impl Iterator<Item = u16> + '_ {
        let set = self.set(line);
        let all = (0..set.lows.len()).map(move |at| set.get(at));
        all.filter(|entry| !entry.is_empty()).map(Entry::tag)
    }

    /// Tag of `line` if it is here.
    pub fn tag_of(&mut self, line: u64) -> Option<u16> {
        let set = self.set(line);
        set.find(line).map(|at| set.get(at).tag())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host has each set in as few lines as can be.
    #[test]
    fn sets_begin_at_a_line_of_the_host() {
        for (sets, ways) in [(1024, 16), (2048, 48), (3, 2)] {
            let cache = Cache::new(Shape {
                sets,
                ways,
                hashed: false,
            });
            let sets = &cache.sets[cache.first..];
            assert_eq!(sets.as_ptr() as usize % HOST_LINE, 0);
            assert_eq!(sets.len() % (2 * ways), 0);
        }
    }

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

    /// Lines whose numbers share the lower half are others.
    #[test]
    fn lines_far_apart_are_told_apart() {
        let mut cache = Cache::new(Shape {
            sets: 1,
            ways: 12,
            hashed: false,
        });
        let line = |i: u64| 5 | i << 32;
        for i in 0..12 {
            assert_eq!(cache.insert_tagged(line(i), i % 2 == 1, i as u16), None);
        }
        assert!(cache.touch(line(0), true) && !cache.holds(line(12)));
        assert_eq!(cache.tag_of(line(11)), Some(11));
        let second = Victim {
            line: line(1),
            dirty: true,
            tag: 1,
        };
        assert_eq!(cache.insert(line(0x7ffe), false), Some(second));
        assert!(cache.holds(line(0)) && !cache.holds(line(1)));
    }
}
