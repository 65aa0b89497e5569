//! Memory controller of one channel: queues, FR-FCFS, write drain, refresh.
//!
//! # How it works
//! Requests enter a shared queue (reads and writes apart) and move on to the
//! queue of their bank as soon as that has room. Reads move at once; writes
//! wait until a *drain* begins (the write buffer reaches its high mark, or
//! there is nothing to read) and move until the low mark is reached.
//!
//! Every bank offers the commands that its oldest useful requests need next:
//! a column command for the oldest row hit of either direction, an activate
//! for the oldest request of a closed bank, a precharge when no request hits
//! the open row (or hits have passed an older request `hit_cap` times). The
//! channel knows the earliest legal cycle of each. The controller issues the
//! command that is legal first; of those legal in the same cycle, a column
//! command before others, then the oldest request's.
//!
//! Nothing ticks: the next command and its cycle are the minimum over the
//! banks that have work ([`Controller::next`]). Between two commands only an
//! arrival or a refresh falling due can change that minimum. A request that
//! arrives in cycle `t` can cause a command from `t + 1` on, as in established
//! cycle-accurate simulators.
//!
//! A refresh that is due stops its banks at once, closes them together as soon
//! as that is legal, and goes before everything else.
//!
//! # Not modelled
//! Power-down states, self-refresh, ZQ calibration, ECC, write CRC, refresh
//! postponement. Reads of one line are not merged. See docs/design/memory-model.md.

mod queue;
mod waits;

use serde::Serialize;
use soloist_machine::dram::Device;
use soloist_machine::memory::{Order, Page, Policy};

use crate::blame::{Bill, Cause, Label, NOBODY};
use crate::dram::{Channel, Command, Cycle, Geometry, Issued, NO_ROW};
use queue::{BankQueue, Entry, Pool, SharedQueue, NONE};
use waits::Waits;

/// A request for one line.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Given back in the [`Completion`].
    pub token: u64,
    /// Line number; equal lines are the same data.
    pub line: u64,
    /// Flat bank: `rank * banks + bank`.
    pub bank: u16,
    /// Row.
    pub row: u32,
    /// Write or read.
    pub write: bool,
    /// Core or source that it is for.
    pub owner: u16,
}

/// How a request found its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Its row was open.
    Hit,
    /// The bank was closed.
    Closed,
    /// Another row was open and had to be closed.
    Conflict,
    /// Served from the write buffer (or merged into it); no DRAM access.
    Buffered,
}

/// A served request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Token of the request.
    pub token: u64,
    /// Cycle in which the controller took it.
    pub arrival: Cycle,
    /// Cycle of the last beat of its data.
    pub done: Cycle,
    /// Write or read.
    pub write: bool,
    /// How it found its bank.
    pub outcome: RowOutcome,
}

/// Commands issued, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommandCounts {
    /// Activates.
    pub activates: u64,
    /// Precharges (of one bank, on demand).
    pub precharges: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Write drains begun.
    pub drains: u64,
}

/// Where the next row change of a bank comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    /// The row has served its first access.
    Used,
    FromClosed,
    FromConflict,
}

/// A command that a bank could use: from when the bank itself allows it
/// ([`NEVER`]: no use for it), the bank group whose limits it shares, and how
/// old the request behind it is.
#[derive(Clone, Copy, Debug)]
struct Wish {
    at: Cycle,
    seq: u64,
    kind: Kind,
    group: u16,
}

/// A cycle that never comes.
const NEVER: Cycle = Cycle::MAX / 2;

/// Commands that a bank could use next, each for its oldest request.
///
/// A bank seldom has use for both directions, so the scheduler's scan looks at
/// two wishes without a branch and at the third when `both` is set.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// A read or write of the open row.
    column: Wish,
    /// An activate or precharge.
    row: Wish,
    /// A write beside the read.
    write: Wish,
    both: bool,
    /// Positions of the oldest row hits in the bank's queue.
    hits: [u8; 2],
}

impl Wish {
    const NONE: Self = Self {
        at: NEVER,
        seq: 0,
        kind: Kind::Read,
        group: 0,
    };
}

impl Candidate {
    const NOTHING: Self = Self {
        column: Wish::NONE,
        row: Wish::NONE,
        write: Wish::NONE,
        both: false,
        hits: [NONE; 2],
    };

