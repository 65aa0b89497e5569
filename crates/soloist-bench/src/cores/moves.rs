//! A program's accesses to memory, one after another, as processors play them.
//!
//! A [`Move`] is a line, what happens to it, the time that the program computes before
//! it, and the earlier move whose line must be there first. [`crate::cores::real`] plays moves
//! on this machine: a loop takes the time, and the value of the earlier line, which is
//! zero, is added to the address, so that the processor itself keeps the order. All other
//! moves overlap as far as the processor lets them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::cores::count::{tick_ns, Count};
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::Hardware;

/// The farthest move back that another may wait for.
pub const FARTHEST: u8 = 31;
/// Moves that are timed together.
pub const CHUNK: usize = 256;
/// One of so many moves is timed by itself: it waits for all before it.
const SAMPLED: usize = 64;
/// Moves after which a neighbour says that it is alive.
const TURN: usize = 16;
/// A chunk that takes longer than its own time and this for each move was interrupted.
const INTERRUPTED_NS: f64 = 5_000.0;

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is read from memory.
    Read,
    /// It is read from memory, changed and written back.
    Change,
    /// It is written to memory.
    Write,
}

impl Kind {
    /// Lines that this moves between processor and memory.
    #[must_use]
    pub fn lines(self) -> u64 {
        match self {
            Self::Read | Self::Write => 1,
            Self::Change => 2,
        }
    }
}

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The line's address, as the detector names it.
    pub line: u64,
    /// What happens to it.
    pub kind: Kind,
    /// How many moves back the one is that must be done before it, up to [`FARTHEST`]; 0:
    /// none.
    pub waits: u8,
    /// Time that the program computes before it, ps.
    pub gap_ps: u32,
}

/// What a play of moves came to.
#[derive(Debug, Clone)]
pub struct Played {
    /// Nanoseconds of each chunk of [`CHUNK`] moves; `None`: it was interrupted, or a
    /// neighbour did not run.
    pub chunks: Vec<Option<f64>>,
    /// Nanoseconds of single reads.
    pub singles: Vec<f32>,
    /// Lines that all neighbours moved in a microsecond.
    pub rate: f64,
}

/// A move as it is played.
#[derive(Clone, Copy)]
struct Ready {
    at: usize,
    turns: u32,
    waits: u8,
    kind: Kind,
}

/// Moves with their addresses in this process, and what they take at least.
pub(super) struct Script {
    moves: Vec<Ready>,
    /// Time of each chunk that is computed, ns.
    computed: Vec<f64>,
}

impl Script {
    /// Finds the lines, empties them and pushes them out of the caches.
    pub(super) fn new(memory: &Hardware, moves: &[Move]) -> Self {
        let turn_ps = turn_ps();
        let ready = |one: &Move| {
            Some(Ready {
                at: memory.locate(one.line)? as usize,
                turns: (f64::from(one.gap_ps) / turn_ps) as u32,
                waits: one.waits.min(FARTHEST),
                kind: one.kind,
            })
        };
        let ready: Vec<Ready> = moves.iter().filter_map(ready).collect();
        for one in &ready {
            // SAFETY: the line is in memory that the caller owns, and nobody plays yet.
            unsafe {
                std::ptr::write_volatile(one.at as *mut u64, 0);
                cpu::flush_unfenced(one.at as *const u8);
            }
        }
        cpu::settle();
        let computed = |chunk: &[Move]| chunk.iter().map(|one| f64::from(one.gap_ps) / 1e3).sum();
        Self {
            computed: moves.chunks(CHUNK).map(computed).collect(),
            moves: ready,
        }
    }

