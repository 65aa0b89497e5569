//! No dirty line is lost on its way out of private caches: not one that leaves the
//! last of them because another moved in from there.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use std::collections::HashSet;

use soloist_memory::cache::{Cache, Filter, Shape};
use soloist_memory::core::{Access, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

/// What an access makes leave: itself, and dirty lines.
#[derive(Debug, Default, PartialEq)]
struct Left {
    missed: bool,
    dirty: Vec<u64>,
}

/// Caches as a textbook has them: lists of lines, the last used at the end; the
/// last cache is that of instructions, before the second one.
struct Reference {
    shapes: Vec<(u64, usize)>,
    sets: Vec<Vec<Vec<(u64, bool)>>>,
}

impl Reference {
    fn new(levels: &[(u64, usize)]) -> Self {
        let shapes = [levels, &levels[..1]].concat();
        let empty = |&(sets, _): &(u64, usize)| vec![Vec::new(); sets as usize];
        Self {
            sets: shapes.iter().map(empty).collect(),
            shapes,
        }
    }

    /// Takes `line` out of cache `at`: whether it was dirty.
    fn take(&mut self, at: usize, line: u64) -> Option<bool> {
        let set = &mut self.sets[at][(line % self.shapes[at].0) as usize];
        let at = set.iter().position(|l| l.0 == line)?;
        Some(set.remove(at).1)
    }

    /// Puts `line` into the first of the caches on its way, and what must go into
    /// the next.
    fn put(&mut self, way: &[usize], line: u64, dirty: bool, left: &mut Left) {
        let Some((&at, rest)) = way.split_first() else {
            left.dirty.push(line);
            return;
        };
        let was = self.take(at, line).unwrap_or(false);
        let (sets, ways) = self.shapes[at];
        let set = &mut self.sets[at][(line % sets) as usize];
        set.push((line, dirty || was));
        if set.len() > ways {
            let (line, dirty) = set.remove(0);
            if dirty {
                self.put(rest, line, true, left);
            }
        }
    }

    fn access(&mut self, Use { line, write, fetch }: Use) -> Left {
        let mut way: Vec<usize> = (0..self.shapes.len() - 1).collect();
        if fetch {
            way[0] = self.shapes.len() - 1;
        }
        let mut left = Left::default();
        let mut level = 0;
        while level < way.len() {
            if let Some(dirty) = self.take(way[level], line) {
                self.put(&way[level..], line, dirty, &mut left);
                break;
            }
            level += 1;
        }
        left.missed = level == way.len();
        for i in (1..level).rev() {
            self.put(&way[i..], line, false, &mut left);
        }
        self.put(&way, line, write, &mut left);
        left
    }

    fn dirty(&self) -> impl Iterator<Item = u64> + '_ {
        let lines = self.sets.iter().flatten().flatten();
        lines.filter(|l| l.1).map(|l| l.0)
    }
}

/// One access.
#[derive(Clone, Copy)]
struct Use {
    line: u64,
    write: bool,
    fetch: bool,
}

/// Lines, half of them of a few hot ones; one of `fetches` is fetched.
fn uses(count: usize, lines: u64, fetches: u64) -> Vec<Use> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut one = || {
        let range = if next() % 2 == 0 { lines } else { lines / 32 };
        let (line, fetch) = (next() % range, next() % fetches == 0);
        let write = !fetch && next() % 3 == 0;
        Use { line, write, fetch }
    };
    (0..count).map(|_| one()).collect()
}

/// Sets and ways of `l1d`, and of those behind it.
const CACHES: [&[(u64, usize)]; 3] = [&[(4, 2)], &[(4, 2), (8, 4)], &[(4, 2), (4, 3), (16, 4)]];

#[test]
fn the_filter_is_what_a_plain_simulation_says() {
    for levels in CACHES {
        let named = ["l1d", "l2", "l3"].into_iter().zip(levels);
        let named = named.map(|(name, &(sets, ways))| (name, sets, ways));
        let code = ("l1i", levels[0].0, levels[0].1);
        let mut filter = Filter::new(named.chain([code])).unwrap();
        let mut reference = Reference::new(levels);
        let mut unsaved = HashSet::new();
        let (mut at_misses, mut at_hits) = (0, 0);
        for one in uses(50_000, 160, 5) {
            let expected = reference.access(one);
            let missed = match one.fetch {
                true => filter.fetch(one.line),
                false => filter.data(one.line, one.write),
            };
            let dirty = filter.pushed_out().collect();
            let came = Left { missed, dirty };
            assert_eq!(came, expected, "{levels:?}");
            if one.write {
                unsaved.insert(one.line);
            }
            for line in &came.dirty {
                unsaved.remove(line);
            }
            let out = if missed { &mut at_misses } else { &mut at_hits };
            *out += came.dirty.len();
        }
        let held: HashSet<u64> = reference.dirty().collect();
        assert!(unsaved.is_subset(&held), "{levels:?}");
        assert!(at_misses > 0);
        // There is somewhere to move in from.
        assert_eq!(at_hits > 0, levels.len() > 1, "{levels:?}: {at_hits}");
    }
}

struct Steps(std::vec::IntoIter<Step>);

impl Stream for Steps {
    fn step(&mut self) -> Step {
        self.0.next().unwrap_or(Step::Done)
    }
}

/// A core of the model beside the filter and a last level of one line.
#[test]
fn a_core_gives_up_as_many_lines_as_the_filter() {
    let mut platform = Platform::find("opteron-6128").unwrap();
    let shape = |sets, ways| Shape {
        sets,
        ways,
        hashed: false,
    };
    platform.private[0].shape = shape(4, 2);
    platform.private[1].shape = shape(8, 4);
    platform.llc.shape = shape(1, 1);
    platform.core.prefetch = false;

    let accesses = uses(20_000, 160, u64::MAX);
    let caches = [("l1d", 4, 2), ("l2", 8, 4)];
    let mut filter = Filter::new(caches.into_iter()).unwrap();
    let mut last = Cache::new(platform.llc.shape);
    let mut expected = 0;
    for &Use { line, write, .. } in &accesses {
        let missed = filter.data(line, write);
        let mut out = Vec::new();
        if missed && !last.touch(line, false) {
            out.extend(last.insert(line, false));
        }
        for dirty in filter.pushed_out() {
            out.extend(last.insert(dirty, true));
        }
        expected += out.iter().filter(|v| v.dirty).count() as u64;
    }

    // Each long after the one before.
    let step = |(i, &Use { line, write, .. }): (u64, &Use)| {
        let access = Access {
            work: 0,
            addr: line * 64,
            write,
            dependent: false,
        };
        [Step::Until(i * 2_000_000), Step::Access(access)]
    };
    let steps: Vec<Step> = (1..).zip(&accesses).flat_map(step).collect();
    let mut system = System::new(&platform);
    system.put(0, Box::new(Steps(steps.into_iter())), 0, false);
    let stats = system.run(&mut Free).unwrap().swap_remove(0);
    assert_eq!(stats.write_backs, expected);
}
