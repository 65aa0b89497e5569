//! This machine's processors, with their caches.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::cores::{locate, with_neighbours};
use super::super::count::Count;
use super::{Caching, Round};
use crate::detect::hardware::Hardware;
use crate::detect::source::TimingSource;

const LINE: u64 = 64;
/// Accesses of a chunk, and of a round that are timed.
const CHUNK: usize = 512;
const CHUNKS: usize = 24;
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
        }
    }

    fn lines(&self, pages: &[u64]) -> Vec<usize> {
        let lines = |&page: &u64| (0..self.page / LINE).map(move |line| page + line * LINE);
        let lines: Vec<u64> = pages.iter().flat_map(lines).collect();
        locate(self.memory, &lines)
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

    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>]) -> Option<Round> {
        let first = chain(self.lines(own))?;
        let warm = (own.len() * (self.page / LINE) as usize).min(WARM);
        let theirs: Vec<Vec<usize>> = theirs.iter().map(|pages| self.lines(pages)).collect();
        let act = |at: usize, stop: &AtomicBool, count: &Count| write(&theirs[at], stop, count);
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
    let begun = Instant::now();
    let (mut times, mut bytes, mut spent) = (Vec::new(), 0, 0.0);
    while times.len() < CHUNKS && begun.elapsed() < LONGEST {
        let (before, start) = (counts(), Instant::now());
        at = follow(at, CHUNK);
        let ns = start.elapsed().as_nanos() as f64;
        let after = counts();
        if after.iter().zip(&before).any(|(now, then)| now == then) {
            continue;
        }
        let lines: u64 = after
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .sum();
        bytes += lines * LINE;
        spent += ns;
        times.push(ns / CHUNK as f64);
    }
    (times.len() >= LEAST_CHUNKS).then(|| Round {
        ns: soloist_core::statistics::median(&mut times),
        rate: bytes as f64 / spent * 1e3,
    })
}

/// Writes to all lines, again and again.
fn write(lines: &[usize], stop: &AtomicBool, count: &Count) {
    for some in lines.chunks(TURN).cycle() {
        for &line in some {
            // SAFETY: the line is in memory that the caller owns; nobody reads it.
            unsafe { std::ptr::write_volatile(line as *mut u8, 1) };
        }
        count.accesses.fetch_add(some.len() as u64, Relaxed);
        count.turns.fetch_add(1, Relaxed);
        if stop.load(Relaxed) {
            return;
        }
    }
}
