//! What a bank could do next, and how commands of several banks compare.

use crate::dram::{Bank, Cycle, NO_ROW};

use super::queue::{BankQueue, Pool, NONE};

/// A cycle that never comes.
const NEVER: Cycle = Cycle::MAX / 2;

/// A command for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read = 0,
    Write = 1,
    Activate = 2,
    Precharge = 3,
}

/// A command that a bank could use: from when the bank itself allows it
/// ([`NEVER`]: no use for it), the bank group whose limits it shares, and how
/// old the request behind it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub at: Cycle,
    pub seq: u64,
    pub kind: Kind,
    pub group: u16,
}

impl Offer {
    const NONE: Self = Self {
        at: NEVER,
        seq: 0,
        kind: Kind::Read,
        group: 0,
    };
}

/// Commands that a bank could use next, each for one request.
///
/// A bank seldom has use for both directions, so the scheduler's scan looks at
/// two offers without a branch and at the third when `both` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offers {
    /// A read or write of the open row.
    pub column: Offer,
    /// An activate or precharge.
    pub row: Offer,
    /// A write beside the read.
    pub write: Offer,
    pub both: bool,
    /// Positions of the read and the write in the bank's queue, or [`NONE`].
    pub hits: [u8; 2],
}

impl Offers {
    pub const NOTHING: Self = Self {
        column: Offer::NONE,
        row: Offer::NONE,
        write: Offer::NONE,
        both: false,
        hits: [NONE; 2],
    };

    /// From when the bank itself allows any of it.
    pub fn not_before(&self) -> Cycle {
        self.column.at.min(self.row.at).min(self.write.at)
    }
}

/// A bank with requests, as a scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankView<'a> {
    /// Its requests, oldest first, and where they are kept.
    pub queue: &'a BankQueue,
    pub pool: &'a Pool,
    /// Accesses to the open row, and row hits that have passed the oldest
    /// request.
    pub uses: u32,
    pub passed: u32,
    pub state: &'a Bank,
    /// Where the limit on its rank's precharges stands.
    pub precharges: u16,
}

impl BankView<'_> {
    /// The open row.
    #[inline]
    pub fn open_row(&self) -> Option<u32> {
        (self.state.open_row != NO_ROW).then_some(self.state.open_row)
    }

    #[inline]
    fn offer(&self, at: Cycle, position: u8, kind: Kind, group: u16) -> Offer {
        let seq = self.pool.get(self.queue.slot(position)).seq;
        Offer {
            at,
            seq,
            kind,
            group,
        }
    }

    /// Opens the row of the oldest request.
    #[inline]
    pub fn activate(&self) -> Offer {
        let group = self.state.group;
        self.offer(self.state.next_act, 0, Kind::Activate, group)
    }

    /// Closes the open row for the oldest request.
    #[inline]
    pub fn precharge(&self) -> Offer {
        self.offer(self.state.next_pre, 0, Kind::Precharge, self.precharges)
    }

    /// Adds the row hits at these positions of the queue, [`NONE`] for none.
    #[inline]
    pub fn add_hits(&self, offers: &mut Offers, read: u8, write: u8) {
        let (at, group) = (self.state.next_col, self.state.group);
        offers.hits = [read, write];
        if read != NONE {
            offers.column = self.offer(at, read, Kind::Read, group);
        }
        if write != NONE {
            offers.both = read != NONE;
            let place = if offers.both {
                &mut offers.write
            } else {
                &mut offers.column
            };
            *place = self.offer(at, write, Kind::Write, group);
        }
    }
}

/// Places of a bank's commands among others', below `1 <<` [`Key::TURN_BITS`]: the
/// least goes first, of equals the one for the oldest request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub column: u64,
    pub row: u64,
}

/// Order among commands, in one word; the least goes first. From the top:
/// cycles from now, then the scheduler's turn, then age, then the [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    const TIME_BITS: u32 = 26;
    /// Turns are below 2 to this power.
    pub const TURN_BITS: u32 = 12;
    const KIND_BITS: u32 = 2;
    const AGE_BITS: u32 = 64 - Self::TIME_BITS - Self::TURN_BITS - Self::KIND_BITS;
    const FAR: Cycle = (1 << Self::TIME_BITS) - 1;

    /// No command.
    pub const NONE: Self = Self(u64::MAX);

    /// Requests older than this one, of the controller's last `seq`, are all
    /// of one age.
    #[inline(always)]
    pub fn oldest(seq: u64) -> u64 {
        seq.saturating_sub((1 << Self::AGE_BITS) - 1)
    }

    #[inline(always)]
    pub fn new(wait: Cycle, turn: u64, age: u64, kind: Kind) -> Self {
        Self(
            wait.min(Self::FAR) << (64 - Self::TIME_BITS)
                | turn << (Self::AGE_BITS + Self::KIND_BITS)
                | age << Self::KIND_BITS
                | kind as u64,
        )
    }

    pub fn wait(self) -> Cycle {
        self.0 >> (64 - Self::TIME_BITS)
    }

    pub fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Activate,
            _ => Kind::Precharge,
        }
    }
}
