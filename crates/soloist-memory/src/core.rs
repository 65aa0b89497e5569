//! A core: runs its stream until it must wait for memory.
//!
//! A core runs ahead of the machine's time for as long as it touches nothing
//! that others share; what it sends to shared levels carries its own time. It
//! stops where it depends on something in flight: a dependent access on the
//! last load, an instruction window past the oldest load, a store on a place in
//! the store buffer, any miss on a free slot for a line. A fill keeps its slot
//! for as long as the dirty line that it pushed out finds no way to memory.

use std::collections::VecDeque;

use serde::Serialize;

use crate::cache::{Cache, Victim};
use crate::platform::Platform;
use crate::prefetch::Prefetcher;

/// One load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Instructions executed before it.
    pub work: u32,
    /// Physical address.
    pub addr: u64,
    /// A store.
    pub write: bool,
    /// Its address depends on the previous load.
    pub dependent: bool,
}

/// What a core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A load or store.
    Access(Access),
    /// Waits until all cores of its barrier group are here.
    Barrier,
    /// Sleeps until this time (picoseconds) if it is not yet past.
    Until(u64),
    /// Notes the time at which all earlier accesses have been issued.
    Mark,
    /// Nothing more.
    Done,
}

/// What runs on a core. The same stream must give the same steps every time.
pub trait Stream {
    /// The next step; `Done` for ever after the last.
    fn step(&mut self) -> Step;
}

/// What a core did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoreStats {
    /// Time at which its last access was complete (or, for a core that was
    /// cut off, at which it was stopped), picoseconds.
    pub finished_ps: u64,
    /// Instructions, accesses included.
    pub instructions: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Accesses that hit private caches, by level.
    pub private_hits: Vec<u64>,
    /// Fills that the last-level cache served.
    pub llc_hits: u64,
    /// Fills that memory served.
    pub llc_misses: u64,
    /// Dirty lines that its fills pushed out to memory.
    pub write_backs: u64,
    /// Prefetches sent.
    pub prefetches: u64,
    /// Sum of the fills' latencies, from the core's miss on, picoseconds.
    pub fill_ps: u64,
    /// Time spent waiting at barriers, picoseconds.
    pub barrier_ps: u64,
    /// Times of the marks, picoseconds.
    pub marks_ps: Vec<u64>,
}

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// The fill with this number.
    Fill(u32),
    /// The oldest load in flight.
    Window,
    /// A free slot.
    Slot,
    /// A place in the store buffer.
    Store,
    Barrier,
    /// All fills: the end, or a mark.
    Drain,
    Finished,
}

/// A load in flight, in program order.
#[derive(Clone, Copy, Debug)]
struct Load {
    fill: u32,
    instruction: u64,
}

/// A line on its way to this core.
#[derive(Clone, Copy, Debug)]
struct Miss {
    line: u64,
    fill: u32,
    dirty: bool,
    store: bool,
    prefetch: bool,
    since_ps: u64,
}

/// State of one core.
pub(crate) struct Core {
    pub stream: Option<Box<dyn Stream + Send>>,
    pub background: bool,
    pub group: usize,
    pub now_ps: u64,
    pub wait: Wait,
    pub stats: CoreStats,
    caches: Vec<Cache>,
    latencies_ps: Vec<u64>,
    instruction_fs: u64,
    rest_fs: u64,
    pending: Option<Access>,
    misses: Vec<Miss>,
    loads: VecDeque<Load>,
    /// The last load: the fill it waits for, or when its data is there.
    last_load: std::result::Result<u64, u32>,
    slots: u32,
    stores: u32,
    outstanding: u32,
    window: u64,
    store_buffer: u32,
    prefetcher: Option<Prefetcher>,
}

/// What a core wants from the machine when it stops running ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A line from the shared levels, at the core's time.
    Fill {
        line: u64,
        at_ps: u64,
    },
    /// To be resumed at its own time.
    Resume,
    /// To be resumed when something in flight arrives.
    Wait,
    Barrier,
    Finished,
}

