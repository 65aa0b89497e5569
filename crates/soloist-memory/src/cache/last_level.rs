//! A last-level cache, the way out of it for dirty lines, and what each core
//! would find in it if it had it for itself.

use std::collections::VecDeque;

use super::{Cache, Shape, Victim};
use crate::blame::NOBODY;

/// One last-level cache. Its lines are tagged with the core that brought them
/// in or wrote to them last.
pub(crate) struct LastLevel {
    /// None where its shape holds nothing: then a dirty line goes on to memory, in the name of
    /// the core that gives it up.
    cache: Option<Cache>,
    /// Dirty lines that may be on their way to memory, and those that found no
    /// place: each holds a slot of the core whose fill pushed it out.
    pub free: u32,
    pub waiting: VecDeque<u32>,
    /// By core, where blame is asked for: the cache that it would have alone.
    /// A line's tag is who pushed it out of the real one, or nobody.
    alone: Vec<Option<Cache>>,
    /// Ways of each core; 0: as many as it can get.
    ways: Vec<usize>,
}

impl LastLevel {
    pub fn new(shape: Shape, victims: u32) -> Self {
        Self {
            cache: (!shape.is_none()).then(|| Cache::new(shape)),
            free: victims,
            waiting: VecDeque::new(),
            alone: Vec::new(),
            ways: Vec::new(),
        }
    }

    /// Ways of a set that each core may fill, by its number; 0: all.
    pub fn partition(&mut self, ways: &[usize]) {
        self.ways = ways.to_vec();
    }

    /// From now on it knows what each of its cores would have alone.
    pub fn watch(&mut self, shape: Shape, cores: impl Iterator<Item = bool>) {
        self.alone = cores.map(|own| own.then(|| Cache::new(shape))).collect();
    }

    fn shadow(&mut self, core: u16) -> Option<&mut Cache> {
        self.alone.get_mut(usize::from(core))?.as_mut()
    }

    /// Asks for a line: a hit, or whose fault it is that it is none.
    pub fn read(&mut self, core: u16, line: u64) -> Result<(), Option<u16>> {
        let hit = self.cache.as_mut().is_some_and(|c| c.touch(line, false));
        let mut culprit = None;
        if let Some(shadow) = self.shadow(core) {
            culprit = shadow.tag_of(line).filter(|&by| by != NOBODY && !hit);
            if !shadow.touch(line, false) {
                shadow.insert_tagged(line, false, NOBODY);
            } else if culprit.is_some() {
                shadow.tag(line, NOBODY);
            }
        }
        if hit {
            return Ok(());
        }
        Err(culprit)
    }

    /// Puts a line in for `core`; returns a dirty line that had to go.
    pub fn insert(&mut self, core: u16, line: u64, dirty: bool) -> Option<Victim> {
        if dirty {
            if let Some(shadow) = self.shadow(core) {
                shadow.insert_tagged(line, false, NOBODY);
            }
        }
        let Some(cache) = &mut self.cache else {
            let tag = core;
            return dirty.then_some(Victim { line, dirty, tag });
        };
        let victim = match self.ways.get(usize::from(core)) {
            Some(&ways) if ways > 0 => cache.insert_within(line, dirty, core, ways),
            _ => cache.insert_tagged(line, dirty, core),
        }?;
        if self.shadow(victim.tag).is_some() {
            let by = if victim.tag == core {
                self.crowder(core, line)
            } else {
                core
            };
            if let Some(shadow) = self.shadow(victim.tag) {
                shadow.tag(victim.line, by);
            }
        }
        Some(victim).filter(|v| v.dirty)
    }

    /// The other core with most lines in the set of `line`, or nobody.
    fn crowder(&mut self, core: u16, line: u64) -> u16 {
        let Some(cache) = &mut self.cache else {
            return NOBODY;
        };
        let tags: Vec<u16> = cache.tags(line).filter(|&t| t != core).collect();
        let lines = |tag: &u16| tags.iter().filter(|t| *t == tag).count();
        tags.iter()
            .copied()
            .max_by_key(|t| (lines(t), std::cmp::Reverse(*t)))
            .unwrap_or(NOBODY)
    }
}
