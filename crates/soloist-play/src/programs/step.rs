//! What a program does next, and the trait of all generators.
//!
//! Addresses are byte offsets into the program's memory; which physical frame a
//! page gets is decided at first touch (see [`crate::placement`]). `work` counts
//! the instructions before an access, so that a core model can time it.

/// One load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Instructions executed before it.
    pub work: u32,
    /// Byte offset into the task's memory.
    pub at: u64,
    /// A store.
    pub write: bool,
    /// Its address depends on the previous load: it can't overlap with it.
    pub dependent: bool,
}

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A load or store.
    Access(Access),
    /// An instruction fetch: nothing goes on before it is here.
    Fetch(Access),
    /// A dirty line at this byte offset leaves the private caches. Only of programs
    /// that are [behind](Program::behind_caches) them.
    WriteBack(u64),
    /// Sleeps until then, ps.
    Until(u64),
    /// Waits until every thread of its program is here.
    Barrier,
    /// Notes the time.
    Mark,
    /// Nothing more.
    Done,
}

/// A stream of steps. The same parameters and seed give the same stream.
pub trait Program: Send {
    /// The next step; `Done` for ever after the last.
    fn step(&mut self) -> Step;

    /// The same for one that waits for others: it is `now_ps`.
    fn step_at(&mut self, now_ps: u64) -> Step {
        let _ = now_ps;
        self.step()
    }

    /// Bytes of memory that it uses, from offset 0.
    fn bytes(&self) -> u64;

    /// Never touches again what caches hold when it begins: that lies behind
    /// its memory.
    fn moves_on(&self) -> bool {
        false
    }

    /// No stride prefetcher gets sure of its strides
    /// ([`soloist_memory::core::Stream::defeats_prefetch`]).
    fn defeats_prefetch(&self) -> bool {
        false
    }

    /// Its accesses are those that left private caches: none of the core's own
    /// is asked ([`soloist_memory::core::Stream::behind_caches`]).
    fn behind_caches(&self) -> bool {
        false
    }

    /// Whether its page number `page` takes the task's colours. Pages that the
    /// kernel alone uses do not.
    fn colored(&self, page: u64) -> bool {
        let _ = page;
        true
    }

    /// Pages of its memory, the first ones, that it shares with the other threads of
    /// its program.
    fn shared_pages(&self) -> u64 {
        0
    }

    /// The thread of its program that touches shared page number `page` first.
    fn first_thread(&self, page: u64) -> usize {
        let _ = page;
        0
    }

    /// Of the last step's work, what stands for lost time only and is no
    /// instruction.
    fn idle_work(&self) -> u32 {
        0
    }
}

/// A load of `at` after `work` instructions.
pub(super) fn load(work: u32, at: u64) -> Step {
    Step::Access(Access {
        work,
        at,
        write: false,
        dependent: false,
    })
}

/// A store to `at` after `work` instructions.
pub(super) fn store(work: u32, at: u64) -> Step {
    Step::Access(Access {
        work,
        at,
        write: true,
        dependent: false,
    })
}

/// From one big array to the next where malloc() gave both: glibc maps each by
/// itself, in whole pages behind a header of 16 bytes. Of equal arrays equal
/// elements are therefore never a power of two of pages apart.
pub(super) fn malloced(bytes: u64) -> u64 {
    (bytes + 16).next_multiple_of(4096)
}
