//! What a placed program asks memory for, access by access.
//!
//! A recorded line that the modelled last level has is left out. Its latency counts as
//! computing where the next line depends on it, else it is hidden. A dirty line that the
//! last level pushes out is a write. An access waits for an earlier one where the recording
//! says that it depends on it, where an instruction lies a window of the modelled core
//! behind it, and where as many lines are under way as that core has slots.

use std::collections::{HashMap, VecDeque};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_bench::cores::moves::{Kind, FARTHEST};
use soloist_bench::cores::Attack;
use soloist_memory::cache::Cache;
use soloist_memory::Platform;
use soloist_record::{Kind as Cause, Lane, Program, Step};

use crate::cut::Cut;

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Page of the program.
    pub page: u32,
    /// Line in the page.
    pub line: u8,
    /// What happens to it.
    pub kind: Kind,
    /// How many accesses back the one is that must be done before; 0: none.
    pub waits: u8,
    /// Its address depends on the last read.
    pub dependent: bool,
    /// Time that is computed before it, ps.
    pub gap_ps: u32,
}

/// A program's accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// In order.
    pub ops: Vec<Op>,
    /// Lines that the last level had.
    pub hits: u64,
}

/// The script of `lane`, whose pages lie in `frames`, behind the last level of `cut`, which
/// the program has to itself.
#[must_use]
pub fn of_recording(program: &Program, lane: &Lane, frames: &[u32], cut: &Cut) -> Script {
    let mut maker = Maker::new(&cut.platform);
    let cached: Vec<u64> = frames.iter().map(|&frame| cut.cached(frame)).collect();
    let pages: HashMap<u64, u32> = cached.iter().copied().zip(0..).collect();
    let mut cache = Cache::new(cut.platform.llc.shape);
    let push = |maker: &mut Maker, line: u64| {
        if let Some(&page) = pages.get(&(line >> 6)) {
            maker.push(page, (line & 63) as u8, Kind::Write, false);
        }
    };
    for step in program.steps(lane) {
        let Step::Access(access) = step else { continue };
        let frame = cached.get(access.page as usize).copied().unwrap_or(0);
        let line = frame << 6 | u64::from(access.line);
        if access.kind == Cause::WriteBack {
            let out = cache.insert(line, true);
            out.filter(|v| v.dirty)
                .into_iter()
                .for_each(|v| push(&mut maker, v.line));
            continue;
        }
        maker.compute(access.work);
        let dependent = access.dependent || maker.fetched;
        if cache.touch(line, false) {
            maker.hit(dependent, access.kind == Cause::Fetch);
            continue;
        }
        let out = cache.insert(line, false);
        maker.push(access.page, access.line, Kind::Read, dependent);
        maker.fetched = access.kind == Cause::Fetch;
        out.filter(|v| v.dirty)
            .into_iter()
            .for_each(|v| push(&mut maker, v.line));
    }
    maker.script
}

/// A neighbour that reads or writes all of `pages` in random order, `count` lines, as fast as
/// memory lets it.
#[must_use]
pub fn of_loop(attack: Attack, pages: u32, count: usize, seed: u64) -> Script {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kind = |at: usize| match attack {
        Attack::Read => Kind::Read,
        Attack::Write => Kind::Change,
        Attack::Both => [Kind::Read, Kind::Change][at / 16 % 2],
    };
    let op = |at: usize| Op {
        page: rng.gen_range(0..pages),
        line: rng.gen_range(0..64),
        kind: kind(at),
        waits: 0,
        dependent: false,
        gap_ps: 0,
    };
    Script {
        ops: (0..count).map(op).collect(),
        hits: 0,
    }
}

/// Builds a script.
struct Maker {
    script: Script,
    instruction_fs: u64,
    hit_ps: u64,
    window: u64,
    outstanding: usize,
    /// Computed since the last access.
    gap_ps: u64,
    instructions: u64,
    /// Accesses before and the instruction of each, the latest last: as many as can be
    /// waited for.
    recent: VecDeque<u64>,
    /// How many accesses back the last read is.
    read: Option<usize>,
    /// What follows depends on the read before the hit, as the hit did.
    chained: bool,
    /// What follows waits for the last line: instructions are in it.
    fetched: bool,
    /// The last line was a hit, whose time is not yet charged.
    was_hit: bool,
}

impl Maker {
    fn new(platform: &Platform) -> Self {
        Self {
            script: Script::default(),
            instruction_fs: platform.instruction_fs,
            hit_ps: platform.llc.latency_ps,
            window: u64::from(platform.core.window),
            outstanding: (platform.core.outstanding as usize).clamp(1, FARTHEST.into()),
            gap_ps: 0,
            instructions: 0,
            recent: VecDeque::new(),
            read: None,
            chained: false,
            fetched: false,
            was_hit: false,
        }
    }

    fn compute(&mut self, work: u32) {
        self.instructions += u64::from(work);
        self.gap_ps += u64::from(work) * self.instruction_fs / 1000;
    }

    /// A line that the last level has.
    fn hit(&mut self, dependent: bool, fetch: bool) {
        self.script.hits += 1;
        self.charge(dependent);
        self.chained = dependent && (self.chained || !self.was_hit);
        self.was_hit = true;
        self.fetched = fetch;
    }

    /// Charges the hit before, if what follows depends on it.
    fn charge(&mut self, dependent: bool) {
        if self.was_hit && dependent {
            self.gap_ps += self.hit_ps;
        }
    }

    fn push(&mut self, page: u32, line: u8, kind: Kind, dependent: bool) {
        let is_read = kind == Kind::Read;
        let dependent = is_read && {
            self.charge(dependent);
            // Behind a hit that depended on nothing there is no read to wait for.
            let on_read = dependent && (!self.was_hit || self.chained);
            self.was_hit = false;
            self.chained = false;
            on_read
        };
        let mut waits = match (dependent, self.read) {
            (true, Some(back)) => back,
            _ => usize::MAX,
        };
        if is_read {
            let far = self
                .recent
                .iter()
                .rev()
                .position(|&at| self.instructions - at > self.window);
            waits = waits.min(far.map_or(usize::MAX, |before| before + 1));
            if self.recent.len() >= self.outstanding {
                waits = waits.min(self.outstanding);
            }
        }
        self.script.ops.push(Op {
            page,
            line,
            kind,
            waits: u8::try_from(waits)
                .ok()
                .filter(|&back| back <= FARTHEST)
                .unwrap_or(0),
            dependent,
            gap_ps: u32::try_from(self.gap_ps).unwrap_or(u32::MAX),
        });
        self.gap_ps = 0;
        self.recent.push_back(self.instructions);
        if self.recent.len() > FARTHEST.into() {
            self.recent.pop_front();
        }
        self.read = match is_read {
            true => Some(1),
            false => self.read.map(|back| back + 1),
        };
    }
}
