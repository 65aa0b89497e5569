//! Replays traces against the controllers of a machine.
//!
//! Each trace is a *source*. A source offers its requests in order, at most
//! one a cycle, none before the cycle its trace names; it waits while the
//! request's queue is full or while it has as many reads outstanding as it may
//! have. Sources that can send in the same cycle take turns. Latency counts
//! from the cycle in which a controller took the request to the last beat of
//! its data.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use serde::Serialize;

use crate::controller::{CommandCounts, Completion, Controller, Request, RowOutcome};
use crate::dram::{Cycle, Issued};
use crate::error::Result;
use crate::latency::{Latencies, Summary};
use crate::platform::{Decoder, DramAddress, Machine};
use crate::trace::{Access, Reader};
use soloist_machine::dram::Device;

/// Told the commands of a channel, in order.
pub type CommandSink<'a> = &'a mut dyn FnMut(usize, &[Issued]);

/// A trace and how eagerly it is played.
pub struct Source<R> {
    /// The trace.
    pub reader: Reader<R>,
    /// Reads that may be outstanding; `None`: as many as the queues hold.
    pub outstanding: Option<usize>,
}

/// What happened to the requests of one source, or of all.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Latency of reads.
    pub reads: Latencies,
    /// Latency of writes, to the last beat on the DRAM's bus.
    pub writes: Latencies,
    /// Requests by [`RowOutcome`].
    pub outcomes: [u64; 4],
    /// Cycle of the last beat.
    pub last: Cycle,
}

impl Tally {
    #[inline]
    fn add(&mut self, c: &Completion) {
        let latency = c.done - c.arrival;
        if c.write {
            self.writes.add(latency);
        } else {
            self.reads.add(latency);
        }
        self.outcomes[c.outcome as usize] += 1;
        self.last = self.last.max(c.done);
    }
}

/// Figures of a replay that depend on nothing but its input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Latency of reads (of writes, if there were only writes), cycles.
    pub latency_cycles: Summary,
    /// The same in nanoseconds.
    pub latency_ns: Summary,
    /// Latency of writes to their last beat, cycles.
    pub write_latency_cycles: Summary,
    /// Requests whose row was open.
    pub row_hits: u64,
    /// Requests whose bank was closed.
    pub row_misses: u64,
    /// Requests that had to close another row.
    pub row_conflicts: u64,
    /// Requests that the write buffer served.
    pub buffered: u64,
    /// First cycle of the trace (0) to the last beat.
    pub makespan_cycles: u64,
    /// The same in nanoseconds.
    pub makespan_ns: f64,
    /// Data moved over the DRAM's bus per second of simulated time, bytes.
    pub bandwidth_bytes_per_second: f64,
}

impl Figures {
    fn new(t: &Tally, device: &Device, line: u32) -> Self {
        let ns = f64::from(device.tck_ps) / 1000.0;
        let requests = t.reads.count() + t.writes.count();
        let buffered = t.outcomes[RowOutcome::Buffered as usize];
        let headline = if t.reads.count() > 0 {
            &t.reads
        } else {
            &t.writes
        };
        let makespan_ns = t.last as f64 * ns;
        Self {
            requests,
            reads: t.reads.count(),
            writes: t.writes.count(),
            latency_cycles: headline.summary(1.0),
            latency_ns: headline.summary(ns),
            write_latency_cycles: t.writes.summary(1.0),
            row_hits: t.outcomes[RowOutcome::Hit as usize],
            row_misses: t.outcomes[RowOutcome::Closed as usize],
            row_conflicts: t.outcomes[RowOutcome::Conflict as usize],
            buffered,
            makespan_cycles: t.last,
            makespan_ns,
            bandwidth_bytes_per_second: if t.last == 0 {
                0.0
            } else {
                // What the write buffer serves moves nothing.
                (requests - buffered) as f64 * f64::from(line) / makespan_ns * 1e9
            },
        }
    }
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// All sources together.
    #[serde(flatten)]
    pub all: Figures,
    /// Addresses beyond the machine's memory that were folded back into it.
    pub wrapped: u64,
    /// Commands issued, over all channels.
    pub commands: CommandCounts,
    /// Each source, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Figures>,
}

/// The controllers of a machine and the traces that load them.
pub struct Replay<R> {
    device: Device,
    line: u32,
    decoder: Decoder,
    controllers: Vec<Controller>,
    players: Vec<Player<R>>,
    /// Source that comes first among those that can send in the same cycle.
    turn: usize,
    wrapped: u64,
}

struct Player<R> {
    source: Source<R>,
    next: Option<(Access, DramAddress)>,
    /// Earliest cycle for the next request.
    ready: Cycle,
    /// Ends of outstanding reads whose column command has been issued.
    ends: BinaryHeap<Reverse<Cycle>>,
    outstanding: usize,
    tally: Tally,
}

impl<R: Read> Replay<R> {
    /// Controllers for every channel of `machine`, at cycle 0.
    pub fn new(machine: &Machine, sources: Vec<Source<R>>) -> Self {
        let map = &machine.map;
        let channels = map.n_nodes() * map.n_channels();
        Self {
            device: machine.device.clone(),
            line: map.line_size(),
            decoder: Decoder::new(map),
            controllers: (0..channels)
                .map(|_| Controller::new(&machine.device, &machine.geometry, &machine.policy))
                .collect(),
            players: sources
                .into_iter()
                .map(|source| Player {
                    source,
                    next: None,
                    ready: 0,
                    ends: BinaryHeap::new(),
                    outstanding: 0,
                    tally: Tally::default(),
                })
                .collect(),
            turn: 0,
            wrapped: 0,
        }
    }

