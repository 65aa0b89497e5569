//! A whole machine: its parts, and what passes between them.
//!
//! # How it works
//! One kernel of events in time order (picoseconds), beside the controllers'
//! own next commands. A core's miss travels: private caches, shared last-level
//! cache, (link), the home node's queue, the controller of its channel, DRAM,
//! and back. Each part is a file of its own and knows no other: cores
//! ([`CoreModel`]), last levels, nodes, the way between them (`Interconnect`),
//! controllers. This file alone knows the order in which a line meets them.
//!
//! Cores touch each other only through what they share: the last-level cache,
//! links, node queues, controllers. Events of one instant are taken in the
//! order in which they were made, so a run depends on its input alone.
//!
//! Where nothing else can intervene, a line takes several parts in one event:
//! data leave a node's memory in the order of the column commands, so the way
//! back to the node's own cores is settled with the command.
//!
//! # Not modelled
//! Coherence traffic, TLBs and page walks, bandwidth of the caches themselves.
//! See docs/design/memory-model.md.

use crate::blame::{Bill, Cause, Label};
mod event;
mod link;
mod node;

use crate::cache::{LastLevel, Victim};
use crate::controller::{Completion, Controller, Request, RowOutcome};
use crate::core::{CoreModel, CoreStats, Stream, WindowCore, Wish};
use crate::platform::{Decoder, Place, Platform};
use event::Events;
use link::{Interconnect, Paths};
use node::Node;

/// How far a core may run ahead before the others get their turn, ps: less than
/// it takes to have a line from memory.
const AHEAD_PS: u64 = 50_000;

/// Decides whether a core may go on after a last-level miss: the seam for
/// bandwidth regulation.
pub trait Governor {
    /// Core `core` misses the last level at `now_ps`; `write` for a line that
    /// is pushed out to memory, which goes out whatever the answer. False: the
    /// fill is held back, and with it soon the core.
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool;

    /// When [`Self::alarm`] wants to be called, if nothing happens before.
    fn alarm_ps(&self) -> u64 {
        u64::MAX
    }

    /// That time has come.
    fn alarm(&mut self, _now_ps: u64) {}

    /// A core whose fills need not be held back any longer. Asked after each
    /// call until there is none.
    fn released(&mut self) -> Option<usize> {
        None
    }
}

/// No regulation.
pub struct Free;

impl Governor for Free {
    fn miss(&mut self, _core: usize, _now_ps: u64, _write: bool) -> bool {
        true
    }
}

/// Why a run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// An access to no memory.
    #[error("core {core} accesses {addr:#x}, which lies in no memory range of the machine")]
    Hole {
        /// The core.
        core: usize,
        /// The physical address.
        addr: u64,
    },
    /// Every core that could go on waits at a barrier for one that can't.
    #[error("cores wait at a barrier that not all of its group can reach")]
    Barrier,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A core goes on.
    Core(u32),
    /// A fill reaches the last-level cache.
    LastLevel(u32),
    /// A dirty line from a core reaches the last-level cache.
    Discard(u32),
    /// A request may leave its node.
    Leave(u32),
    /// A line to be written reaches its home node.
    Arrive(u32),
    /// A request enters the queue of its home node.
    Enqueue(u32),
    /// Data are ready at the home node's controllers.
    Answer(u32),
    /// An answer leaves the home node.
    Depart(u32),
    /// An answer reaches the core's node.
    Back(u32),
}

/// A line on its way.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    line: u64,
    place: Place,
    core: u32,
    /// The core's number for its fill.
    fill: u32,
    /// Whose line it is.
    owner: u16,
    /// Nodes of the core and of the memory.
    node: u16,
    home: u16,
    /// These are not one.
    apart: bool,
    write: bool,
    /// The last-level cache had it: nothing to put in there.
    from_llc: bool,
    /// What its time is for where nobody is in the way.
    base: Label,
}

