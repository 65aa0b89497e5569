//! A trace of our own: an instance of tracefs with the events that we need. It is
//! removed with the value that stands for it.
//!
//! A signal that ends a program would leave the instance behind, so the first
//! instance takes over SIGINT, SIGTERM and SIGHUP, but for a SIGHUP that is ignored: they only
//! set a flag ([`ended`]), which the program's loop must read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::event::text_of;
use crate::watch::exists;

/// Why there is no trace, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file of tracefs can't be read, written or made.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// tracefs is not mounted.
    #[error("{file}: {error}: no tracefs there (as root: `mount -t tracefs tracefs {TRACING}`)")]
    NotMounted {
        /// The folder of instances.
        file: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// Only root may.
    #[error("{file}: {error}: `soloist {command}` {what}, which wants root")]
    NotRoot {
        /// The folder that is closed to us.
        file: String,
        /// What the kernel said.
        error: io::Error,
        /// The command that wants the trace.
        command: String,
        /// What it does with it.
        what: &'static str,
    },
    /// The command that is watched can't be waited for.
    #[error(transparent)]
    Command(io::Error),
    /// The signals that end us can't be taken over.
    #[error("signal: {0}")]
    Signal(io::Error),
}

type Result<T> = std::result::Result<T, TraceError>;

fn failed(file: &Path, error: io::Error) -> TraceError {
    TraceError::File {
        file: file.display().to_string(),
        error,
    }
}

/// Where tracefs is mounted.
const TRACING: &str = "/sys/kernel/tracing";
/// New instances have the options of the trace that an administrator uses.
const OPTIONS: [&str; 6] = [
    "context-info",
    "noraw",
    "nohex",
    "nobin",
    "noverbose",
    "norecord-tgid",
];

/// An instance of tracefs.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    pipe: Option<File>,
    /// A line that is not whole yet.
    begun: Vec<u8>,
}

impl Instance {
    /// Makes an instance for `soloist COMMAND`, with nothing recorded yet;
    /// `buffer_kib` is the size of each processor's buffer.
    ///
    /// # Errors
    /// When tracefs is not mounted, or wants root; when the kernel refuses a
    /// setting.
    pub fn new(command: &str, buffer_kib: u32) -> Result<Self> {
        end_on_signals()?;
        let instances = Path::new(TRACING).join("instances");
        let entries = fs::read_dir(&instances).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => not_root(
                Path::new(TRACING),
                error,
                command,
                "reads the kernel's trace",
            ),
            _ => TraceError::NotMounted {
                file: instances.display().to_string(),
                error,
            },
        })?;
        remove_abandoned(entries.flatten().map(|e| e.path()));
        let dir = instances.join(format!("soloist-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                not_root(&dir, error, command, "makes a trace of its own")
            }
            _ => failed(&dir, error),
        })?;
        let mut made = Self {
            dir,
            pipe: None,
            begun: Vec::new(),
        };
        made.write("tracing_on", "0")?;
        made.write("trace_clock", "mono")?;
        made.write("buffer_size_kb", buffer_kib.to_string())?;
        for option in OPTIONS {
            // A kernel without it has nothing to be turned off.
            let _ = made.write("trace_options", option);
        }
        let pipe = made.dir.join("trace_pipe");
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe);
        made.pipe = Some(opened.map_err(|error| failed(&pipe, error))?);
        Ok(made)
    }

    /// Has the kernel record `event`, such as `sched/sched_switch`; with a filter,
    /// those only that it lets through.
    ///
    /// # Errors
    /// When the kernel has no such event, or refuses the filter.
    pub fn enable(&self, event: &str, filter: Option<Vec<u8>>) -> Result<()> {
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Does the kernel have this event now?
    #[must_use]
    pub fn has(&self, event: &str) -> bool {
        self.dir.join("events").join(event).is_dir()
    }

    /// Records from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&self) -> Result<()> {
        self.write("tracing_on", "1")
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, text).map_err(|error| failed(&path, error))
    }

    /// Waits until the buffers fill up, a signal comes, or the time is over.
    ///
    /// # Errors
    /// When the trace can't be waited for.
    pub fn wait(&self, time: Duration) -> Result<()> {
        let pipe = self.pipe.iter();
        let mut pipes: Vec<PollFd> = pipe.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        // Longer than the kernel can count is for ever.
        let time = Timespec::try_from(time).ok();
        match poll(&mut pipes, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(failed(Path::new("trace_pipe"), e.into())),
        }
    }

    /// Hands on all lines that are there.
    ///
    /// # Errors
    /// When the trace can't be read.
    pub fn read(&mut self, mut each: impl FnMut(&str)) -> Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let mut chunk = vec![0; 1 << 16];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(n) => self.begun.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(failed(Path::new("trace_pipe"), e)),
            }
            let end = self.begun.iter().rposition(|&b| b == b'\n');
            let rest = self.begun.split_off(end.map_or(0, |at| at + 1));
            let whole = std::mem::replace(&mut self.begun, rest);
            let text = text_of(&whole);
            text.lines().for_each(&mut each);
        }
    }

    /// Records no more.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<()> {
        self.write("tracing_on", "0")
    }

    /// Events that the kernel counts as lost, on all processors.
    ///
    /// # Errors
    /// When a processor's counts can't be read.
    pub fn lost(&self) -> Result<u64> {
        let dir = self.dir.join("per_cpu");
        let entries = fs::read_dir(&dir).map_err(|error| failed(&dir, error))?;
        let mut lost = 0;
        for entry in entries.flatten() {
            let path = entry.path().join("stats");
            let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            lost += lost_in(&text);
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that is read stays.
        self.pipe = None;
        if let Err(error) = fs::remove_dir(&self.dir) {
            let dir = self.dir.display();
            // Where that fails there is nowhere left to say so.
            let _ = writeln!(
                io::stderr(),
                "soloist: {dir}: {error}: remove it with rmdir"
            );
        }
    }
}

