//! Threads and the processors they run on.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use soloist_core::{NumList, MAX_CPUS};

use crate::machine::host::Host;
use crate::HostError;

/// Thread ids of a process, ascending.
pub fn threads(host: &Host, pid: i32) -> Result<Vec<i32>, HostError> {
    let dir = host.path(&format!("/proc/{pid}/task"));
    let entries = match fs::read_dir(&dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(not_seen(host, pid)),
        entries => entries.map_err(|e| HostError::io(dir, e))?,
    };
    let mut ids: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Why /proc does not show process `pid`: there is none, or /proc is mounted with hidepid
/// and the process is somebody else's.
pub(crate) fn not_seen(host: &Host, pid: i32) -> HostError {
    let asked = rustix::process::Pid::from_raw(pid).filter(|_| host.is_live());
    match asked.map(rustix::process::test_kill_process) {
        Some(Err(Errno::PERM)) => HostError::NeedsRoot(format!("looking at process {pid}")),
        _ => HostError::NoProcess(pid),
    }
}

/// The process that thread `tid` belongs to; itself where that can't be seen.
pub(crate) fn process_of(host: &Host, tid: i32) -> i32 {
    let status = host.read(&format!("/proc/{tid}/status"));
    let line = status.ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    });
    line.unwrap_or(tid)
}

/// The name that thread `tid` gave itself, as one line of text.
pub(crate) fn command_of(host: &Host, tid: i32) -> Option<String> {
    let name = host.text(&format!("/proc/{tid}/comm"))?;
    Some(plain(&name))
}

/// `text` without what breaks a line or moves a terminal's cursor: a program chooses its
/// threads' names, and those of the files that it maps.
pub(crate) fn plain(text: &str) -> String {
    let one = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// So many processes are named, the others counted.
pub(crate) const NAMED: usize = 8;

/// `4711 sleep, 4712 x264 and 3 more` of threads: their processes, by number.
pub fn named(host: &Host, tids: &[i32]) -> String {
    let mut pids: Vec<i32> = tids.iter().map(|&tid| process_of(host, tid)).collect();
    pids.sort_unstable();
    pids.dedup();
    let name_of = |&pid: &i32| match command_of(host, pid) {
        Some(command) => format!("{pid} {command}"),
        None => pid.to_string(),
    };
    let words: Vec<String> = pids.iter().take(NAMED).map(name_of).collect();
    match pids.len().saturating_sub(NAMED) {
        0 => words.join(", "),
        more => format!("{} and {more} more", words.join(", ")),
    }
}

const _: () = assert!(MAX_CPUS as usize <= CpuSet::MAX_CPU);

/// The processors that this process may use.
pub(crate) fn allowed_cpus() -> NumList {
    let mut list = NumList::new(MAX_CPUS);
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    for cpu in (0..MAX_CPUS).filter(|&cpu| set.is_set(cpu as usize)) {
        list.insert(cpu);
    }
    list
}

/// Keeps this thread, and what it starts, on `cpus`: all of them or none. The kernel itself leaves
/// out those that the cpuset forbids, without a word.
pub fn pin(cpus: &NumList) -> Result<(), HostError> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(cpu as usize));
    let before = sched_getaffinity(None);
    sched_setaffinity(None, &set).map_err(|e| {
        HostError::Request(match e {
            Errno::INVAL => format!(
                "CPUs {cpus}: none of them is online and allowed here; this process is on {}",
                allowed_cpus()
            ),
            e => format!("CPUs {cpus}: {}", io::Error::from(e)),
        })
    })?;
    let allowed = allowed_cpus();
    if cpus.iter().all(|cpu| allowed.contains(cpu)) {
        return Ok(());
    }
    if let Ok(before) = before {
        // It was so a moment ago.
        let _ = sched_setaffinity(None, &before);
    }
    Err(HostError::Request(format!(
        "CPUs {cpus}: only {allowed} of them are online and allowed here (cpuset)"
    )))
}
