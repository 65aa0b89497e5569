//! A whole machine: its parts, and what passes between them.
//!
//! # How it works
//! One kernel of events in time order (picoseconds), beside the controllers'
//! own next commands. A core's miss travels: private caches, shared last-level
//! cache, (link), the home node's queue, the controller of its channel, DRAM,
//! and back. Each part is a file of its own and knows no other: cores
//! (`seat`, [`CoreModel`](crate::core::CoreModel)), last levels, the way between
//! nodes (`network`, over an interconnect of `link`), the memory side (`home`).
//! They share lines on their way and events (`flow`). This file alone knows the
//! order in which a line meets them.
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

mod event;
mod flow;
mod guard;
mod home;
mod in_order;
mod link;
mod network;
mod node;
mod seat;

use crate::blame::{Cause, Label};
use crate::cache::{LastLevel, Victim};
use crate::controller::CommandCounts;
use crate::core::{CoreStats, Stream, Wish};
use crate::platform::{Decoder, Platform};
use flow::{Event, Flow, Route, Transfer, NEVER};
pub use guard::{Free, Guard};
use home::Home;
use network::Network;
use seat::Seats;

/// How far a core may run ahead before the others get their turn, ps: less than
/// it takes to have a line from memory.
const AHEAD_PS: u64 = 50_000;

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

/// A machine and what runs on it.
pub struct System {
    platform: Platform,
    decoder: Decoder,
    seats: Seats,
    llcs: Vec<LastLevel>,
    network: Network,
    home: Home,
    flow: Flow,
    /// Fills that are held back, and lines that keep their room, over all cores.
    held: usize,
    /// Dirty lines that leave a core's caches: kept for its room.
    victims: Vec<Victim>,
}

impl System {
    /// An idle machine at time 0 with cold caches.
    pub fn new(platform: &Platform) -> Self {
        let last_level = || LastLevel::new(platform.llc.shape, platform.northbridge.victims);
        Self {
            decoder: Decoder::new(&platform.memory.map),
            seats: Seats::new(platform),
            llcs: (0..platform.llcs()).map(|_| last_level()).collect(),
            network: Network::new(platform),
            home: Home::new(platform),
            flow: Flow::new(),
            held: 0,
            victims: Vec::new(),
            platform: platform.clone(),
        }
    }

    /// From now on every wait gets a cause and a culprit
    /// ([`crate::core::Account::blame`]). Costs about half the speed.
    pub fn account(&mut self) {
        self.flow.accounting = true;
        self.home.account();
        for (i, llc) in self.llcs.iter_mut().enumerate() {
            let cores = self.seats.iter().map(|s| s.llc == i);
            llc.watch(self.platform.llc.shape, cores);
        }
    }

    /// From now on the latency of each line is kept
    /// ([`crate::core::Account::latencies`]).
    pub fn latencies(&mut self) {
        self.seats.keep_latencies();
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
        self.seats.put(core, stream, group, background);
        self.flow.events.push(0, Event::Core(core as u32));
    }

    /// Runs until every stream but those in the background has ended.
    ///
    /// # Errors
    /// When a core accesses no memory, or waits at a barrier for ever.
    pub fn run<G: Guard + ?Sized>(&mut self, guard: &mut G) -> Result<Vec<CoreStats>, RunError> {
        while self.seats.are_running() {
            let event = self.flow.events.next_at().unwrap_or(NEVER);
            let command = self.home.due();
            if self.alarm_before(event.min(command), guard) {
                continue;
            }
            if command <= event && command != NEVER {
                self.home.command(command, &mut self.flow);
            } else if let Some((at, event)) = self.flow.events.pop() {
                self.flow.now_ps = at;
                self.handle(event, guard)?;
            } else if !self.home.flush() {
                return Err(RunError::Barrier);
            }
        }
        Ok(self.seats.stats(self.flow.now_ps))
    }

    /// Commands that the controllers issued, channel by channel.
    pub fn commands(&self) -> Vec<CommandCounts> {
        self.home.counts()
    }

    /// Calls the guard's alarm if it is due before what comes next.
    fn alarm_before<G: Guard + ?Sized>(&mut self, next: u64, guard: &mut G) -> bool {
        let at = guard.alarm_ps();
        let due = at != NEVER
            && if next == NEVER {
                self.held > 0
            } else {
                at <= next
            };
        if due {
            self.flow.now_ps = self.flow.now_ps.max(at);
            guard.alarm(self.flow.now_ps);
            self.release(guard);
        }
        due
    }