    /// Plays everything. `see` is told every completion with its source, and
    /// every command if `commands` is set.
    pub fn run(
        &mut self,
        mut see: impl FnMut(usize, &Completion),
        mut commands: Option<CommandSink<'_>>,
    ) -> Result<Report> {
        if commands.is_some() {
            self.controllers.iter_mut().for_each(Controller::record);
        }
        for i in 0..self.players.len() {
            self.fetch(i)?;
        }
        let mut flushed = false;
        loop {
            if !flushed && self.players.iter().all(|p| p.next.is_none()) {
                self.controllers.iter_mut().for_each(Controller::flush);
                flushed = true;
            }
            let command = self.next_command();
            match (self.next_arrival(), command) {
                (Some((at, i)), None) => self.push(i, at, &mut see)?,
                (Some((at, i)), Some((t, _))) if at < t => self.push(i, at, &mut see)?,
                (_, Some((_, c))) => self.step(c, &mut see),
                (None, None) => break,
            }
            if let Some(sink) = &mut commands {
                for (i, c) in self.controllers.iter_mut().enumerate() {
                    let log = c.take_log();
                    if !log.is_empty() {
                        sink(i, &log);
                    }
                }
            }
        }
        Ok(self.report())
    }

    fn report(&self) -> Report {
        let figures = |t: &Tally| Figures::new(t, &self.device, self.line);
        let mut all = Tally::default();
        for p in &self.players {
            all.merge(&p.tally);
        }
        let mut commands = CommandCounts::default();
        for c in &self.controllers {
            let n = c.counts();
            commands.activates += n.activates;
            commands.precharges += n.precharges;
            commands.refreshes += n.refreshes;
            commands.drains += n.drains;
        }
        Report {
            all: figures(&all),
            wrapped: self.wrapped,
            commands,
            sources: if self.players.len() > 1 {
                self.players.iter().map(|p| figures(&p.tally)).collect()
            } else {
                Vec::new()
            },
        }
    }

    #[inline]
    fn next_command(&self) -> Option<(Cycle, usize)> {
        if let [only] = self.controllers.as_slice() {
            return only.next().map(|t| (t, 0));
        }
        let times = self.controllers.iter().enumerate();
        times.filter_map(|(i, c)| Some((c.next()?, i))).min()
    }

    /// The source that can send next, and when. Sources that can send in the same cycle take
    /// turns, so that none has an advantage.
    #[inline]
    fn next_arrival(&self) -> Option<(Cycle, usize)> {
        let n = self.players.len();
        let in_turn = (self.turn..n).chain(0..self.turn);
        let times = in_turn.filter_map(|i| Some((self.players[i].arrival(&self.controllers)?, i)));
        times.min_by_key(|&(at, _)| at)
    }

    /// Reads the next request of source `i`.
    #[inline]
    fn fetch(&mut self, i: usize) -> Result<()> {
        let p = &mut self.players[i];
        let Some(mut access) = p.source.reader.next_access()? else {
            p.next = None;
            return Ok(());
        };
        let place = match self.decoder.decode(access.addr) {
            Some(place) => place,
            None => {
                let Some(addr) = self.decoder.wrap(access.addr) else {
                    return Err(p.source.reader.error(format!(
                        "address {:#x} lies in no memory range of the machine",
                        access.addr
                    )));
                };
                self.wrapped += 1;
                access.addr = addr;
                let place = self.decoder.decode(addr);
                place.ok_or_else(|| p.source.reader.error("address lies in no memory range"))?
            }
        };
        p.next = Some((access, place));
        Ok(())
    }

    #[inline]
    fn push(
        &mut self,
        i: usize,
        at: Cycle,
        see: &mut impl FnMut(usize, &Completion),
    ) -> Result<()> {
        let p = &mut self.players[i];
        let Some((access, place)) = p.next else {
            return Ok(());
        };
        self.turn = i + 1;
        let controller = &mut self.controllers[usize::from(place.channel)];
        controller.idle_until(at);
        let completion = controller.push(
            at,
            Request {
                token: i as u64,
                line: self.decoder.line(access.addr),
                bank: place.bank,
                row: place.row,
                write: access.write,
                owner: i as u16,
            },
        );
        p.ready = at + 1;
        match completion {
            Some(c) => {
                p.tally.add(&c);
                see(i, &c);
            }
            None if !access.write => p.outstanding += 1,
            None => {}
        }
        if p.source.outstanding.is_some() {
            p.retire(at);
        }
        self.fetch(i)
    }

    #[inline]
    fn step(&mut self, c: usize, see: &mut impl FnMut(usize, &Completion)) {
        let Some(done) = self.controllers[c].step() else {
            return;
        };
        let i = done.token as usize;
        let p = &mut self.players[i];
        p.tally.add(&done);
        see(i, &done);
        if !done.write {
            if p.source.outstanding.is_some() {
                p.ends.push(Reverse(done.done));
            } else {
                p.outstanding -= 1;
            }
        }
    }
}

impl Tally {
    fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        for (sum, n) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += n;
        }
        self.last = self.last.max(other.last);
    }
}

impl<R> Player<R> {
    /// When the next request can arrive, if its queue and the limit allow.
    #[inline]
    fn arrival(&self, controllers: &[Controller]) -> Option<Cycle> {
        let (access, place) = self.next.as_ref()?;
        let room = controllers[usize::from(place.channel)].room_at(access.write)?;
        let mut at = self.ready.max(access.cycle).max(room);
        if self
            .source
            .outstanding
            .is_some_and(|limit| self.outstanding >= limit)
        {
            at = at.max(self.ends.peek()?.0);
        }
        Some(at)
    }

    /// Forgets reads that have ended by `now`.
    fn retire(&mut self, now: Cycle) {
        while self.ends.peek().is_some_and(|end| end.0 <= now) {
            self.ends.pop();
            self.outstanding -= 1;
        }
    }
}
