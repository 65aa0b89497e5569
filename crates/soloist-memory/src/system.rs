//! A whole machine: cores, caches, northbridges, links, controllers.
//!
//! # How it works
//! One queue of events in time order (picoseconds), beside the controllers'
//! own next commands. A core's miss travels: private caches, shared last-level
//! cache, (link), the home node's queue, the controller of its channel, DRAM,
//! and back. The node's queue is shared by all banks and channels and is served
//! in order: a request whose controller is full holds up those behind it.
//!
//! Cores touch each other only through what they share: the last-level cache,
//! links, node queues, controllers. Events of one instant are taken in the
//! order in which they were made, so a run depends on its input alone.
//!
//! # Not modelled
//! Coherence traffic, TLBs and page walks, instruction fetch, bandwidth of the
//! caches themselves. See docs/memory-model.md.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::cache::{Cache, Victim};
use crate::controller::{Completion, Controller, Request};
use crate::core::{Core, CoreStats, Stream, Wait, Wish};
use crate::decoder::{Decoder, Place};
use crate::link::{Path, HEADER};
use crate::platform::Platform;

/// How far a core may run ahead before the others get their turn, ps.
const AHEAD_PS: u64 = 1_000_000;

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
    /// A request may leave its node.
    Leave(u32),
    /// A request reaches its home node.
    Arrive(u32),
    /// A request enters the queue of its home node.
    Enqueue(u32),
    /// An answer is ready at the home node's controllers.
    Answer(u32),
    /// An answer leaves the home node.
    Depart(u32),
    /// An answer reaches the core's node.
    Back(u32),
}

/// A line on its way.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    core: usize,
    line: u64,
    place: Place,
    home: usize,
    write: bool,
    /// The last-level cache had it: nothing to put in there.
    from_llc: bool,
}

/// A node's northbridge: the data paths and the queue before its controllers.
struct Node {
    queue: VecDeque<u32>,
    /// From memory, and to memory.
    from: Path,
    to: Path,
}

/// Dirty lines on their way from a last-level cache to memory. They belong to
/// no core: whose fill pushed a line out says nothing of whose line it was.
struct Victims {
    free: u32,
    /// Lines that found no place: each holds a slot of the core whose fill
    /// pushed it out.
    waiting: VecDeque<u32>,
}

/// A machine and what runs on it.
pub struct System {
    platform: Platform,
    decoder: Decoder,
    line_bytes: u64,
    line_shift: u32,
    channels_per_node: usize,
    cores: Vec<Core>,
    llcs: Vec<Cache>,
    controllers: Vec<Controller>,
    nodes: Vec<Node>,
    /// One for each last-level cache.
    victims: Vec<Victims>,
    /// Paths from node to node; `None` on the diagonal.
    paths: Vec<Vec<Option<Path>>>,
    transfers: Vec<Transfer>,
    free_transfers: Vec<u32>,
    /// Fills that the governor holds back, by core.
    held: Vec<Vec<u32>>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
    tck_ps: u64,
    now_ps: u64,
}

impl System {
    /// An idle machine at time 0 with cold caches.
    pub fn new(platform: &Platform) -> Self {
        let memory = &platform.memory;
        let n_nodes = memory.map.n_nodes() as usize;
        let channels_per_node = memory.map.n_channels() as usize;
        let n_llcs = platform.node_of_core.len().div_ceil(platform.llc.shared_by);
        let path = |from: usize, to: usize| {
            let hops = platform.hops.get(from).and_then(|h| h.get(to)).copied();
            let hops = hops.filter(|&h| h > 0)?;
            platform.paths.get(hops - 1).map(Path::new)
        };
        Self {
            decoder: Decoder::new(&memory.map),
            line_bytes: u64::from(memory.map.line_size()),
            line_shift: memory.map.line_size().trailing_zeros(),
            channels_per_node,
            cores: platform
                .node_of_core
                .iter()
                .map(|_| Core::new(platform))
                .collect(),
            llcs: vec![Cache::new(platform.llc.shape); n_llcs],
            controllers: (0..n_nodes * channels_per_node)
                .map(|_| Controller::new(&memory.device, &memory.geometry, &memory.policy))
                .collect(),
            nodes: (0..n_nodes)
                .map(|_| Node {
                    queue: VecDeque::new(),
                    from: Path::wire(platform.northbridge.bytes_per_us),
                    to: Path::wire(platform.northbridge.bytes_per_us),
                })
                .collect(),
            victims: (0..n_llcs)
                .map(|_| Victims {
                    free: platform.northbridge.victims,
                    waiting: VecDeque::new(),
                })
                .collect(),
            paths: (0..n_nodes)
                .map(|from| (0..n_nodes).map(|to| path(from, to)).collect())
                .collect(),
            transfers: Vec::new(),
            free_transfers: Vec::new(),
            held: vec![Vec::new(); platform.node_of_core.len()],
            events: BinaryHeap::new(),
            made: 0,
            tck_ps: u64::from(memory.device.tck_ps),
            now_ps: 0,
            platform: platform.clone(),
        }
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
        let c = &mut self.cores[core];
        c.stream = Some(stream);
        c.group = group;
        c.background = background;
        c.wait = Wait::Nothing;
        self.at(0, Event::Core(core as u32));
    }

