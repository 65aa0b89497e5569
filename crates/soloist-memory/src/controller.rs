//! Memory controller of one channel: queues, scheduler, write drain, refresh.
//!
//! # How it works
//! Requests enter a shared queue (reads and writes apart) and move on to the
//! queue of their bank as soon as that has room (`feed`). Reads move at once;
//! writes wait until a *drain* begins (`drain`).
//!
//! Every bank offers the commands that its requests need next (`scheduler`),
//! such as a read of the open row or a precharge. The channel knows the earliest
//! legal cycle of each. The controller issues the command that is legal first
//! (`issue`); of those legal in the same cycle, the one that the scheduler puts
//! first, then the oldest request's. After a column command the row policy says
//! whether the row closes (`row_policy`); after so many of one direction the bus turns
//! (`direction`). A row that nobody uses may close later (`idle`). A refresh that is due goes
//! before everything else (`refresh`).
//!
//! Nothing ticks: the next command and its cycle are the minimum over the
//! banks that have work ([`Controller::next`]). Between two commands only an
//! arrival or a refresh falling due can change that minimum. A request that
//! arrives in cycle `t` can cause a command from `t + 1` on, as in established
//! cycle-accurate simulators.
//!
//! # Not modelled
//! Power-down states, self-refresh, ZQ calibration, ECC, write CRC, refresh
//! postponement. Reads of one line are not merged. See
//! docs/design/memory-model.md.

mod banks;
mod drain;
mod feed;
mod idle;
mod issue;
mod offer;
mod queue;
mod refresh;
mod request;
mod row_policy;
mod scan;
mod scheduler;
mod turns;
mod waits;

use soloist_machine::dram::Device;
use soloist_machine::memory::Policy;

use crate::blame::{Bill, Cause, Label, NOBODY};
use crate::dram::{Channel, Cycle, Geometry, Issued};

use banks::Banks;
use drain::Drain;
use idle::IdleRows;
use offer::Kind;
use queue::{Entry, LineFilter, Pool, SharedQueue};
use refresh::{Refresh, RefreshStep};
pub use request::{CommandCounts, Completion, Request, RowOutcome};
use row_policy::RowPolicy;
pub use scheduler::names as schedulers;
use scheduler::AnyScheduler;
use turns::Turn;
use waits::Waits;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A bank's command is issued.
    Command(u16, Kind),
    /// A row is closed because nobody uses it.
    CloseIdle(u16),
    /// A refresh unit's rows are closed.
    CloseUnit(u16),
    Refresh(u16),
    /// A refresh falls due; no command.
    RefreshDue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Upcoming {
    at: Cycle,
    action: Action,
}

/// Controller and DRAM of one channel.
pub struct Controller {
    channel: Channel,
    pool: Pool,
    reads: SharedQueue,
    writes: SharedQueue,
    /// Lines of the writes that are not yet served.
    buffered: LineFilter,
    banks: Banks,
    /// Requests that a bank's queue has room for.
    bank_queue: usize,
    drain: Drain,
    turn: Turn,
    refresh: Refresh,
    row_policy: RowPolicy,
    /// Where rows close that nobody uses.
    idle_rows: Option<IdleRows>,
    /// Reads in the bank queues.
    reads_inside: usize,
    now: Cycle,
    /// Number of the last request.
    seq: u64,
    upcoming: Option<Upcoming>,
    /// When the read and the write queue last stopped being full.
    room_since: [Cycle; 2],
    counts: CommandCounts,
    log: Option<Vec<Issued>>,
    /// Whose request had the last column command.
    last_owner: u16,
    /// Who makes whom wait, where that is asked for.
    waits: Option<Box<Waits>>,
}