impl Core {
    pub fn new(platform: &Platform) -> Self {
        let levels = &platform.private;
        Self {
            stream: None,
            background: false,
            group: 0,
            now_ps: 0,
            wait: Wait::Finished,
            stats: CoreStats {
                private_hits: vec![0; levels.len()],
                ..CoreStats::default()
            },
            caches: levels.iter().map(|l| Cache::new(l.shape)).collect(),
            latencies_ps: levels.iter().map(|l| l.latency_ps).collect(),
            instruction_fs: platform.instruction_fs,
            rest_fs: 0,
            pending: None,
            misses: Vec::new(),
            loads: VecDeque::new(),
            last_load: Ok(0),
            slots: 0,
            stores: 0,
            outstanding: platform.core.outstanding,
            window: u64::from(platform.core.window),
            store_buffer: platform.core.store_buffer,
            prefetcher: platform.core.prefetch.then(Prefetcher::default),
        }
    }

    /// Runs until the core needs something. `next_fill` is the number that
    /// its next fill will have.
    pub fn run(&mut self, until_ps: u64, next_fill: u32, line_shift: u32) -> Wish {
        loop {
            if self.now_ps > until_ps {
                return Wish::Resume;
            }
            let access = match self.pending.take() {
                Some(access) => access,
                None => match self.stream.as_mut().map_or(Step::Done, |s| s.step()) {
                    Step::Access(access) => {
                        self.charge(u64::from(access.work) + 1);
                        self.stats.accesses += 1;
                        access
                    }
                    Step::Barrier => return Wish::Barrier,
                    Step::Until(at) => {
                        self.now_ps = self.now_ps.max(at);
                        continue;
                    }
                    Step::Mark => {
                        self.stats.marks_ps.push(self.now_ps);
                        continue;
                    }
                    Step::Done => return self.finish(),
                },
            };
            if let Some(wish) = self.access(access, next_fill, line_shift) {
                return wish;
            }
        }
    }

    fn finish(&mut self) -> Wish {
        if self.misses.iter().any(|m| !m.prefetch) {
            self.wait = Wait::Drain;
            return Wish::Wait;
        }
        self.wait = Wait::Finished;
        self.stats.finished_ps = self.now_ps;
        Wish::Finished
    }

    fn charge(&mut self, instructions: u64) {
        self.stats.instructions += instructions;
        self.rest_fs += instructions * self.instruction_fs;
        self.now_ps += self.rest_fs / 1000;
        self.rest_fs %= 1000;
    }

    /// Tries one access; `None`: done, go on.
    fn access(&mut self, a: Access, next_fill: u32, line_shift: u32) -> Option<Wish> {
        let line = a.addr >> line_shift;
        if a.dependent {
            match self.last_load {
                Ok(at) => self.now_ps = self.now_ps.max(at),
                Err(fill) => return self.block(a, Wait::Fill(fill)),
            }
        }
        if let Some(oldest) = self.loads.front() {
            if self.stats.instructions - oldest.instruction > self.window {
                return self.block(a, Wait::Window);
            }
        }
        if let Some(level) = self.look_up(line, a.write) {
            self.stats.private_hits[level] += 1;
            if !a.write {
                self.last_load = Ok(self.now_ps + self.latencies_ps[level]);
            }
            return self.prefetch(line, level > 0, next_fill);
        }
        if let Some(miss) = self.misses.iter_mut().find(|m| m.line == line) {
            miss.dirty |= a.write;
            miss.prefetch = false;
            let fill = miss.fill;
            if !a.write {
                self.note_load(fill);
            }
            return None;
        }
        if self.slots >= self.outstanding {
            return self.block(a, Wait::Slot);
        }
        if a.write && self.stores >= self.store_buffer {
            return self.block(a, Wait::Store);
        }
        if !a.write {
            self.note_load(next_fill);
        }
        Some(self.miss(line, a.write, false, next_fill))
    }

    fn block(&mut self, access: Access, wait: Wait) -> Option<Wish> {
        self.pending = Some(access);
        self.wait = wait;
        Some(Wish::Wait)
    }

