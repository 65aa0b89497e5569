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

/// Times that a line must be read, each time from where it was before, for one answer whether
/// it came from a cache: ARM's counter ticks once in 18 to 52 ns, a TSC thrice in a nanosecond.
pub const READS: u32 = if cfg!(target_arch = "aarch64") { 16 } else { 1 };

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

/// Whether the processor predicts the first-level way of both lines alike,
/// which slows them as a row conflict does: AMD's since family 17h tag ways by
/// a hash of the linear address (Lipp et al., "Take A Way", 2020).
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn ways_collide(a: *const u8, b: *const u8) -> bool {
    let differ = a as u64 ^ b as u64;
    // Bits that are summed in pairs; the hash is linear.
    const PAIRS: [(u32, u32); 8] = [
        (12, 27),
        (13, 26),
        (14, 25),
        (15, 20),
        (16, 21),
        (17, 22),
        (18, 23),
        (19, 24),
    ];
    let same_tag = PAIRS
        .iter()
        .all(|(i, j)| (differ >> i ^ differ >> j) & 1 == 0);
    differ & 0xfc0 == 0 && same_tag && hashes_ways()
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "`__cpuid` is unsafe in older compilers")]
fn hashes_ways() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::OnceLock;
    static HASHES: OnceLock<bool> = OnceLock::new();
    *HASHES.get_or_init(|| {
        // SAFETY: every x86-64 processor has both leaves.
        let (vendor, model) = unsafe { (__cpuid(0), __cpuid(1)) };
        let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        let family = (model.eax >> 8 & 15) + (model.eax >> 20 & 255);
        name.concat() == b"AuthenticAMD" && family >= 0x17
    })
}

/// No such hash is known here.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn ways_collide(_a: *const u8, _b: *const u8) -> bool {
    false
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

/// Waits until what was read is here.
#[cfg(target_arch = "x86_64")]
pub fn settle() {
    // SAFETY: a fence.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// Waits until what was read is here.
#[cfg(target_arch = "aarch64")]
pub fn settle() {
    // SAFETY: a fence.
    unsafe { std::arch::asm!("dsb ish") };
}

/// Nothing is read here; see [`SUPPORTED`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn settle() {}

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

/// The clock's count now, after all that was read before.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
}

/// The clock's count now, after all that was read before.
#[cfg(target_arch = "aarch64")]
#[must_use]
pub fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reads a counter.
    unsafe { std::arch::asm!("dsb ish", "isb", "mrs {}, cntvct_el0", out(reg) count) };
    count
}

/// No clock on this architecture; see [`SUPPORTED`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[must_use]
pub fn ticks() -> u64 {
    0
}

/// Pushes a line out of all caches, some time: what follows does not wait for it.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "x86_64")]
pub unsafe fn flush_unfenced(line: *const u8) {
    // SAFETY: the caller's; flushing changes no value, and an older processor is not
    // asked for what it lacks.
    unsafe {
        if has_clflushopt() {
            std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
        } else {
            std::arch::x86_64::_mm_clflush(line);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "`__cpuid` is unsafe in older compilers")]
fn has_clflushopt() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::OnceLock;
    static HAS: OnceLock<bool> = OnceLock::new();
    // SAFETY: leaf 0 says whether there is a leaf 7.
    *HAS.get_or_init(|| unsafe { __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 23 & 1 == 1 })
}

/// Pushes a line out of all caches, some time: what follows does not wait for it.
///
/// # Safety
/// It points into mapped memory.
#[cfg(target_arch = "aarch64")]
pub unsafe fn flush_unfenced(line: *const u8) {
    // SAFETY: the caller's; DC CIVAC is allowed in user space by Linux.
    unsafe { std::arch::asm!("dc civac, {a}", a = in(reg) line) };
}

/// No timing on this architecture; see [`SUPPORTED`].
///
/// # Safety
/// Touches nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn flush_unfenced(_line: *const u8) {}

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

/// Takes so many turns of a loop, each about a cycle, and touches no memory.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn burn(turns: u32) {
    if turns == 0 {
        return;
    }
    // SAFETY: counts a register down.
    unsafe {
        std::arch::asm!("2:", "sub {n:e}, 1", "jnz 2b", n = inout(reg) turns => _, options(nomem, nostack));
    }
}

/// Takes so many turns of a loop, each about a cycle, and touches no memory.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn burn(turns: u32) {
    if turns == 0 {
        return;
    }
    // SAFETY: counts a register down.
    unsafe {
        std::arch::asm!("2:", "subs {n:w}, {n:w}, #1", "b.ne 2b", n = inout(reg) turns => _, options(nomem, nostack));
    }
}

/// No timing on this architecture; see [`SUPPORTED`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn burn(_turns: u32) {}

/// Writes a line of zeros to memory; no cache reads it before.
///
/// # Safety
/// `line` points to a whole line of memory that no other thread uses.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn write_through(line: *mut u8) {
    // SAFETY: the caller's; the line is 64 bytes.
    unsafe {
        for word in 0..8 {
            std::arch::x86_64::_mm_stream_si64(line.cast::<i64>().add(word), 0);
        }
    }
}

/// Writes a line of zeros to memory. The cache may read it before.
///
/// # Safety
/// `line` points to a whole line of memory that no other thread uses.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn write_through(line: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        std::ptr::write_volatile(line.cast::<u64>(), 0);
        std::arch::asm!("dc civac, {a}", a = in(reg) line);
    }
}

/// No timing on this architecture; see [`SUPPORTED`].
///
/// # Safety
/// Touches nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn write_through(_line: *mut u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// That the instructions are allowed and the clock runs; how long memory
    /// takes is not for a test to say. Runs on any machine, and needs nothing
    /// of the crate: `rustc --test --target aarch64-unknown-linux-gnu cpu.rs`.
    #[test]
    fn the_instructions_are_allowed_and_the_clock_runs() {
        let lines = vec![7u8; 1 << 16];
        let at = |i: usize| std::ptr::from_ref(&lines[i]);
        let (mut ticks, start) = (0u64, super::ticks());
        for i in 0..256 {
            // SAFETY: both lie in `lines`.
            unsafe {
                ticks += u64::from(time_pair(at(64 * i), at(64 * (255 - i) + 32)));
                flush(at(64 * i));
                ticks += u64::from(time_one(at(64 * i)));
                flush_unfenced(at(64 * i));
            }
            burn(i as u32);
        }
        assert!(!SUPPORTED || ticks > 0);
        assert!(!SUPPORTED || super::ticks() > start);
        assert!(lines.iter().all(|&byte| byte == 7), "nothing was changed");
    }

    /// All bytes of the line, and no other, are zero.
    #[test]
    fn a_line_is_written_through() {
        #[repr(align(64))]
        struct Lines([u8; 192]);
        let mut lines = Lines([7; 192]);
        // SAFETY: the middle line of three.
        unsafe { write_through(lines.0.as_mut_ptr().add(64)) };
        settle();
        if SUPPORTED {
            assert!(lines.0[64] == 0 && lines.0[63] == 7 && lines.0[128] == 7);
        }
    }

    #[test]
    fn a_line_apart_in_the_page_shares_no_way() {
        let line = 0x7f00_1234_5000 as *const u8;
        assert!(!ways_collide(line, line.wrapping_add(64)));
        assert!(!ways_collide(line, line.wrapping_add(1 << 12)));
    }
}
