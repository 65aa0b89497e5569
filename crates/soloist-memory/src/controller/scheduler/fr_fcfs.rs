//! First ready, first come, first served (FR-FCFS; Rixner et al., ISCA 2000).
//!
//! A bank serves the oldest row hit of either direction. It closes the row for
//! its oldest request when nothing hits; when the row has been used `hit_limit`
//! times, if that is legal before the next hit; and always when `hit_cap` hits
//! have passed that request.

use soloist_machine::memory::Policy;

use super::super::offer::{BankView, Offers, Turns};
use super::super::queue::NONE;
use super::{BankOrder, Scheduler};

#[derive(Clone, Debug)]
pub(in super::super) struct FrFcfs {
    order: BankOrder,
    hit_limit: u32,
    hit_cap: u32,
}

impl FrFcfs {
    pub fn new(policy: &Policy) -> Self {
        Self {
            order: BankOrder::new(policy),
            hit_limit: policy.hit_limit,
            hit_cap: policy.hit_cap,
        }
    }
}

impl Scheduler for FrFcfs {
    #[inline(always)]
    fn offer(&self, bank: &BankView<'_>, offers: &mut Offers) {
        let Some(row) = bank.open_row() else {
            offers.row = bank.activate();
            return;
        };
        let (read, write) = bank.queue.hits(row);
        let oldest_hits = read == 0 || write == 0;
        let any_hits = read != NONE || write != NONE;
        let capped = bank.passed >= self.hit_cap;
        if !oldest_hits && (!any_hits || capped || bank.uses >= self.hit_limit) {
            offers.row = bank.precharge();
            if capped {
                return;
            }
        }
        bank.add_hits(offers, read, write);
    }

    #[inline(always)]
    fn turns(&self, bank: u16, _offers: &Offers) -> Turns {
        self.order.turns(bank)
    }

    #[inline(always)]
    fn issued(&mut self, bank: u16) {
        self.order.served = bank;
    }

    /// Only the first hit of its direction.
    #[inline(always)]
    fn reconsiders(&self, offered: &Offers, hits: bool, write: bool) -> bool {
        hits && offered.hits[usize::from(write)] == NONE
    }
}