    /// Lets go the fills of cores that the guard has released.
    fn release<G: Guard + ?Sized>(&mut self, guard: &mut G) {
        while let Some(core) = guard.released() {
            for t in std::mem::take(&mut self.seats.get(core).held) {
                self.held -= 1;
                let label = Label::new(Cause::Regulation, core as u16);
                self.flow.charge(t, self.flow.now_ps, label);
                self.set_out(t);
            }
            let given_up = std::mem::take(&mut self.seats.get(core).given_up);
            self.held -= given_up as usize;
            let label = Label::new(Cause::Regulation, core as u16);
            (0..given_up).for_each(|_| self.rid_of(core, label));
        }
    }

    fn handle<G: Guard + ?Sized>(&mut self, event: Event, guard: &mut G) -> Result<(), RunError> {
        let flow = &mut self.flow;
        match event {
            Event::Core(core) => self.run_core(core as usize)?,
            Event::LastLevel(t) => self.last_level(t, guard),
            Event::Discard(t) => self.discard(t, guard)?,
            Event::Leave(t) => self.network.leave(t, flow),
            Event::Arrive(t) => self.home.arrive(t, flow),
            Event::Enqueue(t) => self.home.enqueue(t, flow),
            Event::Answer(t) => self.home.answered(t, flow),
            Event::Depart(t) => self.network.depart(t, flow),
            Event::Back(t) => self.back(t, guard)?,
        }
        Ok(())
    }

    // ---- cores ----

