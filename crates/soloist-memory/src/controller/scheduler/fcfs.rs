//! First come, first served: a bank serves its requests in the order in which
//! they came to it, whatever row is open. The baseline of papers on scheduling.

use soloist_machine::memory::Policy;

use super::super::offer::{BankView, Offers, Turns};
use super::super::queue::NONE;
use super::{BankOrder, Scheduler};

#[derive(Clone, Debug)]
pub(in super::super) struct Fcfs {
    order: BankOrder,
}

impl Fcfs {
    pub fn new(policy: &Policy) -> Self {
        Self {
            order: BankOrder::new(policy),
        }
    }
}

impl Scheduler for Fcfs {
    fn offer(&self, bank: &BankView<'_>, offers: &mut Offers) {
        let Some(row) = bank.open_row() else {
            offers.row = bank.activate();
            return;
        };
        match bank.queue.hits(row) {
            (0, _) => bank.add_hits(offers, 0, NONE),
            (_, 0) => bank.add_hits(offers, NONE, 0),
            _ => offers.row = bank.precharge(),
        }
    }

    fn turns(&self, bank: u16, _offers: &Offers) -> Turns {
        self.order.turns(bank)
    }

    fn issued(&mut self, bank: u16) {
        self.order.served = bank;
    }

    /// The oldest stays the oldest.
    fn reconsiders(&self, _offered: &Offers, _hits: bool, _write: bool) -> bool {
        false
    }
}
