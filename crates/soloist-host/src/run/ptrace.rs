//! Requests of ptrace(2).

use std::io;

use libc::{c_long, c_void, pid_t};

/// One request of ptrace(2).
pub(super) fn request(what: u32, pid: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: numbers; requests that write into memory are not made here.
    let done = unsafe { libc::ptrace(what, pid, address as *mut c_void, data as *mut c_void) };
    if done == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(done)
    }
}
