//! The core model: runs its stream until it must wait for memory.
//!
//! A core runs ahead of the machine's time for as long as it touches nothing
//! that others share; what it sends to shared levels carries its own time. It
//! stops where it depends on something in flight: a dependent access on the
//! last load, any instruction that lies a window past the oldest load, a store
//! on a place in the store buffer, any miss on a free slot for a line. A fill
//! keeps its slot for as long as the dirty line that it pushed out finds no way
//! to memory. Dirty lines that leave without a fill have room of their own.
//! Prefetches are made on every access that misses the first level and have
//! slots of their own.

use std::collections::VecDeque;

use super::prefetch::Prefetcher;
use super::{Access, Account, CoreModel, CoreStats, Step, Stream, Wish};
use crate::blame::{Bill, Blame, Cause, Label};
use crate::cache::{Cache, Levels, Shape, Victim};
use crate::platform::Platform;

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    /// The fill with this number.
    Fill(u32),
    /// The oldest load in flight.
    Window,
    /// A free slot.
    Slot,
    /// A place in the store buffer.
    Store,
    /// Room for a dirty line that leaves.
    Room,
    /// All fills: the end.
    Drain,
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
    /// It holds a slot of the core: always, but for a prefetch that no access
    /// has asked for yet.
    demanded: bool,
    /// It holds a place in the store buffer.
    store: bool,
    /// It holds a slot of the prefetcher.
    prefetch: bool,
    /// It goes into no private cache.
    behind: bool,
    /// The stream has given it up: it leaves as soon as it is here.
    leaves: bool,
    since_ps: u64,
}

/// An access that could not be made yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    access: Access,
    /// An instruction fetch: nothing goes on before it is here.
    fetch: bool,
    /// It has been through private caches already.
    behind: bool,
    /// Instructions up to it and itself that have not been executed.
    left: u64,
    /// No private cache has the line, and it is not on its way.
    missed: bool,
}

/// State of one core.
pub(crate) struct WindowCore {
    stream: Option<Box<dyn Stream + Send>>,
    now_ps: u64,
    wait: Wait,
    /// Since when it waits.
    waits_since_ps: u64,
    /// Its own number.
    id: u16,
    cores: usize,
    line_shift: u32,
    stats: CoreStats,
    caches: Levels,
    latencies_ps: Vec<u64>,
    instruction_fs: u64,
    rest_fs: u64,
    pending: Option<Pending>,
    misses: Vec<Miss>,
    /// Number of the next fill.
    next_fill: u32,
    loads: Vec<Load>,
    /// The last load: the fill it waits for, or when its data is there.
    last_load: std::result::Result<u64, u32>,
    slots: u32,
    stores: u32,
    prefetches: u32,
    outstanding: u32,
    window: u64,
    store_buffer: u32,
    /// Dirty lines that it gave up and that are not out of its way, and how many may be.
    leaving: u32,
    room: u32,
    prefetcher: Option<Prefetcher>,
    /// Pages whose translation is at hand, if not all are.
    tlb: Option<Cache>,
    walk_ps: u64,
    /// Lines that the prefetcher wants.
    wanted: VecDeque<u64>,
    /// Dirty lines that left the private caches as others moved in between them, or as the
    /// stream says.
    gone: Vec<Victim>,
}

const PAGE_SHIFT: u32 = 12;

/// A last TLB of so many pages, four ways.
fn tlb(pages: u32) -> Option<Cache> {
    let sets = u64::from(pages).div_ceil(4);
    (pages > 0).then(|| {
        Cache::new(Shape {
            sets,
            ways: 4,
            hashed: false,
        })
    })
}

impl WindowCore {
    pub fn new(platform: &Platform, id: usize) -> Self {
        let levels = &platform.private;
        let cores = platform.node_of_core.len();
        Self {
            stream: None,
            now_ps: 0,
            wait: Wait::Nothing,
            waits_since_ps: 0,
            id: id as u16,
            cores,
            line_shift: platform.memory.map.line_size().trailing_zeros(),
            stats: CoreStats {
                private_hits: vec![0; levels.len()],
                account: Account {
                    blame: Blame::new(cores),
                    ..Account::default()
                },
                ..CoreStats::default()
            },
            caches: Levels::new(levels.iter().map(|l| l.shape)),
            latencies_ps: levels.iter().map(|l| l.latency_ps).collect(),
            instruction_fs: platform.instruction_fs,
            rest_fs: 0,
            pending: None,
            misses: Vec::new(),
            next_fill: 0,
            loads: Vec::new(),
            last_load: Ok(0),
            slots: 0,
            stores: 0,
            prefetches: 0,
            outstanding: platform.core.outstanding,
            window: u64::from(platform.core.window),
            store_buffer: platform.core.store_buffer,
            leaving: 0,
            room: platform.room(),
            prefetcher: Prefetcher::of(&platform.core),
            tlb: tlb(platform.core.tlb),
            walk_ps: platform.walk_ps,
            wanted: VecDeque::new(),
            gone: Vec::new(),
        }
    }