    /// Plays all moves once. A chunk in which a neighbour did nothing does not count.
    pub(super) fn play(&self, neighbours: &[Count]) -> Played {
        let turns = || -> Vec<u64> { neighbours.iter().map(|n| n.turns.load(Relaxed)).collect() };
        let made = || -> u64 { neighbours.iter().map(|n| n.accesses.load(Relaxed)).sum() };
        let tick = tick_ns();
        let mut ring = [0u64; FARTHEST as usize + 1];
        let mut played = Played {
            chunks: Vec::with_capacity(self.computed.len()),
            singles: Vec::with_capacity(self.moves.len() / SAMPLED + 1),
            rate: 0.0,
        };
        let (mut lines, mut spent) = (0, 0.0);
        let mut number = 0;
        for (chunk, computed) in self.moves.chunks(CHUNK).zip(&self.computed) {
            let (alive, before, kept) = (turns(), made(), played.singles.len());
            let start = Instant::now();
            for one in chunk {
                let is_sample = number % SAMPLED == SAMPLED / 2 && one.kind == Kind::Read;
                // SAFETY: as of `new`; the lines are this script's alone.
                unsafe {
                    match is_sample {
                        false => one.make(number, &mut ring),
                        true => {
                            cpu::burn(one.turns);
                            let alone = Ready { turns: 0, ..*one };
                            let start = cpu::ticks();
                            alone.make(number, &mut ring);
                            let ticks = cpu::ticks().wrapping_sub(start);
                            played.singles.push((ticks as f64 * tick) as f32);
                        }
                    }
                }
                number += 1;
            }
            let ns = start.elapsed().as_nanos() as f64;
            let idle = turns().iter().zip(&alive).any(|(now, then)| now == then);
            let late = ns > computed + INTERRUPTED_NS * chunk.len() as f64;
            if idle || late {
                played.singles.truncate(kept);
                played.chunks.push(None);
                continue;
            }
            lines += made() - before;
            spent += ns;
            played.chunks.push(Some(ns));
        }
        if spent > 0.0 {
            played.rate = lines as f64 / spent * 1e3;
        }
        played
    }

    /// Plays the moves again and again until `stop`.
    pub(super) fn repeat(&self, stop: &AtomicBool, count: &Count) {
        let mut ring = [0u64; FARTHEST as usize + 1];
        let (mut number, mut turn) = (0, 0u64);
        for some in self.moves.chunks(TURN).cycle() {
            for one in some {
                // SAFETY: as of `play`.
                unsafe { one.make(number, &mut ring) };
                number += 1;
            }
            turn += 1;
            let lines = some.iter().map(|one| one.kind.lines()).sum();
            count.accesses.fetch_add(lines, Relaxed);
            count.turns.store(turn, Relaxed);
            if stop.load(Relaxed) {
                return;
            }
        }
    }
}

impl Ready {
    /// Makes the access, number `number` of its program.
    ///
    /// # Safety
    /// The line is mapped memory that no other thread changes.
    #[inline]
    unsafe fn make(&self, number: usize, ring: &mut [u64; FARTHEST as usize + 1]) {
        let slot = |number: usize| number & FARTHEST as usize;
        // The value is zero; the processor learns it when the line is there.
        let awaited = match self.waits {
            0 => 0,
            back => ring[slot(number.wrapping_sub(usize::from(back)))],
        };
        let at = self.at.wrapping_add(awaited as usize);
        // SAFETY: the caller's.
        unsafe {
            cpu::burn(self.turns);
            ring[slot(number)] = match self.kind {
                Kind::Read => {
                    let value = std::ptr::read_volatile(at as *const u64);
                    cpu::flush_unfenced(at as *const u8);
                    value
                }
                Kind::Change => {
                    std::ptr::write_volatile(at as *mut u64, 0);
                    cpu::flush_unfenced(at as *const u8);
                    0
                }
                Kind::Write => {
                    cpu::write_through(at as *mut u8);
                    0
                }
            };
        }
    }
}

/// Picoseconds of a turn of [`cpu::burn`]: the fastest of some tries.
fn turn_ps() -> f64 {
    const TURNS: u32 = 100_000;
    static TURN: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *TURN.get_or_init(|| {
        let tries = (0..20).map(|_| {
            let start = Instant::now();
            cpu::burn(TURNS);
            start.elapsed()
        });
        let least = tries.min().unwrap_or(Duration::from_micros(50));
        (least.as_secs_f64() * 1e12 / f64::from(TURNS)).max(1.0)
    })
}
