//! Who waited for whom: every picosecond of a core's waiting has a cause and a
//! culprit.
//!
//! # How it works
//! A line on its way carries a [`Bill`]: its life from the core's miss to its
//! arrival, cut into slices without gaps, each with a [`Label`]. Whatever holds
//! it up (a queue, a bank, a wire) adds the slice with the label of the core
//! that was in the way; what it would have taken in an idle machine is
//! [`Cause::Base`]. When a core waits, the end of the wait is some line's
//! arrival. Without what held it up that line would have been here so much
//! earlier; so the wait is charged to what is on the line's bill beyond the
//! base, in proportion, and only what is left of it to the base. (Charging what
//! the line was doing while the core waited would be wrong where lines overlap:
//! the last thing that each does is to travel back, whatever made it late.)
//! So a core's time is its instructions plus its sleep, barriers and shares, to
//! the picosecond; and since alone it is the same, a slowdown is the difference
//! of two [`Blame`]s ([`Blame::less`]).
//!
//! What a row change or a last-level miss is to be blamed on needs to know what
//! would have been alone: for each core, the row it last used in each bank, and
//! the tags that its last level would hold if it had it for itself.

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// Why something waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// What it takes without anybody in the way.
    Base,
    /// A bank served another row, or somebody else's row had to be closed.
    BankConflict,
    /// The channel carried other data or commands.
    Bus,
    /// A place in a queue, or requests ahead of it for the same row.
    Queue,
    /// A refresh.
    Refresh,
    /// Writes went first.
    WriteDrain,
    /// Memory had to be asked because others pushed the line out of the last
    /// level.
    LlcEviction,
    /// A path between nodes, or a node's data path, was in use.
    Link,
    /// Its own bandwidth regulation.
    Regulation,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Base,
        Self::BankConflict,
        Self::Bus,
        Self::Queue,
        Self::Refresh,
        Self::WriteDrain,
        Self::LlcEviction,
        Self::Link,
        Self::Regulation,
    ];

    /// Name as in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::BankConflict => "bank-conflict",
            Self::Bus => "bus",
            Self::Queue => "queue",
            Self::Refresh => "refresh",
            Self::WriteDrain => "write-drain",
            Self::LlcEviction => "llc-eviction",
            Self::Link => "link",
            Self::Regulation => "regulation",
        }
    }
}

/// Number of no core: what nobody is to be blamed for.
pub const NOBODY: u16 = u16::MAX;

/// A cause and the core (in replays: the source) behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Why.
    pub cause: Cause,
    /// Who, or [`NOBODY`].
    pub culprit: u16,
}

impl Label {
    /// A label.
    pub fn new(cause: Cause, culprit: u16) -> Self {
        Self { cause, culprit }
    }
}

/// What the life of a request was spent on, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    since: u64,
    /// End and label of each slice.
    slices: Vec<(u64, Label)>,
}

impl Bill {
    /// Begins anew at `at`.
    #[inline]
    pub fn start(&mut self, at: u64) {
        self.since = at;
        self.slices.clear();
    }

    /// Up to when it is written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.slices.last().map_or(self.since, |s| s.0)
    }

    /// All from where it ended to `at` was for `label`.
    #[inline]
    pub fn until(&mut self, at: u64, label: Label) {
        if at <= self.end() {
            return;
        }
        match self.slices.last_mut() {
            Some(last) if last.1 == label => last.0 = at,
            _ => self.slices.push((at, label)),
        }
    }

    /// Its slices: begin, end, label.
    pub fn slices(&self) -> impl Iterator<Item = (u64, u64, Label)> + '_ {
        (0..self.slices.len()).map(|i| {
            let begin = if i == 0 {
                self.since
            } else {
                self.slices[i - 1].0
            };
            (begin, self.slices[i].0, self.slices[i].1)
        })
    }
}

/// Time by cause and culprit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    cores: usize,
    /// By cause, then by culprit, the last being nobody; picoseconds.
    ps: Vec<i64>,
}

/// One part of a [`Blame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Why.
    pub cause: Cause,
    /// Core, or `None` where nobody is to be blamed.
    pub culprit: Option<usize>,
    /// How long, picoseconds; less than 0 in a difference.
    pub ps: i64,
}

impl Blame {
    /// Nobody blamed for anything, on a machine of so many cores.
    pub fn new(cores: usize) -> Self {
        Self {
            cores,
            ps: vec![0; Cause::ALL.len() * (cores + 1)],
        }
    }

    fn at(&self, label: Label) -> usize {
        label.cause as usize * (self.cores + 1) + usize::from(label.culprit).min(self.cores)
    }

    /// Adds `ps` to a label's share.
    #[inline]
    pub fn add(&mut self, label: Label, ps: u64) {
        let at = self.at(label);
        if let Some(share) = self.ps.get_mut(at) {
            *share += ps as i64;
        }
    }

    /// Adds a wait of `ps` that ended with the arrival of the line that `bill`
    /// is of; what that line was not held up for is `rest`'s.
    pub fn add_wait(&mut self, bill: &Bill, ps: u64, rest: Label) {
        let held_up = |s: &(u64, u64, Label)| s.2.cause != Cause::Base;
        let late: u64 = bill.slices().filter(held_up).map(|s| s.1 - s.0).sum();
        let charged = late.min(ps);
        let (mut before, mut sum) = (0, 0);
        for (begin, end, label) in bill.slices().filter(held_up) {
            sum += end - begin;
            let part = (u128::from(charged) * u128::from(sum) / u128::from(late)) as u64;
            self.add(label, part - before);
            before = part;
        }
        self.add(rest, ps - charged);
    }

    /// Shares that are not 0.
    pub fn shares(&self) -> impl Iterator<Item = Share> + '_ {
        let row = self.cores + 1;
        self.ps
            .iter()
            .enumerate()
            .filter(|(_, &ps)| ps != 0)
            .map(move |(i, &ps)| Share {
                cause: Cause::ALL[i / row],
                culprit: (i % row < self.cores).then_some(i % row),
                ps,
            })
    }

    /// One share, picoseconds.
    pub fn of(&self, cause: Cause, culprit: Option<usize>) -> i64 {
        let culprit = culprit.map_or(NOBODY, |c| c as u16);
        let at = self.at(Label::new(cause, culprit));
        self.ps.get(at).copied().unwrap_or(0)
    }

    /// All shares of a culprit, picoseconds.
    pub fn of_culprit(&self, culprit: Option<usize>) -> i64 {
        let shares = self.shares().filter(|s| s.culprit == culprit);
        shares.map(|s| s.ps).sum()
    }

    /// Sum of all shares, picoseconds.
    pub fn total_ps(&self) -> i64 {
        self.ps.iter().sum()
    }

    /// What is here beyond `alone`: by whom and why a task was slower than
    /// alone. A share of its own may be less than 0.
    pub fn less(&self, alone: &Self) -> Self {
        let mut difference = Self::new(self.cores.max(alone.cores));
        for (blame, sign) in [(self, 1), (alone, -1)] {
            for share in blame.shares() {
                let culprit = share.culprit.map_or(NOBODY, |c| c as u16);
                let at = difference.at(Label::new(share.cause, culprit));
                difference.ps[at] += sign * share.ps;
            }
        }
        difference
    }
}

impl Serialize for Blame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for share in self.shares() {
            seq.serialize_element(&share)?;
        }
        seq.end()
    }
}
