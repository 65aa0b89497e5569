//! A processor's private caches: what they hold does not leave them.
//!
//! For what looks at a program before the model does: the recorder, and traces that
//! are taken in. The caches are used as the model's cores use them.

use super::{Cache, Shape};

/// Private caches of one processor.
pub struct Filter {
    data: Cache,
    code: Option<Cache>,
    outer: Vec<Cache>,
    /// The line used last and whether it is dirty: `line << 1 | dirty`.
    last: u64,
    last_code: u64,
    /// Dirty lines that were pushed out.
    victims: Vec<u64>,
}

impl Filter {
    /// Empty caches by name, sets and ways; `None` without an `l1d`.
    pub fn new<'a>(caches: impl Iterator<Item = (&'a str, u64, usize)> + Clone) -> Option<Self> {
        let cache = |(_, sets, ways): (&str, u64, usize)| {
            Cache::new(Shape {
                sets,
                ways,
                hashed: false,
            })
        };
        let named = |name: &str| caches.clone().find(|c| c.0 == name);
        let outer = caches.clone().filter(|c| !c.0.starts_with("l1"));
        Some(Self {
            data: cache(named("l1d")?),
            code: named("l1i").map(cache),
            outer: outer.map(cache).collect(),
            last: u64::MAX,
            last_code: u64::MAX,
            victims: Vec::new(),
        })
    }

    /// Dirty lines that were pushed out since they were last asked for. What hits a
    /// cache behind the first pushes some out, too.
    #[inline]
    pub fn pushed_out(&mut self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.victims.drain(..)
    }

    /// A load or store of `line`: does it leave the caches?
    #[inline]
    pub fn data(&mut self, line: u64, write: bool) -> bool {
        let same = self.last >> 1 == line;
        if same && (!write || self.last & 1 == 1) {
            return false;
        }
        self.last = line << 1 | u64::from(write) | if same { self.last & 1 } else { 0 };
        if self.data.touch(line, write) {
            return false;
        }
        let missed = self.outer_misses(line);
        if let Some(victim) = self.data.insert(line, write).filter(|v| v.dirty) {
            self.push_out(0, victim.line);
        }
        missed
    }

    /// Instructions are fetched from `line`: does that leave the caches?
    #[inline]
    pub fn fetch(&mut self, line: u64) -> bool {
        if self.last_code == line {
            return false;
        }
        self.last_code = line;
        let Some(code) = &mut self.code else {
            return false;
        };
        if code.touch(line, false) {
            return false;
        }
        code.insert(line, false);
        self.outer_misses(line)
    }

    /// Looks into the caches behind the first, and fills those that lack it.
    fn outer_misses(&mut self, line: u64) -> bool {
        let hit = self.outer.iter_mut().position(|c| c.touch(line, false));
        for i in (0..hit.unwrap_or(self.outer.len())).rev() {
            if let Some(victim) = self.outer[i].insert(line, false).filter(|v| v.dirty) {
                self.push_out(i + 1, victim.line);
            }
        }
        hit.is_none()
    }

    /// A dirty line goes to cache `i` of those behind the first, or out.
    fn push_out(&mut self, mut i: usize, mut line: u64) {
        while i < self.outer.len() {
            match self.outer[i].insert(line, true) {
                Some(victim) if victim.dirty => line = victim.line,
                _ => return,
            }
            i += 1;
        }
        self.victims.push(line);
    }
}