    /// The next access, or what else the stream wants.
    fn next(&mut self) -> Result<Pending, Option<Wish>> {
        let (access, fetch, behind) = match step(&mut self.stream, self.now_ps) {
            Step::Access(access) => (access, false, false),
            Step::Fetch(access) => (access, true, false),
            Step::Behind { access, fetch } => (access, fetch, true),
            Step::WriteBack(addr) => {
                self.give_up(addr >> self.line_shift);
                return Err(None);
            }
            Step::Barrier => return Err(Some(Wish::Barrier)),
            Step::Until(at) => {
                let slept = at.saturating_sub(self.now_ps);
                self.stats.slept_ps += slept;
                self.stats.account.slept_ps += slept;
                self.now_ps += slept;
                return Err(None);
            }
            Step::Mark => {
                if self.stats.marks_ps.is_empty() {
                    self.stats.account.begin_anew(self.cores);
                }
                self.stats.marks_ps.push(self.now_ps);
                return Err(None);
            }
            Step::Done => return Err(Some(self.finish())),
        };
        self.stats.accesses += 1;
        Ok(Pending {
            access,
            fetch,
            behind,
            left: u64::from(access.work) + 1,
            missed: false,
        })
    }

    /// A changed line leaves: at once, or when it is here if it is still on its way.
    fn give_up(&mut self, line: u64) {
        if let Some(miss) = self.misses.iter_mut().find(|m| m.line == line) {
            miss.leaves = true;
            return;
        }
        let (dirty, tag) = (true, self.id);
        self.gone.push(Victim { line, dirty, tag });
    }

    /// The next line that leaves sets out, or waits for room.
    fn leave(&mut self) -> Option<Wish> {
        let &Victim { line, .. } = self.gone.last()?;
        if self.leaving >= self.room {
            self.wait = Wait::Room;
            self.waits_since_ps = self.now_ps;
            return Some(Wish::Wait);
        }
        self.gone.pop();
        self.leaving += 1;
        let at_ps = self.now_ps;
        Some(Wish::WriteBack { line, at_ps })
    }

    fn finish(&mut self) -> Wish {
        if self.misses.iter().any(|m| m.demanded) {
            self.wait = Wait::Drain;
            self.waits_since_ps = self.now_ps;
            return Wish::Wait;
        }
        self.stats.finished_ps = self.now_ps;
        Wish::Finished
    }

    /// Instructions that the window has room for.
    fn room(&self) -> u64 {
        self.loads.first().map_or(u64::MAX, |oldest| {
            (oldest.instruction + self.window).saturating_sub(self.stats.instructions)
        })
    }

    /// Executes what the window has room for; returns how many instructions
    /// are left.
    fn execute(&mut self, instructions: u64) -> u64 {
        let done = instructions.min(self.room());
        self.stats.instructions += done;
        self.rest_fs += done * self.instruction_fs;
        self.now_ps += self.rest_fs / 1000;
        self.stats.account.compute_ps += self.rest_fs / 1000;
        self.rest_fs %= 1000;
        instructions - done
    }

    /// Tries one access; `None`: done, go on.
    fn access(&mut self, p: Pending) -> Option<Wish> {
        let a = p.access;
        let line = a.addr >> self.line_shift;
        if a.dependent {
            match self.last_load {
                Ok(at) => self.wait_for_private(at),
                Err(fill) => return self.block(p, Wait::Fill(fill)),
            }
        }
        let here = match p.behind || p.missed {
            true => None,
            false => self.caches.look_up(0, line, a.write, &mut self.gone),
        };
        if let Some(level) = here {
            self.stats.private_hits[level] += 1;
            let walk = self.translate(a.addr);
            if !a.write {
                self.last_load = Ok(self.now_ps + walk + self.latencies_ps[level]);
            }
            if level > 0 {
                self.train(line);
            }
            return None;
        }
        if let Some(at) = self.misses.iter().position(|m| m.line == line) {
            return self.join(p, at);
        }
        let p = Pending { missed: true, ..p };
        if self.slots >= self.outstanding {
            return self.block(p, Wait::Slot);
        }
        if a.write && self.stores >= self.store_buffer {
            return self.block(p, Wait::Store);
        }
        self.slots += 1;
        self.stores += u32::from(a.write);
        let miss = Miss {
            line,
            fill: self.next_fill,
            dirty: a.write,
            demanded: true,
            store: a.write,
            prefetch: false,
            behind: p.behind,
            leaves: false,
            since_ps: self.now_ps,
        };
        if !a.write {
            self.note_load(miss.fill);
        }
        if p.fetch {
            self.wait = Wait::Fill(miss.fill);
            self.waits_since_ps = self.now_ps;
        } else if !p.behind {
            self.train(line);
        }
        let walk = self.translate(a.addr);
        Some(self.send(miss, walk))
    }

