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
//! postponement. Reads of one line are not merged. See docs/memory-model.md.

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, Command, Geometry, Issued, NO_ROW};
use crate::device::Device;
use crate::queue::{BankQueue, Entry, Pool, SharedQueue, MAX_BANK_QUEUE, NONE};
use crate::timing::Cycle;

/// What happens to a row after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Page {
    /// It stays open until another row is needed.
    Open,
    /// It closes with the last queued access to it (auto-precharge).
    Closed,
}

/// Policy of a controller. Every field may be left out of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Reads that may wait for room in a bank queue, 1 to 4096.
    pub read_queue: u32,
    /// Writes that may wait to be drained, 1 to 4096.
    pub write_queue: u32,
    /// Requests in each bank's queue, 1 to 32.
    pub bank_queue: u32,
    /// Row hits that may pass an older request of their bank.
    pub hit_cap: u32,
    /// Row policy.
    pub page: Page,
    /// Writes waiting at which a drain begins.
    pub drain_high: u32,
    /// Writes waiting at which a drain ends.
    pub drain_low: u32,
    /// Writes waiting at which a drain begins when no read is waiting.
    pub drain_idle: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            read_queue: 32,
            write_queue: 32,
            bank_queue: 8,
            hit_cap: 128,
            page: Page::Open,
            drain_high: 32,
            drain_low: 0,
            drain_idle: 8,
        }
    }
}

impl Policy {
    /// Checks ranges and order of the marks.
    pub fn validate(&self) -> Result<(), String> {
        let range = |name: &str, v: u32, max: u32| {
            if (1..=max).contains(&v) {
                Ok(())
            } else {
                Err(format!("{name} {v} must be 1 to {max}"))
            }
        };
        range("read_queue", self.read_queue, 4096)?;
        range("write_queue", self.write_queue, 4096)?;
        range("bank_queue", self.bank_queue, MAX_BANK_QUEUE as u32)?;
        range("hit_cap", self.hit_cap, 1 << 20)?;
        range("drain_high", self.drain_high, self.write_queue)?;
        range("drain_idle", self.drain_idle, self.write_queue)?;
        if self.drain_low >= self.drain_high {
            return Err(format!(
                "drain_low {} must be below drain_high {}",
                self.drain_low, self.drain_high
            ));
        }
        Ok(())
    }
}

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

/// What a bank could do next.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Oldest row hits, or [`NONE`]; both NONE: activate or precharge.
    read: u8,
    write: u8,
    /// Age of the request behind it.
    seq: [u64; 2],
}