/// Does a core run, and with whom does it meet at barriers?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    AtBarrier,
    /// Or nothing was put on it.
    Finished,
}

/// A core's place in the machine.
struct Seat {
    core: Box<dyn CoreModel>,
    state: State,
    group: usize,
    background: bool,
    node: usize,
    llc: usize,
    /// Fills that the governor holds back.
    held: Vec<u32>,
}

/// A machine and what runs on it.
pub struct System {
    platform: Platform,
    decoder: Decoder,
    line_bytes: u64,
    line_shift: u32,
    channels_per_node: usize,
    /// Node of each channel.
    home_of: Vec<u16>,
    seats: Vec<Seat>,
    llcs: Vec<LastLevel>,
    controllers: Vec<Controller>,
    /// When each controller issues its next command, ps.
    due: Vec<u64>,
    /// The controller that is due first, the lowest of several.
    first: usize,
    nodes: Vec<Node>,
    net: Box<dyn Interconnect>,
    transfers: Vec<Transfer>,
    /// One for each transfer, where accounts are kept.
    bills: Vec<Bill>,
    accounting: bool,
    free_transfers: Vec<u32>,
    /// Fills that are held back, over all cores.
    held: usize,
    /// Streams that have not ended, but for those in the background.
    running: usize,
    events: Events<Event>,
    out: Vec<Victim>,
    tck_ps: u64,
    now_ps: u64,
}

/// A time that never comes.
const NEVER: u64 = u64::MAX;

impl System {
    /// An idle machine at time 0 with cold caches.
    pub fn new(platform: &Platform) -> Self {
        let memory = &platform.memory;
        let n_nodes = memory.map.n_nodes() as usize;
        let channels_per_node = memory.map.n_channels() as usize;
        let seat = |core: usize| Seat {
            core: Box::new(WindowCore::new(platform, core)),
            state: State::Finished,
            group: 0,
            background: false,
            node: platform.node_of_core[core],
            llc: platform.llc_of_core[core],
            held: Vec::new(),
        };
        let northbridge = &platform.northbridge;
        Self {
            decoder: Decoder::new(&memory.map),
            line_bytes: u64::from(memory.map.line_size()),
            line_shift: memory.map.line_size().trailing_zeros(),
            channels_per_node,
            home_of: (0..n_nodes * channels_per_node)
                .map(|channel| (channel / channels_per_node) as u16)
                .collect(),
            seats: (0..platform.node_of_core.len()).map(seat).collect(),
            llcs: (0..platform.llcs())
                .map(|_| LastLevel::new(platform.llc.shape, northbridge.victims))
                .collect(),
            controllers: (0..n_nodes * channels_per_node)
                .map(|_| Controller::new(&memory.device, &memory.geometry, &memory.policy))
                .collect(),
            due: vec![NEVER; n_nodes * channels_per_node],
            first: 0,
            nodes: (0..n_nodes).map(|_| Node::new(northbridge)).collect(),
            net: Box::new(Paths::new(platform)),
            transfers: Vec::new(),
            bills: Vec::new(),
            accounting: false,
            free_transfers: Vec::new(),
            held: 0,
            running: 0,
            events: Events::new(),
            out: Vec::new(),
            tck_ps: u64::from(memory.device.tck_ps),
            now_ps: 0,
            platform: platform.clone(),
        }
    }

    /// From now on every wait gets a cause and a culprit
    /// ([`crate::core::Account::blame`]). Costs about half the speed.
    pub fn account(&mut self) {
        self.accounting = true;
        self.controllers.iter_mut().for_each(Controller::account);
        for (i, llc) in self.llcs.iter_mut().enumerate() {
            let cores = self.seats.iter().map(|s| s.llc == i);
            llc.watch(self.platform.llc.shape, cores);
        }
    }

    /// Ways of a last-level set that each core may fill, by its number, as
    /// Intel's CAT gives them out; 0: all. Hits are free to all.
    pub fn partition(&mut self, ways: &[usize]) {
        self.llcs.iter_mut().for_each(|llc| llc.partition(ways));
    }

