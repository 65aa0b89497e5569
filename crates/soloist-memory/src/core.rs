//! What a core is to the rest of the machine: what runs on it, what it asks
//! for, what it did.
//!
//! A [`Stream`] is the program; a [`CoreModel`] is the core that runs it, and
//! the only thing that the system knows of cores. `core/window.rs` is the model
//! in use; another one is another file that implements the trait.

mod prefetch;
mod window;

use serde::Serialize;

use crate::blame::{Bill, Blame, Label};
use crate::cache::Victim;
use crate::latency::{Latencies, Summary};

pub(crate) use window::WindowCore;

/// One load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Instructions executed before it.
    pub work: u32,
    /// Physical address.
    pub addr: u64,
    /// A store.
    pub write: bool,
    /// Its address depends on the previous load.
    pub dependent: bool,
}

/// What a core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A load or store.
    Access(Access),
    /// An instruction fetch: nothing goes on before it is here.
    Fetch(Access),
    /// A load or store, or a `fetch`, that has been through private caches already: the core's
    /// own are not asked and don't get it. Of streams some of which were recorded.
    Behind {
        /// What it is.
        access: Access,
        /// An instruction fetch.
        fetch: bool,
    },
    /// A dirty line of this physical address leaves the private caches: for
    /// streams that were recorded behind them.
    WriteBack(u64),
    /// Waits until all cores of its barrier group are here.
    Barrier,
    /// Sleeps until this time (picoseconds) if it is not yet past.
    Until(u64),
    /// Notes the time; with the first one the account begins anew.
    Mark,
    /// Nothing more.
    Done,
}

/// What runs on a core. The same stream must give the same steps every time.
pub trait Stream {
    /// The next step; `Done` for ever after the last.
    fn step(&mut self) -> Step;

    /// The same for streams to which it matters that it is `now_ps` on their
    /// core, as to one that switches between tasks.
    fn step_at(&mut self, _now_ps: u64) -> Step {
        self.step()
    }

    /// Its accesses have been through private caches already: the core's own hold
    /// nothing.
    fn behind_caches(&self) -> bool {
        false
    }

    /// One instruction makes its accesses at strides that change each time: no
    /// stride prefetcher gets sure of it. The model's goes by page and knows no
    /// instructions, so the stream has to say so.
    fn defeats_prefetch(&self) -> bool {
        false
    }
}

/// How a core spent its time since its first mark: the four parts add up
/// to it exactly (for a core that was cut off: up to when it last went on).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Instructions, picoseconds.
    pub compute_ps: u64,
    /// Waiting for lines, picoseconds.
    pub stall_ps: u64,
    /// Waiting at barriers, picoseconds.
    pub barrier_ps: u64,
    /// Sleeping, picoseconds.
    pub slept_ps: u64,
    /// `stall_ps` by cause and culprit, where [`crate::System::account`] asked
    /// for it.
    pub blame: Blame,
    /// Latencies of the lines that its accesses asked memory or the last level
    /// for, from the core's miss on, picoseconds; `None`: nobody asked for them
    /// ([`crate::System::latencies`]).
    #[serde(skip)]
    pub latencies: Option<Latencies>,
}

impl Account {
    /// Empty, of as many cores, with what was asked for.
    fn begin_anew(&mut self, cores: usize) {
        *self = Self {
            blame: Blame::new(cores),
            latencies: self.latencies.as_ref().map(|_| Latencies::default()),
            ..Self::default()
        };
    }

    /// Latencies of its lines, ns; all 0 where nobody asked for them.
    #[must_use]
    pub fn latency_ns(&self) -> Summary {
        let latencies = self.latencies.as_ref();
        latencies.map_or_else(Summary::default, |all| all.summary(0.001))
    }
}

/// What a core did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoreStats {
    /// Time at which its last access was complete (or, for a core that was
    /// cut off, at which it was stopped), picoseconds.
    pub finished_ps: u64,
    /// Instructions, accesses included.
    pub instructions: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Accesses that hit private caches, by level.
    pub private_hits: Vec<u64>,
    /// Fills that the last-level cache served.
    pub llc_hits: u64,
    /// Fills that memory served.
    pub llc_misses: u64,
    /// Dirty lines that its fills pushed out to memory.
    pub write_backs: u64,
    /// Prefetches sent.
    pub prefetches: u64,
    /// Translations that the core did not hold.
    pub page_walks: u64,
    /// Sum of the latencies of the fills that accesses asked for, from the
    /// core's miss on, picoseconds.
    pub fill_ps: u64,
    /// Time spent waiting at barriers, picoseconds.
    pub barrier_ps: u64,
    /// Time spent sleeping, picoseconds.
    pub slept_ps: u64,
    /// Times of the marks, picoseconds.
    pub marks_ps: Vec<u64>,
    /// Its time since the first mark.
    pub account: Account,
}

/// What a core wants from the machine when it stops running ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A line from the shared levels.
    Fill {
        /// The core's own number for it.
        fill: u32,
        /// Line number.
        line: u64,
        /// When it asks the shared levels for it.
        at_ps: u64,
    },
    /// To be rid of a dirty line.
    WriteBack {
        /// Line number.
        line: u64,
        /// When the line leaves.
        at_ps: u64,
    },
    /// To be resumed at its own time.
    Resume,
    /// To be resumed when something in flight arrives.
    Wait,
    /// To be let past the barrier.
    Barrier,
    /// Nothing any more.
    Finished,
}

/// A core, as the rest of the machine sees it.
pub trait CoreModel: Send {
    /// Gives it something to run, from time 0.
    fn start(&mut self, stream: Box<dyn Stream + Send>);

    /// Its own time, picoseconds.
    fn now_ps(&self) -> u64;

    /// Runs until it needs something, or is past `until_ps`.
    fn run(&mut self, until_ps: u64) -> Wish;

    /// A line has arrived at `at_ps`; `bill` says what its time was spent on,
    /// if that is kept. Dirty lines that leave the core's caches are added to
    /// `out`. Does the core go on?
    fn filled(&mut self, fill: u32, at_ps: u64, bill: Option<&Bill>, out: &mut Vec<Victim>)
        -> bool;

    /// A line that one of its fills pushed out waits for a way to memory and
    /// keeps the fill's slot.
    fn hold(&mut self);

    /// The line has found its way, which it had waited for because of `label`.
    /// Does the core go on?
    fn release(&mut self, at_ps: u64, label: Label) -> bool;

    /// A dirty line that it gave up is in the last level or on its way to memory, which it had
    /// waited for because of `label`. Does the core go on?
    fn rid_of(&mut self, at_ps: u64, label: Label) -> bool;

    /// All of its group have reached the barrier, at `at_ps`.
    fn pass_barrier(&mut self, at_ps: u64);

    /// What it did.
    fn stats(&mut self) -> &mut CoreStats;
}
