//! A stage: programs seated on the cores of a machine, where their pages come from, and
//! what holds them back. [`crate::play`] plays it.

use soloist_core::{ColorSet, Refusal, Regulation, Reservation};
use soloist_memory::core::CoreStats;
use soloist_memory::system::RunError;
use soloist_memory::Platform;

use crate::guard::{Limit, Regulated};
use crate::placement::memory::Exhausted;
use crate::placement::FreeMemory;
use crate::policy::Policy;
use crate::programs::Program;

/// A play: who does what where, by which rules.
pub struct Stage<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// The seats; those of one program's threads stand next to each other.
    pub seats: Vec<Seat>,
    /// Where pages come from, and what each core may have.
    pub policy: &'a dyn Policy,
    /// What holds cores back.
    pub regulator: Regulator,
    /// Free memory before it begins.
    pub memory: FreeMemory,
    /// The order in which new pages are first touched.
    pub touches: Touches,
    /// Every wait gets a cause and a culprit; halves the speed.
    pub account: bool,
    /// The latency of each line is kept.
    pub latencies: bool,
    /// Draws what is left to chance of the placement.
    pub seed: u64,
}

/// A program, or a thread of one, on its core.
pub struct Seat {
    /// What it does.
    pub program: Box<dyn Program>,
    /// The core that it plays on.
    pub core: usize,
    /// Its number among the threads of its program.
    pub thread: usize,
    /// Whose colours it has: owners are numbered in the order of their first seats.
    pub owner: usize,
    /// Seats of one group meet at barriers.
    pub group: usize,
    /// It plays for as long as the others do.
    pub background: bool,
    /// If not, only its pages are there.
    pub plays: bool,
    /// The cpu that touches its memory first.
    pub first_touch: u32,
    /// Its pages come from this node only.
    pub node: Option<u32>,
    /// Bank sets that a policy of private ones gives it.
    pub sets: u32,
    /// Page by page, the frame where it stays whatever the policy; shorter than its
    /// memory: the rest has none.
    pub stay: Vec<Option<u32>>,
}

/// What holds cores back.
#[derive(Debug, Clone)]
pub enum Regulator {
    /// What the policy says.
    ByPolicy,
    /// Nobody is held; it is counted what each core does.
    Counting {
        /// Length of a period, microseconds.
        period_us: u32,
    },
    /// Each core that plays in the background, whatever the others leave.
    Limiting(Limit),
    /// MemGuard, by core.
    Reserving {
        /// The settings.
        settings: Regulation,
        /// What each core reserves; `None`: it is not regulated.
        reservations: Vec<Option<Reservation>>,
        /// Only cores that share banks are charged to each other.
        per_bank: bool,
    },
}

/// The order in which new pages are first touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touches {
    /// One page at a time, whose turn it is drawn from the seed.
    Drawn,
    /// A page of each program in turn.
    InTurn,
    /// Seat and page, each program's pages in their order.
    Recorded(Vec<(usize, u64)>),
}

/// What came of it.
pub struct Played {
    /// What each core did.
    pub cores: Vec<CoreStats>,
    /// What came of each seat, in their order.
    pub seats: Vec<SeatResult>,
    /// What was counted of each core, where a regulator counts.
    pub regulated: Option<Vec<Regulated>>,
}

/// What came of a seat.
pub struct SeatResult {
    /// Loads and stores from its first mark on.
    pub accesses: u64,
    /// Instructions from its first mark on.
    pub instructions: u64,
    /// Of its own pages, those that came out of its colours.
    pub spilled: u64,
    /// Share of its pages that lie on another node than its core, per cent.
    pub remote: f64,
    /// The frame of each of its pages.
    pub frames: Vec<u32>,
    /// Its colours; `None`: it had none.
    pub colors: Option<ColorSet>,
}

/// Why a stage can't be played.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The machine has not enough colours for the policy.
    #[error(transparent)]
    Colors(Refusal),
    /// A seat's colours or node ran out of pages.
    #[error("{source}")]
    Memory {
        /// The seat.
        seat: usize,
        /// Bytes that its program wants.
        bytes: u64,
        /// How far it came.
        source: Exhausted,
    },
    /// The regulator refused a reservation or a setting.
    #[error(transparent)]
    Regulator(Refusal),
    /// The model refused.
    #[error(transparent)]
    Model(#[from] RunError),
}

impl Seat {
    /// A program that is waited for, on `core`, with pages of its own; the only one.
    #[must_use]
    pub fn new(program: Box<dyn Program>, core: usize) -> Self {
        Self {
            program,
            core,
            thread: 0,
            owner: 0,
            group: 0,
            background: false,
            plays: true,
            first_touch: core as u32,
            node: None,
            sets: 1,
            stay: Vec::new(),
        }
    }

    pub(crate) fn stays(&self, page: u64) -> Option<u32> {
        self.stay.get(page as usize).copied().flatten()
    }
}

impl<'a> Stage<'a> {
    /// Seats on a machine that has just booted, regulated by the policy alone; pages are
    /// touched in an order that is drawn.
    #[must_use]
    pub fn new(
        platform: &'a Platform,
        policy: &'a dyn Policy,
        seats: Vec<Seat>,
        seed: u64,
    ) -> Self {
        Self {
            platform,
            seats,
            policy,
            regulator: Regulator::ByPolicy,
            memory: FreeMemory::FRESH,
            touches: Touches::Drawn,
            account: false,
            latencies: false,
            seed,
        }
    }
}