    /// Puts a stream on a core. `group` names the cores that meet at its
    /// barriers. A background stream is cut off when all others have ended.
    ///
    /// # Panics
    /// If the machine has no such core.
    pub fn put(
        &mut self,
        core: usize,
        stream: Box<dyn Stream + Send>,
        group: usize,
        background: bool,
    ) {
        let seat = &mut self.seats[core];
        seat.core.start(stream);
        seat.group = group;
        seat.background = background;
        seat.state = State::Running;
        self.running += usize::from(!background);
        self.events.push(0, Event::Core(core as u32));
    }

    /// Runs until every stream but those in the background has ended.
    pub fn run<G: Governor + ?Sized>(
        &mut self,
        governor: &mut G,
    ) -> Result<Vec<CoreStats>, RunError> {
        while self.running > 0 {
            let event = self.events.next_at().unwrap_or(NEVER);
            let command = self.due[self.first];
            if self.alarm_before(event.min(command), governor) {
                continue;
            }
            if command <= event && command != NEVER {
                self.command(command);
            } else if let Some((at, event)) = self.events.pop() {
                self.now_ps = at;
                self.handle(event, governor)?;
            } else if self.controllers.iter().any(|c| c.pending() > 0) {
                self.controllers.iter_mut().for_each(Controller::flush);
                (0..self.nodes.len()).for_each(|node| self.schedule(node));
            } else {
                return Err(RunError::Barrier);
            }
        }
        let now = self.now_ps;
        let stats = |seat: &mut Seat| {
            let mut stats = seat.core.stats().clone();
            if seat.state != State::Finished {
                stats.finished_ps = now;
            }
            stats
        };
        Ok(self.seats.iter_mut().map(stats).collect())
    }

    /// Calls the governor's alarm if it is due before what comes next.
    fn alarm_before<G: Governor + ?Sized>(&mut self, next: u64, governor: &mut G) -> bool {
        let at = governor.alarm_ps();
        let due = at != NEVER
            && if next == NEVER {
                self.held > 0
            } else {
                at <= next
            };
        if due {
            self.now_ps = self.now_ps.max(at);
            governor.alarm(self.now_ps);
            self.release(governor);
        }
        due
    }

    /// Lets go the fills of cores that the governor has released.
    fn release<G: Governor + ?Sized>(&mut self, governor: &mut G) {
        while let Some(core) = governor.released() {
            for t in std::mem::take(&mut self.seats[core].held) {
                self.held -= 1;
                self.bill(t, self.now_ps, Label::new(Cause::Regulation, core as u16));
                self.set_out(t);
            }
        }
    }

    /// Commands that the controllers issued, channel by channel.
    pub fn commands(&self) -> Vec<crate::controller::CommandCounts> {
        self.controllers.iter().map(Controller::counts).collect()
    }

    fn handle<G: Governor + ?Sized>(
        &mut self,
        event: Event,
        governor: &mut G,
    ) -> Result<(), RunError> {
        match event {
            Event::Core(core) => self.run_core(core as usize)?,
            Event::LastLevel(t) => self.last_level(t, governor),
            Event::Discard(t) => self.discard(t, governor)?,
            Event::Leave(t) => self.leave(t),
            Event::Arrive(t) => self.arrive(t),
            Event::Enqueue(t) => {
                let node = usize::from(self.transfers[t as usize].home);
                let queue = &mut self.nodes[node].queue;
                queue.push_back(t);
                // The first of several waits for a command to make room.
                if queue.len() == 1 {
                    self.dispatch(node);
                    self.schedule(node);
                }
            }
            Event::Answer(t) => self.answer(t, self.now_ps),
            Event::Depart(t) => self.depart(t),
            Event::Back(t) => self.back(t, governor)?,
        }
        Ok(())
    }

    // ---- bills ----

