//! Processors that a victim and its neighbours run on: a real machine's ([`real`]), or those of
//! a simulated one whose truth is known ([`sim`]).

pub(crate) mod count;
pub mod moves;
pub mod real;
pub mod sim;

use serde::{Deserialize, Serialize};

use moves::{Move, Played};

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
    /// Whether it writes in this turn; where it does both, in every second one.
    pub(crate) fn writes(self, turn: usize) -> bool {
        match self {
            Self::Read => false,
            Self::Write => true,
            Self::Both => turn % 2 == 1,
        }
    }

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
