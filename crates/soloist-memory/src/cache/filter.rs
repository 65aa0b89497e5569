//! A processor's private caches: what they hold does not leave them.
//!
//! For what looks at a program before the model does: the recorder, and traces that
//! are taken in. The caches are used as the model's cores use them.

use super::{Cache, Levels, Shape, Victim};

/// Private caches of one processor.
pub struct Filter {
    /// The first is of data alone.
    levels: Levels,
    code: Option<Cache>,
    /// The line used last and whether it is dirty: `line << 1 | dirty`.
    last: u64,
    last_code: u64,
    /// Dirty lines that were pushed out.
    victims: Vec<Victim>,
}

impl Filter {
    /// Empty caches by name, sets and ways; `None` without an `l1d`.
    pub fn new<'a>(caches: impl Iterator<Item = (&'a str, u64, usize)> + Clone) -> Option<Self> {
        let shape = |(_, sets, ways): (&str, u64, usize)| Shape {
            sets,
            ways,
            hashed: false,
        };
        let named = |name: &str| caches.clone().find(|c| c.0 == name).map(shape);
        let outer = caches.clone().filter(|c| !c.0.starts_with("l1")).map(shape);
        Some(Self {
            levels: Levels::new(std::iter::once(named("l1d")?).chain(outer)),
            code: named("l1i").map(Cache::new),
            last: u64::MAX,
            last_code: u64::MAX,
            victims: Vec::new(),
        })
    }

    /// Dirty lines that were pushed out since they were last asked for. What hits a
    /// cache behind the first pushes some out, too.
    #[inline]
    pub fn pushed_out(&mut self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.victims.drain(..).map(|victim| victim.line)
    }

    /// A load or store of `line`: does it leave the caches?
    #[inline]
    pub fn data(&mut self, line: u64, write: bool) -> bool {
        let same = self.last >> 1 == line;
        if same && (!write || self.last & 1 == 1) {
            return false;
        }
        self.last = line << 1 | u64::from(write) | if same { self.last & 1 } else { 0 };
        self.leaves(0, line, write)
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
        self.leaves(1, line, false)
    }

    /// Looks into the levels from `first` on, and fills those that lack the line.
    #[inline]
    fn leaves(&mut self, first: usize, line: u64, write: bool) -> bool {
        let (levels, gone) = (&mut self.levels, &mut self.victims);
        let misses = levels.look_up(first, line, write, gone).is_none();
        if misses {
            levels.fill(first..levels.len(), line, write, gone);
        }
        misses
    }
}