    /// Time that it takes to translate `addr`. It holds up the access, and not
    /// those beside it.
    fn translate(&mut self, addr: u64) -> u64 {
        let page = addr >> PAGE_SHIFT;
        let Some(tlb) = &mut self.tlb else { return 0 };
        if tlb.touch(page, false) {
            return 0;
        }
        tlb.insert(page, false);
        self.stats.page_walks += 1;
        self.walk_ps
    }

    /// An access to a line that is on its way already.
    fn join(&mut self, p: Pending, at: usize) -> Option<Wish> {
        let Miss { line, fill, .. } = self.misses[at];
        if !self.misses[at].demanded {
            if self.slots >= self.outstanding {
                let missed = false;
                return self.block(Pending { missed, ..p }, Wait::Slot);
            }
            self.slots += 1;
            self.misses[at].demanded = true;
            self.misses[at].since_ps = self.now_ps;
            self.train(line);
        }
        self.misses[at].dirty |= p.access.write;
        if !p.access.write {
            self.note_load(fill);
        }
        if p.fetch {
            self.wait = Wait::Fill(fill);
            self.waits_since_ps = self.now_ps;
            return Some(Wish::Wait);
        }
        None
    }

    fn block(&mut self, pending: Pending, wait: Wait) -> Option<Wish> {
        self.pending = Some(pending);
        self.wait = wait;
        self.waits_since_ps = self.now_ps;
        Some(Wish::Wait)
    }

    /// Waits for the data of a load that a private cache serves.
    fn wait_for_private(&mut self, at_ps: u64) {
        let wait = at_ps.saturating_sub(self.now_ps);
        self.now_ps += wait;
        self.stats.account.stall_ps += wait;
        let own = Label::new(Cause::Base, self.id);
        self.stats.account.blame.add(own, wait);
    }

    fn note_load(&mut self, fill: u32) {
        self.last_load = Err(fill);
        self.loads.push(Load {
            fill,
            instruction: self.stats.instructions,
        });
    }

    /// Sends a miss to the shared levels, after a page walk.
    fn send(&mut self, miss: Miss, walk_ps: u64) -> Wish {
        self.misses.push(miss);
        self.next_fill = self.next_fill.wrapping_add(1);
        let private: u64 = self.latencies_ps.last().copied().unwrap_or(0);
        Wish::Fill {
            fill: miss.fill,
            line: miss.line,
            at_ps: self.now_ps + walk_ps + private,
        }
    }

    /// Shows the prefetcher an access that missed the first level.
    fn train(&mut self, line: u64) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.see(line, &mut self.wanted);
        }
    }

    /// The next line that the prefetcher wants, if it has a slot for it; what
    /// it has none for is dropped.
    fn prefetch(&mut self) -> Option<Wish> {
        let slots = self.prefetcher.as_ref()?.slots();
        while let Some(line) = self.wanted.pop_front() {
            let here = self.caches.last_holds(line)?;
            if here || self.misses.iter().any(|m| m.line == line) {
                continue;
            }
            if self.prefetches >= slots {
                self.wanted.clear();
                return None;
            }
            self.prefetches += 1;
            self.stats.prefetches += 1;
            if let Some(p) = &mut self.pending {
                p.missed &= p.access.addr >> self.line_shift != line;
            }
            let miss = Miss {
                line,
                fill: self.next_fill,
                dirty: false,
                demanded: false,
                store: false,
                prefetch: true,
                behind: false,
                leaves: false,
                since_ps: self.now_ps,
            };
            return Some(self.send(miss, 0));
        }
        None
    }

    /// Ends a wait at `at_ps`. It was for a line that `bill` is of, or else
    /// because of `rest`.
    fn wake(&mut self, at_ps: u64, bill: Option<&Bill>, rest: Label) {
        self.wait = Wait::Nothing;
        let since = self.waits_since_ps;
        if at_ps <= since {
            return;
        }
        self.now_ps = at_ps;
        let account = &mut self.stats.account;
        account.stall_ps += at_ps - since;
        match bill {
            Some(bill) => account.blame.add_wait(bill, at_ps - since, rest),
            None => account.blame.add(rest, at_ps - since),
        }
    }

    /// Puts a line that has arrived into the private caches.
    fn keep(&mut self, miss: &Miss, out: &mut Vec<Victim>) {
        if miss.leaves {
            let (line, dirty, tag) = (miss.line, true, self.id);
            out.push(Victim { line, dirty, tag });
        }
        if miss.behind || miss.leaves {
            return;
        }
        let levels = self.caches.len();
        let first = match miss.demanded {
            true => 0,
            false => levels.saturating_sub(1),
        };
        self.caches.fill(first..levels, miss.line, miss.dirty, out);
    }
}

