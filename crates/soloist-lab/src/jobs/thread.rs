//! A task as a core runs it: its program's steps at physical addresses, counted
//! from the first mark on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use soloist_memory::core::{self as cpu, Stream};
use soloist_play::governor::Counts;
use soloist_play::programs::{Program, Step};

use super::place::{Placed, PAGE_SHIFT};

/// A program in its pages.
pub(super) struct Thread {
    program: Box<dyn Program>,
    pages: Vec<u32>,
    begun: bool,
    counts: Arc<Counts>,
}

impl Thread {
    pub(super) fn new(placed: Placed, counts: Arc<Counts>) -> Self {
        Self {
            program: placed.program,
            pages: placed.pages,
            begun: false,
            counts,
        }
    }

    fn physical(&self, at: u64) -> u64 {
        let offset = at & ((1 << PAGE_SHIFT) - 1);
        u64::from(self.pages[(at >> PAGE_SHIFT) as usize]) << PAGE_SHIFT | offset
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
            Step::Access(a) => {
                if self.begun {
                    self.count(a.work);
                }
                cpu::Step::Access(cpu::Access {
                    work: a.work,
                    addr: self.physical(a.at),
                    write: a.write,
                    dependent: a.dependent,
                })
            }
            Step::WriteBack(at) => cpu::Step::WriteBack(self.physical(at)),
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
