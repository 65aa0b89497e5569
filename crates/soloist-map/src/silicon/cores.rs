//! Two processors of this machine: a victim that follows pointers, a neighbour
//! that loads its bank.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Attack, Cores, Neighbour, Round};
use crate::detect::cpu;
use crate::detect::hardware::Hardware;
use soloist_core::statistics::median;

/// Passes of the victim over its lines that make a round.
const PASSES: usize = 100;
/// Lines that a neighbour has under way at once.
const AT_ONCE: usize = 16;
/// A round ends after this, with as many as there are.
const LONGEST: Duration = Duration::from_millis(250);
/// With fewer passes a round says nothing.
const LEAST_PASSES: usize = 25;

/// The processors, and the memory that both use.
pub struct RealCores<'a> {
    memory: &'a Hardware,
    victim: usize,
    neighbour: usize,
}

/// Binds the calling thread to a processor.
///
/// # Errors
/// When the kernel refuses.
pub fn bind(cpu: usize) -> std::io::Result<()> {
    // SAFETY: a set of processors is plain bits; the kernel only reads it.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)
    };
    match status {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

impl<'a> RealCores<'a> {
    /// The victim on processor `victim`, where the caller runs, the neighbour on
    /// `neighbour`.
    ///
    /// # Errors
    /// When the caller can't be bound there.
    pub fn new(memory: &'a Hardware, victim: usize, neighbour: usize) -> std::io::Result<Self> {
        bind(victim)?;
        Ok(Self {
            memory,
            victim,
            neighbour,
        })
    }

    /// The processors.
    #[must_use]
    pub fn cpus(&self) -> (usize, usize) {
        (self.victim, self.neighbour)
    }

    fn locate(&self, lines: &[u64]) -> Vec<usize> {
        let at = |&line: &u64| self.memory.locate(line).map(|at| at as usize);
        lines.iter().filter_map(at).collect()
    }
}

impl Cores for RealCores<'_> {
    fn round(&mut self, lines: &[u64], neighbour: Neighbour<'_>) -> Option<Round> {
        let own = self.locate(lines);
        let (stop, accesses) = (AtomicBool::new(false), AtomicU64::new(0));
        let Some((attack, theirs)) = neighbour else {
            return victim(&own, None);
        };
        let theirs = self.locate(theirs);
        std::thread::scope(|scope| {
            let cpu = self.neighbour;
            let (stop, accesses, theirs) = (&stop, &accesses, &theirs);
            let bound = scope
                .spawn(move || bind(cpu).map(|()| attack_until(attack, theirs, stop, accesses)));
            while accesses.load(Relaxed) == 0 && !bound.is_finished() {
                std::hint::spin_loop();
            }
            let round = victim(&own, Some(accesses));
            stop.store(true, Relaxed);
            match bound.join() {
                Ok(Ok(())) => round,
                _ => None,
            }
        })
    }
}

/// Follows pointers through the lines, in their order, each pass from memory.
/// Passes in which a neighbour, which counts its `accesses`, made none don't count.
fn victim(lines: &[usize], accesses: Option<&AtomicU64>) -> Option<Round> {
    let theirs = || accesses.map_or(0, |count| count.load(Relaxed));
    let next = lines.iter().cycle().skip(1);
    for (&line, &next) in lines.iter().zip(next) {
        // SAFETY: the line is in memory that the caller owns, and nobody else's.
        unsafe { std::ptr::write_volatile(line as *mut usize, next) };
    }
    let begun = Instant::now();
    let (mut times, mut rates) = (Vec::with_capacity(PASSES), Vec::with_capacity(PASSES));
    while times.len() < PASSES && begun.elapsed() < LONGEST {
        for &line in lines {
            // SAFETY: as above.
            unsafe { cpu::flush(line as *const u8) };
        }
        let before = theirs();
        let start = Instant::now();
        let mut at = lines[0];
        for _ in 0..lines.len() {
            // SAFETY: each line holds the address of the next.
            at = unsafe { std::ptr::read_volatile(at as *const usize) };
        }
        std::hint::black_box(at);
        let ns = start.elapsed().as_nanos() as f64;
        let made = theirs() - before;
        if made > 0 || accesses.is_none() {
            times.push(ns / lines.len() as f64);
            rates.push(made as f64 / ns * 1e3);
        }
    }
    (times.len() >= LEAST_PASSES).then(|| Round {
        ns: median(&mut times),
        rate: median(&mut rates),
    })
}

/// Reads or writes the lines in memory again and again, some at once.
fn attack_until(attack: Attack, lines: &[usize], stop: &AtomicBool, accesses: &AtomicU64) {
    for some in lines.chunks(AT_ONCE).cycle() {
        for &line in some {
            // SAFETY: the line is in memory that the caller owns; only this
            // thread writes to it.
            unsafe {
                if attack == Attack::Write {
                    std::ptr::write_volatile(line as *mut u8, 1);
                }
                cpu::flush(line as *const u8);
            }
        }
        if attack == Attack::Read {
            for &line in some {
                // SAFETY: as above.
                unsafe { std::ptr::read_volatile(line as *const u8) };
            }
        }
        accesses.fetch_add(some.len() as u64, Relaxed);
        if stop.load(Relaxed) {
            return;
        }
    }
}
