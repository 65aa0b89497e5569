//! What a recorded program is like, in the numbers that generators take.

use std::collections::HashSet;

use serde::Serialize;
use soloist_memory::cache::Cache;
use soloist_memory::{Decoder, Platform};
use soloist_record::{Kind, Step};

use crate::replay::Part;

/// Lines over which bank parallelism is counted.
const TOGETHER: usize = 8;

/// What a program is like behind the caches of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Lanes that run at once.
    pub lanes: usize,
    /// Instructions, in millions.
    pub minstructions: f64,
    /// Lines asked for behind the private caches per thousand instructions.
    pub apki: f64,
    /// Of them, what the whole last level of the machine misses when the program
    /// has it to itself.
    pub mpki: f64,
    /// Share of write-backs among the lines to and from memory, per cent.
    pub writes: f64,
    /// Share of instruction fetches among the misses, per cent.
    pub fetches: f64,
    /// Share of misses by the kernel, per cent.
    pub kernel: f64,
    /// Share of loads that need the load before, per cent.
    pub dependent: f64,
    /// Different pages, in MiB.
    pub footprint_mib: f64,
    /// Share of misses that hit the row which the miss before in the same bank left
    /// open, pages lying as recorded, per cent.
    pub row_hits: f64,
    /// Different banks among eight misses in a row.
    pub banks: f64,
}

#[derive(Default)]
struct Counts {
    instructions: u64,
    asked: u64,
    missed: u64,
    written: u64,
    fetched: u64,
    kernel: u64,
    loads: u64,
    dependent: u64,
    row_hits: u64,
    banks: u64,
    windows: u64,
}

/// Looks at one program, its lanes one after the other.
pub fn profile(part: &Part, platform: &Platform) -> Profile {
    let mut counts = Counts::default();
    let decoder = Decoder::new(&platform.memory.map);
    let lanes = part.program.lanes();
    let mut llc = Cache::new(platform.llc.shape);
    let mut open = std::collections::HashMap::new();
    let mut recent: Vec<(u16, u16)> = Vec::new();
    for lane in &lanes {
        for step in part.program.steps(lane) {
            let Step::Access(a) = step else { continue };
            counts.instructions += u64::from(a.work);
            let page = part.program.pages[a.page as usize];
            let line = page.phys << 6 | u64::from(a.line);
            if a.kind == Kind::WriteBack {
                let out = llc.insert(line, true);
                counts.written += u64::from(out.is_some_and(|v| v.dirty));
                continue;
            }
            counts.asked += 1;
            counts.loads += u64::from(a.kind == Kind::Read);
            counts.dependent += u64::from(a.dependent && a.kind == Kind::Read);
            if llc.touch(line, false) {
                continue;
            }
            counts.written += u64::from(llc.insert(line, false).is_some_and(|v| v.dirty));
            counts.missed += 1;
            counts.fetched += u64::from(a.kind == Kind::Fetch);
            counts.kernel += u64::from(a.kernel);
            // A recording of another machine may lie where this one has no memory.
            let Some(place) = decoder.decode(line << 6) else {
                continue;
            };
            let bank = (place.channel, place.bank);
            counts.row_hits += u64::from(open.insert(bank, place.row) == Some(place.row));
            recent.push(bank);
            if recent.len() == TOGETHER {
                counts.banks += recent.drain(..).collect::<HashSet<_>>().len() as u64;
                counts.windows += 1;
            }
        }
    }
    counts.profile(part, lanes.len())
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

impl Counts {
    fn profile(&self, part: &Part, lanes: usize) -> Profile {
        let thousands = self.instructions.max(1) as f64 / 1000.0;
        Profile {
            name: part.name.clone(),
            lanes,
            minstructions: self.instructions as f64 / 1e6,
            apki: self.asked as f64 / thousands,
            mpki: self.missed as f64 / thousands,
            writes: share(self.written, self.written + self.missed),
            fetches: share(self.fetched, self.missed),
            kernel: share(self.kernel, self.missed),
            dependent: share(self.dependent, self.loads),
            footprint_mib: part.program.pages.len() as f64 / 256.0,
            row_hits: share(self.row_hits, self.missed),
            banks: self.banks as f64 / self.windows.max(1) as f64,
        }
    }
}