    /// From when the bank itself allows any of it.
    fn not_before(&self) -> Cycle {
        self.column.at.min(self.row.at).min(self.write.at)
    }
}

/// Order among commands, in one word; the least goes first. From the top:
/// cycles from now, then the policy's [`Order`], then age, then the [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    const TIME_BITS: u32 = 26;
    const TURN_BITS: u32 = 12;
    const KIND_BITS: u32 = 2;
    const AGE_BITS: u32 = 64 - Self::TIME_BITS - Self::TURN_BITS - Self::KIND_BITS;
    const FAR: Cycle = (1 << Self::TIME_BITS) - 1;

    #[inline(always)]
    fn new(wait: Cycle, turn: u64, age: u64, kind: Kind) -> Self {
        Self(
            wait.min(Self::FAR) << (64 - Self::TIME_BITS)
                | turn << (Self::AGE_BITS + Self::KIND_BITS)
                | age << Self::KIND_BITS
                | kind as u64,
        )
    }

    fn wait(self) -> Cycle {
        self.0 >> (64 - Self::TIME_BITS)
    }

    fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Activate,
            _ => Kind::Precharge,
        }
    }
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

/// The command to issue next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    at: Cycle,
    bank: u16,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read = 0,
    Write = 1,
    Activate = 2,
    Precharge = 3,
    /// Refresh unit (number in `bank`): close its rows, or refresh.
    CloseUnit,
    Refresh,
    /// A refresh falls due; no command.
    RefreshDue,
}

const INACTIVE: u16 = u16::MAX;
const FILTER: usize = 1024;

/// Controller and DRAM of one channel.
pub struct Controller {
    policy: Policy,
    channel: Channel,
    pool: Pool,
    reads: SharedQueue,
    writes: SharedQueue,
    banks: Vec<BankWork>,
    /// What each bank could do next: apart, for the scheduler's scan.
    candidates: Vec<Candidate>,
    /// No command of a bank is legal before this. What other banks do only
    /// puts it off, so that it holds until the bank itself changes.
    not_before: Vec<Cycle>,
    /// The bank served last, for [`Order::RoundRobin`].
    served: u16,
    /// Banks with requests, in no order.
    active: Vec<u16>,
    /// Pending writes by hash of their line: lets reads skip the search.
    write_filter: Box<[u8; FILTER]>,
    draining: bool,
    /// Writes waiting at which the drain in progress ends.
    drain_to: usize,
    flushing: bool,
    /// Reads in the bank queues.
    reads_inside: usize,
    now: Cycle,
    seq: u64,
    plan: Option<Plan>,
    /// When the read and the write queue last stopped being full.
    room_since: [Cycle; 2],
    /// Units by turn, when the next falls due, and those that are due.
    refresh_due: Cycle,
    refresh_turn: usize,
    refresh_pending: Vec<u16>,
    counts: CommandCounts,
    log: Option<Vec<Issued>>,
    /// Whose request had the last column command.
    last_owner: u16,
    /// Who makes whom wait, where that is asked for.
    waits: Option<Box<Waits>>,
}

impl Controller {
    /// A controller with empty queues at cycle 0. `policy` must be valid.
    pub fn new(device: &Device, geometry: &Geometry, policy: &Policy) -> Self {
        let channel = Channel::new(device, geometry);
        let n = channel.banks.len();
        let interval = channel.timing.ref_interval / Cycle::from(geometry.ranks);
        let capacity =
            (policy.read_queue + policy.write_queue + 2) as usize + n * policy.bank_queue as usize;
        Self {
            pool: Pool::new(capacity),
            reads: SharedQueue::new(policy.read_queue as usize),
            writes: SharedQueue::new(policy.write_queue as usize),
            banks: vec![BankWork::new(); n],
            candidates: vec![Candidate::NOTHING; n],
            not_before: vec![0; n],
            served: 0,
            active: Vec::with_capacity(n),
            write_filter: Box::new([0; FILTER]),
            draining: false,
            drain_to: 0,
            flushing: false,
            reads_inside: 0,
            now: 0,
            seq: 0,
            plan: None,
            room_since: [0; 2],
            refresh_due: interval,
            refresh_turn: 0,
            refresh_pending: Vec::with_capacity(channel.units().len()),
            counts: CommandCounts::default(),
            log: None,
            last_owner: NOBODY,
            waits: None,
            policy: policy.clone(),
            channel,
        }
    }

