//! How a command runs in real time: its scheduling class, and its memory locked
//! and there before its first instruction.
//!
//! Locks and what was faulted in do not outlive an execve, so both are done
//! after it: the child asks to be traced, stops where its new program would
//! begin, and is made to call mlockall(2) there by way of a syscall instruction
//! of its vDSO (nothing of the program is written to, so none of its pages
//! becomes a copy for that). Then it gets its class and goes on alone. The
//! faults are the program's own, so what comes is in its group's colours.
//! Without a lock nothing is traced: the child takes its class before the execve.

use std::io;
use std::mem;

use libc::{c_int, pid_t};
use soloist_core::time::Time;

use super::ptrace::request as trace;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::registers;
use crate::HostError;

/// A scheduling class of sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `SCHED_FIFO` with this priority, 1 to 99.
    Fifo(u32),
    /// `SCHED_DEADLINE`: `budget` of each `period`, by `deadline`.
    Deadline {
        /// Processor time of a period.
        budget: Time,
        /// From a period's begin.
        deadline: Time,
        /// The period.
        period: Time,
    },
}

/// How a command runs in real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realtime {
    /// Its class.
    pub class: Class,
    /// All its memory, that which it maps later too, is faulted in and stays.
    pub lock: bool,
}

impl Realtime {
    /// To be called by the child before its execve: it will stop there to have its memory
    /// locked, or it takes its class.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self.lock {
            true => trace(libc::PTRACE_TRACEME, 0, 0, 0).map(|_| ()),
            false => self.class.give(0),
        }
    }

    /// Why the kernel may have refused that, and what to do.
    pub(crate) fn refused(&self, error: &io::Error) -> HostError {
        HostError::Request(match self.lock {
            true => format!("locking the command's memory: ptrace(2): {error}: a container, Yama (kernel.yama.ptrace_scope) or a tracer like strace forbids it: let it be traced, or --no-lock"),
            false => self.class.refused(error),
        })
    }

    /// Locks the memory of a child that stopped at its execve, gives it its class and lets it
    /// go on. Must be called by the thread that started it.
    pub(crate) fn lock(&self, pid: pid_t) -> Result<(), HostError> {
        wait_for_stop(pid).map_err(|e| HostError::io("waiting for the command's execve", e))?;
        let late = lock_memory(pid)
            .map_err(|e| HostError::Request(format!("locking the command's memory: {e} (a limit: `ulimit -l`; colours without room: `--mem`; or --no-lock)")))?;
        self.class
            .give(pid)
            .map_err(|e| HostError::Request(self.class.refused(&e)))?;
        trace(libc::PTRACE_DETACH, pid, 0, late as usize)
            .map_err(|e| HostError::io("PTRACE_DETACH", e))?;
        Ok(())
    }
}

/// How a stop at a system call shows itself with `PTRACE_O_TRACESYSGOOD`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const SYSCALL_STOP: c_int = libc::SIGTRAP | 0x80;

impl Class {
    /// Gives it to a task; 0: to the caller.
    fn give(self, pid: pid_t) -> io::Result<()> {
        // SAFETY: sched_attr is plain numbers, for which zero is valid.
        let mut attr: libc::sched_attr = unsafe { mem::zeroed() };
        attr.size = mem::size_of::<libc::sched_attr>() as u32;
        match self {
            Self::Fifo(priority) => {
                attr.sched_policy = libc::SCHED_FIFO as u32;
                attr.sched_priority = priority;
            }
            Self::Deadline {
                budget,
                deadline,
                period,
            } => {
                attr.sched_policy = libc::SCHED_DEADLINE as u32;
                // Its children are ordinary: the kernel lets it have none else.
                attr.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
                attr.sched_runtime = budget.0 / 1000;
                attr.sched_deadline = deadline.0 / 1000;
                attr.sched_period = period.0 / 1000;
            }
        }
        // SAFETY: a valid sched_attr of the size that it says.
        let done = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attr, 0) };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Why the kernel may have refused, and what to do.
    fn refused(self, error: &io::Error) -> String {
        let why = match (self, error.raw_os_error()) {
            (Self::Deadline { .. }, Some(libc::EPERM)) => "SCHED_DEADLINE needs root and a task that may run on all CPUs: leave --cpus out and give --no-pin, put it into a cpuset of its own, or take --rt PRIO",
            (Self::Deadline { .. }, Some(libc::EBUSY)) => "the tasks of SCHED_DEADLINE already have the CPUs' time: a smaller budget or a longer period",
            (Self::Deadline { .. }, Some(libc::EINVAL)) => "it takes budgets of 1 us at least, and no deadline above the period",
            (Self::Fifo(_), Some(libc::EPERM)) => "it wants root (CAP_SYS_NICE), or RLIMIT_RTPRIO (`ulimit -r`)",
            _ => "see sched(7)",
        };
        let name = match self {
            Self::Fifo(priority) => format!("SCHED_FIFO {priority}"),
            Self::Deadline {
                budget,
                deadline,
                period,
            } => format!("SCHED_DEADLINE, {budget} of {period} by {deadline}"),
        };
        format!("{name}: {error}: {why}")
    }
}

/// Waits until a traced child stops, and by which signal; an error if it ended
/// instead.
fn wait_for_stop(pid: pid_t) -> io::Result<c_int> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: our own child and a valid status.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } != -1 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if libc::WIFSTOPPED(status) {
        Ok(libc::WSTOPSIG(status))
    } else {
        Err(io::Error::other("it ended there"))
    }
}

/// Makes it call mlockall(2). A signal that came meanwhile is given back, to be
/// delivered; 0: none did.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn lock_memory(pid: pid_t) -> io::Result<c_int> {
    let all = (libc::MCL_CURRENT | libc::MCL_FUTURE) as u64;
    let before = registers::read(pid)?;
    let at = call_instruction(pid)?;
    let call = registers::calling(&before, at, libc::SYS_mlockall, all);
    registers::write(pid, &call)?;
    trace(
        libc::PTRACE_SETOPTIONS,
        pid,
        0,
        libc::PTRACE_O_TRACESYSGOOD as usize,
    )?;
    let mut late = 0;
    // The call's begin, then its end.
    for _ in 0..2 {
        loop {
            trace(libc::PTRACE_SYSCALL, pid, 0, 0)?;
            match wait_for_stop(pid)? {
                SYSCALL_STOP => break,
                signal => late = signal,
            }
        }
    }
    let result = registers::result(&registers::read(pid)?);
    registers::write(pid, &before)?;
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    Ok(late)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn lock_memory(_pid: pid_t) -> io::Result<c_int> {
    Err(io::Error::other("not on this architecture yet"))
}

/// Address of an instruction in the process's vDSO that makes a system call.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn call_instruction(pid: pid_t) -> io::Result<u64> {
    use std::fs::{read_to_string, File};
    use std::os::unix::fs::FileExt;

    let none = || io::Error::other("its vDSO has no syscall instruction (vdso=0?)");
    let maps = read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps
        .lines()
        .find(|l| l.ends_with("[vdso]"))
        .ok_or_else(none)?;
    let range = line
        .split_whitespace()
        .next()
        .and_then(|r| r.split_once('-'))
        .ok_or_else(none)?;
    let number = |text| u64::from_str_radix(text, 16).map_err(|_| none());
    let (from, to) = (number(range.0)?, number(range.1)?);
    let mut code = vec![0; (to - from) as usize];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut code, from)?;
    let at = (0..code.len())
        .step_by(registers::STEP)
        .find(|&at| code[at..].starts_with(registers::CALL))
        .ok_or_else(none)?;
    Ok(from + at as u64)
}