    /// Runs until every stream but those in the background has ended.
    pub fn run(&mut self, governor: &mut dyn Governor) -> Result<Vec<CoreStats>, RunError> {
        while self.busy() {
            let event = self.events.peek().map(|e| e.0 .0);
            let command = self.next_command();
            let next = event.into_iter().chain(command.map(|c| c.0)).min();
            if self.alarm_before(next, governor) {
                continue;
            }
            match (event, command) {
                (Some(at), Some((t, c))) if t <= at => self.command(c),
                (None, Some((_, c))) => self.command(c),
                (Some(_), _) => {
                    if let Some(Reverse((at, _, event))) = self.events.pop() {
                        self.now_ps = at;
                        self.handle(event, governor)?;
                    }
                }
                (None, None) if self.controllers.iter().any(|c| c.pending() > 0) => {
                    self.controllers.iter_mut().for_each(Controller::flush);
                }
                (None, None) => return Err(RunError::Barrier),
            }
        }
        let now = self.now_ps;
        let stats = |c: &Core| {
            let mut stats = c.stats.clone();
            if c.wait != Wait::Finished {
                stats.finished_ps = now;
            }
            stats
        };
        Ok(self.cores.iter().map(stats).collect())
    }

    /// Calls the governor's alarm if it is due before what comes next.
    fn alarm_before(&mut self, next: Option<u64>, governor: &mut dyn Governor) -> bool {
        let at = governor.alarm_ps();
        let held = self.held.iter().any(|h| !h.is_empty());
        let due = at != u64::MAX && next.map_or(held, |next| at <= next);
        if due {
            self.now_ps = self.now_ps.max(at);
            governor.alarm(self.now_ps);
            self.release(governor);
        }
        due
    }

    /// Lets go the fills of cores that the governor has released.
    fn release(&mut self, governor: &mut dyn Governor) {
        while let Some(core) = governor.released() {
            for t in std::mem::take(&mut self.held[core]) {
                self.leave_later(t);
            }
        }
    }

    /// A request sets out for memory.
    fn leave_later(&mut self, t: u32) {
        let at = self.now_ps + self.platform.northbridge.request_ps;
        self.at(at, Event::Leave(t));
    }

    /// Commands that the controllers issued, channel by channel.
    pub fn commands(&self) -> Vec<crate::controller::CommandCounts> {
        self.controllers.iter().map(Controller::counts).collect()
    }

    fn busy(&self) -> bool {
        self.cores
            .iter()
            .any(|c| !c.background && c.wait != Wait::Finished)
    }

