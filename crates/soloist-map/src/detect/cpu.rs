//! The instructions that timing needs, for each architecture.

/// Whether this build can time memory at all.
pub const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// What [`time_pair`] counts in.
pub const UNIT: &str = if cfg!(target_arch = "aarch64") {
    "CNTVCT ticks of a round of 32"
} else {
    "TSC cycles"
};

/// Pairs of accesses in one reading of the clock: the ARM counter is slow.
#[cfg(target_arch = "aarch64")]
const ROUND: u32 = 32;

/// Reads both lines from memory and returns the time it took.
///
/// # Safety
/// Both point into mapped memory.
#[cfg(target_arch = "x86_64")]
pub unsafe fn time_pair(a: *const u8, b: *const u8) -> u32 {
    use std::arch::x86_64::{__rdtscp, _mm_clflush, _mm_lfence, _mm_mfence, _rdtsc};
    let mut cpu = 0;
    // SAFETY: the caller's; flushing and reading change no value.
    unsafe {
        _mm_clflush(a);
        _mm_clflush(b);
        _mm_mfence();
        _mm_lfence();
        let start = _rdtsc();
        _mm_lfence();
        std::ptr::read_volatile(a);
        std::ptr::read_volatile(b);
        _mm_lfence();
        let end = __rdtscp(&mut cpu);
        _mm_lfence();
        u32::try_from(end.wrapping_sub(start)).unwrap_or(u32::MAX)
    }
}

/// Reads a line from wherever it is and returns the time it took.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "x86_64")]
pub unsafe fn time_one(line: *const u8) -> u32 {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _mm_mfence, _rdtsc};
    let mut cpu = 0;
    // SAFETY: the caller's; reading changes no value.
    unsafe {
        _mm_mfence();
        _mm_lfence();
        let start = _rdtsc();
        _mm_lfence();
        std::ptr::read_volatile(line);
        _mm_lfence();
        let end = __rdtscp(&mut cpu);
        _mm_lfence();
        u32::try_from(end.wrapping_sub(start)).unwrap_or(u32::MAX)
    }
}

/// Pushes a line out of all caches.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "x86_64")]
pub unsafe fn flush(line: *const u8) {
    // SAFETY: the caller's; flushing changes no value.
    unsafe {
        std::arch::x86_64::_mm_clflush(line);
        std::arch::x86_64::_mm_mfence();
    }
}

/// Reads a line from wherever it is and returns the time it took.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "aarch64")]
pub unsafe fn time_one(line: *const u8) -> u32 {
    use std::arch::asm;
    let (start, end): (u64, u64);
    // SAFETY: the caller's; reading changes no value.
    unsafe {
        asm!("dsb ish", "isb", "mrs {}, cntvct_el0", "isb", out(reg) start);
        asm!("ldrb {t:w}, [{a}]", "dsb ish", a = in(reg) line, t = out(reg) _);
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) end);
    }
    u32::try_from(end.wrapping_sub(start)).unwrap_or(u32::MAX)
}

/// Pushes a line out of all caches.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "aarch64")]
pub unsafe fn flush(line: *const u8) {
    // SAFETY: the caller's; DC CIVAC is allowed in user space by Linux.
    unsafe { std::arch::asm!("dc civac, {a}", "dsb ish", a = in(reg) line) };
}

/// No timing on this architecture; see [`SUPPORTED`].
///
/// # Safety
/// Touches nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn time_one(_line: *const u8) -> u32 {
    0
}

/// No timing on this architecture; see [`SUPPORTED`].
///
/// # Safety
/// Touches nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn flush(_line: *const u8) {}

/// Reads both lines from memory and returns the time it took.
///
/// # Safety
/// Both point into mapped memory.
#[cfg(target_arch = "aarch64")]
pub unsafe fn time_pair(a: *const u8, b: *const u8) -> u32 {
    use std::arch::asm;
    let (start, end): (u64, u64);
    // SAFETY: the caller's; DC CIVAC is allowed in user space by Linux, and
    // cleaning and reading change no value.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) start);
        for _ in 0..ROUND {
            asm!(
                "dc civac, {a}",
                "dc civac, {b}",
                "dsb ish",
                "ldrb {t:w}, [{a}]",
                "ldrb {t:w}, [{b}]",
                "dsb ish",
                a = in(reg) a, b = in(reg) b, t = out(reg) _,
            );
        }
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) end);
    }
    u32::try_from(end.wrapping_sub(start)).unwrap_or(u32::MAX)
}

/// No timing on this architecture; see [`SUPPORTED`].
///
/// # Safety
/// Touches nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn time_pair(_a: *const u8, _b: *const u8) -> u32 {
    0
}
