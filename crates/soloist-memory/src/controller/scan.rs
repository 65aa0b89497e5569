//! Which offer is first.
//!
//! What other banks do only puts a bank's command off; so from when the bank
//! itself allows one, or from what was found out later, follows which banks can
//! still be first, and only those are asked.

use super::offer::{Key, Kind, Offer, Offers};
use super::scheduler::Scheduler;
use super::turns::Held;
use crate::dram::{Channel, Cycle};

/// All that banks offer.
pub(super) struct Scan<'a> {
    /// By bank.
    pub offers: &'a [Offers],
    /// By bank: none of its commands is legal before this.
    pub not_before: &'a mut [Cycle],
    /// Banks with requests.
    pub active: &'a [u16],
    pub channel: &'a Channel,
    /// The earliest cycle for any command.
    pub floor: Cycle,
    /// Number of the last request.
    pub seq: u64,
}

impl Scan<'_> {
    /// The first command that `bank` could use.
    #[inline(always)]
    pub fn best_of(&self, bank: u16, scheduler: &impl Scheduler) -> Key {
        self.best(bank, scheduler, None)
    }

    /// The same, but no column command that is held.
    #[inline(always)]
    fn best(&self, bank: u16, scheduler: &impl Scheduler, held: Option<Held>) -> Key {
        let offers = &self.offers[usize::from(bank)];
        let turns = scheduler.turns(bank, offers);
        let oldest = Key::oldest(self.seq);
        let key = |offer: &Offer, turn: u64, from: Cycle| {
            let wait = offer.at.max(from).max(self.floor) - self.floor;
            Key::new(wait, turn, offer.seq.saturating_sub(oldest), offer.kind)
        };
        let groups = &self.channel.groups;
        let column = |offer: &Offer| {
            let write = offer.kind == Kind::Write;
            let rank = || self.channel.banks[usize::from(bank)].rank;
            if held.is_some_and(|held| held.holds(write, rank())) {
                return Key::NONE;
            }
            let direction = usize::from(write);
            let from = groups[usize::from(offer.group)].next_col[direction];
            key(offer, turns.column, from)
        };
        let row = &offers.row;
        let mut best = key(row, turns.row, groups[usize::from(row.group)].next_act);
        best = best.min(column(&offers.column));
        if offers.both {
            best = best.min(column(&offers.write));
        }
        best
    }

    /// As [`Self::first`] while some are held. What it finds holds only as long, so it
    /// leaves no trace.
    pub fn first_without(self, scheduler: &impl Scheduler, held: Held) -> (Key, u16) {
        let best = |&bank: &u16| (self.best(bank, scheduler, Some(held)), bank);
        let keys = self.active.iter().map(best);
        keys.min_by_key(|&(key, _)| key).unwrap_or((Key::NONE, 0))
    }

    /// The first command of all banks, and its bank; [`Key::NONE`] where none
    /// has work.
    #[inline(always)]
    pub fn first(self, scheduler: &impl Scheduler) -> (Key, u16) {
        let earliest = |bank: &&u16| self.not_before[usize::from(**bank)];
        let mut best = (Key::NONE, 0);
        let first = self.active.iter().min_by_key(earliest).copied();
        if let Some(bank) = first {
            best = (self.best_of(bank, scheduler), bank);
            self.not_before[usize::from(bank)] = self.floor + best.0.wait();
        }
        for &bank in self.active {
            let at = self.floor + best.0.wait();
            if self.not_before[usize::from(bank)] > at || Some(bank) == first {
                continue;
            }
            let key = self.best_of(bank, scheduler);
            self.not_before[usize::from(bank)] = self.floor + key.wait();
            if key < best.0 {
                best = (key, bank);
            }
        }
        best
    }
}
