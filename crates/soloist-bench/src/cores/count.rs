//! What players of accesses share: a count that others look at meanwhile, and how long a
//! tick of the processor's clock is.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use soloist_core::statistics::median;
use soloist_detect::timing::cpu;

/// What a neighbour has done. On lines of its own: two that count must not meet.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Count {
    /// Turns; it is alive.
    pub(crate) turns: AtomicU64,
    pub(crate) accesses: AtomicU64,
    /// The thread that counts; 0: nobody knows yet.
    thread: AtomicI32,
}

impl Count {
    /// The caller counts here.
    pub(crate) fn is_of_this_thread(&self) {
        // SAFETY: it takes nothing and never fails.
        self.thread.store(unsafe { libc::gettid() }, Relaxed);
    }

    /// Lets the thread run wherever the caller may: it may wait for a processor that another
    /// task never leaves.
    pub(crate) fn release(&self) {
        let thread = self.thread.load(Relaxed);
        // SAFETY: a set of processors is plain bits, and the thread has not been waited for. Where
        // the kernel refuses, it goes on waiting.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let size = std::mem::size_of_val(&set);
            if thread != 0 && libc::sched_getaffinity(0, size, &mut set) == 0 {
                libc::sched_setaffinity(thread, size, &set);
            }
        }
    }
}

/// Nanoseconds of a tick of the clock, measured once.
pub(crate) fn tick_ns() -> f64 {
    static TICK: OnceLock<f64> = OnceLock::new();
    *TICK.get_or_init(|| {
        let mut all: Vec<f64> = (0..5)
            .map(|_| {
                let (begun, start) = (Instant::now(), cpu::ticks());
                while begun.elapsed() < Duration::from_millis(1) {
                    std::hint::spin_loop();
                }
                let ticks = cpu::ticks().wrapping_sub(start).max(1);
                begun.elapsed().as_nanos() as f64 / ticks as f64
            })
            .collect();
        median(&mut all)
    })
}
