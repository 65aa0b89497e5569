//! Processors of this machine: a victim that follows pointers, neighbours that load
//! memory beside it.
//!
//! Every line leaves the caches after it was used, so caches play no part. A round
//! is made of chunks of some accesses. A chunk in which a neighbour did not run, or the
//! victim was interrupted, does not count: on a busy machine the kernel, or the host,
//! takes processors away.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::cores::count::{tick_ns, Count};
use crate::cores::moves::{Move, Played, Script};
use crate::cores::{Company, Cores, Round};
use soloist_core::statistics::median;
use soloist_detect::timing::cpu;
use soloist_detect::timing::hardware::Hardware;
pub use soloist_detect::timing::streams::bind;

/// Accesses of a chunk, and chunks of a round.
const CHUNK: usize = 64;
const CHUNKS: usize = 64;
/// With fewer chunks a round says nothing.
const LEAST_CHUNKS: usize = 16;
/// Lines that a neighbour has under way at once.
const AT_ONCE: usize = 16;
/// A round ends after this, with as many as there are.
const LONGEST: Duration = Duration::from_millis(250);
/// How long neighbours run before the victim is timed.
const WARM_UP: Duration = Duration::from_micros(300);
/// A neighbour that has not begun after this has no processor to run on.
const BEGINS: Duration = Duration::from_secs(1);
/// An access that takes longer was interrupted: it says nothing of memory.
pub(crate) const INTERRUPTED: Duration = Duration::from_micros(20);

/// The processors, and the memory that all use.
pub struct RealCores<'a> {
    memory: &'a Hardware,
    victim: usize,
    neighbours: Vec<usize>,
    processors: usize,
}

impl<'a> RealCores<'a> {
    /// The victim on processor `victim`, where the caller runs, the neighbours on
    /// `neighbours`.
    ///
    /// # Errors
    /// When the caller can't be bound there.
    pub fn new(memory: &'a Hardware, victim: usize, neighbours: &[usize]) -> std::io::Result<Self> {
        bind(victim)?;
        Ok(Self {
            memory,
            victim,
            neighbours: neighbours.to_vec(),
            processors: neighbours.len() + 1,
        })
    }

    /// On a machine of so many processors, if they are more than take part.
    #[must_use]
    pub fn with_processors(self, processors: usize) -> Self {
        Self {
            processors: processors.max(self.neighbours.len() + 1),
            ..self
        }
    }

    /// The victim's processor.
    #[must_use]
    pub fn victim(&self) -> usize {
        self.victim
    }
}

/// Where the lines are mapped.
fn locate(memory: &Hardware, lines: &[u64]) -> Vec<usize> {
    let at = |&line: &u64| memory.locate(line).map(|at| at as usize);
    lines.iter().filter_map(at).collect()
}

impl Cores for RealCores<'_> {
    fn most_neighbours(&self) -> usize {
        self.neighbours.len()
    }

    fn processors(&self) -> usize {
        self.processors
    }

    fn round(&mut self, lines: &[u64], company: Option<&Company<'_>>) -> Option<Round> {
        let own = locate(self.memory, lines);
        let Some(company) = company else {
            return victim(&own, &[]);
        };
        let placed: Vec<Vec<usize>> = company
            .lines
            .iter()
            .map(|lines| locate(self.memory, lines))
            .collect();
        let act = |at: usize, stop: &AtomicBool, count: &Count| {
            load(company, &placed[at], stop, count);
        };
        with_neighbours(&self.neighbours, placed.len(), &act, |counts| {
            victim(&own, counts)
        })?
    }

    fn play(&mut self, own: &[Move], beside: &[Vec<Move>]) -> Option<Played> {
        let own = Script::new(self.memory, own);
        let others = beside.iter().map(|moves| Script::new(self.memory, moves));
        let others: Vec<Script> = others.collect();
        let act = |at: usize, stop: &AtomicBool, count: &Count| others[at].repeat(stop, count);
        with_neighbours(&self.neighbours, others.len(), &act, |counts| {
            own.play(counts)
        })
    }
}

/// Does `what` while so many neighbours, each on its processor of `cpus`, do `act` until they are
/// told to stop. `None`: there are fewer processors, one could not be bound, or another task
/// never leaves its own to it.
pub(crate) fn with_neighbours<T>(
    cpus: &[usize],
    neighbours: usize,
    act: &(dyn Fn(usize, &AtomicBool, &Count) + Sync),
    what: impl FnOnce(&[Count]) -> T,
) -> Option<T> {
    let stop = AtomicBool::new(false);
    let counts: Vec<Count> = (0..neighbours).map(|_| Count::default()).collect();
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for ((at, count), &cpu) in counts.iter().enumerate().zip(cpus) {
            let stop = &stop;
            running.push(scope.spawn(move || {
                count.is_of_this_thread();
                bind(cpu).map(|()| act(at, stop, count))
            }));
        }
        let idle = |(count, thread): (&Count, &std::thread::ScopedJoinHandle<'_, _>)| {
            count.turns.load(Relaxed) == 0 && !thread.is_finished()
        };
        let begun = Instant::now();
        while counts.iter().zip(&running).any(idle) {
            if begun.elapsed() > BEGINS {
                stop.store(true, Relaxed);
                counts.iter().for_each(Count::release);
                return None;
            }
            std::hint::spin_loop();
        }
        let warm = Instant::now();
        while neighbours > 0 && warm.elapsed() < WARM_UP {
            std::hint::spin_loop();
        }
        let done = what(&counts);
        stop.store(true, Relaxed);
        // All are waited for, whichever could not be bound.
        let bound: Vec<bool> = running
            .into_iter()
            .map(|thread| matches!(thread.join(), Ok(Ok(()))))
            .collect();
        let all = bound.len() == neighbours && bound.iter().all(|&ran| ran);
        all.then_some(done)
    })
}

