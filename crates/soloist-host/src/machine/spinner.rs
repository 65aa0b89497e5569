//! Real-time threads that keep a processor for themselves.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;

use crate::machine::host::{text_of, Host};

/// How long it is looked: the kernel's period of real-time throttling by default. In a
/// shorter look the pause at the end of a period would weigh too much.
const LOOK: Duration = Duration::from_secs(1);

/// Share of that time from which on a thread spins. The kernel lets real-time threads
/// have 95 % by default.
const SPINS: f64 = 0.85;

/// /proc counts time so (USER_HZ) on every architecture that the module knows.
const TICKS_PER_SECOND: f64 = 100.0;

/// The kernel's numbers of SCHED_FIFO and SCHED_RR.
const REAL_TIME: [u64; 2] = [1, 2];

/// A real-time thread that runs without a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spinner {
    /// Its thread id.
    pub tid: i32,
    /// What it runs.
    pub command: String,
    /// The processor that it has.
    pub cpu: u64,
}

/// What a thread has used so far.
struct Used {
    spinner: Spinner,
    ticks: u64,
}

/// Looks a second for threads of SCHED_FIFO and SCHED_RR that run without
/// a pause. What waits until each processor has scheduled waits for them.
pub fn spinners(host: &Host) -> Vec<Spinner> {
    let before = real_time(host);
    if before.is_empty() {
        return Vec::new();
    }
    sleep(LOOK);
    let after = real_time(host);
    let enough = LOOK.as_secs_f64() * TICKS_PER_SECOND * SPINS;
    let spins = |now: &Used| {
        let then = before.iter().find(|b| b.spinner.tid == now.spinner.tid);
        then.is_some_and(|then| now.ticks.saturating_sub(then.ticks) as f64 >= enough)
    };
    let found = after.into_iter().filter(spins);
    found.map(|used| used.spinner).collect()
}

/// All real-time threads that are ready.
fn real_time(host: &Host) -> Vec<Used> {
    let entries = fs::read_dir(host.path("/proc")).into_iter().flatten();
    let mut found = Vec::new();
    for process in entries.flatten() {
        let name = process.file_name();
        let is_process = name.to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        if !is_process {
            continue;
        }
        let threads = fs::read_dir(process.path().join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let stat = fs::read(thread.path().join("stat"));
            found.extend(stat.ok().and_then(|bytes| of_stat(&text_of(bytes))));
        }
    }
    found
}

/// Of /proc/PID/task/TID/stat; the name may hold spaces and parentheses.
fn of_stat(text: &str) -> Option<Used> {
    let (head, rest) = text.rsplit_once(") ")?;
    let (tid, command) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
    let ready = *fields.first()? == "R";
    if !ready || !REAL_TIME.contains(&number(41)?) {
        return None;
    }
    Some(Used {
        spinner: Spinner {
            tid: tid.parse().ok()?,
            command: command.to_owned(),
            cpu: number(39)?,
        },
        ticks: number(14)? + number(15)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// A line of the kernel's, with this state and policy.
    fn stat(state: &str, policy: u32) -> String {
        format!("42 (a (b) c) {state} 1 42 42 0 -1 4194560 90 0 0 0 70 7 0 0 -51 0 1 0 100 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 17 3 50 {policy} 0 0 0")
    }

    #[test]
    fn a_ready_real_time_thread_is_read() {
        let used = of_stat(&stat("R", 1)).unwrap();
        assert_eq!(used.ticks, 77);
        assert_eq!(
            (
                used.spinner.tid,
                used.spinner.cpu,
                used.spinner.command.as_str()
            ),
            (42, 3, "a (b) c")
        );
        assert!(of_stat(&stat("R", 2)).is_some());
        assert!(of_stat(&stat("S", 1)).is_none());
        assert!(of_stat(&stat("R", 0)).is_none());
        assert!(of_stat("nonsense").is_none());
    }
}