    /// Starts recording every command; [`Controller::take_log`] collects them.
    pub fn record(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Starts keeping bills of the reads; [`Controller::bill`] shows them.
    pub fn account(&mut self) {
        self.waits = Some(Box::new(Waits::new(self.pool.len(), self.banks.len())));
    }

    /// Why a request that finds its queue full waits: whose request was served
    /// last.
    pub(crate) fn busy_with(&self, write: bool) -> Label {
        let cause = if self.draining && !write {
            Cause::WriteDrain
        } else {
            Cause::Queue
        };
        Label::new(cause, self.last_owner)
    }

    /// What the life of the read completed last was spent on, in cycles; kept
    /// since [`Controller::account`].
    pub fn bill(&self) -> Option<&Bill> {
        self.waits.as_ref().map(|w| w.done())
    }

    /// Commands recorded since the last call.
    pub fn take_log(&mut self) -> Vec<Issued> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Commands issued so far.
    pub fn counts(&self) -> CommandCounts {
        self.counts
    }

    /// Earliest cycle that [`Controller::push`] takes: all before is decided.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// First cycle from which there has been room for a read (or write), or
    /// `None` while there is none.
    #[inline]
    pub fn room_at(&self, write: bool) -> Option<Cycle> {
        let queue = if write { &self.writes } else { &self.reads };
        (!queue.is_full()).then_some(self.room_since[usize::from(write)])
    }

    /// Requests inside, buffered writes included.
    pub fn pending(&self) -> usize {
        self.reads.len() + self.writes.len() + self.inside()
    }

    fn inside(&self) -> usize {
        self.active
            .iter()
            .map(|&b| self.banks[usize::from(b)].queue.len())
            .sum()
    }

    /// From now on writes need not wait for company: the trace has ended.
    pub fn flush(&mut self) {
        self.flushing = true;
        self.feed();
        self.replan();
    }

    /// Takes a request in cycle `at`. The caller has asked
    /// [`Controller::room_at`] and has run the controller up to `at`
    /// ([`Controller::step`] while [`Controller::next`] is at most `at`).
    /// A request that the write buffer serves is complete at once.
    #[inline]
    pub fn push(&mut self, at: Cycle, r: Request) -> Option<Completion> {
        debug_assert!(at + 1 >= self.now && self.plan.is_none_or(|p| p.at >= at));
        let hash = filter_hash(r.line);
        if self.write_filter[hash] != 0 && self.pool.pending_write(r.line) {
            if let Some(waits) = &mut self.waits {
                waits.buffered(r.owner, at, at + 1);
            }
            return Some(Completion {
                token: r.token,
                arrival: at,
                done: at + 1,
                write: r.write,
                outcome: RowOutcome::Buffered,
            });
        }
        self.now = self.now.max(at + 1);
        self.seq += 1;
        let slot = self.pool.put(Entry {
            line: r.line,
            arrival: at,
            token: r.token,
            seq: self.seq,
            row: r.row,
            bank: r.bank,
            write: r.write,
            owner: r.owner,
            live: true,
        });
        if let Some(waits) = &mut self.waits {
            waits.enter(slot, at);
        }
        if r.write {
            self.write_filter[hash] = self.write_filter[hash].saturating_add(1);
            self.writes.push(slot, r.bank);
            if self.draining || self.drain_begins() {
                self.feed();
                self.replan();
            }
        } else if !self.draining && self.has_room(r.bank) {
            if self.enqueue(slot) {
                self.reconsider(r.bank);
            }
        } else {
            self.reads.push(slot, r.bank);
        }
        None
    }

    /// Cycle of the next command, or `None` when there is nothing to do but
    /// refresh. Never earlier than a cycle that has been stepped.
    #[inline]
    pub fn next(&self) -> Option<Cycle> {
        match self.plan {
            Some(p) if self.active.is_empty() && self.refresh_only(p) => None,
            plan => plan.map(|p| p.at),
        }
    }

    fn refresh_only(&self, plan: Plan) -> bool {
        matches!(
            plan.kind,
            Kind::RefreshDue | Kind::CloseUnit | Kind::Refresh
        ) && self.reads.len() == 0
            && self.writes.len() == 0
    }

    /// Runs the refreshes that fall due before cycle `until` while there is
    /// no other work. Call it before pushing into an idle controller.
    ///
    /// Once every bank has been refreshed in idleness, each round of refreshes
    /// leaves the state of the last one, so all rounds but the last are counted
    /// and not run: the cost does not grow with the time slept through.
    #[inline]
    pub fn idle_until(&mut self, until: Cycle) {
        if self.plan.is_none() {
            self.replan();
        }
        let round = self.refresh_step() * self.channel.units().len() as Cycle;
        if until.saturating_sub(self.refresh_due) > 3 * round {
            self.skip_rounds(until, round);
        }
        self.refresh_until(until);
    }

    fn refresh_until(&mut self, until: Cycle) {
        while let Some(p) = self.plan {
            if p.at > until || !self.refresh_only(p) || !self.active.is_empty() {
                break;
            }
            self.step();
        }
    }

    fn skip_rounds(&mut self, until: Cycle, round: Cycle) {
        self.refresh_until(self.refresh_due + round);
        while !self.refresh_pending.is_empty() && self.active.is_empty() {
            self.step();
        }
        if !self.active.is_empty() || self.reads.len() + self.writes.len() > 0 {
            return;
        }
        let rounds = (until.saturating_sub(self.refresh_due) / round).saturating_sub(1);
        self.refresh_due += rounds * round;
        self.now += rounds * round;
        self.counts.refreshes += rounds * self.channel.units().len() as u64;
        self.replan();
    }

    /// Issues the next command. Returns the request that it completes, if any.
    #[inline]
    pub fn step(&mut self) -> Option<Completion> {
        let plan = self.plan?;
        let (t, bank) = (plan.at, plan.bank);
        let mut completion = None;
        self.now = t + 1;
        match plan.kind {
            Kind::Read | Kind::Write => {
                self.served = bank;
                completion = Some(self.issue_column(bank, plan.kind == Kind::Write, t));
            }
            Kind::Activate => {
                self.served = bank;
                self.issue_activate(bank, t);
            }
            Kind::Precharge => {
                self.served = bank;
                self.issue_precharge(bank, t);
            }
            Kind::RefreshDue => {
                self.now = t;
                self.refresh_falls_due();
            }
            Kind::CloseUnit => {
                self.record_command(
                    t,
                    self.channel.units()[usize::from(bank)][0],
                    Command::PrechargeUnit,
                );
                self.channel.precharge_unit(usize::from(bank), t);
            }
            Kind::Refresh => self.issue_refresh(bank, t),
        }
        self.replan();
        completion
    }

    #[inline]
    fn record_command(&mut self, at: Cycle, bank: u16, command: Command) {
        if let Some(log) = &mut self.log {
            log.push(Issued { at, bank, command });
        }
    }

    #[inline]
    fn issue_column(&mut self, bank: u16, write: bool, t: Cycle) -> Completion {
        let b = usize::from(bank);
        let at = self.candidates[b].hits[usize::from(write)];
        let work = &mut self.banks[b];
        work.uses += 1;
        work.passed = if at == 0 { 0 } else { work.passed + 1 };
        let slot = work.queue.slot(at);
        if self.waits.is_some() {
            let group = &self.channel.groups[usize::from(self.channel.banks[b].group)];
            let shared = group.next_col[usize::from(write)];
            self.note_command(t, bank, slot, self.channel.banks[b].next_col, shared);
        }
        let work = &mut self.banks[b];
        work.queue.remove(at);
        if !write {
            self.reads_inside -= 1;
        }
        let outcome = match std::mem::replace(&mut work.opened, Opened::Used) {
            Opened::Used => RowOutcome::Hit,
            Opened::FromClosed => RowOutcome::Closed,
            Opened::FromConflict => RowOutcome::Conflict,
        };
        let entry = self.pool.get(slot);
        let (token, arrival, line) = (entry.token, entry.arrival, entry.line);
        self.last_owner = entry.owner;
        if let Some(waits) = &mut self.waits {
            let tm = &self.channel.timing;
            let done = t + if write { tm.wr_done } else { tm.rd_done };
            waits.column(t, done, slot, &self.pool, self.draining, self.reads.all());
        }
        self.pool.free(slot);
        if write {
            let count = &mut self.write_filter[filter_hash(line)];
            *count = count.saturating_sub(1);
        }
        self.feed_bank(bank);
        let auto = self.policy.page == Page::Closed && {
            let row = self.channel.banks[b].open_row;
            self.banks[b].queue.hits(row) == (NONE, NONE)
        };
        let done = self.channel.column(b, write, auto, t);
        if auto {
            self.banks[b].closed_on_demand = false;
            if let Some(waits) = &mut self.waits {
                waits.closes_itself(bank);
            }
        }
        self.record_command(
            t,
            bank,
            if write {
                Command::Write { auto }
            } else {
                Command::Read { auto }
            },
        );
        self.update(bank);
        Completion {
            token,
            arrival,
            done,
            write,
            outcome,
        }
    }

    /// Tells the bills of a command that is about to be issued for the request
    /// in `slot`.
    fn note_command(&mut self, at: Cycle, bank: u16, slot: u16, ready: Cycle, shared: Cycle) {
        let command = waits::Command {
            at,
            bank,
            slot,
            ready,
            shared,
        };
        let queue = self.banks[usize::from(bank)].queue.slots();
        if let Some(waits) = &mut self.waits {
            waits.command(command, queue, &self.pool);
        }
    }

    #[inline]
    fn issue_activate(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
        if let Some(waits) = &mut self.waits {
            let slot = self.banks[b].queue.slot(0);
            waits.opens(bank, slot, self.pool.get(slot));
            let shared = self.channel.groups[usize::from(self.channel.banks[b].group)].next_act;
            self.note_command(t, bank, slot, self.channel.banks[b].next_act, shared);
        }
        let work = &mut self.banks[b];
        let row = work.queue.oldest_row();
        work.opened = if work.closed_on_demand {
            Opened::FromConflict
        } else {
            Opened::FromClosed
        };
        work.closed_on_demand = false;
        work.uses = 0;
        work.passed = 0;
        self.channel.activate(b, row, t);
        self.counts.activates += 1;
        self.record_command(t, bank, Command::Activate { row });
        self.update(bank);
    }

    #[inline]
    fn issue_precharge(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
        if let Some(waits) = &mut self.waits {
            let slot = self.banks[b].queue.slot(0);
            waits.closes(bank, slot, self.pool.get(slot));
            self.note_command(t, bank, slot, self.channel.banks[b].next_pre, 0);
        }
        self.banks[b].closed_on_demand = true;
        self.channel.precharge(b, t);
        self.counts.precharges += 1;
        self.record_command(t, bank, Command::Precharge);
        self.update(bank);
    }

    fn refresh_falls_due(&mut self) {
        let unit = self.refresh_turn;
        let n = self.channel.units().len();
        // Ranks take turns; inside a rank its units do.
        let ranks = self.n_ranks();
        let per_rank = n / ranks;
        let turn = self.refresh_turn;
        let next = (turn / per_rank + 1) % ranks;
        let step = if next == 0 { 1 } else { 0 };
        self.refresh_turn = next * per_rank + (turn % per_rank + step) % per_rank;
        self.refresh_due += self.refresh_step();
        if !self.refresh_pending.contains(&(unit as u16)) {
            self.refresh_pending.push(unit as u16);
        }
        for i in 0..self.channel.units()[unit].len() {
            let bank = self.channel.units()[unit][i];
            self.banks[usize::from(bank)].refreshing = true;
            if let Some(waits) = &mut self.waits {
                waits.refresh_due(bank, self.now);
            }
            self.candidates[usize::from(bank)] = Candidate::NOTHING;
        }
    }

    /// Cycles from one refresh that falls due to the next, over all ranks.
    fn refresh_step(&self) -> Cycle {
        self.channel.timing.ref_interval / self.n_ranks() as Cycle
    }

    fn n_ranks(&self) -> usize {
        self.channel
            .banks
            .last()
            .map_or(1, |b| usize::from(b.rank) + 1)
    }

    fn issue_refresh(&mut self, unit: u16, t: Cycle) {
        let u = usize::from(unit);
        self.channel.refresh(u, t);
        self.refresh_pending.retain(|&p| p != unit);
        self.counts.refreshes += 1;
        self.record_command(t, self.channel.units()[u][0], Command::Refresh);
        for i in 0..self.channel.units()[u].len() {
            let bank = self.channel.units()[u][i];
            let work = &mut self.banks[usize::from(bank)];
            work.refreshing = false;
            work.closed_on_demand = false;
            if let Some(waits) = &mut self.waits {
                waits.refresh(bank, t, work.queue.slots(), &self.pool);
            }
            self.update(bank);
        }
    }

    /// Room in the bank's own queue?
    #[inline]
    fn has_room(&self, bank: u16) -> bool {
        self.banks[usize::from(bank)].queue.len() < self.policy.bank_queue as usize
    }

    /// Moves `slot` into its bank's queue. Does that change what the bank
    /// could do next?
    #[inline]
    fn enqueue(&mut self, slot: u16) -> bool {
        let e = self.pool.get(slot);
        let (bank, row, write) = (e.bank, e.row, e.write);
        let b = usize::from(bank);
        if !write {
            self.reads_inside += 1;
        }
        let work = &mut self.banks[b];
        work.queue.push(slot, row, write);
        let c = &self.candidates[b];
        let first = work.active_at == INACTIVE;
        let same_hit = c.hits[usize::from(write)];
        if !first && (row != self.channel.banks[b].open_row || same_hit != NONE) {
            return false;
        }
        if first {
            work.active_at = self.active.len() as u16;
            self.active.push(bank);
        }
        self.update(bank);
        true
    }

    /// Should writes be drained now?
    #[inline]
    fn drain_begins(&self) -> bool {
        let waiting = self.writes.len() as u32;
        let idle = if self.flushing {
            1
        } else {
            self.policy.drain_idle
        };
        waiting >= self.policy.drain_high
            || (waiting >= idle && self.reads.len() == 0 && self.reads_inside == 0)
    }

    /// Refills the queue of one bank after it has lost a request.
    #[inline]
    fn feed_bank(&mut self, bank: u16) {
        if !self.draining && !self.drain_begins() {
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
    /// state allows. A drain for want of reads takes every write.
    fn feed(&mut self) {
        loop {
            if !self.draining {
                self.move_fitting(false, 0);
                if !self.drain_begins() {
                    return;
                }
                self.draining = true;
                self.drain_to = if self.reads.len() + self.reads_inside == 0 {
                    0
                } else {
                    self.policy.drain_low as usize
                };
                self.counts.drains += 1;
            }
            self.move_fitting(true, self.drain_to);
            if self.writes.len() > self.drain_to {
                return;
            }
            self.draining = false;
        }
    }

    /// Moves what fits, oldest first, until `low` are left.
    fn move_fitting(&mut self, write: bool, low: usize) {
        let mut at = 0;
        loop {
            let queue = if write {
                &mut self.writes
            } else {
                &mut self.reads
            };
            if at >= queue.len() || queue.len() <= low {
                return;
            }
            let bank = queue.bank(at);
            if self.banks[usize::from(bank)].queue.len() < self.policy.bank_queue as usize {
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
            waits.moves_on(slot, self.pool.get(slot), self.now, write || self.draining);
        }
        self.enqueue(slot);
    }

    /// Recomputes what `bank` could do next.
    #[inline]
    fn update(&mut self, bank: u16) {
        let b = usize::from(bank);
        let work = &mut self.banks[b];
        if work.queue.len() == 0 {
            if work.active_at != INACTIVE {
                let at = std::mem::replace(&mut work.active_at, INACTIVE);
                self.active.swap_remove(usize::from(at));
                if let Some(&moved) = self.active.get(usize::from(at)) {
                    self.banks[usize::from(moved)].active_at = at;
                }
            }
            self.candidates[b] = Candidate::NOTHING;
            return;
        }
        let candidate = if work.refreshing {
            Candidate::NOTHING
        } else {
            self.candidate(b)
        };
        self.not_before[b] = candidate.not_before();
        self.candidates[b] = candidate;
    }

    /// What bank `b`, which has requests, could do next.
    #[inline]
    fn candidate(&self, b: usize) -> Candidate {
        let work = &self.banks[b];
        let seq = |at: u8| self.pool.get(work.queue.slot(at)).seq;
        let bank = &self.channel.banks[b];
        let mut c = Candidate::NOTHING;
        if bank.open_row == NO_ROW {
            c.row = Wish {
                at: bank.next_act,
                seq: seq(0),
                kind: Kind::Activate,
                group: bank.group,
            };
            return c;
        }
        let (read, write) = work.queue.hits(bank.open_row);
        let oldest_hits = read == 0 || write == 0;
        let any_hits = read != NONE || write != NONE;
        let capped = work.passed >= self.policy.hit_cap;
        if !oldest_hits && (!any_hits || capped || work.uses >= self.policy.hit_limit) {
            c.row = Wish {
                at: bank.next_pre,
                seq: seq(0),
                kind: Kind::Precharge,
                group: self.channel.precharges_of(bank.rank),
            };
            if capped {
                return c;
            }
        }
        c.hits = [read, write];
        let wish = |at: u8, kind: Kind| Wish {
            at: bank.next_col,
            seq: seq(at),
            kind,
            group: bank.group,
        };
        if read != NONE {
            c.column = wish(read, Kind::Read);
        }
        if write != NONE {
            c.both = read != NONE;
            let place = if c.both { &mut c.write } else { &mut c.column };
            *place = wish(write, Kind::Write);
        }
        c
    }

    /// A request has entered `bank`'s queue and changed what it could do next.
    #[inline]
    fn reconsider(&mut self, bank: u16) {
        let Some(plan) = self.plan else {
            return self.replan();
        };
        let floor = self.now.max(self.channel.bus_free());
        let best = self.best_of(bank, floor);
        if plan.bank == bank || floor + best.wait() <= plan.at {
            self.replan();
        }
    }

    /// The first command that `bank` could use, `floor` being the earliest
    /// cycle for any.
    #[inline(always)]
    fn best_of(&self, bank: u16, floor: Cycle) -> Key {
        let c = &self.candidates[usize::from(bank)];
        let (turn, row_turn) = match self.policy.order {
            Order::Oldest => (0, 1),
            Order::RoundRobin => {
                let turn = u64::from(bank.wrapping_sub(self.served).wrapping_sub(1) & 0xfff);
                (turn, turn)
            }
        };
        // Ages count from the oldest that can matter; older ones are equal.
        let oldest = self.seq.saturating_sub((1 << Key::AGE_BITS) - 1);
        let key = |w: &Wish, turn: u64, from: Cycle| {
            let wait = w.at.max(from).max(floor) - floor;
            Key::new(wait, turn, w.seq.saturating_sub(oldest), w.kind)
        };
        let groups = &self.channel.groups;
        let column = |w: &Wish| {
            let direction = usize::from(w.kind == Kind::Write);
            key(w, turn, groups[usize::from(w.group)].next_col[direction])
        };
        let row = key(&c.row, row_turn, groups[usize::from(c.row.group)].next_act);
        let mut best = row.min(column(&c.column));
        if c.both {
            best = best.min(column(&c.write));
        }
        best
    }

    /// Finds the next command: the earliest legal one; of several, as the
    /// policy's [`Order`] says. Only banks that can still be first are asked.
    #[inline]
    fn replan(&mut self) {
        let floor = self.now.max(self.channel.bus_free());
        let earliest = |bank: &&u16| self.not_before[usize::from(**bank)];
        let first = self.active.iter().min_by_key(earliest).copied();
        let mut best = (Key(u64::MAX), 0);
        if let Some(bank) = first {
            best = (self.best_of(bank, floor), bank);
            self.not_before[usize::from(bank)] = floor + best.0.wait();
        }
        for i in 0..self.active.len() {
            let bank = self.active[i];
            let at = floor + best.0.wait();
            if self.not_before[usize::from(bank)] > at || Some(bank) == first {
                continue;
            }
            let key = self.best_of(bank, floor);
            self.not_before[usize::from(bank)] = floor + key.wait();
            if key < best.0 {
                best = (key, bank);
            }
        }
        let mut plan = Plan {
            at: floor + best.0.wait(),
            bank: best.1,
            kind: best.0.kind(),
        };
        for &unit in &self.refresh_pending {
            let (at, close) = self.channel.refresh_at(usize::from(unit));
            let at = at.max(floor);
            if at <= plan.at {
                plan = Plan {
                    at,
                    bank: unit,
                    kind: if close {
                        Kind::CloseUnit
                    } else {
                        Kind::Refresh
                    },
                };
            }
        }
        // Also where nothing can be done: `FAR` is beyond any refresh.
        if plan.at >= self.refresh_due {
            plan = Plan {
                at: self.refresh_due,
                bank: 0,
                kind: Kind::RefreshDue,
            };
        }
        self.plan = Some(plan);
    }
}

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

#[inline]
fn filter_hash(line: u64) -> usize {
    (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % FILTER
}