    /// A transfer's time up to `at` was for `label`.
    #[inline]
    fn bill(&mut self, t: u32, at: u64, label: Label) {
        if self.accounting {
            self.bills[t as usize].until(at, label);
        }
    }

    /// The same, nobody having been in the way.
    #[inline]
    fn bill_base(&mut self, t: u32, at: u64) {
        self.bill(t, at, self.transfers[t as usize].base);
    }

    // ---- cores ----

    fn run_core(&mut self, core: usize) -> Result<(), RunError> {
        loop {
            let seat = &mut self.seats[core];
            match seat.core.run(self.now_ps + AHEAD_PS) {
                Wish::Fill { fill, line, at_ps } => {
                    let since = seat.core.now_ps();
                    let t = self.transfer(core, core as u16, line, Some(fill))?;
                    if self.accounting {
                        self.bills[t as usize].start(since);
                    }
                    self.events.push(at_ps, Event::LastLevel(t));
                }
                Wish::WriteBack { line, at_ps } => {
                    let t = self.transfer(core, core as u16, line, None)?;
                    self.events.push(at_ps, Event::Discard(t));
                }
                Wish::Resume => {
                    let at = seat.core.now_ps();
                    self.events.push(at, Event::Core(core as u32));
                    return Ok(());
                }
                Wish::Wait => return Ok(()),
                Wish::Barrier => {
                    seat.state = State::AtBarrier;
                    let group = seat.group;
                    self.try_barrier(group);
                    return Ok(());
                }
                Wish::Finished => {
                    seat.state = State::Finished;
                    self.running -= usize::from(!seat.background);
                    self.now_ps = self.now_ps.max(seat.core.now_ps());
                    let group = seat.group;
                    self.try_barrier(group);
                    return Ok(());
                }
            }
        }
    }

    /// Lets a group pass its barrier once all that still run have reached it.
    fn try_barrier(&mut self, group: usize) {
        let members = |s: &&Seat| s.group == group && s.state != State::Finished;
        if self
            .seats
            .iter()
            .filter(members)
            .any(|s| s.state == State::Running)
        {
            return;
        }
        let times = self.seats.iter().filter(members).map(|s| s.core.now_ps());
        let Some(at) = times.max() else { return };
        for (i, seat) in self.seats.iter_mut().enumerate() {
            if seat.group == group && seat.state == State::AtBarrier {
                seat.core.pass_barrier(at);
                seat.state = State::Running;
                self.events.push(at, Event::Core(i as u32));
            }
        }
    }

    /// A line sets out: to the core, for its fill with this number, or to
    /// memory.
    fn transfer(
        &mut self,
        core: usize,
        owner: u16,
        line: u64,
        fill: Option<u32>,
    ) -> Result<u32, RunError> {
        let addr = line << self.line_shift;
        let place = self
            .decoder
            .decode(addr)
            .ok_or(RunError::Hole { core, addr })?;
        let (node, home) = (
            self.seats[core].node,
            self.home_of[usize::from(place.channel)],
        );
        let transfer = Transfer {
            line,
            place,
            core: core as u32,
            fill: fill.unwrap_or(0),
            owner,
            node: node as u16,
            home,
            apart: self.net.apart(node, usize::from(home)),
            write: fill.is_none(),
            from_llc: false,
            base: Label::new(Cause::Base, owner),
        };
        let t = match self.free_transfers.pop() {
            Some(t) => {
                self.transfers[t as usize] = transfer;
                t
            }
            None => {
                self.transfers.push(transfer);
                self.bills.push(Bill::default());
                self.transfers.len() as u32 - 1
            }
        };
        if self.accounting {
            self.bills[t as usize].start(self.now_ps);
        }
        Ok(t)
    }

    // ---- last-level cache and the way out ----

