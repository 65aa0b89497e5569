//! The private caches of one core, one behind the other.

use std::ops::Range;

use super::{Cache, Shape, Victim};

/// Caches from the first level out. A line moves into all levels before the one that has it; a
/// dirty line that one pushes out goes to the next.
#[derive(Debug)]
pub(crate) struct Levels(Vec<Cache>);

impl Levels {
    /// Empty caches.
    pub fn new(shapes: impl Iterator<Item = Shape>) -> Self {
        Self(shapes.map(Cache::new).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes them away.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether the last level holds `line`; `None`: there is none.
    pub fn last_holds(&mut self, line: u64) -> Option<bool> {
        Some(self.0.last_mut()?.holds(line))
    }

    /// The level, from `first` on, that has `line`, which is used and moves into those before
    /// it. `gone` gets dirty lines that leave the last level.
    #[inline]
    pub fn look_up(
        &mut self,
        first: usize,
        line: u64,
        write: bool,
        gone: &mut Vec<Victim>,
    ) -> Option<usize> {
        let mut levels = first..self.0.len();
        let level = levels.find(|&i| self.0[i].touch(line, write && i == 0))?;
        self.fill(first..level, line, write, gone);
        Some(level)
    }

    /// Puts `line` into these levels, dirty in the first of them. `gone` gets dirty lines that
    /// leave the last of all.
    #[inline]
    pub fn fill(&mut self, levels: Range<usize>, line: u64, dirty: bool, gone: &mut Vec<Victim>) {
        let first = levels.start;
        for i in levels.rev() {
            let mut out = self.0[i].insert(line, dirty && i == first);
            for next in &mut self.0[i + 1..] {
                let Some(victim) = out.filter(|v| v.dirty) else {
                    break;
                };
                out = next.insert(victim.line, true);
            }
            gone.extend(out.filter(|v| v.dirty));
        }
    }
}
