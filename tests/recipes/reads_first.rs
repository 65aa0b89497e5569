//! Row hits that read, then row hits that write, then the oldest request.

use soloist_machine::memory::Policy;

use super::super::offer::{BankView, Offers, Turns};
use super::super::queue::NONE;
use super::{BankOrder, Scheduler};

#[derive(Clone, Debug)]
pub(in super::super) struct ReadsFirst {
    order: BankOrder,
}

impl ReadsFirst {
    pub fn new(policy: &Policy) -> Self {
        Self {
            order: BankOrder::new(policy),
        }
    }
}

impl Scheduler for ReadsFirst {
    fn offer(&self, bank: &BankView<'_>, offers: &mut Offers) {
        let Some(row) = bank.open_row() else {
            offers.row = bank.activate();
            return;
        };
        match bank.queue.hits(row) {
            (NONE, NONE) => offers.row = bank.precharge(),
            (NONE, write) => bank.add_hits(offers, NONE, write),
            (read, _) => bank.add_hits(offers, read, NONE),
        }
    }

    fn turns(&self, bank: u16, _offers: &Offers) -> Turns {
        self.order.turns(bank)
    }

    fn issued(&mut self, bank: u16) {
        self.order.served = bank;
    }
}