    fn at(&mut self, ps: u64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((ps, self.made, event)));
    }

    fn handle(&mut self, event: Event, governor: &mut dyn Governor) -> Result<(), RunError> {
        match event {
            Event::Core(core) => self.run_core(core as usize)?,
            Event::LastLevel(t) => self.last_level(t, governor)?,
            Event::Leave(t) => self.leave(t),
            Event::Arrive(t) => self.arrive(t),
            Event::Enqueue(t) => {
                let node = self.transfers[t as usize].home;
                self.nodes[node].queue.push_back(t);
                self.dispatch(node);
            }
            Event::Answer(t) => self.answer(t),
            Event::Depart(t) => self.depart(t),
            Event::Back(t) => self.back(t, governor)?,
        }
        Ok(())
    }

    // ---- cores ----

    fn run_core(&mut self, core: usize) -> Result<(), RunError> {
        loop {
            let fill = match self.free_transfers.last() {
                Some(&free) => free,
                None => self.transfers.len() as u32,
            };
            let until = self.now_ps + AHEAD_PS;
            match self.cores[core].run(until, fill, self.line_shift) {
                Wish::Fill { line, at_ps } => {
                    let t = self.transfer(core, line, false)?;
                    debug_assert_eq!(t, fill);
                    self.at(at_ps, Event::LastLevel(t));
                }
                Wish::Resume => {
                    let at = self.cores[core].now_ps;
                    self.at(at, Event::Core(core as u32));
                    return Ok(());
                }
                Wish::Wait => return Ok(()),
                Wish::Barrier => {
                    self.cores[core].wait = Wait::Barrier;
                    self.try_barrier(self.cores[core].group);
                    return Ok(());
                }
                Wish::Finished => {
                    self.now_ps = self.now_ps.max(self.cores[core].now_ps);
                    self.try_barrier(self.cores[core].group);
                    return Ok(());
                }
            }
        }
    }

    /// Lets a group pass its barrier once all that still run have reached it.
    fn try_barrier(&mut self, group: usize) {
        let members = |c: &&Core| c.group == group && c.wait != Wait::Finished;
        let waiting = |c: &Core| c.wait == Wait::Barrier;
        if !self.cores.iter().filter(members).all(waiting) {
            return;
        }
        let times = self.cores.iter().filter(members).map(|c| c.now_ps);
        let Some(at) = times.max() else { return };
        for i in 0..self.cores.len() {
            let c = &mut self.cores[i];
            if c.group == group && c.wait == Wait::Barrier {
                c.stats.barrier_ps += at - c.now_ps;
                c.now_ps = at;
                c.wait = Wait::Nothing;
                self.at(at, Event::Core(i as u32));
            }
        }
    }

    fn transfer(&mut self, core: usize, line: u64, write: bool) -> Result<u32, RunError> {
        let addr = line << self.line_shift;
        let place = self
            .decoder
            .decode(addr)
            .ok_or(RunError::Hole { core, addr })?;
        let transfer = Transfer {
            core,
            line,
            place,
            home: usize::from(place.channel) / self.channels_per_node,
            write,
            from_llc: false,
        };
        Ok(match self.free_transfers.pop() {
            Some(t) => {
                self.transfers[t as usize] = transfer;
                t
            }
            None => {
                self.transfers.push(transfer);
                self.transfers.len() as u32 - 1
            }
        })
    }

    // ---- last-level cache and the way out ----

    fn last_level(&mut self, t: u32, governor: &mut dyn Governor) -> Result<(), RunError> {
        let Transfer { core, line, .. } = self.transfers[t as usize];
        let llc = core / self.platform.llc.shared_by;
        let latency = self.platform.llc.latency_ps;
        if self.llcs[llc].touch(line, false) {
            self.transfers[t as usize].from_llc = true;
            self.cores[core].stats.llc_hits += 1;
            self.at(self.now_ps + latency, Event::Back(t));
        } else {
            self.cores[core].stats.llc_misses += 1;
            if governor.miss(core, self.now_ps, false) {
                self.leave_later(t);
            } else {
                self.held[core].push(t);
            }
            self.release(governor);
        }
        Ok(())
    }

    /// Node of the core behind a transfer, and of the memory.
    fn ends(&self, t: u32) -> (usize, usize) {
        let transfer = &self.transfers[t as usize];
        (self.platform.node_of_core[transfer.core], transfer.home)
    }

    fn leave(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        match &mut self.paths[from][to] {
            None => self.at(self.now_ps, Event::Arrive(t)),
            Some(path) => {
                if path.admit(t) {
                    self.send_request(t);
                }
            }
        }
    }

    fn send_request(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        let data = if self.transfers[t as usize].write {
            self.line_bytes
        } else {
            0
        };
        if let Some(path) = &mut self.paths[from][to] {
            let at = path.send(self.now_ps, HEADER + data);
            self.at(at, Event::Arrive(t));
        }
    }

    // ---- home node ----

    /// A request comes to its home node; a line to be written takes its time
    /// on the data path.
    fn arrive(&mut self, t: u32) {
        let Transfer { home, write, .. } = self.transfers[t as usize];
        let at = if write {
            self.nodes[home].to.send(self.now_ps, self.line_bytes)
        } else {
            self.now_ps
        };
        self.at(at, Event::Enqueue(t));
    }

    /// Hands requests of a node's queue to the controllers, in order.
    fn dispatch(&mut self, node: usize) {
        while let Some(&t) = self.nodes[node].queue.front() {
            let Some(at) = self.take_at(t) else { return };
            let transfer = self.transfers[t as usize];
            let controller = &mut self.controllers[usize::from(transfer.place.channel)];
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
                },
            );
            match buffered {
                Some(completion) => self.completed(&completion),
                // A write is answered when the controller has taken it.
                None if transfer.write => self.answer_at(t, at),
                None => {}
            }
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

    fn answer_at(&mut self, t: u32, cycle: u64) {
        let ps = (cycle * self.tck_ps).max(self.now_ps);
        self.at(ps, Event::Answer(t));
    }

    fn completed(&mut self, c: &Completion) {
        if !c.write || c.outcome == crate::controller::RowOutcome::Buffered {
            self.answer_at(c.token as u32, c.done);
        }
    }

    fn next_command(&self) -> Option<(u64, usize)> {
        let times = self.controllers.iter().enumerate();
        times
            .filter_map(|(i, c)| Some((c.next()? * self.tck_ps, i)))
            .min()
    }

    fn step_controller(&mut self, channel: usize) {
        if let Some(completion) = self.controllers[channel].step() {
            self.completed(&completion);
        }
    }

    fn command(&mut self, channel: usize) {
        if let Some(at) = self.controllers[channel].next() {
            self.now_ps = self.now_ps.max(at * self.tck_ps);
        }
        self.step_controller(channel);
        self.dispatch(channel / self.channels_per_node);
    }

    // ---- the way back ----

    fn answer(&mut self, t: u32) {
        let Transfer { home, write, .. } = self.transfers[t as usize];
        let mut at = self.now_ps;
        if !write {
            at = self.nodes[home].from.send(at, self.line_bytes);
        }
        self.at(at + self.platform.northbridge.response_ps, Event::Depart(t));
    }

    fn depart(&mut self, t: u32) {
        let (from, to) = self.ends(t);
        let data = if self.transfers[t as usize].write {
            0
        } else {
            self.line_bytes
        };
        let now = self.now_ps;
        let at = match &mut self.paths[to][from] {
            None => now,
            Some(path) => path.send(now, HEADER + data),
        };
        self.at(at, Event::Back(t));
    }

    fn back(&mut self, t: u32, governor: &mut dyn Governor) -> Result<(), RunError> {
        let transfer = self.transfers[t as usize];
        let core = transfer.core;
        if !transfer.from_llc {
            let (from, to) = self.ends(t);
            let next = self.paths[from][to].as_mut().and_then(Path::release);
            if let Some(next) = next {
                self.send_request(next);
            }
        }
        let waited = self.cores[core].wait;
        if transfer.write {
            self.victim_gone(core / self.platform.llc.shared_by);
        } else {
            let victims = self.cores[core].filled(t, self.now_ps);
            if !transfer.from_llc {
                let out = self.insert_llc(core, transfer.line, false);
                self.write_back(core, out, governor)?;
            }
            for victim in victims {
                let out = self.insert_llc(core, victim.line, true);
                self.write_back(core, out, governor)?;
            }
        }
        self.free_transfers.push(t);
        if !transfer.write && waited != Wait::Nothing && self.cores[core].wait == Wait::Nothing {
            self.run_core(core)?;
        }
        Ok(())
    }

    fn insert_llc(&mut self, core: usize, line: u64, dirty: bool) -> Option<Victim> {
        self.llcs[core / self.platform.llc.shared_by].insert(line, dirty)
    }

    /// Sends a line that the last level gave up to memory.
    fn write_back(
        &mut self,
        core: usize,
        victim: Option<Victim>,
        governor: &mut dyn Governor,
    ) -> Result<(), RunError> {
        let Some(victim) = victim.filter(|v| v.dirty) else {
            return Ok(());
        };
        let t = self.transfer(core, victim.line, true)?;
        self.cores[core].stats.write_backs += 1;
        governor.miss(core, self.now_ps, true);
        let victims = &mut self.victims[core / self.platform.llc.shared_by];
        if victims.free == 0 {
            victims.waiting.push_back(t);
            self.cores[core].hold();
        } else {
            victims.free -= 1;
            self.leave_later(t);
        }
        self.release(governor);
        Ok(())
    }

    /// Memory has taken a victim: the place is the next one's.
    fn victim_gone(&mut self, llc: usize) {
        let Some(next) = self.victims[llc].waiting.pop_front() else {
            self.victims[llc].free += 1;
            return;
        };
        self.leave_later(next);
        let core = self.transfers[next as usize].core;
        if self.cores[core].release(self.now_ps) {
            self.at(self.now_ps, Event::Core(core as u32));
        }
    }
}
