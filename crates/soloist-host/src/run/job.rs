//! Runs a command in a group: coloured from the first page of its execve.
//!
//! The child puts itself into the group between fork and execve; the parent
//! waits, passes signals on and says how it ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::pipe::{pipe_with, PipeFlags};

use crate::control::Group;
use crate::run::realtime::{stop_at_exec, Realtime};
use crate::signals::{block, set_of, unblock};
use crate::HostError;

/// Signals that are passed on to the command.
const FORWARDED: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Exit status, or 128 + signal.
    pub code: u8,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// A running command.
#[derive(Debug)]
pub struct Job {
    child: Child,
    signals: libc::sigset_t,
}

impl Job {
    /// Starts `command` (found by PATH) in `group`, in real time if that is asked
    /// for.
    pub fn start(
        group: &Group,
        command: &[OsString],
        realtime: Option<&Realtime>,
    ) -> Result<Self, HostError> {
        let (program, args) = command.split_first().ok_or_else(|| {
            HostError::Request("no command to run: soloist run -- CMD".to_owned())
        })?;
        let (joined, say_joined) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|e| HostError::io("pipe", io::Error::from(e)))?;
        let signals = waited_for();
        let old = block(&signals);
        let mut run = Command::new(program);
        run.args(args);
        join_before_exec(&mut run, group.open_tasks()?, say_joined, old);
        if realtime.is_some() {
            // SAFETY: one system call, no allocation.
            unsafe { run.pre_exec(stop_at_exec) };
        }
        match run.spawn() {
            Ok(child) => Self { child, signals }
                .begin(realtime)
                .inspect_err(|_| unblock(&old)),
            Err(error) => {
                drop(run); // closes our end of the pipe
                unblock(&old);
                Err(start_error(group, program, joined, error))
            }
        }
    }

    /// Gives it its class and lets it go on; ends it where that can't be done.
    fn begin(mut self, realtime: Option<&Realtime>) -> Result<Self, HostError> {
        let pid = self.pid() as libc::pid_t;
        if let Some(Err(error)) = realtime.map(|r| r.give(pid)) {
            // What matters is why; it may have ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
            return Err(error);
        }
        Ok(self)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends, passing signals on.
    pub fn wait(self) -> Result<Exit, HostError> {
        self.wait_looking(&mut || ())
    }

    /// The same; `look` is called now and then while it runs.
    pub fn wait_looking(mut self, look: &mut dyn FnMut()) -> Result<Exit, HostError> {
        let pid = self.pid() as libc::pid_t;
        loop {
            look();
            if let Some(status) = self
                .child
                .try_wait()
                .map_err(|e| HostError::io("wait", e))?
            {
                return Ok(outcome(status));
            }
            // SAFETY: zero bytes are a valid siginfo_t; the set is initialised.
            let (signal, info) = unsafe {
                let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
                let signal = libc::sigtimedwait(&self.signals, info.as_mut_ptr(), &LOOK_AGAIN);
                (signal, info.assume_init())
            };
            // The terminal's own (^C) reached the whole process group already.
            let from_terminal = info.si_code == libc::SI_KERNEL;
            if FORWARDED.contains(&signal) && !from_terminal {
                // SAFETY: our own child, not yet waited for.
                unsafe { libc::kill(pid, signal) };
            }
        }
    }
}

/// A thread of this process that does not block SIGCHLD may have taken it, and
/// ignored it, before [`Job::wait`] began to wait.
const LOOK_AGAIN: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The signals that [`Job::wait`] waits for.
fn waited_for() -> libc::sigset_t {
    set_of(FORWARDED.into_iter().chain([libc::SIGCHLD]))
}

/// In the child, just before execve: restore the signal mask, join the group,
/// say so.
fn join_before_exec(run: &mut Command, tasks: File, say: OwnedFd, old: libc::sigset_t) {
    let join = move || {
        unblock(&old);
        // SAFETY: open descriptors, valid buffers.
        unsafe {
            if libc::write(tasks.as_raw_fd(), c"0\n".as_ptr().cast(), 2) != 2 {
                return Err(io::Error::last_os_error());
            }
            libc::write(say.as_raw_fd(), c"j".as_ptr().cast(), 1);
        }
        Ok(())
    };
    // SAFETY: only async-signal-safe calls, no allocation.
    unsafe { run.pre_exec(join) };
}

/// Joining failed, or the command could not be run.
fn start_error(group: &Group, program: &OsString, joined: OwnedFd, error: io::Error) -> HostError {
    let mut said = [0];
    match File::from(joined).read(&mut said) {
        Ok(1) => HostError::Exec {
            command: program.to_string_lossy().into_owned(),
            source: error,
        },
        _ => group.refusal(&format!("joining group {}", group.name()), error),
    }
}

fn outcome(status: ExitStatus) -> Exit {
    let signal = status.signal();
    let code = signal.map_or_else(|| status.code().unwrap_or(1), |s| 128 + s);
    Exit {
        code: u8::try_from(code).unwrap_or(u8::MAX),
        signal,
    }
}
