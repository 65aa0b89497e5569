//! What players of accesses share: a count that others look at meanwhile, and how long a
//! tick of the processor's clock is.

use std::sync::atomic::AtomicU64;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::detect::cpu;
use soloist_core::statistics::median;

/// What a neighbour has done. On lines of its own: two that count must not meet.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Count {
    /// Turns; it is alive.
    pub(super) turns: AtomicU64,
    pub(super) accesses: AtomicU64,
}

/// Nanoseconds of a tick of the clock, measured once.
pub(super) fn tick_ns() -> f64 {
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
