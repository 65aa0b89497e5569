//! Several threads that read lines from memory at once.

use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

use crate::timing::cpu;

/// Threads at most: as many saturate any controller.
const MOST_THREADS: usize = 16;
/// Times that the lines are read; the second fastest counts.
const PASSES: usize = 5;

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

/// Nanoseconds in which threads read all these lines, which are mapped, from memory: a thread
/// on each of `cpus`; none are named: wherever the caller may run. `None` where there is but
/// one processor.
///
/// # Safety
/// All point into mapped memory.
pub unsafe fn time(lines: &[*const u8], cpus: &[usize]) -> Option<f64> {
    let threads = match cpus.len() {
        0 => std::thread::available_parallelism().ok()?.get(),
        named => named,
    };
    let threads = threads.min(MOST_THREADS).min(lines.len());
    if threads < 2 {
        return None;
    }
    // Pointers are not sent to other threads, addresses are.
    let lines: Vec<usize> = lines.iter().map(|&line| line as usize).collect();
    let begun = Instant::now();
    let mut times = passes(
        &lines,
        threads,
        cpus,
        // SAFETY: the caller's.
        &|line| unsafe { cpu::flush(line as *const u8) },
        &|line| {
            // SAFETY: the caller's.
            unsafe { std::ptr::read_volatile(line as *const u8) };
        },
        &|| begun.elapsed().as_nanos() as u64,
    );
    times.sort_unstable();
    times.get(1).map(|&ns| ns as f64)
}

/// How long each pass takes by the clock `now`: from when the first thread begins until the
/// last one has read its lines. Each line is flushed before the pass.
fn passes(
    lines: &[usize],
    threads: usize,
    cpus: &[usize],
    flush: &(dyn Fn(usize) + Sync),
    read: &(dyn Fn(usize) + Sync),
    now: &(dyn Fn() -> u64 + Sync),
) -> Vec<u64> {
    let barrier = Barrier::new(threads);
    let spans = Mutex::new(vec![(u64::MAX, 0); PASSES]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, spans) = (&barrier, &spans);
            scope.spawn(move || {
                if let Some(&cpu) = cpus.get(thread) {
                    // One that can't be bound reads where the caller may run: others wait for it.
                    let _ = bind(cpu);
                }
                let own = || lines.iter().skip(thread).step_by(threads);
                for pass in 0..PASSES {
                    own().for_each(|&line| flush(line));
                    barrier.wait();
                    let start = now();
                    own().for_each(|&line| read(line));
                    cpu::settle();
                    let end = now();
                    let mut spans = spans.lock().unwrap_or_else(PoisonError::into_inner);
                    let (first, last) = &mut spans[pass];
                    (*first, *last) = (start.min(*first), end.max(*last));
                }
            });
        }
    });
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    spans.iter().map(|(first, last)| last - first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    /// By a clock that only reads move, a pass takes as long as there are lines, whoever
    /// reads them when.
    #[test]
    fn more_lines_take_longer() {
        let time = |count: usize| {
            let (clock, flushed) = (AtomicU64::new(0), AtomicU64::new(0));
            let lines: Vec<usize> = (0..count).collect();
            let times = passes(
                &lines,
                3,
                &[],
                &|_| {
                    flushed.fetch_add(1, SeqCst);
                },
                &|_| {
                    clock.fetch_add(1, SeqCst);
                },
                &|| clock.load(SeqCst),
            );
            assert_eq!(flushed.into_inner(), (count * PASSES) as u64);
            times
        };
        assert_eq!(time(512), [512; PASSES]);
        assert_eq!(time(1 << 12), [1 << 12; PASSES]);
    }

    /// Memory takes some time, however busy the machine is.
    #[test]
    fn memory_is_timed() {
        let memory = vec![1u8; 1 << 20];
        let lines: Vec<*const u8> = memory.iter().step_by(64).map(std::ptr::from_ref).collect();
        // SAFETY: inside `memory`.
        let time = unsafe { super::time(&lines, &[]) };
        assert!(time.is_none_or(|ns| ns > 0.0), "{time:?}");
    }

    /// A caller that is bound to one processor reads with all that it names.
    #[test]
    fn processors_are_those_that_are_named() {
        let memory = vec![1u8; 1 << 16];
        let lines: Vec<*const u8> = memory.iter().step_by(64).map(std::ptr::from_ref).collect();
        let Some(cpu) = (0..1024).find(|&cpu| bind(cpu).is_ok()) else {
            panic!("this thread runs somewhere");
        };
        // SAFETY: inside `memory`.
        let (alone, named) =
            unsafe { (super::time(&lines, &[]), super::time(&lines, &[cpu, cpu])) };
        assert_eq!(alone, None);
        assert!(named.is_some_and(|ns| ns > 0.0), "{named:?}");
    }
}
