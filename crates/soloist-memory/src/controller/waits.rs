//! Who makes whom wait inside one controller.
//!
//! # How it works
//! Every command of a bank closes a slice of time for the reads that wait for
//! that bank. Up to when the bank itself was ready for the command, it was busy
//! with what it had done before: a refresh, somebody's write, another row. From
//! then on the request that the command serves waited for what banks share, and
//! the column commands issued meanwhile say whose data that was; the others in
//! the bank's queue waited for that request. Every column command closes a slice
//! for the reads that wait for a place in its bank's queue, or for a drain's end.
//!
//! Opening a row is nobody's fault, unless it is the row that the request's
//! owner used last in that bank: alone it would be open still.

use std::collections::VecDeque;

use super::queue::{Entry, Pool};
use crate::blame::{Bill, Cause, Label};
use crate::dram::Cycle;

/// Column commands remembered.
const COLUMNS: usize = 64;

/// What a bank did last.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    Refresh,
    /// Something for the request in this slot.
    Request {
        slot: u16,
        seq: u64,
        owner: u16,
        row: u32,
        write: bool,
    },
}

#[derive(Clone, Debug)]
struct BankWaits {
    last: Last,
    /// Why the row that was open last is open no longer.
    closed: Option<Label>,
    /// Since when a refresh keeps everything else from it.
    refresh_since: Option<Cycle>,
    /// The row that each owner used last.
    rows: Vec<Option<u32>>,
}

/// A command about to be issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub at: Cycle,
    pub bank: u16,
    /// The request that it serves.
    pub slot: u16,
    /// When the bank itself was ready for it.
    pub ready: Cycle,
    /// When what banks share was.
    pub shared: Cycle,
}

/// A column command that was issued.
#[derive(Clone, Copy, Debug)]
struct Column {
    at: Cycle,
    owner: u16,
    write: bool,
}

/// The bills of a controller's reads.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    bills: Vec<Bill>,
    banks: Vec<BankWaits>,
    /// For each slot: whose fault its row change is.
    faults: Vec<Option<Label>>,
    /// The last ones.
    columns: VecDeque<Column>,
    done: Bill,
}

impl Waits {
    pub fn new(slots: usize, banks: usize) -> Self {
        let bank = BankWaits {
            last: Last::Nothing,
            closed: None,
            refresh_since: None,
            rows: Vec::new(),
        };
        Self {
            bills: vec![Bill::default(); slots],
            banks: vec![bank; banks],
            faults: vec![None; slots],
            columns: VecDeque::with_capacity(COLUMNS),
            done: Bill::default(),
        }
    }

    /// Bill of the read that was completed last.
    pub fn done(&self) -> &Bill {
        &self.done
    }

    /// A read that the write buffer served.
    pub fn buffered(&mut self, owner: u16, from: Cycle, to: Cycle) {
        self.done.start(from);
        self.done.until(to, Label::new(Cause::Base, owner));
    }

    pub fn enter(&mut self, slot: u16, at: Cycle) {
        self.bills[usize::from(slot)].start(at);
        self.faults[usize::from(slot)] = None;
    }

    /// A request moves to its bank's queue, at `now`.
    pub fn moves_on(&mut self, slot: u16, e: &Entry, now: Cycle, draining: bool) {
        let Some(&Column { owner, write, .. }) = self.columns.back() else {
            return;
        };
        let label = if draining && write {
            Label::new(Cause::WriteDrain, owner)
        } else {
            self.occupied(&self.banks[usize::from(e.bank)], slot, e)
        };
        self.bills[usize::from(slot)].until(now, label);
    }

    /// What the bank was busy with, as far as `e` in `slot` is concerned.
    fn occupied(&self, bank: &BankWaits, slot: u16, e: &Entry) -> Label {
        let own = Label::new(Cause::Base, e.owner);
        match bank.last {
            Last::Nothing => own,
            Last::Refresh => Label::new(Cause::Refresh, crate::blame::NOBODY),
            Last::Request { slot: s, seq, .. } if s == slot && seq == e.seq => {
                self.faults[usize::from(slot)].unwrap_or(own)
            }
            Last::Request {
                owner, row, write, ..
            } => behind(e, owner, row, write),
        }
    }

    /// A command is issued for a request in `queue`, the bank's.
    pub fn command(&mut self, c: Command, queue: &[u16], pool: &Pool) {
        let served = pool.get(c.slot).clone();
        for &slot in queue {
            let e = pool.get(slot);
            if e.write {
                continue;
            }
            let busy = self.occupied(&self.banks[usize::from(c.bank)], slot, e);
            self.bills[usize::from(slot)].until(c.ready.min(c.at), busy);
            if slot == c.slot {
                self.share(slot, e.owner, c);
            } else {
                let label = behind(e, served.owner, served.row, served.write);
                self.bills[usize::from(slot)].until(c.at, label);
            }
        }
        self.banks[usize::from(c.bank)].last = Last::Request {
            slot: c.slot,
            seq: served.seq,
            owner: served.owner,
            row: served.row,
            write: served.write,
        };
    }

