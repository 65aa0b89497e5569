//! The banks' queues and what each bank offers.
//!
//! What a bank offers is worked out anew only when the bank itself changes.

use crate::dram::{Channel, Cycle};

use super::offer::{BankView, Key, Kind, Offer, Offers};
use super::queue::{BankQueue, Entry, Pool};
use super::request::RowOutcome;
use super::scan::Scan;
use super::scheduler::{AnyScheduler, Scheduler};
use super::turns::Held;

/// Where the next row change of a bank comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    /// The row has served its first access.
    Used,
    FromClosed,
    FromConflict,
}

#[derive(Clone, Debug)]
struct BankWork {
    queue: BankQueue,
    opened: Opened,
    closed_on_demand: bool,
    /// Accesses to the open row.
    uses: u32,
    /// Row hits that have passed the oldest request.
    passed: u32,
    /// Position in `active`, if any.
    active_at: u16,
    refreshing: bool,
}

const INACTIVE: u16 = u16::MAX;

impl BankWork {
    fn new() -> Self {
        Self {
            queue: BankQueue::new(),
            opened: Opened::Used,
            closed_on_demand: false,
            uses: 0,
            passed: 0,
            active_at: INACTIVE,
            refreshing: false,
        }
    }
}

pub(super) struct Banks {
    scheduler: AnyScheduler,
    work: Vec<BankWork>,
    /// What each bank could do next: apart, for the scan.
    offers: Vec<Offers>,
    /// No command of a bank is legal before this. What other banks do only
    /// puts it off, so that it holds until the bank itself changes.
    not_before: Vec<Cycle>,
    /// Banks with requests, in no order.
    active: Vec<u16>,
}

impl Banks {
    pub fn new(banks: usize, scheduler: AnyScheduler) -> Self {
        Self {
            scheduler,
            work: vec![BankWork::new(); banks],
            offers: vec![Offers::NOTHING; banks],
            not_before: vec![0; banks],
            active: Vec::with_capacity(banks),
        }
    }

    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// No bank has a request.
    #[inline]
    pub fn are_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Requests in all queues.
    pub fn waiting(&self) -> usize {
        let queue_of = |&bank: &u16| self.queue(bank).len();
        self.active.iter().map(queue_of).sum()
    }

    #[inline]
    pub fn queue(&self, bank: u16) -> &BankQueue {
        &self.work[usize::from(bank)].queue
    }

    /// Puts the request in `slot` into its bank's queue. Does that change what
    /// the bank could do next?
    #[inline(always)]
    pub fn enqueue(&mut self, slot: u16, pool: &Pool, channel: &Channel) -> bool {
        let &Entry {
            bank, row, write, ..
        } = pool.get(slot);
        let b = usize::from(bank);
        let work = &mut self.work[b];
        work.queue.push(slot, row, write);
        if work.active_at == INACTIVE {
            work.active_at = self.active.len() as u16;
            self.active.push(bank);
        } else {
            let hits = row == channel.banks[b].open_row;
            if !self.scheduler.reconsiders(&self.offers[b], hits, write) {
                return false;
            }
        }
        self.update(bank, pool, channel);
        true
    }

    /// Works out anew what `bank` could do next.
    #[inline]
    pub fn update(&mut self, bank: u16, pool: &Pool, channel: &Channel) {
        let b = usize::from(bank);
        let work = &mut self.work[b];
        if work.queue.len() == 0 {
            if work.active_at != INACTIVE {
                let at = std::mem::replace(&mut work.active_at, INACTIVE);
                self.active.swap_remove(usize::from(at));
                if let Some(&moved) = self.active.get(usize::from(at)) {
                    self.work[usize::from(moved)].active_at = at;
                }
            }
            self.offers[b] = Offers::NOTHING;
            return;
        }
        let offers = &mut self.offers[b];
        *offers = Offers::NOTHING;
        if !work.refreshing {
            let view = BankView {
                queue: &work.queue,
                pool,
                uses: work.uses,
                passed: work.passed,
                state: &channel.banks[b],
                precharges: channel.precharges_of(channel.banks[b].rank),
            };
            self.scheduler.offer(&view, offers);
        }
        self.not_before[b] = offers.not_before();
    }

    // ---- commands that are issued ----

