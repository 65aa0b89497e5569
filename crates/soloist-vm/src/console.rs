//! What a healthy kernel does not print.

use serde::Serialize;

/// Words that mean trouble wherever they stand in a line of the kernel's.
const TROUBLE: &[&str] = &[
    "Kernel panic",
    "Oops:",
    "BUG: ",
    "BUG at ",
    "WARNING: ",
    "Bad page",
    "bad page",
    "general protection fault",
    "unable to handle",
    "double fault",
    "soft lockup",
    "hard LOCKUP",
    "detected stall",
    "detected expedited stall",
    "self-detected stall",
    "blocked for more than",
    "scheduling while atomic",
    "sleeping function called",
    "suspicious RCU usage",
    "possible circular locking",
    "possible recursive locking",
    "inconsistent lock state",
    "list_add corruption",
    "list_del corruption",
    "refcount_t:",
    "UBSAN:",
    "KASAN:",
    "KFENCE:",
    "KCSAN:",
    "ODEBUG:",
    "pagealloc: memory corruption",
    "unreferenced object",
    "soloist init: failed",
];

/// Lines that hold such words in a healthy kernel.
const HARMLESS: &[&str] = &[
    // a user process's own fault
    "traps: ",
    // printed at every start of a debug kernel
    "Lock dependency validator",
];

/// A line of trouble in a guest's console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Where it stands in the log, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

/// The lines of trouble in `log`.
pub fn troubles(log: &str) -> Vec<Trouble> {
    let trouble = |text: &str| {
        TROUBLE.iter().any(|word| text.contains(word))
            && !HARMLESS.iter().any(|word| text.contains(word))
    };
    judged(log)
        .lines()
        .enumerate()
        .filter(|(_, text)| trouble(text))
        .map(|(at, text)| Trouble {
            line: at + 1,
            text: text.trim_end().to_owned(),
        })
        .collect()
}

/// What of `log` the kernel is judged by. As a machine powers down its other
/// CPUs are stopped and marked offline, whatever they were at; a thread that is
/// woken for one of them just then makes a stock kernel warn (seen on 6.1-rt,
/// from `rcuc`). That one warning does not count, if none of our functions is
/// in its trace.
fn judged(log: &str) -> &str {
    let (before, after) = match log.find("reboot: Power down") {
        Some(at) => log.split_at(at),
        None => return log,
    };
    match after.contains("Unexpected reschedule of offline CPU") && !after.contains("[soloist]") {
        true => before,
        false => log,
    }
}

/// At most `lines` lines of `log`, from just before line `from`.
pub fn excerpt(log: &str, from: usize, lines: usize) -> String {
    let picked: Vec<&str> = log
        .lines()
        .skip(from.saturating_sub(4))
        .take(lines)
        .map(str::trim_end)
        .collect();
    picked.join("\n")
}

/// The last `lines` lines of `log`.
pub fn tail(log: &str, lines: usize) -> String {
    excerpt(log, (log.lines().count() + 4).saturating_sub(lines), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_woken_for_a_stopped_cpu_at_power_down_is_not_held_against_us() {
        let down = "[ 9.0] reboot: Power down\n";
        let warning = "[ 9.1] ------------[ cut here ]------------\n\
                       [ 9.1] sched: Unexpected reschedule of offline CPU#2!\n\
                       [ 9.1] WARNING: CPU: 1 PID: 27 at arch/x86/kernel/apic/ipi.c:68 native_smp_send_reschedule+0x4e/0x60\n";
        let panic = "[ 9.2] Kernel panic - not syncing: kernel: panic_on_warn set ...\n";
        let ours = "[ 9.1]  sol_guard_stop+0x1/0x2 [soloist]\n";
        let count = |parts: &[&str]| troubles(&parts.concat()).len();
        assert_eq!(count(&[down, warning, panic]), 0);
        assert_eq!(count(&[warning, panic, down]), 2);
        assert_eq!(count(&[down, warning, ours, panic]), 2);
        assert_eq!(count(&[down, "[ 9.1] WARNING: CPU: 1 at mm/x.c:1\n"]), 1);
        assert_eq!(count(&["[ 8.0] BUG: x\n", down, warning]), 1);
    }

    #[test]
    fn a_healthy_boot_has_none() {
        let log = "[ 0.0] Linux version 6.12\n[ 1.0] kfence: initialized\n\
                   [ 2.0] traps: a.out[12] general protection fault ip:4011 sp:7ff error:0\n\
                   [ 3.0] Out of memory: Killed process 12 (a.out)\n";
        assert_eq!(troubles(log), []);
    }

    #[test]
    fn each_kind_is_seen_with_its_line() {
        for text in [
            "[ 1.0] BUG: Bad page state in process sh  pfn:1234",
            "[ 1.0] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 x+0x1/0x2",
            "[ 1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[ 1.0] INFO: task sh:12 blocked for more than 120 seconds.",
            "[ 1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
            "[ 1.0] Oops: general protection fault, probably for non-canonical address",
        ] {
            let log = format!("[ 0.0] fine\n{text}\n");
            let seen = troubles(&log);
            assert_eq!(seen.len(), 1, "{text}");
            assert_eq!(seen[0].line, 2);
        }
    }

    #[test]
    fn excerpts_stay_inside() {
        let log = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(excerpt(log, 5, 2), "b\nc");
        assert_eq!(tail(log, 2), "e\nf");
        assert_eq!(tail("a\n", 5), "a");
    }
}
