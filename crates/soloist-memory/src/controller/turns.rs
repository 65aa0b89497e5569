//! Turns of the data bus: reads do not pass a write for ever, nor writes a read, nor one rank
//! another.
//!
//! To turn the bus takes time, and so does another rank. So the next command of the same direction
//! and rank is always legal first, and a stream of reads would starve a write, or a read of the
//! other rank, with all that waits behind it in that bank. Controllers serve so many commands of
//! a direction or rank; then the others have their turn.

use soloist_machine::memory::Policy;

/// Column commands that wait for others' turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Writes (true) or reads.
    Direction(bool),
    /// All of a rank.
    Rank(u16),
}

impl Held {
    /// Is such a command held?
    #[inline]
    pub fn holds(self, write: bool, rank: u16) -> bool {
        match self {
            Self::Direction(held) => write == held,
            Self::Rank(held) => rank == held,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Column commands of one direction, and of one rank, after which others have their turn; 0:
    /// never.
    direction_cap: u32,
    rank_cap: u32,
    /// The last one, and how many of its direction and of its rank there were without another.
    write: bool,
    rank: u16,
    of_direction: u32,
    of_rank: u32,
}

impl Turn {
    pub fn new(policy: &Policy) -> Self {
        Self {
            direction_cap: policy.direction_cap,
            rank_cap: policy.rank_cap,
            write: false,
            rank: 0,
            of_direction: 0,
            of_rank: 0,
        }
    }

    /// A read or write is issued.
    #[inline]
    pub fn issued(&mut self, write: bool, rank: u16) {
        let after = |same: bool, run: u32| if same { run + 1 } else { 1 };
        self.of_direction = after(write == self.write, self.of_direction);
        self.of_rank = after(rank == self.rank, self.of_rank);
        (self.write, self.rank) = (write, rank);
    }

    /// The direction has had its turn.
    fn direction_is_spent(self) -> bool {
        self.direction_cap > 0 && self.of_direction >= self.direction_cap
    }

    /// The rank has.
    fn rank_is_spent(self) -> bool {
        self.rank_cap > 0 && self.of_rank >= self.rank_cap
    }

    /// Either has.
    #[inline]
    pub fn is_spent(self) -> bool {
        self.direction_is_spent() || self.rank_is_spent()
    }

    /// What is held, if others wait: `wait_beside` says whether commands wait that would not be
    /// held.
    #[inline]
    pub fn held(self, wait_beside: impl Fn(Held) -> bool) -> Option<Held> {
        if !self.is_spent() {
            return None;
        }
        let direction = self.direction_is_spent();
        let direction = direction.then_some(Held::Direction(self.write));
        let rank = self.rank_is_spent().then_some(Held::Rank(self.rank));
        [direction, rank]
            .into_iter()
            .flatten()
            .find(|&held| wait_beside(held))
    }
}
