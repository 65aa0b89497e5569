//! What neighbours cost on this machine's own memory, by timing alone.
//!
//! The experiments of PALLOC and CAMC, without a module. A victim on one
//! processor follows pointers, one access at a time, each from memory; neighbours
//! on others read or write. Each experiment says whose lines lie in which banks
//! and asks a [`Cores`] for rounds; a real machine answers ([`cores`]) or a
//! simulated one whose truth is known ([`sim`]).
//!
//! - [`two_banks`]: a neighbour in the same bank against one in another.
//! - [`slices`]: as many banks as a small machine has, shared, private, or all
//!   tasks in few of them; all banks by page colours.
//! - [`pages`]: whole pages by address bits, with caches.
//! - [`whole`]: all of memory, where banks were found pair by pair.
//! - [`paced`]: the same beside neighbours that are slowed down.
//! - [`channels`]: neighbours on another channel against neighbours in other banks.
//! - [`recorded`]: a recorded program's accesses ([`moves`]), by the policy that placed them.
//!
//! [`density`] draws from all of it how many banks each busy core needs, and
//! [`report`] holds what was found.
//!
//! Lines of known banks come from the detector, by functions ([`banks`]) or pair by
//! pair ([`sets`]). Conditions come in random order, block by block, so that without
//! an effect every sign of a block's difference is as likely as the other, however
//! the machine drifts: a test by signed ranks says how likely the difference is
//! chance, a bootstrap how large it may be ([`statistics`]).

pub mod banks;
pub mod channels;
pub mod cores;
mod count;
pub mod density;
pub mod difference;
pub mod moves;
pub mod paced;
pub mod pages;
pub mod picture;
pub mod recorded;
pub mod report;
pub mod sets;
pub mod sim;
pub mod slices;
pub mod statistics;
pub mod two_banks;
pub mod whole;

use serde::{Deserialize, Serialize};

pub use moves::{Move, Played};
pub use two_banks::{measure, Cost, Design, Measured, NotBeside, ATTACKS, CHANCE};

/// What a neighbour does with its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attack {
    /// Reads them from memory, some at once.
    Read,
    /// Writes them to memory.
    Write,
    /// Reads some, then writes some, in turn.
    Both,
}

impl Attack {
    /// The verb for neighbours that do it.
    #[must_use]
    pub fn does(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Both => "read and write",
        }
    }

    /// So many neighbours that do it, in words.
    #[must_use]
    pub fn neighbours(self, count: usize) -> String {
        match (self, count) {
            (Self::Read, 1) => "1 reader".to_owned(),
            (Self::Write, 1) => "1 writer".to_owned(),
            (Self::Both, 1) => "1 co-runner that reads and writes".to_owned(),
            (Self::Read, n) => format!("{n} readers"),
            (Self::Write, n) => format!("{n} writers"),
            (Self::Both, n) => format!("{n} co-runners that {}", self.does()),
        }
    }
}

/// Neighbours of the victim.
#[derive(Debug, Clone, Copy)]
pub struct Company<'a> {
    /// What all of them do.
    pub attack: Attack,
    /// The lines of each.
    pub lines: &'a [Vec<u64>],
    /// How long each waits after 16 accesses, ns.
    pub pause_ns: u32,
}

/// What a round came to.
#[derive(Debug, Clone)]
pub struct Round {
    /// Nanoseconds of an access of the victim: the median of means over some accesses
    /// each.
    pub ns: f64,
    /// Accesses of all neighbours in a microsecond.
    pub rate: f64,
    /// Nanoseconds of single accesses of the victim.
    pub singles: Vec<f32>,
}

/// Processors of one machine, real or simulated.
pub trait Cores {
    /// Neighbours at most.
    fn most_neighbours(&self) -> usize;

    /// Processors that the machine has, of which some may take no part.
    fn processors(&self) -> usize {
        self.most_neighbours() + 1
    }

    /// The victim on `lines`, beside `company`. `None`: a neighbour hardly ran in
    /// that time.
    fn round(&mut self, lines: &[u64], company: Option<&Company<'_>>) -> Option<Round>;

    /// Plays the victim's moves once, beside neighbours that repeat theirs. `None`: there
    /// are fewer processors.
    fn play(&mut self, own: &[Move], beside: &[Vec<Move>]) -> Option<Played>;
}
