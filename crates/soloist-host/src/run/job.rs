//! Runs a command in a group: coloured from the first page of its execve.
//!
//! The child puts itself into the group between fork and execve; the parent
//! waits, passes signals on and says how it ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::io::write;
use rustix::pipe::{pipe_with, PipeFlags};

use crate::control::Group;
use crate::run::realtime::Realtime;
use crate::signals::{block, pass_on_pipe, set_of, unblock};
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
        let (done, say_done) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|e| HostError::io("pipe", io::Error::from(e)))?;
        let signals = waited_for();
        let old = block(&signals);
        let mut run = Command::new(program);
        run.args(args);
        prepare_before_exec(&mut run, group.open_tasks()?, realtime, say_done, old);
        match run.spawn() {
            Ok(child) => Self { child, signals }
                .begin(realtime)
                .inspect_err(|_| unblock(&old)),
            Err(error) => {
                drop(run); // closes our end of the pipe
                unblock(&old);
                Err(start_error(group, program, realtime, done, error))
            }
        }
    }

    /// Locks its memory where that is asked for, and lets it go on; ends it where that can't be
    /// done.
    fn begin(mut self, realtime: Option<&Realtime>) -> Result<Self, HostError> {
        let pid = self.pid() as libc::pid_t;
        let locked = realtime.filter(|r| r.lock).map(|r| r.lock(pid));
        if let Some(Err(error)) = locked {
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
            if FORWARDED.contains(&signal) && !came_to(pid, &info) {
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

/// Did a signal of ours come to the command already? The terminal's own (^C) comes to a whole
/// process group, which the command may have left, as timeout(1) does. Of a terminal that hangs
/// up the leader of the session alone is told.
fn came_to(command: libc::pid_t, info: &libc::siginfo_t) -> bool {
    // SAFETY: they only ask.
    let of_our_group = unsafe { libc::getpgid(command) == libc::getpgrp() };
    info.si_code == libc::SI_KERNEL && info.si_signo != libc::SIGHUP && of_our_group
}

/// The signals that [`Job::wait`] waits for.
fn waited_for() -> libc::sigset_t {
    set_of(FORWARDED.into_iter().chain([libc::SIGCHLD]))
}

/// In the child, just before execve: restore the signals, join the group, prepare for real
/// time, and say each step.
fn prepare_before_exec(
    run: &mut Command,
    tasks: File,
    realtime: Option<&Realtime>,
    say: OwnedFd,
    old: libc::sigset_t,
) {
    let realtime = realtime.copied();
    let prepare = move || {
        unblock(&old);
        pass_on_pipe();
        write(&tasks, b"0\n")?;
        write(&say, b"j")?;
        realtime.map_or(Ok(()), |realtime| realtime.prepare())?;
        write(&say, b"r")?;
        Ok(())
    };
    // SAFETY: only async-signal-safe calls, no allocation.
    unsafe { run.pre_exec(prepare) };
}

/// Why the command did not start. The child wrote a letter to `done` after each step that it
/// took: it joined, it prepared for real time.
fn start_error(
    group: &Group,
    program: &OsString,
    realtime: Option<&Realtime>,
    done: OwnedFd,
    error: io::Error,
) -> HostError {
    let mut said = Vec::new();
    // A pipe that can't be read tells of no step.
    let _ = File::from(done).read_to_end(&mut said);
    match (&said[..], realtime) {
        (b"", _) => group.refusal(&format!("joining group {}", group.name()), error),
        (b"j", Some(realtime)) => realtime.refused(&error),
        _ => HostError::Exec {
            command: program.to_string_lossy().into_owned(),
            source: error,
        },
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
