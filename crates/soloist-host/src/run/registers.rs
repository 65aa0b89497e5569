//! Registers of a traced process, by which it is made to make a system call. Each
//! architecture has its own registers for a call, and its own instruction.

use std::io;
use std::mem;

use libc::{c_void, iovec, pid_t, user_regs_struct};

use super::ptrace;

#[cfg(target_arch = "x86_64")]
mod arch {
    use libc::user_regs_struct;

    /// `syscall`. Whatever instruction these two bytes belong to, a processor that begins at
    /// them makes a system call.
    pub(in crate::run) const CALL: &[u8] = &[0x0f, 0x05];
    /// Addresses at which a processor begins.
    pub(in crate::run) const STEP: usize = 1;

    /// `before`, about to make call `number` with one argument at address `at`.
    pub(in crate::run) fn calling(
        before: &user_regs_struct,
        at: u64,
        number: i64,
        argument: u64,
    ) -> user_regs_struct {
        user_regs_struct {
            rip: at,
            rax: number as u64,
            // No system call that is under way and to be restarted.
            orig_rax: u64::MAX,
            rdi: argument,
            ..*before
        }
    }

    /// The result of a call.
    pub(in crate::run) fn result(after: &user_regs_struct) -> i64 {
        after.rax as i64
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use libc::user_regs_struct;

    /// `svc #0`.
    pub(in crate::run) const CALL: &[u8] = &[0x01, 0x00, 0x00, 0xd4];
    /// Addresses at which a processor begins.
    pub(in crate::run) const STEP: usize = 4;

    /// `before`, about to make call `number` with one argument at address `at`.
    pub(in crate::run) fn calling(
        before: &user_regs_struct,
        at: u64,
        number: i64,
        argument: u64,
    ) -> user_regs_struct {
        let mut call = *before;
        call.pc = at;
        call.regs[8] = number as u64;
        call.regs[0] = argument;
        call
    }

    /// The result of a call.
    pub(in crate::run) fn result(after: &user_regs_struct) -> i64 {
        after.regs[0] as i64
    }
}

pub(super) use arch::{calling, result, CALL, STEP};

/// Those of a process that stopped.
pub(super) fn read(pid: pid_t) -> io::Result<user_regs_struct> {
    let mut regs = mem::MaybeUninit::<user_regs_struct>::zeroed();
    set(pid, libc::PTRACE_GETREGSET, regs.as_mut_ptr())?;
    // SAFETY: plain numbers that were zeroed.
    Ok(unsafe { regs.assume_init() })
}

/// The process that stopped has these.
pub(super) fn write(pid: pid_t, regs: &user_regs_struct) -> io::Result<()> {
    let mut regs = *regs;
    set(pid, libc::PTRACE_SETREGSET, &raw mut regs)
}

fn set(pid: pid_t, request: u32, regs: *mut user_regs_struct) -> io::Result<()> {
    let size = mem::size_of::<user_regs_struct>();
    let mut all = iovec {
        iov_base: regs.cast::<c_void>(),
        iov_len: size,
    };
    let kind = libc::NT_PRSTATUS as usize;
    ptrace::request(request, pid, kind, &raw mut all as usize)?;
    // Of fewer and smaller registers fewer bytes come and go.
    match all.iov_len == size {
        true => Ok(()),
        false => Err(io::Error::other("not in a 32-bit program yet")),
    }
}
