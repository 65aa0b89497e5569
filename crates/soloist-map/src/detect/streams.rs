//! Several threads that read lines from memory at once.

use std::sync::{Barrier, PoisonError};
use std::time::Instant;

use super::cpu;

/// Threads at most: as many saturate any controller.
const MOST_THREADS: usize = 16;
/// Times that the lines are read; the second fastest counts.
const PASSES: usize = 5;

/// Nanoseconds in which threads read all these lines, which are mapped, from
/// memory; `None` where there is but one processor.
///
/// # Safety
/// All point into mapped memory.
pub unsafe fn time(lines: &[*const u8]) -> Option<f64> {
    let threads = std::thread::available_parallelism().ok()?.get();
    let threads = threads.min(MOST_THREADS).min(lines.len());
    if threads < 2 {
        return None;
    }
    // Pointers are not sent to other threads, addresses are.
    let lines: Vec<usize> = lines.iter().map(|&line| line as usize).collect();
    let barrier = Barrier::new(threads);
    let spans = std::sync::Mutex::new(vec![(Vec::new(), Vec::new()); PASSES]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (lines, barrier, spans) = (&lines, &barrier, &spans);
            scope.spawn(move || {
                let own = || lines.iter().skip(thread).step_by(threads);
                for pass in 0..PASSES {
                    for &line in own() {
                        // SAFETY: the caller's.
                        unsafe { cpu::flush(line as *const u8) };
                    }
                    barrier.wait();
                    let start = Instant::now();
                    for &line in own() {
                        // SAFETY: the caller's.
                        unsafe { std::ptr::read_volatile(line as *const u8) };
                    }
                    cpu::settle();
                    let end = Instant::now();
                    let mut spans = spans.lock().unwrap_or_else(PoisonError::into_inner);
                    spans[pass].0.push(start);
                    spans[pass].1.push(end);
                }
            });
        }
    });
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut times: Vec<f64> = spans
        .iter()
        .filter_map(|(starts, ends)| {
            let (first, last) = (starts.iter().min()?, ends.iter().max()?);
            Some(last.duration_since(*first).as_nanos() as f64)
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times.get(1).copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn more_lines_take_longer() {
        let memory = vec![1u8; 8 << 20];
        let lines: Vec<*const u8> = memory.iter().step_by(64).map(std::ptr::from_ref).collect();
        // SAFETY: inside `memory`.
        let time = |count: usize| unsafe { super::time(&lines[..count]) };
        let (Some(few), Some(many)) = (time(512), time(1 << 17)) else {
            return;
        };
        assert!(many > 4.0 * few, "{few} ns, {many} ns");
    }
}