    fn note_load(&mut self, fill: u32) {
        self.last_load = Err(fill);
        self.loads.push_back(Load {
            fill,
            instruction: self.stats.instructions,
        });
    }

    fn miss(&mut self, line: u64, store: bool, prefetch: bool, fill: u32) -> Wish {
        self.slots += 1;
        self.stores += u32::from(store);
        self.misses.push(Miss {
            line,
            fill,
            dirty: store,
            store,
            prefetch,
            since_ps: self.now_ps,
        });
        let private: u64 = self.latencies_ps.last().copied().unwrap_or(0);
        Wish::Fill {
            line,
            at_ps: self.now_ps + private,
        }
    }

    /// After a hit: asks for the line that the prefetcher expects next.
    fn prefetch(&mut self, line: u64, beyond_l1: bool, next_fill: u32) -> Option<Wish> {
        if !beyond_l1 || self.slots + 2 > self.outstanding {
            return None;
        }
        let next = self.prefetcher.as_mut()?.see(line)?;
        let last = self.caches.last_mut()?;
        if last.touch(next, false) || self.misses.iter().any(|m| m.line == next) {
            return None;
        }
        self.stats.prefetches += 1;
        Some(self.miss(next, false, true, next_fill))
    }

    /// Level that holds `line`; the line moves into the levels before it.
    fn look_up(&mut self, line: u64, write: bool) -> Option<usize> {
        let level = self
            .caches
            .iter_mut()
            .enumerate()
            .find_map(|(i, c)| c.touch(line, write && i == 0).then_some(i))?;
        for i in (0..level).rev() {
            self.insert(i, line, write && i == 0);
        }
        Some(level)
    }

    /// Puts a line into level `i`; a dirty victim goes one level out. Returns
    /// the victim that leaves the last private level.
    fn insert(&mut self, i: usize, line: u64, dirty: bool) -> Option<Victim> {
        let victim = self.caches[i].insert(line, dirty).filter(|v| v.dirty)?;
        if i + 1 == self.caches.len() {
            return Some(victim);
        }
        self.insert(i + 1, victim.line, true)
    }

    /// A line has arrived. Returns the dirty lines that leave the private
    /// levels.
    pub fn filled(&mut self, fill: u32, at_ps: u64) -> Vec<Victim> {
        let Some(at) = self.misses.iter().position(|m| m.fill == fill) else {
            return Vec::new();
        };
        let miss = self.misses.swap_remove(at);
        self.slots -= 1;
        self.stores -= u32::from(miss.store);
        self.stats.fill_ps += at_ps - miss.since_ps;
        if self.last_load == Err(fill) {
            self.last_load = Ok(at_ps);
        }
        self.loads.retain(|l| l.fill != fill);
        let first = if miss.prefetch {
            self.caches.len().saturating_sub(1)
        } else {
            0
        };
        let mut victims = Vec::new();
        for i in (first..self.caches.len()).rev() {
            victims.extend(self.insert(i, miss.line, miss.dirty && i == first));
        }
        let wakes = match self.wait {
            Wait::Fill(wanted) => wanted == fill,
            Wait::Window => self
                .loads
                .front()
                .is_none_or(|l| self.stats.instructions - l.instruction <= self.window),
            Wait::Slot => self.slots < self.outstanding,
            Wait::Store => self.stores < self.store_buffer,
            Wait::Drain => !self.misses.iter().any(|m| !m.prefetch),
            _ => false,
        };
        if wakes {
            self.wake(at_ps);
        }
        victims
    }

    /// A line that one of its fills pushed out waits for a way to memory and
    /// keeps the fill's slot.
    pub fn hold(&mut self) {
        self.slots += 1;
    }

    /// The line has found its way. Does the core go on?
    pub fn release(&mut self, at_ps: u64) -> bool {
        self.slots -= 1;
        let wakes = self.wait == Wait::Slot && self.slots < self.outstanding;
        if wakes {
            self.wake(at_ps);
        }
        wakes
    }

    fn wake(&mut self, at_ps: u64) {
        self.now_ps = self.now_ps.max(at_ps);
        self.wait = Wait::Nothing;
    }
}