impl Controller {
    /// A controller with empty queues at cycle 0. `policy` must be valid.
    ///
    /// # Panics
    /// When no scheduler has the policy's name; [`Platform`](crate::Platform) has seen to that.
    pub fn new(device: &Device, geometry: &Geometry, policy: &Policy) -> Self {
        let channel = Channel::new(device, geometry);
        let scheduler = AnyScheduler::new(policy).expect("the policy names a scheduler");
        let banks = Banks::new(channel.banks.len(), scheduler);
        let row_policy = RowPolicy::new(policy);
        let idle_rows = row_policy.idle();
        let idle_rows = idle_rows.map(|after| IdleRows::new(after, banks.len()));
        let capacity = (policy.read_queue + policy.write_queue + 2) as usize
            + banks.len() * policy.bank_queue as usize;
        Self {
            pool: Pool::new(capacity),
            reads: SharedQueue::new(policy.read_queue as usize),
            writes: SharedQueue::new(policy.write_queue as usize),
            buffered: LineFilter::new(),
            banks,
            bank_queue: policy.bank_queue as usize,
            drain: Drain::new(policy),
            turn: Turn::new(policy),
            refresh: Refresh::new(&channel, geometry, policy.refresh_management),
            row_policy,
            idle_rows,
            reads_inside: 0,
            now: 0,
            seq: 0,
            upcoming: None,
            room_since: [0; 2],
            counts: CommandCounts::default(),
            log: None,
            last_owner: NOBODY,
            waits: None,
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
        let cause = if self.drain.is_active() && !write {
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
        self.reads.len() + self.writes.len() + self.banks.waiting()
    }

    /// From now on writes need not wait for company: the trace has ended.
    pub fn flush(&mut self) {
        self.drain.flush();
        self.feed();
        self.replan();
    }

    /// Takes a request in cycle `at`. The caller has asked
    /// [`Controller::room_at`] and has run the controller up to `at`
    /// ([`Controller::step`] while [`Controller::next`] is at most `at`).
    /// A request that the write buffer serves is complete at once.
    #[inline]
    pub fn push(&mut self, at: Cycle, r: Request) -> Option<Completion> {
        debug_assert!(at + 1 >= self.now && self.upcoming.is_none_or(|p| p.at >= at));
        if self.buffered.may_have(r.line) && self.pool.pending_write(r.line) {
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
            self.buffered.add(r.line);
            self.writes.push(slot, r.bank);
            if self.drain.is_active() || self.drain_is_due() {
                self.feed();
                self.replan();
            }
        } else if !self.drain.is_active() && self.has_room(r.bank) {
            if self.enqueue(slot, false) {
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
        match self.upcoming {
            Some(p) if self.banks.are_idle() && self.refresh_only(p) => None,
            plan => plan.map(|p| p.at),
        }
    }

    fn refresh_only(&self, plan: Upcoming) -> bool {
        !matches!(plan.action, Action::Command(..))
            && self.reads.len() == 0
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
        if self.upcoming.is_none() {
            self.replan();
        }
        if until.saturating_sub(self.refresh.due()) > 3 * self.refresh.round() {
            self.skip_rounds(until);
        }
        self.refresh_until(until);
    }

    fn refresh_until(&mut self, until: Cycle) {
        while let Some(p) = self.upcoming {
            if p.at > until || !self.refresh_only(p) || !self.banks.are_idle() {
                break;
            }
            self.step();
        }
    }

    fn skip_rounds(&mut self, until: Cycle) {
        self.refresh_until(self.refresh.due() + self.refresh.round());
        while self.refresh.is_pending() && self.banks.are_idle() {
            self.step();
        }
        if !self.banks.are_idle() || self.reads.len() + self.writes.len() > 0 {
            return;
        }
        let (refreshes, cycles) = self.refresh.skip_rounds(until);
        self.now += cycles;
        self.counts.refreshes += refreshes;
        self.replan();
    }

    /// Issues the next command. Returns the request that it completes, if any.
    #[inline]
    pub fn step(&mut self) -> Option<Completion> {
        let Upcoming { at, action } = self.upcoming?;
        let mut completion = None;
        self.now = at + 1;
        match action {
            Action::Command(bank, kind) => completion = self.issue(bank, kind, at),
            Action::RefreshDue => {
                self.now = at;
                self.refresh_falls_due();
            }
            Action::CloseIdle(bank) => self.close_idle(bank, at),
            Action::CloseUnit(unit) => self.close_unit(unit, at),
            Action::Refresh(unit) => self.issue_refresh(unit, at),
        }
        self.replan();
        completion
    }

    /// Earliest cycle for the next command.
    #[inline]
    fn floor(&self) -> Cycle {
        self.now.max(self.channel.bus_free())
    }

    /// A request has entered `bank`'s queue and changed what it could do next.
    #[inline]
    fn reconsider(&mut self, bank: u16) {
        let plan = match self.upcoming {
            Some(plan) if !self.turn.is_spent() => plan,
            _ => return self.replan(),
        };
        let floor = self.floor();
        let best = self.banks.best_of(bank, &self.channel, floor, self.seq);
        let own = match plan.action {
            Action::Command(planned, _) | Action::CloseIdle(planned) => planned == bank,
            _ => false,
        };
        if own || floor + best.wait() <= plan.at {
            self.replan();
        }
    }

    /// Finds what happens next: the earliest legal command; of several, a
    /// refresh, then as the scheduler says.
    #[inline]
    fn replan(&mut self) {
        let floor = self.floor();
        let (banks, channel) = (&mut self.banks, &self.channel);
        let held = self
            .turn
            .held(|held| banks.wait_beside(held, channel, floor));
        let (key, bank) = match held {
            None => banks.first(channel, floor, self.seq),
            Some(held) => banks.first_without(channel, floor, self.seq, held),
        };
        let mut plan = Upcoming {
            at: floor + key.wait(),
            action: Action::Command(bank, key.kind()),
        };
        if let Some(idle) = &mut self.idle_rows {
            if let Some((at, bank)) = idle.first(&self.banks, &self.channel) {
                let at = at.max(floor);
                if at < plan.at {
                    let action = Action::CloseIdle(bank);
                    plan = Upcoming { at, action };
                }
            }
        }
        if let Some(step) = self.refresh.first_step(&self.channel, floor, plan.at) {
            let RefreshStep { at, unit, closes } = step;
            let action = if closes {
                Action::CloseUnit(unit)
            } else {
                Action::Refresh(unit)
            };
            plan = Upcoming { at, action };
        }
        // Also where nothing can be done: `Key::NONE` is beyond any refresh.
        if plan.at >= self.refresh.due() {
            plan = Upcoming {
                at: self.refresh.due(),
                action: Action::RefreshDue,
            };
        }
        self.upcoming = Some(plan);
    }
}
