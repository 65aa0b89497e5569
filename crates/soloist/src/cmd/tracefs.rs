//! A trace of one's own: an instance of tracefs with the events that are needed,
//! which goes with us.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;

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

/// The instance.
pub struct Instance {
    dir: PathBuf,
    pipe: Option<File>,
    /// A line that is not whole yet.
    begun: Vec<u8>,
}

impl Instance {
    /// Makes it for `soloist WHO`, with nothing recorded yet; `buffer_kib`: of each
    /// processor.
    pub fn new(who: &str, buffer_kib: u32) -> Result<Self> {
        end_on_signals()?;
        let instances = Path::new(TRACING).join("instances");
        match fs::read_dir(&instances) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                bail!("{TRACING}: {e}: `soloist {who}` reads the kernel's trace, which wants root")
            }
            Err(e) => bail!(
                "{}: {e}: no tracefs there (as root: `mount -t tracefs tracefs {TRACING}`)",
                instances.display()
            ),
            Ok(entries) => remove_abandoned(entries.flatten().map(|e| e.path())),
        }
        let dir = instances.join(format!("soloist-{}", std::process::id()));
        match fs::create_dir(&dir) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                bail!(
                    "{}: {e}: `soloist {who}` makes a trace of its own, which wants root",
                    dir.display()
                )
            }
            made => made.with_context(|| dir.display().to_string())?,
        }
        let mut made = Self {
            dir,
            pipe: None,
            begun: Vec::new(),
        };
        made.write("tracing_on", "0")?;
        made.write("trace_clock", "mono")?;
        made.write("buffer_size_kb", &buffer_kib.to_string())?;
        for option in OPTIONS {
            // A kernel without it has nothing to be turned off.
            let _ = made.write("trace_options", option);
        }
        let pipe = made.dir.join("trace_pipe");
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe);
        made.pipe = Some(opened.with_context(|| pipe.display().to_string())?);
        Ok(made)
    }

    /// Has the kernel record `event`, such as `sched/sched_switch`; with a filter,
    /// those only that it lets through.
    pub fn enable(&self, event: &str, filter: Option<String>) -> Result<()> {
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), &filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Does the kernel have it now?
    pub fn has(&self, event: &str) -> bool {
        self.dir.join("events").join(event).is_dir()
    }

    /// Records from now on.
    pub fn start(&self) -> Result<()> {
        self.write("tracing_on", "1")
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Until its buffers fill up, a signal comes, or the time is over.
    pub fn wait(&self, time: Duration) -> Result<()> {
        let pipe = self.pipe.iter();
        let mut pipes: Vec<PollFd> = pipe.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        match poll(&mut pipes, ms) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e).context("trace_pipe"),
        }
    }

    /// Hands on all lines that are there.
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
                Err(e) => return Err(e).context("trace_pipe"),
            }
            let end = self.begun.iter().rposition(|&b| b == b'\n');
            let rest = self.begun.split_off(end.map_or(0, |at| at + 1));
            let whole = std::mem::replace(&mut self.begun, rest);
            let text = String::from_utf8_lossy(&whole);
            text.lines().for_each(&mut each);
        }
    }

    /// Records no more.
    #[cfg(feature = "lab")]
    pub fn stop(&self) -> Result<()> {
        self.write("tracing_on", "0")
    }

    /// Events that the kernel counts as lost, on all processors.
    #[cfg(feature = "lab")]
    pub fn lost(&self) -> Result<u64> {
        let dir = self.dir.join("per_cpu");
        let entries = fs::read_dir(&dir).with_context(|| dir.display().to_string())?;
        let mut lost = 0;
        for entry in entries.flatten() {
            let path = entry.path().join("stats");
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
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
            errln!(
                "soloist: {}: {error}: remove it with rmdir",
                self.dir.display()
            );
        }
    }
}

/// Of one processor's `stats`.
#[cfg(feature = "lab")]
fn lost_in(stats: &str) -> u64 {
    let counts = ["overrun", "commit overrun", "dropped events"];
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts = lines.filter(|(key, _)| counts.contains(key));
    counts
        .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
        .sum()
}

/// Instances of ours whose process was killed.
fn remove_abandoned(dirs: impl Iterator<Item = PathBuf>) {
    for dir in dirs {
        let name = dir.file_name().and_then(|name| name.to_str());
        let pid = name.and_then(|name| name.strip_prefix("soloist-")?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
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
        if set == libc::SIG_ERR {
            return Err(std::io::Error::last_os_error()).context("signal");
        }
    }
    Ok(())
}

/// Time of the trace's clock.
pub fn now() -> Result<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).context("the clock")?;
    let nanoseconds = u32::try_from(now.tv_nsec).context("the clock")?;
    Ok(Duration::new(seconds, nanoseconds))
}

/// Whether a signal asked us to end, since there was an instance.
pub fn ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

#[cfg(all(test, feature = "lab"))]
mod tests {
    use super::*;

    /// From a guest, with numbers that are not 0.
    #[test]
    fn a_processors_losses_are_added_up() {
        let stats = "entries: 321\noverrun: 5\ncommit overrun: 1\nbytes: 14924\noldest event ts:     9.005089\nnow ts:    10.545125\ndropped events: 2\nread events: 0\n";
        assert_eq!(lost_in(stats), 8);
    }
}
