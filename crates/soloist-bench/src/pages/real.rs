//! This machine's processors, with their caches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Attack, Caching, Round};
use crate::cores::count::{tick_ns, Count};
use crate::cores::real::{with_neighbours, INTERRUPTED};
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::Hardware;
use soloist_detect::timing::TimingSource;

const LINE: usize = 64;
/// Accesses of a chunk, and of a round that are timed.
const CHUNK: usize = 512;
const CHUNKS: usize = 24;
/// One of so many of them is timed by itself.
const SAMPLED: usize = 8;
/// With fewer chunks in which all neighbours ran a round says nothing.
const LEAST_CHUNKS: usize = 8;
/// Accesses before, at most: the caches fill.
const WARM: usize = 200_000;
/// A round ends after this.
const LONGEST: Duration = Duration::from_millis(300);
/// Lines after which a neighbour says that it runs.
const TURN: usize = 64;

/// The processors, and the memory that all use.
pub struct RealCaching<'a> {
    memory: &'a Hardware,
    neighbours: Vec<usize>,
    cache: u64,
    page: u64,
    colors: HashMap<u64, u64>,
}

impl<'a> RealCaching<'a> {
    /// The victim where the caller runs, neighbours on these processors, before a last level
    /// of so many bytes.
    #[must_use]
    pub fn new(memory: &'a Hardware, neighbours: &[usize], cache: u64) -> Self {
        Self {
            memory,
            neighbours: neighbours.to_vec(),
            cache,
            page: 1 << memory.frame_shift(),
            colors: HashMap::new(),
        }
    }

    /// With the bank colour of each page.
    #[must_use]
    pub fn with_bank_colors(self, colors: HashMap<u64, u64>) -> Self {
        Self { colors, ..self }
    }

    /// Where the lines of these pages are mapped.
    fn lines(&self, pages: &[u64]) -> Vec<usize> {
        let first = pages.iter().filter_map(|&page| self.memory.locate(page));
        let lines =
            |at: *const u8| (0..self.page as usize / LINE).map(move |i| at as usize + i * LINE);
        first.flat_map(lines).collect()
    }
}

impl Caching for RealCaching<'_> {
    fn most_neighbours(&self) -> usize {
        self.neighbours.len()
    }

    fn cache_bytes(&self) -> u64 {
        self.cache
    }

    fn page_bytes(&self) -> u64 {
        self.page
    }

    fn pages(&self) -> Vec<u64> {
        let bytes = 1u64 << self.memory.page_shift();
        let small = |page: u64| (page..page + bytes).step_by(self.page as usize);
        self.memory.pages().flat_map(small).collect()
    }

    fn known_bits(&self) -> u32 {
        self.memory.page_shift()
    }

    fn bank_color(&self, page: u64) -> Option<u64> {
        self.colors.get(&page).copied()
    }

    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>], attack: Attack) -> Option<Round> {
        let lines = self.lines(own);
        let warm = lines.len().min(WARM);
        let first = chain(lines)?;
        let theirs: Vec<Vec<usize>> = theirs.iter().map(|pages| self.lines(pages)).collect();
        let act = |at: usize, stop: &AtomicBool, count: &Count| {
            load(&theirs[at], attack, stop, count);
        };
        with_neighbours(&self.neighbours, theirs.len(), &act, |counts| {
            victim(follow(first, warm), counts)
        })?
    }
}

/// Links all lines in random order; where it begins.
fn chain(mut lines: Vec<usize>) -> Option<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(lines.len() as u64);
    lines.shuffle(&mut rng);
    let &first = lines.first()?;
    let next = lines.iter().cycle().skip(1);
    for (&line, &next) in lines.iter().zip(next) {
        // SAFETY: the line is in memory that the caller owns, and nobody else's.
        unsafe { std::ptr::write_volatile(line as *mut usize, next) };
    }
    Some(first)
}

/// Where so many pointers lead.
fn follow(mut at: usize, steps: usize) -> usize {
    for _ in 0..steps {
        // SAFETY: each line holds the address of the next.
        at = unsafe { std::ptr::read_volatile(at as *const usize) };
    }
    at
}

/// Times pointers from `at` on. Chunks in which a neighbour did nothing don't count.
fn victim(mut at: usize, neighbours: &[Count]) -> Option<Round> {
    let counts = || -> Vec<u64> {
        neighbours
            .iter()
            .map(|n| n.accesses.load(Relaxed))
            .collect()
    };
    let tick = tick_ns();
    let longest = INTERRUPTED.as_nanos() as f32;
    let begun = Instant::now();
    let (mut times, mut lines, mut spent) = (Vec::new(), 0, 0.0);
    let mut singles: Vec<f32> = Vec::with_capacity(CHUNKS * CHUNK / SAMPLED);
    while times.len() < CHUNKS && begun.elapsed() < LONGEST {
        let (before, kept, start) = (counts(), singles.len(), Instant::now());
        for _ in 0..CHUNK / SAMPLED {
            at = follow(at, SAMPLED - 1);
            let start = cpu::ticks();
            at = follow(at, 1);
            singles.push((cpu::ticks().wrapping_sub(start) as f64 * tick) as f32);
        }
        let ns = start.elapsed().as_nanos() as f64;
        let after = counts();
        let both = after.iter().zip(&before);
        let was_interrupted = singles[kept..].iter().any(|&single| single > longest);
        if was_interrupted || both.clone().any(|(now, then)| now == then) {
            singles.truncate(kept);
            continue;
        }
        lines += both.map(|(now, then)| now - then).sum::<u64>();
        spent += ns;
        times.push(ns / CHUNK as f64);
    }
    (times.len() >= LEAST_CHUNKS).then(|| Round {
        ns: soloist_core::statistics::median(&mut times),
        rate: lines as f64 / spent * 1e3,
        singles,
    })
}

/// Reads or writes all lines, again and again.
fn load(lines: &[usize], attack: Attack, stop: &AtomicBool, count: &Count) {
    for (turn, some) in lines.chunks(TURN).cycle().enumerate() {
        let writes = attack.writes(turn);
        for &line in some {
            // SAFETY: the line is in memory that the caller owns; nobody reads a value of it.
            unsafe {
                match writes {
                    true => std::ptr::write_volatile(line as *mut u8, 1),
                    false => {
                        std::ptr::read_volatile(line as *const u8);
                    }
                }
            }
        }
        count.accesses.fetch_add(some.len() as u64, Relaxed);
        count.turns.fetch_add(1, Relaxed);
        if stop.load(Relaxed) {
            return;
        }
    }
}