    /// Notes the column command that `bank` offers; returns the position of its
    /// request, still in the queue, and how that found the row.
    #[inline(always)]
    pub fn note_column(&mut self, bank: u16, write: bool) -> (u8, RowOutcome) {
        self.scheduler.issued(bank);
        let b = usize::from(bank);
        let position = self.offers[b].hits[usize::from(write)];
        let work = &mut self.work[b];
        work.uses += 1;
        work.passed = if position == 0 { 0 } else { work.passed + 1 };
        let outcome = match std::mem::replace(&mut work.opened, Opened::Used) {
            Opened::Used => RowOutcome::Hit,
            Opened::FromClosed => RowOutcome::Closed,
            Opened::FromConflict => RowOutcome::Conflict,
        };
        (position, outcome)
    }

    /// Removes the request at `position` of a bank's queue.
    #[inline(always)]
    pub fn remove(&mut self, bank: u16, position: u8) {
        self.work[usize::from(bank)].queue.remove(position);
    }

    /// A row is opened.
    #[inline]
    pub fn note_activate(&mut self, bank: u16) {
        self.scheduler.issued(bank);
        let work = &mut self.work[usize::from(bank)];
        work.opened = if work.closed_on_demand {
            Opened::FromConflict
        } else {
            Opened::FromClosed
        };
        work.closed_on_demand = false;
        work.uses = 0;
        work.passed = 0;
    }

    /// A row is closed because another is needed.
    #[inline]
    pub fn note_precharge(&mut self, bank: u16) {
        self.scheduler.issued(bank);
        self.work[usize::from(bank)].closed_on_demand = true;
    }

    /// The row has closed by itself.
    #[inline]
    pub fn note_auto_precharge(&mut self, bank: u16) {
        self.work[usize::from(bank)].closed_on_demand = false;
    }

    /// The bank offers nothing until it has been refreshed.
    pub fn begin_refresh(&mut self, bank: u16) {
        self.work[usize::from(bank)].refreshing = true;
        self.offers[usize::from(bank)] = Offers::NOTHING;
    }

    /// Is it to be refreshed?
    #[inline]
    pub fn is_refreshing(&self, bank: u16) -> bool {
        self.work[usize::from(bank)].refreshing
    }

    /// It has been.
    pub fn end_refresh(&mut self, bank: u16) {
        let work = &mut self.work[usize::from(bank)];
        work.refreshing = false;
        work.closed_on_demand = false;
    }

    // ---- which command is first ----

    fn scan<'a>(
        &'a mut self,
        channel: &'a Channel,
        floor: Cycle,
        seq: u64,
    ) -> (&'a AnyScheduler, Scan<'a>) {
        let scan = Scan {
            offers: &self.offers,
            not_before: &mut self.not_before,
            active: &self.active,
            channel,
            floor,
            seq,
        };
        (&self.scheduler, scan)
    }

    /// The first command that `bank` could use, `floor` being the earliest
    /// cycle for any and `seq` the number of the last request.
    #[inline(always)]
    pub fn best_of(&mut self, bank: u16, channel: &Channel, floor: Cycle, seq: u64) -> Key {
        let (scheduler, scan) = self.scan(channel, floor, seq);
        scan.best_of(bank, scheduler)
    }

    /// Does a bank wait for a column command that `held` does not hold, `now` being late enough
    /// for the bank itself?
    pub fn wait_beside(&self, held: Held, channel: &Channel, now: Cycle) -> bool {
        self.active.iter().any(|&bank| {
            let offers = &self.offers[usize::from(bank)];
            let rank = channel.banks[usize::from(bank)].rank;
            let waits = |offer: &Offer| {
                let write = offer.kind == Kind::Write;
                offer.at <= now && !held.holds(write, rank)
            };
            waits(&offers.column) || (offers.both && waits(&offers.write))
        })
    }

    /// As [`Self::first`], but no column command that is held.
    pub fn first_without(
        &mut self,
        channel: &Channel,
        floor: Cycle,
        seq: u64,
        held: Held,
    ) -> (Key, u16) {
        let (scheduler, scan) = self.scan(channel, floor, seq);
        scan.first_without(scheduler, held)
    }

    /// The first command of all banks, and its bank; [`Key::NONE`] where none
    /// has work.
    #[inline]
    pub fn first(&mut self, channel: &Channel, floor: Cycle, seq: u64) -> (Key, u16) {
        let (scheduler, scan) = self.scan(channel, floor, seq);
        scan.first(scheduler)
    }
}
