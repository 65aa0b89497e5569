//! A program behind its initialisation: caches begin full, as full and as dirty
//! as the program leaves them.

use soloist_memory::platform::CacheLevel;
use soloist_memory::Platform;

use crate::programs::{Access, Program, Step};

/// The caches that a program runs behind.
#[derive(Clone, Copy)]
pub struct Caches<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// The core that the program plays on.
    pub core: usize,
    /// All cores that run something, with which it shares a last level.
    pub busy: &'a [usize],
}

/// Writes and reads the tail of its memory, makes a mark, then does what the
/// program does; a second mark comes when half of its accesses are done.
///
/// Behind private caches ([`Program::behind_caches`]) dirty lines go on to the last level at once.
///
/// A program that moves on ([`Program::moves_on`]) finds memory in the caches
/// that it will not touch again; all others the tail of their own.
pub struct Warmed {
    program: Box<dyn Program>,
    at: u64,
    end: u64,
    line: u64,
    /// Share of the warm lines that are written to.
    dirty: f64,
    /// A dirty line that no private cache will push out.
    leaves: Option<u64>,
    begun: bool,
    /// It begins together with the other threads of its program.
    meets: bool,
    /// Accesses to the second mark; 0: none comes.
    half: u64,
}

impl Warmed {
    /// `program` behind these caches. So many of the lines that come first are written
    /// as `dirty`, a share, says. `half`: accesses from the first mark to the second, 0
    /// for none.
    #[must_use]
    pub fn new(program: Box<dyn Program>, caches: Caches, dirty: f64, half: u64) -> Self {
        let line = u64::from(caches.platform.memory.map.line_size());
        let warm = caches.warm_bytes() / line * line;
        let own = program.bytes() / line * line;
        let (at, end) = if program.moves_on() {
            (own, own + warm)
        } else {
            (own - warm.min(own) / line * line, own)
        };
        Self {
            meets: program.shared_pages() > 0,
            program,
            at,
            end,
            line,
            dirty,
            leaves: None,
            begun: false,
            half,
        }
    }

    fn warm(&mut self) -> Step {
        let at = self.at;
        let dirty_before = |at: u64| ((at / self.line) as f64 * self.dirty) as u64;
        let write = dirty_before(at + self.line) > dirty_before(at);
        self.at += self.line;
        self.leaves = (write && self.behind_caches()).then_some(at);
        Step::Access(Access {
            work: 0,
            at,
            write,
            dependent: false,
        })
    }
}

impl Program for Warmed {
    fn step(&mut self) -> Step {
        self.step_at(0)
    }

    fn step_at(&mut self, now_ps: u64) -> Step {
        if let Some(at) = self.leaves.take() {
            return Step::WriteBack(at);
        }
        if self.at < self.end {
            return self.warm();
        }
        if std::mem::take(&mut self.meets) {
            return Step::Barrier;
        }
        if !self.begun {
            self.begun = true;
            return Step::Mark;
        }
        if self.half == 1 {
            self.half = 0;
            return Step::Mark;
        }
        let step = self.program.step_at(now_ps);
        if self.half > 0 && matches!(step, Step::Access(_) | Step::Fetch(_)) {
            self.half -= 1;
        }
        step
    }

    fn bytes(&self) -> u64 {
        self.end.max(self.program.bytes())
    }

    fn shared_pages(&self) -> u64 {
        self.program.shared_pages()
    }

    fn first_thread(&self, page: u64) -> usize {
        self.program.first_thread(page)
    }

    fn defeats_prefetch(&self) -> bool {
        self.program.defeats_prefetch()
    }

    fn behind_caches(&self) -> bool {
        self.program.behind_caches()
    }

    fn colored(&self, page: u64) -> bool {
        self.program.colored(page)
    }

    fn idle_work(&self) -> u32 {
        self.program.idle_work()
    }
}

impl Caches<'_> {
    /// What they can hold of the program's initialisation.
    fn warm_bytes(&self) -> u64 {
        let line = u64::from(self.platform.memory.map.line_size());
        let size = |level: &CacheLevel| level.shape.sets * level.shape.ways as u64 * line;
        let die = |core: usize| self.platform.llc_of_core[core];
        let mates = self
            .busy
            .iter()
            .filter(|&&other| die(other) == die(self.core));
        let private: u64 = self.platform.private.iter().map(size).sum();
        let share = size(&self.platform.llc) / mates.count().max(1) as u64 + private;
        // Pages fall into the sets by chance: half as much again fills nearly all.
        share + share / 2
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 12;

    /// Does nothing, behind caches or not.
    struct Idle {
        behind: bool,
    }

    impl Program for Idle {
        fn step(&mut self) -> Step {
            Step::Done
        }

        fn bytes(&self) -> u64 {
            BYTES
        }

        fn behind_caches(&self) -> bool {
            self.behind
        }
    }

    /// Private caches push dirty lines out. Behind them nobody else does.
    #[test]
    fn dirty_lines_leave_a_core_without_caches() {
        let platform = &Platform::find("opteron-6128").unwrap();
        for behind in [false, true] {
            let caches = Caches {
                platform,
                core: 0,
                busy: &[0],
            };
            let mut warmed = Warmed::new(Box::new(Idle { behind }), caches, 0.5, 0);
            let (mut written, mut left) = (Vec::new(), Vec::new());
            loop {
                match warmed.step() {
                    Step::Access(a) if a.write => written.push(a.at),
                    Step::WriteBack(at) => left.push(at),
                    Step::Mark => break,
                    _ => {}
                }
            }
            assert_eq!(written.len(), BYTES as usize / 64 / 2);
            assert_eq!(left, if behind { written } else { Vec::new() });
        }
    }
}
