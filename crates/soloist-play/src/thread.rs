//! A program as a core runs it: its steps at physical addresses, counted from its first
//! mark on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use soloist_core::FRAME_SHIFT;
use soloist_memory::core::{self as cpu, Stream};

use crate::guard::Counts;
use crate::programs::{Access, Program, Step};

/// The frames of a program's pages.
#[derive(Debug, Clone, Default)]
pub struct Pages(Vec<u32>);

impl Pages {
    /// Page by page.
    #[must_use]
    pub fn new(frames: Vec<u32>) -> Self {
        Self(frames)
    }

    /// The physical address of a byte of the program's memory.
    #[must_use]
    pub fn physical(&self, at: u64) -> u64 {
        let offset = at & ((1 << FRAME_SHIFT) - 1);
        u64::from(self.0[(at >> FRAME_SHIFT) as usize]) << FRAME_SHIFT | offset
    }
}

/// A program in its pages, alone on a core.
pub(crate) struct Thread {
    program: Box<dyn Program>,
    pages: Pages,
    begun: bool,
    counts: Arc<Counts>,
}

impl Thread {
    pub(crate) fn new(program: Box<dyn Program>, pages: Pages, counts: Arc<Counts>) -> Self {
        Self {
            program,
            pages,
            begun: false,
            counts,
        }
    }

    fn access(&self, a: Access) -> cpu::Access {
        if self.begun {
            self.count(a.work);
        }
        cpu::Access {
            work: a.work,
            addr: self.pages.physical(a.at),
            write: a.write,
            dependent: a.dependent,
        }
    }

    fn count(&self, work: u32) {
        let instructions = u64::from(work - self.program.idle_work()) + 1;
        add(&self.counts.accesses, 1);
        add(&self.counts.instructions, instructions);
    }
}

/// Nobody else writes it: no locked addition, which each access would pay for.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Stream for Thread {
    fn defeats_prefetch(&self) -> bool {
        self.program.defeats_prefetch()
    }

    fn behind_caches(&self) -> bool {
        self.program.behind_caches()
    }

    fn step(&mut self) -> cpu::Step {
        self.step_at(0)
    }

    fn step_at(&mut self, now_ps: u64) -> cpu::Step {
        match self.program.step_at(now_ps) {
            Step::Access(a) => cpu::Step::Access(self.access(a)),
            Step::Fetch(a) => cpu::Step::Fetch(self.access(a)),
            Step::WriteBack(at) => cpu::Step::WriteBack(self.pages.physical(at)),
            Step::Until(at) => cpu::Step::Until(at),
            Step::Barrier => cpu::Step::Barrier,
            Step::Mark => {
                self.begun = true;
                self.counts.begun.store(true, Ordering::Relaxed);
                cpu::Step::Mark
            }
            Step::Done => cpu::Step::Done,
        }
    }
}