    fn last_level<G: Governor + ?Sized>(&mut self, t: u32, governor: &mut G) {
        let Transfer { core, line, .. } = self.transfers[t as usize];
        let core = core as usize;
        self.bill_base(t, self.now_ps);
        let seat = &mut self.seats[core];
        match self.llcs[seat.llc].read(core as u16, line) {
            Ok(()) => {
                self.transfers[t as usize].from_llc = true;
                seat.core.stats().llc_hits += 1;
                let at = self.now_ps + self.platform.llc.latency_ps;
                self.bill_base(t, at);
                self.events.push(at, Event::Back(t));
            }
            Err(culprit) => {
                seat.core.stats().llc_misses += 1;
                if let Some(culprit) = culprit {
                    // What a hit would have taken is nobody's fault.
                    let hit = self.now_ps + self.platform.llc.latency_ps;
                    self.bill_base(t, hit);
                    self.transfers[t as usize].base = Label::new(Cause::LlcEviction, culprit);
                }
                if governor.miss(core, self.now_ps, false) {
                    self.set_out(t);
                } else {
                    self.held += 1;
                    self.seats[core].held.push(t);
                }
                self.release(governor);
            }
        }
    }

    /// A request sets out for memory.
    fn set_out(&mut self, t: u32) {
        let at = self.now_ps + self.platform.northbridge.request_ps;
        self.bill_base(t, at);
        let Transfer { apart, write, .. } = self.transfers[t as usize];
        let event = if apart {
            Event::Leave(t)
        } else if write {
            Event::Arrive(t)
        } else {
            Event::Enqueue(t)
        };
        self.events.push(at, event);
    }

    /// Node of the core behind a transfer, and of the memory.
    fn ends(&self, t: u32) -> (usize, usize) {
        let Transfer { node, home, .. } = self.transfers[t as usize];
        (usize::from(node), usize::from(home))
    }

    fn leave(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        if self.net.admit(from, to, t) {
            self.send_request(t);
        }
    }

    fn send_request(&mut self, t: u32) {
        let Transfer { write, owner, .. } = self.transfers[t as usize];
        let data = if write { self.line_bytes } else { 0 };
        let route = self.ends(t);
        let bill = self.accounting.then(|| &mut self.bills[t as usize]);
        let at = self.net.send(route, self.now_ps, data, owner, bill);
        self.bill_base(t, at);
        let event = if write {
            Event::Arrive(t)
        } else {
            Event::Enqueue(t)
        };
        self.events.push(at, event);
    }

    // ---- home node ----

    /// A line to be written takes its time on the data path of its home node.
    fn arrive(&mut self, t: u32) {
        let Transfer { home, owner, .. } = self.transfers[t as usize];
        let bill = self.accounting.then(|| &mut self.bills[t as usize]);
        let to = self.nodes[usize::from(home)].write_path();
        let at = to.send(self.now_ps, self.line_bytes, owner, bill);
        self.bill_base(t, at);
        self.events.push(at, Event::Enqueue(t));
    }

    /// Hands requests of a node's queue to the controllers, in order.
    fn dispatch(&mut self, node: usize) {
        while let Some(&t) = self.nodes[node].queue.front() {
            let channel = usize::from(self.transfers[t as usize].place.channel);
            let at = self.take_at(t);
            let Some(at) = at else { return };
            if self.accounting {
                self.bill_queue(node, t, at * self.tck_ps);
            }
            let transfer = self.transfers[t as usize];
            let controller = &mut self.controllers[channel];
            controller.idle_until(at);
            self.nodes[node].queue.pop_front();
            let buffered = controller.push(
                at,
                Request {
                    token: u64::from(t),
                    line: transfer.line,
                    bank: transfer.place.bank,
                    row: transfer.place.row,
                    write: transfer.write,
                    owner: transfer.owner,
                },
            );
            match buffered {
                Some(completion) => self.completed(channel, &completion),
                // A write is answered when the controller has taken it.
                None if transfer.write => self.answer(t, (at * self.tck_ps).max(self.now_ps)),
                None => {}
            }
        }
    }