    fn run_core(&mut self, core: usize) -> Result<(), RunError> {
        loop {
            let seat = self.seats.get(core);
            match seat.core.run(self.flow.now_ps + AHEAD_PS) {
                Wish::Fill { fill, line, at_ps } => {
                    let since = seat.core.now_ps();
                    let t = self.transfer(core, core as u16, line, Some(fill))?;
                    self.flow.begin_bill(t, since);
                    self.flow.events.push(at_ps, Event::LastLevel(t));
                }
                Wish::WriteBack { line, at_ps } => {
                    let t = self.transfer(core, core as u16, line, None)?;
                    self.flow.events.push(at_ps, Event::Discard(t));
                }
                Wish::Resume => {
                    let at = seat.core.now_ps();
                    self.flow.events.push(at, Event::Core(core as u32));
                    return Ok(());
                }
                Wish::Wait => return Ok(()),
                Wish::Barrier => {
                    self.seats.reach_barrier(core, &mut self.flow);
                    return Ok(());
                }
                Wish::Finished => {
                    self.seats.finish(core, &mut self.flow);
                    return Ok(());
                }
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
        let addr = self.decoder.address(line);
        let place = self
            .decoder
            .decode(addr)
            .ok_or(RunError::Hole { core, addr })?;
        let (node, home) = (self.seats.get(core).node, self.home.node_of(place.channel));
        let route = Route {
            from: node,
            to: usize::from(home),
        };
        Ok(self.flow.begin(Transfer {
            line,
            place,
            core: core as u32,
            fill: fill.unwrap_or(0),
            owner,
            node: node as u16,
            home,
            apart: self.network.apart(route),
            write: fill.is_none(),
            roomy: false,
            from_llc: false,
            base: Label::new(Cause::Base, owner),
        }))
    }

    // ---- last-level cache and the way out ----

    fn last_level<G: Guard + ?Sized>(&mut self, t: u32, guard: &mut G) {
        let &Transfer { core, line, .. } = self.flow.get(t);
        let core = core as usize;
        let now = self.flow.now_ps;
        self.flow.charge_base(t, now);
        let seat = self.seats.get(core);
        let hit = now + self.platform.llc.latency_ps;
        match self.llcs[seat.llc].read(core as u16, line) {
            Ok(()) => {
                seat.core.stats().llc_hits += 1;
                self.flow.get_mut(t).from_llc = true;
                self.flow.charge_base(t, hit);
                self.flow.events.push(hit, Event::Back(t));
            }
            Err(culprit) => {
                seat.core.stats().llc_misses += 1;
                if let Some(culprit) = culprit {
                    // What a hit would have taken is nobody's fault.
                    self.flow.charge_base(t, hit);
                    self.flow.get_mut(t).base = Label::new(Cause::LlcEviction, culprit);
                }
                if guard.miss(core, now, false) {
                    self.set_out(t);
                } else {
                    self.held += 1;
                    seat.held.push(t);
                }
                self.release(guard);
            }
        }
    }

    /// A request sets out for memory.
    fn set_out(&mut self, t: u32) {
        let at = self.flow.now_ps + self.platform.northbridge.request_ps;
        self.flow.charge_base(t, at);
        let &Transfer { apart, write, .. } = self.flow.get(t);
        let event = if apart {
            Event::Leave(t)
        } else if write {
            Event::Arrive(t)
        } else {
            Event::Enqueue(t)
        };
        self.flow.events.push(at, event);
    }

    /// A line is back at the core's node, or memory has taken it.
    fn back<G: Guard + ?Sized>(&mut self, t: u32, guard: &mut G) -> Result<(), RunError> {
        let transfer = *self.flow.get(t);
        let core = transfer.core as usize;
        if transfer.apart && !transfer.from_llc {
            self.network.give_credit_back(t, &mut self.flow);
        }
        if transfer.write {
            self.victim_gone(core, transfer.owner);
            self.flow.end(t);
            return Ok(());
        }
        let mut victims = std::mem::take(&mut self.victims);
        let now = self.flow.now_ps;
        let bill = self.flow.bill(t);
        let seat = self.seats.get(core);
        let wakes = seat
            .core
            .filled(transfer.fill, now, bill.as_deref(), &mut victims);
        let llc = seat.llc;
        if !transfer.from_llc {
            let victim = self.llcs[llc].insert(core as u16, transfer.line, false);
            self.write_back(core, victim, false, guard)?;
        }
        for victim in victims.drain(..) {
            let victim = self.llcs[llc].insert(core as u16, victim.line, true);
            self.write_back(core, victim, false, guard)?;
        }
        self.victims = victims;
        self.flow.end(t);
        if wakes {
            self.run_core(core)?;
        }
        Ok(())
    }

    /// A core gives up a dirty line.
    fn discard<G: Guard + ?Sized>(&mut self, t: u32, guard: &mut G) -> Result<(), RunError> {
        let &Transfer { core, line, .. } = self.flow.get(t);
        let core = core as usize;
        self.flow.end(t);
        let llc = self.seats.get(core).llc;
        let victim = self.llcs[llc].insert(core as u16, line, true);
        if victim.is_none() {
            self.rid_of(core, Label::new(Cause::Base, core as u16));
        }
        self.write_back(core, victim, true, guard)
    }

    /// A line that a core gave up is out of its way.
    fn rid_of(&mut self, core: usize, label: Label) {
        let now = self.flow.now_ps;
        if self.seats.get(core).core.rid_of(now, label) {
            self.flow.events.push(now, Event::Core(core as u32));
        }
    }

    /// Sends a line that the last level gave up to memory. It belongs to no
    /// fill: whose fill pushed a line out says nothing of whose line it was.
    /// `given_up`: what pushed it out was no fill, and has room until it is on its way.
    fn write_back<G: Guard + ?Sized>(
        &mut self,
        core: usize,
        victim: Option<Victim>,
        given_up: bool,
        guard: &mut G,
    ) -> Result<(), RunError> {
        let Some(victim) = victim else {
            return Ok(());
        };
        let t = self.transfer(core, victim.tag, victim.line, None)?;
        let seat = self.seats.get(core);
        seat.core.stats().write_backs += 1;
        let goes_on = guard.miss(core, self.flow.now_ps, true);
        if given_up && !goes_on {
            seat.given_up += 1;
            self.held += 1;
        }
        let roomy = given_up && goes_on;
        let llc = &mut self.llcs[seat.llc];
        if llc.free == 0 {
            self.flow.get_mut(t).roomy = roomy;
            llc.waiting.push_back(t);
            seat.core.hold();
        } else {
            llc.free -= 1;
            self.set_out(t);
            if roomy {
                self.rid_of(core, Label::new(Cause::Base, core as u16));
            }
        }
        self.release(guard);
        Ok(())
    }

    /// Memory has taken a victim of `owner`'s: the place is the next one's.
    fn victim_gone(&mut self, core: usize, owner: u16) {
        let llc = &mut self.llcs[self.seats.get(core).llc];
        let Some(next) = llc.waiting.pop_front() else {
            llc.free += 1;
            return;
        };
        self.set_out(next);
        let &Transfer { core, roomy, .. } = self.flow.get(next);
        let now = self.flow.now_ps;
        let label = Label::new(Cause::WriteDrain, owner);
        if self.seats.get(core as usize).core.release(now, label) {
            self.flow.events.push(now, Event::Core(core));
        }
        if roomy {
            self.rid_of(core as usize, label);
        }
    }
}
