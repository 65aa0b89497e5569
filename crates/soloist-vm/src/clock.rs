//! The guest's clock: the rate of its time stamp counter, told to its kernel.
//!
//! A kernel finds the rate by itself against a timer, in some 20 ms at boot. On a
//! loaded host an emulated processor may stand still meanwhile, and what comes out
//! is then wrong by a factor: a guest's clock ran 4.4 times too fast, and so did all
//! its time limits. Emulation without counted instructions passes the host's counter
//! on, and the host has the time to measure it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// In a guest whose instructions are counted it is the virtual clock's, in ns.
const COUNTED_KHZ: u64 = 1_000_000;

/// Readings that are compared, this long apart at least.
const APART: Duration = Duration::from_millis(20);
const TRIES: usize = 5;

/// A word for the command line of a guest's kernel, or nothing where the counter
/// is not ours to tell.
pub fn word(counted: bool) -> Option<String> {
    let khz = if counted { COUNTED_KHZ } else { host_khz()? };
    Some(format!("tsc_early_khz={khz}"))
}

/// Measured once: the middle of some tries, since each may be interrupted.
fn host_khz() -> Option<u64> {
    static KHZ: OnceLock<Option<u64>> = OnceLock::new();
    *KHZ.get_or_init(|| {
        let mut tries: Vec<u64> = (0..TRIES).map(|_| rate()).collect::<Option<_>>()?;
        tries.sort_unstable();
        Some(tries[TRIES / 2])
    })
}

/// kHz.
fn rate() -> Option<u64> {
    let (begin, from) = reading()?;
    std::thread::sleep(APART);
    let (end, to) = reading()?;
    let ns = u64::try_from((end - begin).as_nanos()).ok()?;
    (to > from).then(|| (u128::from(to - from) * 1_000_000 / u128::from(ns.max(1))) as u64)
}

/// The counter, and when it was read: the closest of some readings.
#[cfg(target_arch = "x86_64")]
fn reading() -> Option<(Instant, u64)> {
    (0..TRIES)
        .map(|_| {
            let before = Instant::now();
            // SAFETY: the instruction reads a counter and nothing else.
            let counter = unsafe { core::arch::x86_64::_rdtsc() };
            (before.elapsed(), before, counter)
        })
        .min_by_key(|&(took, ..)| took)
        .map(|(_, when, counter)| (when, counter))
}

#[cfg(not(target_arch = "x86_64"))]
fn reading() -> Option<(Instant, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn two_measurements_agree_to_one_percent() {
        let khz = host_khz().expect("a counter");
        let mut again: Vec<u64> = (0..TRIES).filter_map(|_| rate()).collect();
        again.sort_unstable();
        let off = again[TRIES / 2].abs_diff(khz);
        assert!(off * 100 < khz, "{khz} and {} kHz", again[TRIES / 2]);
    }

    #[test]
    fn counted_instructions_have_a_counter_of_nanoseconds() {
        assert_eq!(word(true).as_deref(), Some("tsc_early_khz=1000000"));
    }
}