fn step(stream: &mut Option<Box<dyn Stream + Send>>, now_ps: u64) -> Step {
    stream.as_mut().map_or(Step::Done, |s| s.step_at(now_ps))
}

impl CoreModel for WindowCore {
    fn start(&mut self, stream: Box<dyn Stream + Send>) {
        if stream.behind_caches() {
            self.caches.clear();
        }
        if stream.defeats_prefetch() {
            self.prefetcher = None;
        }
        self.stream = Some(stream);
    }

    fn now_ps(&self) -> u64 {
        self.now_ps
    }

    fn run(&mut self, until_ps: u64) -> Wish {
        loop {
            if self.wait != Wait::Nothing {
                return Wish::Wait;
            }
            if let Some(wish) = self.leave().or_else(|| self.prefetch()) {
                return wish;
            }
            if self.now_ps > until_ps {
                return Wish::Resume;
            }
            let pending = match self.pending.take() {
                Some(pending) => Ok(pending),
                None => self.next(),
            };
            let wish = match pending {
                Ok(p) => {
                    let left = self.execute(p.left);
                    let p = Pending { left, ..p };
                    if left > 0 {
                        self.block(p, Wait::Window)
                    } else {
                        self.access(p)
                    }
                }
                Err(wish) => wish,
            };
            if let Some(wish) = wish {
                return wish;
            }
        }
    }

    fn filled(
        &mut self,
        fill: u32,
        at_ps: u64,
        bill: Option<&Bill>,
        out: &mut Vec<Victim>,
    ) -> bool {
        let Some(at) = self.misses.iter().position(|m| m.fill == fill) else {
            return false;
        };
        let miss = self.misses.swap_remove(at);
        self.slots -= u32::from(miss.demanded);
        self.stores -= u32::from(miss.store);
        self.prefetches -= u32::from(miss.prefetch);
        if miss.demanded {
            let latency = at_ps.saturating_sub(miss.since_ps);
            self.stats.fill_ps += latency;
            if let Some(latencies) = &mut self.stats.account.latencies {
                latencies.add(latency);
            }
        }
        if self.last_load == Err(fill) {
            self.last_load = Ok(at_ps);
        }
        self.loads.retain(|l| l.fill != fill);
        self.keep(&miss, out);
        let wakes = match self.wait {
            Wait::Nothing | Wait::Room => false,
            Wait::Fill(wanted) => wanted == fill,
            Wait::Window => self.room() > 0,
            Wait::Slot => self.slots < self.outstanding,
            Wait::Store => self.stores < self.store_buffer,
            Wait::Drain => !self.misses.iter().any(|m| m.demanded),
        };
        if wakes {
            self.wake(at_ps, bill, Label::new(Cause::Base, self.id));
        }
        wakes
    }

    fn hold(&mut self) {
        self.slots += 1;
    }

    fn release(&mut self, at_ps: u64, label: Label) -> bool {
        self.slots -= 1;
        let wakes = self.wait == Wait::Slot && self.slots < self.outstanding;
        if wakes {
            self.wake(at_ps, None, label);
        }
        wakes
    }

    fn rid_of(&mut self, at_ps: u64, label: Label) -> bool {
        self.leaving -= 1;
        let wakes = self.wait == Wait::Room;
        if wakes {
            self.wake(at_ps, None, label);
        }
        wakes
    }

    fn pass_barrier(&mut self, at_ps: u64) {
        let waited = at_ps.saturating_sub(self.now_ps);
        self.now_ps += waited;
        self.stats.barrier_ps += waited;
        self.stats.account.barrier_ps += waited;
    }

    fn stats(&mut self) -> &mut CoreStats {
        &mut self.stats
    }
}