/// Follows pointers through the lines, in their order, each from memory. Chunks in
/// which one of `neighbours` did nothing don't count.
fn victim(lines: &[usize], neighbours: &[Count]) -> Option<Round> {
    let &first = lines.first()?;
    let next = lines.iter().cycle().skip(1);
    for (&line, &next) in lines.iter().zip(next) {
        // SAFETY: the line is in memory that the caller owns, and nobody else's.
        unsafe {
            std::ptr::write_volatile(line as *mut usize, next);
            cpu::flush(line as *const u8);
        }
    }
    let turns = || -> Vec<u64> { neighbours.iter().map(|n| n.turns.load(Relaxed)).collect() };
    let made = || -> u64 { neighbours.iter().map(|n| n.accesses.load(Relaxed)).sum() };
    let tick = tick_ns();
    let interrupted = (INTERRUPTED.as_nanos() as f64 / tick) as f32;
    let begun = Instant::now();
    let (mut means, mut accesses, mut spent) = (Vec::with_capacity(CHUNKS), 0, 0.0);
    let mut singles: Vec<f32> = Vec::with_capacity(CHUNKS * CHUNK);
    let mut at = first;
    while means.len() < CHUNKS && begun.elapsed() < LONGEST {
        let (alive, before, start) = (turns(), made(), Instant::now());
        let kept = singles.len();
        for _ in 0..CHUNK {
            // SAFETY: each line holds the address of the next.
            unsafe {
                let start = cpu::ticks();
                let next = std::ptr::read_volatile(at as *const usize);
                let end = cpu::ticks();
                cpu::flush_unfenced(at as *const u8);
                singles.push(end.wrapping_sub(start) as f32);
                at = next;
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        let idle = turns().iter().zip(&alive).any(|(now, then)| now == then);
        if idle || singles[kept..].iter().any(|&single| single > interrupted) {
            singles.truncate(kept);
            continue;
        }
        accesses += made() - before;
        spent += ns;
        let all: f64 = singles[kept..].iter().map(|&t| f64::from(t)).sum();
        means.push(all / CHUNK as f64);
    }
    singles.iter_mut().for_each(|single| *single *= tick as f32);
    (means.len() >= LEAST_CHUNKS).then(|| Round {
        ns: median(&mut means) * tick,
        rate: accesses as f64 / spent * 1e3,
        singles,
    })
}

/// Reads or writes the lines in memory again and again, some at once.
fn load(company: &Company<'_>, lines: &[usize], stop: &AtomicBool, count: &Count) {
    let pause = Duration::from_nanos(u64::from(company.pause_ns));
    let mut turn = 0u64;
    for (batch, some) in lines.chunks(AT_ONCE).cycle().enumerate() {
        let writes = company.attack.writes(batch);
        for &line in some {
            // SAFETY: the line is in memory that the caller owns; no other thread
            // reads a value of it.
            unsafe {
                match writes {
                    true => std::ptr::write_volatile(line as *mut u8, 1),
                    false => {
                        std::ptr::read_volatile(line as *const u8);
                    }
                }
                cpu::flush_unfenced(line as *const u8);
            }
        }
        turn += 1;
        count.accesses.fetch_add(some.len() as u64, Relaxed);
        count.turns.store(turn, Relaxed);
        if company.pause_ns > 0 {
            let begun = Instant::now();
            while begun.elapsed() < pause && !stop.load(Relaxed) {
                turn += 1;
                count.turns.store(turn, Relaxed);
            }
        }
        if stop.load(Relaxed) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its processor is never free: it says nothing, and is given up.
    #[test]
    fn a_neighbour_that_never_runs_is_given_up() {
        let act = |_: usize, stop: &AtomicBool, _: &Count| {
            let begun = Instant::now();
            while !stop.load(Relaxed) && begun.elapsed() < 5 * BEGINS {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let begun = Instant::now();
        assert_eq!(with_neighbours(&[0], 1, &act, |_| ()), None);
        assert!(begun.elapsed() < 4 * BEGINS, "{:?}", begun.elapsed());
    }
}