    /// The bank was ready for the command, and it had to wait for what banks
    /// share.
    fn share(&mut self, slot: u16, owner: u16, c: Command) {
        let bill = &mut self.bills[usize::from(slot)];
        let from = bill.end();
        let end = c.shared.min(c.at);
        let before = |at: Cycle| at < end;
        let since = self.columns.partition_point(|column| column.at <= from);
        for i in since.saturating_sub(1)..self.columns.len() {
            let Column { at, owner, write } = self.columns[i];
            if !before(at) {
                break;
            }
            let until = self.columns.get(i + 1).map_or(end, |next| next.at.min(end));
            let cause = if write { Cause::WriteDrain } else { Cause::Bus };
            bill.until(until, Label::new(cause, owner));
        }
        // Activates of others, the command bus, or the cycle that it takes
        // to see a request.
        let other = match self.columns.back() {
            Some(last) if c.at > from + 1 && last.at + 64 > c.at => {
                Label::new(Cause::Bus, last.owner)
            }
            _ => Label::new(Cause::Base, owner),
        };
        bill.until(c.at, other);
    }

    /// A row is about to be closed for the request in `slot`.
    pub fn closes(&mut self, bank: u16, slot: u16, e: &Entry) {
        let b = &mut self.banks[usize::from(bank)];
        b.closed = match b.last {
            Last::Request { owner, .. } => Some(Label::new(Cause::BankConflict, owner)),
            _ => None,
        };
        self.faults[usize::from(slot)] = self.fault(bank, e);
    }

    /// A row is about to be opened for the request in `slot`.
    pub fn opens(&mut self, bank: u16, slot: u16, e: &Entry) {
        self.faults[usize::from(slot)] = self.fault(bank, e);
    }

    /// Whose fault it is that the request's row is not open.
    fn fault(&self, bank: u16, e: &Entry) -> Option<Label> {
        let b = &self.banks[usize::from(bank)];
        let last = b.rows.get(usize::from(e.owner)).copied().flatten();
        b.closed
            .filter(|label| last == Some(e.row) && label.culprit != e.owner)
    }

    /// The row has closed by itself.
    pub fn closes_itself(&mut self, bank: u16) {
        self.banks[usize::from(bank)].closed = None;
    }

    /// A column command has been issued for the request in `slot`; its data
    /// is through at `done`. `waiting` are the reads before the bank queues.
    pub fn column(
        &mut self,
        at: Cycle,
        done: Cycle,
        slot: u16,
        pool: &Pool,
        draining: bool,
        waiting: impl Iterator<Item = (u16, u16)>,
    ) {
        let e = pool.get(slot);
        if !e.write {
            let bill = &mut self.bills[usize::from(slot)];
            bill.until(done, Label::new(Cause::Base, e.owner));
            std::mem::swap(&mut self.done, bill);
        }
        let drain = draining && e.write;
        for (bank, slot) in waiting {
            if bank == e.bank {
                let label = behind(pool.get(slot), e.owner, e.row, e.write);
                self.bills[usize::from(slot)].until(at, label);
            } else if drain {
                let label = Label::new(Cause::WriteDrain, e.owner);
                self.bills[usize::from(slot)].until(at, label);
            }
        }
        if self.columns.len() == COLUMNS {
            self.columns.pop_front();
        }
        self.columns.push_back(Column {
            at,
            owner: e.owner,
            write: e.write,
        });
        let rows = &mut self.banks[usize::from(e.bank)].rows;
        let owner = usize::from(e.owner);
        if rows.len() <= owner {
            rows.resize(owner + 1, None);
        }
        rows[owner] = Some(e.row);
    }

    /// A refresh of `bank` falls due.
    pub fn refresh_due(&mut self, bank: u16, at: Cycle) {
        self.banks[usize::from(bank)]
            .refresh_since
            .get_or_insert(at);
    }

    /// It is issued.
    pub fn refresh(&mut self, bank: u16, at: Cycle, queue: &[u16], pool: &Pool) {
        let due = self.banks[usize::from(bank)].refresh_since.take();
        for &slot in queue {
            let e = pool.get(slot);
            if e.write {
                continue;
            }
            let busy = self.occupied(&self.banks[usize::from(bank)], slot, e);
            let refresh = Label::new(Cause::Refresh, crate::blame::NOBODY);
            let bill = &mut self.bills[usize::from(slot)];
            bill.until(due.unwrap_or(at), busy);
            bill.until(at, refresh);
        }
        let b = &mut self.banks[usize::from(bank)];
        b.last = Last::Refresh;
        b.closed = Some(Label::new(Cause::Refresh, crate::blame::NOBODY));
    }
}

/// Why `e` waits while its bank serves a request of `owner`.
fn behind(e: &Entry, owner: u16, row: u32, write: bool) -> Label {
    let cause = if write && !e.write {
        Cause::WriteDrain
    } else if row == e.row {
        Cause::Queue
    } else {
        Cause::BankConflict
    };
    Label::new(cause, owner)
}
