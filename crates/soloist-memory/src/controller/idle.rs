//! Rows that nobody has used for so long that they are closed.
//!
//! All wait for the same time after their last use, so those that are to close stand in one
//! queue in the order of their last uses. An entry is void where the row was used again, or is
//! not open any more; that is seen when its turn comes.

use std::collections::VecDeque;

use super::banks::Banks;
use crate::dram::{Channel, Cycle, NO_ROW};

#[derive(Clone, Debug)]
pub(super) struct IdleRows {
    /// How long a row stays open, cycles.
    after: Cycle,
    /// By bank: its last access.
    used: Vec<Cycle>,
    /// When the row of which bank is to close.
    due: VecDeque<(Cycle, u16)>,
}

impl IdleRows {
    pub fn new(after: u32, banks: usize) -> Self {
        Self {
            after: Cycle::from(after),
            used: vec![0; banks],
            due: VecDeque::new(),
        }
    }

    /// An access to the row of `bank` at `t`, after which nothing waits for that bank.
    #[inline]
    pub fn used(&mut self, bank: u16, t: Cycle) {
        self.used[usize::from(bank)] = t;
        self.due.push_back((t + self.after, bank));
    }

    /// The first row to close, and from when that is legal.
    pub fn first(&mut self, banks: &Banks, channel: &Channel) -> Option<(Cycle, u16)> {
        while let Some(&(at, bank)) = self.due.front() {
            let b = usize::from(bank);
            let state = &channel.banks[b];
            let is_idle = at == self.used[b] + self.after
                && state.open_row != NO_ROW
                && banks.queue(bank).len() == 0
                && !banks.is_refreshing(bank);
            if is_idle {
                let rank = usize::from(channel.precharges_of(state.rank));
                let legal = state.next_pre.max(channel.groups[rank].next_act);
                return Some((at.max(legal), bank));
            }
            self.due.pop_front();
        }
        None
    }
}