    /// The first of a node's queue goes on at `at`: who held up all of them?
    fn bill_queue(&mut self, node: usize, first: u32, at: u64) {
        let Transfer { place, write, .. } = self.transfers[first as usize];
        if at <= self.bills[first as usize].end() + self.tck_ps {
            return self.bill_base(first, at);
        }
        let label = self.controllers[usize::from(place.channel)].busy_with(write);
        for &t in &self.nodes[node].queue {
            self.bills[t as usize].until(at, label);
        }
    }

    /// Cycle in which the controller can take a request, all commands up to
    /// then issued; `None` while its queue is full.
    fn take_at(&mut self, t: u32) -> Option<u64> {
        let transfer = self.transfers[t as usize];
        let channel = usize::from(transfer.place.channel);
        loop {
            let controller = &self.controllers[channel];
            let room = controller.room_at(transfer.write)?;
            // Never before what the controller has decided already.
            let decided = controller.now().saturating_sub(1);
            let at = self.now_ps.div_ceil(self.tck_ps).max(room).max(decided);
            if controller.next().is_none_or(|next| next > at) {
                return Some(at);
            }
            self.step_controller(channel);
        }
    }

    fn completed(&mut self, channel: usize, c: &Completion) {
        let t = c.token as u32;
        let done = (c.done * self.tck_ps).max(self.now_ps);
        if !c.write {
            if self.accounting {
                self.bill_channel(t, channel);
            }
            // In the order of time where the order of commands is another.
            if c.outcome == RowOutcome::Buffered || self.platform.northbridge.shared {
                self.events.push(done, Event::Answer(t));
            } else {
                self.answer(t, done);
            }
        } else if c.outcome == RowOutcome::Buffered {
            self.answer(t, done);
        }
    }

    /// Takes over what the controller billed a transfer for.
    fn bill_channel(&mut self, t: u32, channel: usize) {
        let base = self.transfers[t as usize].base;
        let Some(bill) = self.controllers[channel].bill() else {
            return;
        };
        for (_, end, label) in bill.slices() {
            let label = if label.cause == Cause::Base {
                base
            } else {
                label
            };
            self.bills[t as usize].until(end * self.tck_ps, label);
        }
    }

    /// Notes when a node's controllers have something to do.
    #[inline]
    fn schedule(&mut self, node: usize) {
        let own = node * self.channels_per_node..(node + 1) * self.channels_per_node;
        for channel in own {
            let next = self.controllers[channel].next();
            self.due[channel] = next.map_or(NEVER, |t| t * self.tck_ps);
        }
        let (mut first, mut least) = (0, NEVER);
        for (channel, &due) in self.due.iter().enumerate() {
            if due < least {
                (first, least) = (channel, due);
            }
        }
        self.first = first;
    }

    fn step_controller(&mut self, channel: usize) {
        if let Some(completion) = self.controllers[channel].step() {
            self.completed(channel, &completion);
        }
    }

    /// The first controller that is due at `at` issues its command.
    fn command(&mut self, at: u64) {
        let channel = self.first;
        self.now_ps = self.now_ps.max(at);
        self.step_controller(channel);
        let node = channel / self.channels_per_node;
        self.dispatch(node);
        self.schedule(node);
    }

    // ---- the way back ----

    /// At `ready` the home node has the data, or has taken the line.
    fn answer(&mut self, t: u32, ready: u64) {
        let Transfer {
            home,
            write,
            owner,
            apart,
            ..
        } = self.transfers[t as usize];
        let mut at = ready;
        if !write {
            let bill = self.accounting.then(|| &mut self.bills[t as usize]);
            let from = self.nodes[usize::from(home)].read_path();
            at = from.send(at, self.line_bytes, owner, bill);
        }
        at += self.platform.northbridge.response_ps;
        self.bill_base(t, at);
        let event = if apart {
            Event::Depart(t)
        } else {
            Event::Back(t)
        };
        self.events.push(at, event);
    }