/// Of one processor's `stats`.
fn lost_in(stats: &str) -> u64 {
    let counts = ["overrun", "commit overrun", "dropped events"];
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts = lines.filter(|(key, _)| counts.contains(key));
    counts
        .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
        .sum()
}

fn not_root(file: &Path, error: io::Error, command: &str, what: &'static str) -> TraceError {
    TraceError::NotRoot {
        file: file.display().to_string(),
        error,
        command: command.to_owned(),
        what,
    }
}

/// Removes instances of ours whose process was killed.
fn remove_abandoned(dirs: impl Iterator<Item = PathBuf>) {
    for dir in dirs {
        let name = dir.file_name().and_then(|name| name.to_str());
        let pid = name.and_then(|name| name.strip_prefix("soloist-")?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !exists(pid)) {
            // If it can't be, it does no harm.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Somebody wants us to end: the instance must go, and what was recorded until then
/// counts.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_end(_: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

fn end_on_signals() -> Result<()> {
    let handler = note_end as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but to store a flag.
        let set = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        match set {
            libc::SIG_ERR => return Err(TraceError::Signal(io::Error::last_os_error())),
            // nohup(1) has SIGHUP ignored, so that we outlive the terminal. A script's shell has
            // SIGINT ignored in all that it starts with `&`, and yet the script may send it.
            // SAFETY: no handler.
            libc::SIG_IGN if signal == libc::SIGHUP => unsafe {
                libc::signal(signal, libc::SIG_IGN);
            },
            _ => {}
        }
    }
    Ok(())
}

/// Time of the trace's clock.
#[must_use]
pub fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The monotonic clock begins with 0 when the machine starts.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Whether a signal asked us to end, since there was an instance.
#[must_use]
pub fn ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nohup(1) starts a program with SIGHUP ignored, a script's `&` with SIGINT.
    #[test]
    fn an_ignored_hang_up_is_not_taken_over() {
        for signal in [libc::SIGHUP, libc::SIGINT] {
            // SAFETY: no handler; no other test of these signals.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        assert!(end_on_signals().is_ok());
        // SAFETY: no handler.
        let set = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM]
            .map(|signal| unsafe { libc::signal(signal, libc::SIG_DFL) });
        let taken = note_end as extern "C" fn(libc::c_int) as libc::sighandler_t;
        assert_eq!(set, [libc::SIG_IGN, taken, taken]);
    }

    /// From a guest, with numbers that are not 0.
    #[test]
    fn a_processors_losses_are_added_up() {
        let stats = "entries: 321\noverrun: 5\ncommit overrun: 1\nbytes: 14924\noldest event ts:     9.005089\nnow ts:    10.545125\ndropped events: 2\nread events: 0\n";
        assert_eq!(lost_in(stats), 8);
    }
}
