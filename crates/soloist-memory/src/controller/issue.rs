//! Commands as they are issued: what each changes in the DRAM and the queues,
//! and what the bills and the log are told of it.

use super::offer::Kind;
use super::request::Completion;
use super::waits;
use super::Controller;
use crate::dram::{Command, Cycle, Issued};

impl Controller {
    /// Issues a command of `bank`. Returns the request that it completes, if
    /// any.
    #[inline(always)]
    pub(super) fn issue(&mut self, bank: u16, kind: Kind, t: Cycle) -> Option<Completion> {
        match kind {
            Kind::Read => return Some(self.issue_column(bank, false, t)),
            Kind::Write => return Some(self.issue_column(bank, true, t)),
            Kind::Activate => self.issue_activate(bank, t),
            Kind::Precharge => self.issue_precharge(bank, t),
        }
        None
    }

    #[inline]
    fn log(&mut self, at: Cycle, bank: u16, command: Command) {
        if let Some(log) = &mut self.log {
            log.push(Issued { at, bank, command });
        }
    }

    #[inline(always)]
    fn issue_column(&mut self, bank: u16, write: bool, t: Cycle) -> Completion {
        let b = usize::from(bank);
        self.turn.issued(write, self.channel.banks[b].rank);
        let (position, outcome) = self.banks.note_column(bank, write);
        let slot = self.banks.queue(bank).slot(position);
        if self.waits.is_some() {
            let group = &self.channel.groups[usize::from(self.channel.banks[b].group)];
            let shared = group.next_col[usize::from(write)];
            self.bill_command(t, bank, slot, self.channel.banks[b].next_col, shared);
        }
        self.banks.remove(bank, position);
        if !write {
            self.reads_inside -= 1;
        }
        let entry = self.pool.get(slot);
        let (token, arrival, line) = (entry.token, entry.arrival, entry.line);
        self.last_owner = entry.owner;
        if let Some(waits) = &mut self.waits {
            let timing = &self.channel.timing;
            let done = t + if write {
                timing.wr_done
            } else {
                timing.rd_done
            };
            let draining = self.drain.is_active();
            waits.column(t, done, slot, &self.pool, draining, self.reads.all());
        }
        self.pool.free(slot);
        if write {
            self.buffered.remove(line);
        }
        self.feed_bank(bank);
        let row = self.channel.banks[b].open_row;
        let auto = self.row_policy.auto_precharges(self.banks.queue(bank), row);
        let done = self.channel.column(b, write, auto, t);
        if let Some(idle) = &mut self.idle_rows {
            if self.banks.queue(bank).len() == 0 {
                idle.used(bank, t);
            }
        }
        if auto {
            self.banks.note_auto_precharge(bank);
            if let Some(waits) = &mut self.waits {
                waits.closes_itself(bank);
            }
        }
        let command = if write {
            Command::Write { auto }
        } else {
            Command::Read { auto }
        };
        self.log(t, bank, command);
        self.banks.update(bank, &self.pool, &self.channel);
        if let Some(unit) = self.refresh.manage(bank, self.channel.units()) {
            self.stop_unit(unit);
        }
        Completion {
            token,
            arrival,
            done,
            write,
            outcome,
        }
    }

    #[inline]
    fn issue_activate(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
        if let Some(waits) = &mut self.waits {
            let slot = self.banks.queue(bank).slot(0);
            waits.opens(bank, slot, self.pool.get(slot));
            let state = &self.channel.banks[b];
            let shared = self.channel.groups[usize::from(state.group)].next_act;
            self.bill_command(t, bank, slot, state.next_act, shared);
        }
        self.banks.note_activate(bank);
        self.refresh.activated(bank);
        let row = self.banks.queue(bank).oldest_row();
        self.channel.activate(b, row, t);
        self.counts.activates += 1;
        self.log(t, bank, Command::Activate { row });
        self.banks.update(bank, &self.pool, &self.channel);
    }

    #[inline]
    fn issue_precharge(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
        if let Some(waits) = &mut self.waits {
            let slot = self.banks.queue(bank).slot(0);
            waits.closes(bank, slot, self.pool.get(slot));
            self.bill_command(t, bank, slot, self.channel.banks[b].next_pre, 0);
        }
        self.banks.note_precharge(bank);
        self.channel.precharge(b, t);
        self.counts.precharges += 1;
        self.log(t, bank, Command::Precharge);
        self.banks.update(bank, &self.pool, &self.channel);
    }

    /// Closes a row that nobody has used for long.
    pub(super) fn close_idle(&mut self, bank: u16, t: Cycle) {
        self.banks.note_auto_precharge(bank);
        self.channel.precharge(usize::from(bank), t);
        self.counts.precharges += 1;
        if let Some(waits) = &mut self.waits {
            waits.closes_itself(bank);
        }
        self.log(t, bank, Command::Precharge);
    }

    /// Tells the bills of a command that is about to be issued for the request
    /// in `slot`.
    fn bill_command(&mut self, at: Cycle, bank: u16, slot: u16, ready: Cycle, shared: Cycle) {
        let command = waits::Command {
            at,
            bank,
            slot,
            ready,
            shared,
        };
        if let Some(waits) = &mut self.waits {
            waits.command(command, self.banks.queue(bank).slots(), &self.pool);
        }
    }

    // ---- refresh ----

    pub(super) fn refresh_falls_due(&mut self) {
        let unit = self.refresh.fall_due();
        self.stop_unit(unit);
    }

    /// The banks of a unit do nothing else until they have been refreshed.
    fn stop_unit(&mut self, unit: usize) {
        for &bank in &self.channel.units()[unit] {
            self.banks.begin_refresh(bank);
            if let Some(waits) = &mut self.waits {
                waits.refresh_due(bank, self.now);
            }
        }
    }

    pub(super) fn close_unit(&mut self, unit: u16, t: Cycle) {
        let unit = usize::from(unit);
        self.log(t, self.channel.units()[unit][0], Command::PrechargeUnit);
        self.channel.precharge_unit(unit, t);
    }

    pub(super) fn issue_refresh(&mut self, unit: u16, t: Cycle) {
        let banks = &self.channel.units()[usize::from(unit)];
        self.refresh.issued(unit, banks);
        let unit = usize::from(unit);
        self.channel.refresh(unit, t);
        self.counts.refreshes += 1;
        self.log(t, self.channel.units()[unit][0], Command::Refresh);
        for &bank in &self.channel.units()[unit] {
            self.banks.end_refresh(bank);
            if let Some(waits) = &mut self.waits {
                waits.refresh(bank, t, self.banks.queue(bank).slots(), &self.pool);
            }
            self.banks.update(bank, &self.pool, &self.channel);
        }
    }
}