    fn depart(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        let Transfer { write, owner, .. } = self.transfers[t as usize];
        let data = if write { 0 } else { self.line_bytes };
        let bill = self.accounting.then(|| &mut self.bills[t as usize]);
        let at = self.net.send((to, from), self.now_ps, data, owner, bill);
        self.bill_base(t, at);
        self.events.push(at, Event::Back(t));
    }

    fn back<G: Governor + ?Sized>(&mut self, t: u32, governor: &mut G) -> Result<(), RunError> {
        let transfer = self.transfers[t as usize];
        let core = transfer.core as usize;
        if transfer.apart && !transfer.from_llc {
            self.give_credit_back(t);
        }
        if transfer.write {
            self.victim_gone(core, transfer.owner);
            self.free_transfers.push(t);
            return Ok(());
        }
        let mut out = std::mem::take(&mut self.out);
        let bill = self.accounting.then(|| &self.bills[t as usize]);
        let seat = &mut self.seats[core];
        let wakes = seat.core.filled(transfer.fill, self.now_ps, bill, &mut out);
        let llc = seat.llc;
        if !transfer.from_llc {
            let victim = self.llcs[llc].insert(core as u16, transfer.line, false);
            self.write_back(core, victim, governor)?;
        }
        for victim in out.drain(..) {
            let victim = self.llcs[llc].insert(core as u16, victim.line, true);
            self.write_back(core, victim, governor)?;
        }
        self.out = out;
        self.free_transfers.push(t);
        if wakes {
            self.run_core(core)?;
        }
        Ok(())
    }

    /// A transfer is over: another may take its credit of the path.
    fn give_credit_back(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        if self.accounting {
            let label = Label::new(Cause::Link, self.transfers[t as usize].owner);
            for &waiting in self.net.waiting(from, to) {
                self.bills[waiting as usize].until(self.now_ps, label);
            }
        }
        if let Some(next) = self.net.release(from, to) {
            self.send_request(next);
        }
    }

    /// A core gives up a dirty line.
    fn discard<G: Governor + ?Sized>(&mut self, t: u32, governor: &mut G) -> Result<(), RunError> {
        let Transfer { core, line, .. } = self.transfers[t as usize];
        let core = core as usize;
        self.free_transfers.push(t);
        let victim = self.llcs[self.seats[core].llc].insert(core as u16, line, true);
        self.write_back(core, victim, governor)
    }

    /// Sends a line that the last level gave up to memory. It belongs to no
    /// fill: whose fill pushed a line out says nothing of whose line it was.
    fn write_back<G: Governor + ?Sized>(
        &mut self,
        core: usize,
        victim: Option<Victim>,
        governor: &mut G,
    ) -> Result<(), RunError> {
        let Some(victim) = victim else {
            return Ok(());
        };
        let t = self.transfer(core, victim.tag, victim.line, None)?;
        self.seats[core].core.stats().write_backs += 1;
        governor.miss(core, self.now_ps, true);
        let llc = &mut self.llcs[self.seats[core].llc];
        if llc.free == 0 {
            llc.waiting.push_back(t);
            self.seats[core].core.hold();
        } else {
            llc.free -= 1;
            self.set_out(t);
        }
        self.release(governor);
        Ok(())
    }

    /// Memory has taken a victim of `owner`'s: the place is the next one's.
    fn victim_gone(&mut self, core: usize, owner: u16) {
        let llc = &mut self.llcs[self.seats[core].llc];
        let Some(next) = llc.waiting.pop_front() else {
            llc.free += 1;
            return;
        };
        self.set_out(next);
        let core = self.transfers[next as usize].core as usize;
        let label = Label::new(Cause::WriteDrain, owner);
        if self.seats[core].core.release(self.now_ps, label) {
            self.events.push(self.now_ps, Event::Core(core as u32));
        }
    }
}