#[derive(Clone, Debug)]
struct BankWork {
    queue: BankQueue,
    candidate: Candidate,
    opened: Opened,
    closed_on_demand: bool,
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
    Read,
    Write,
    Activate,
    Precharge,
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
    /// Banks with requests, in no order.
    active: Vec<u16>,
    /// Pending writes by hash of their line: lets reads skip the search.
    write_filter: Box<[u8; FILTER]>,
    draining: bool,
    flushing: bool,
    /// Reads inside the bank queues.
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
            active: Vec::with_capacity(n),
            write_filter: Box::new([0; FILTER]),
            draining: false,
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
            policy: policy.clone(),
            channel,
        }
    }

    /// Starts recording every command; [`Controller::take_log`] collects them.
    pub fn record(&mut self) {
        self.log = Some(Vec::new());
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
            live: true,
        });
        if r.write {
            self.write_filter[hash] = self.write_filter[hash].saturating_add(1);
            self.writes.push(slot, r.bank);
            if self.draining || self.drain_begins() {
                self.feed();
                self.replan();
            }
        } else if !self.draining && self.has_room(r.bank) {
            self.enqueue(slot);
            self.reconsider(r.bank);
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
    pub fn idle_until(&mut self, until: Cycle) {
        if self.plan.is_none() {
            self.replan();
        }
        while let Some(p) = self.plan {
            if p.at > until || !self.refresh_only(p) || !self.active.is_empty() {
                break;
            }
            self.step();
        }
    }

    /// Issues the next command. Returns the request that it completes, if any.
    #[inline]
    pub fn step(&mut self) -> Option<Completion> {
        let plan = self.plan?;
        let (t, bank) = (plan.at, plan.bank);
        let mut completion = None;
        self.now = t + 1;
        match plan.kind {
            Kind::Read => completion = Some(self.issue_column(bank, false, t)),
            Kind::Write => completion = Some(self.issue_column(bank, true, t)),
            Kind::Activate => self.issue_activate(bank, t),
            Kind::Precharge => self.issue_precharge(bank, t),
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
        let work = &mut self.banks[b];
        let at = if write {
            work.candidate.write
        } else {
            work.candidate.read
        };
        work.passed = if at == 0 { 0 } else { work.passed + 1 };
        let slot = work.queue.remove(at);
        let outcome = match std::mem::replace(&mut work.opened, Opened::Used) {
            Opened::Used => RowOutcome::Hit,
            Opened::FromClosed => RowOutcome::Closed,
            Opened::FromConflict => RowOutcome::Conflict,
        };
        let entry = self.pool.get(slot);
        let (token, arrival, line) = (entry.token, entry.arrival, entry.line);
        self.pool.free(slot);
        if write {
            let count = &mut self.write_filter[filter_hash(line)];
            *count = count.saturating_sub(1);
        } else {
            self.reads_inside -= 1;
        }
        self.feed_bank(bank);
        let auto = self.policy.page == Page::Closed && {
            let row = self.channel.banks[b].open_row;
            self.banks[b].queue.hits(row) == (NONE, NONE)
        };
        let done = self.channel.column(b, write, auto, t);
        if auto {
            self.banks[b].closed_on_demand = false;
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

    #[inline]
    fn issue_activate(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
        let work = &mut self.banks[b];
        let row = work.queue.oldest_row();
        work.opened = if work.closed_on_demand {
            Opened::FromConflict
        } else {
            Opened::FromClosed
        };
        work.closed_on_demand = false;
        work.passed = 0;
        self.channel.activate(b, row, t);
        self.counts.activates += 1;
        self.record_command(t, bank, Command::Activate { row });
        self.update(bank);
    }

    #[inline]
    fn issue_precharge(&mut self, bank: u16, t: Cycle) {
        let b = usize::from(bank);
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
        self.refresh_due += self.channel.timing.ref_interval / ranks as Cycle;
        if !self.refresh_pending.contains(&(unit as u16)) {
            self.refresh_pending.push(unit as u16);
        }
        for i in 0..self.channel.units()[unit].len() {
            let bank = self.channel.units()[unit][i];
            self.banks[usize::from(bank)].refreshing = true;
        }
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
            self.update(bank);
        }
    }

    /// Room in the bank's own queue?
    #[inline]
    fn has_room(&self, bank: u16) -> bool {
        self.banks[usize::from(bank)].queue.len() < self.policy.bank_queue as usize
    }

    /// Moves `slot` into its bank's queue.
    #[inline]
    fn enqueue(&mut self, slot: u16) {
        let e = self.pool.get(slot);
        let (bank, row, write) = (e.bank, e.row, e.write);
        if !write {
            self.reads_inside += 1;
        }
        let work = &mut self.banks[usize::from(bank)];
        work.queue.push(slot, row, write);
        if work.active_at == INACTIVE {
            work.active_at = self.active.len() as u16;
            self.active.push(bank);
        }
        self.update(bank);
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
    /// state allows.
    fn feed(&mut self) {
        loop {
            if !self.draining {
                self.move_fitting(false, 0);
                if !self.drain_begins() {
                    return;
                }
                self.draining = true;
                self.counts.drains += 1;
            }
            let low = self.policy.drain_low as usize;
            self.move_fitting(true, low);
            if self.writes.len() > low {
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
            return;
        }
        let row = self.channel.banks[b].open_row;
        let (mut read, mut write) = if row == NO_ROW {
            (NONE, NONE)
        } else {
            work.queue.hits(row)
        };
        // Hits have passed an older request often enough: its turn.
        if work.passed >= self.policy.hit_cap && read != 0 && write != 0 {
            (read, write) = (NONE, NONE);
        }
        let seq = |at: u8, pool: &Pool| pool.get(work.queue.slot(at)).seq;
        let mut ages = [0; 2];
        if read == NONE && write == NONE {
            ages[0] = seq(0, &self.pool);
        }
        if read != NONE {
            ages[0] = seq(read, &self.pool);
        }
        if write != NONE {
            ages[1] = seq(write, &self.pool);
        }
        work.candidate = Candidate {
            read,
            write,
            seq: ages,
        };
    }

    /// A request has entered `bank`'s queue: is it served before the plan?
    #[inline]
    fn reconsider(&mut self, _bank: u16) {
        self.replan();
    }

    /// Finds the next command: the earliest legal one, column commands first,
    /// then the oldest.
    #[inline]
    fn replan(&mut self) {
        const ROW_COMMAND: u64 = 1 << 63;
        let floor = self.now.max(self.channel.bus_free());
        let mut best = (Cycle::MAX, u64::MAX);
        let mut plan = None;
        for &bank in &self.active {
            let b = usize::from(bank);
            let work = &self.banks[b];
            if work.refreshing {
                continue;
            }
            let c = work.candidate;
            let mut offer = |at: Cycle, age: u64, kind: Kind| {
                let key = (at.max(floor), age);
                if key < best {
                    best = key;
                    plan = Some(Plan {
                        at: key.0,
                        bank,
                        kind,
                    });
                }
            };
            if c.read != NONE {
                offer(self.channel.read_at(b), c.seq[0], Kind::Read);
            }
            if c.write != NONE {
                offer(self.channel.write_at(b), c.seq[1], Kind::Write);
            }
            if c.read == NONE && c.write == NONE {
                if self.channel.banks[b].open_row == NO_ROW {
                    offer(
                        self.channel.act_at(b),
                        c.seq[0] | ROW_COMMAND,
                        Kind::Activate,
                    );
                } else {
                    offer(
                        self.channel.pre_at(b),
                        c.seq[0] | ROW_COMMAND,
                        Kind::Precharge,
                    );
                }
            }
        }
        for &unit in &self.refresh_pending {
            let (at, close) = self.channel.refresh_at(usize::from(unit));
            let key = (at.max(floor), 0);
            if key < best {
                best = key;
                plan = Some(Plan {
                    at: key.0,
                    bank: unit,
                    kind: if close {
                        Kind::CloseUnit
                    } else {
                        Kind::Refresh
                    },
                });
            }
        }
        if best.0 >= self.refresh_due {
            plan = Some(Plan {
                at: self.refresh_due,
                bank: 0,
                kind: Kind::RefreshDue,
            });
        }
        self.plan = plan;
    }
}

impl BankWork {
    fn new() -> Self {
        Self {
            queue: BankQueue::new(),
            candidate: Candidate {
                read: NONE,
                write: NONE,
                seq: [0; 2],
            },
            opened: Opened::Used,
            closed_on_demand: false,
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
