//! The way of requests from the shared queues to the queues of their banks.
//!
//! Reads move as soon as there is room; during a drain writes do, and reads
//! wait.

use super::Controller;

impl Controller {
    /// Should writes be drained now?
    #[inline]
    pub(super) fn drain_is_due(&self) -> bool {
        let reads = self.reads.len() + self.reads_inside;
        self.drain.is_due(self.writes.len(), reads)
    }

    /// Room in the bank's own queue?
    #[inline]
    pub(super) fn has_room(&self, bank: u16) -> bool {
        self.banks.queue(bank).len() < self.bank_queue
    }

    /// Refills the queue of one bank after it has lost a request.
    #[inline]
    pub(super) fn feed_bank(&mut self, bank: u16) {
        if !self.drain.is_active() && !self.drain_is_due() {
            if self.reads.len() > 0 {
                if let Some(at) = self.reads.first_of(bank) {
                    self.move_on(false, at);
                }
            }
            return;
        }
        self.feed();
    }

    /// Moves requests from the shared queues to the bank queues, as the drain
    /// state allows.
    pub(super) fn feed(&mut self) {
        loop {
            let until = match self.drain.until() {
                Some(until) => until,
                None => {
                    self.move_fitting(false, 0);
                    if !self.drain_is_due() {
                        return;
                    }
                    self.counts.drains += 1;
                    self.drain.begin(self.reads.len() + self.reads_inside)
                }
            };
            self.move_fitting(true, until);
            if self.writes.len() > until {
                return;
            }
            self.drain.end();
        }
    }

    /// Moves what fits, oldest first, until `low` are left.
    fn move_fitting(&mut self, write: bool, low: usize) {
        let mut at = 0;
        loop {
            let queue = if write { &self.writes } else { &self.reads };
            if at >= queue.len() || queue.len() <= low {
                return;
            }
            if self.has_room(queue.bank(at)) {
                self.move_on(write, at);
            } else {
                at += 1;
            }
        }
    }

    /// Moves one request from a shared queue to its bank's.
    #[inline]
    fn move_on(&mut self, write: bool, at: usize) {
        let queue = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        if queue.is_full() {
            // What leaves in cycle t makes room for arrivals from t + 1 on.
            self.room_since[usize::from(write)] = self.now;
        }
        let slot = queue.remove(at);
        if let Some(waits) = &mut self.waits {
            let draining = write || self.drain.is_active();
            waits.moves_on(slot, self.pool.get(slot), self.now, draining);
        }
        self.enqueue(slot, write);
    }

    /// Puts a request into its bank's queue. Does that change what the bank
    /// could do next?
    #[inline]
    pub(super) fn enqueue(&mut self, slot: u16, write: bool) -> bool {
        if !write {
            self.reads_inside += 1;
        }
        self.banks.enqueue(slot, &self.pool, &self.channel)
    }
}
