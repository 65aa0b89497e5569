//! A trace of one's own: an instance of tracefs with the events that are needed,
//! which goes with us.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use soloist_rt::observe::{Observer, Watch};

/// Where tracefs is mounted.
const TRACING: &str = "/sys/kernel/tracing";
/// Of each processor: it is read every 50 ms, and a line takes some 60 bytes.
const BUFFER_KIB: u32 = 2048;
/// The kernel takes a page.
const LONGEST_FILTER: usize = 4000;
/// New instances have the options of the trace that an administrator uses.
const OPTIONS: [&str; 6] = [
    "context-info",
    "noraw",
    "nohex",
    "nobin",
    "noverbose",
    "norecord-tgid",
];
/// Events of the module.
const STOPS: [&str; 2] = ["soloist/soloist_cpu_stop", "soloist/soloist_cpu_go"];

/// The instance.
pub struct Instance {
    dir: PathBuf,
    pipe: Option<File>,
    /// A line that is not whole yet.
    begun: Vec<u8>,
}

impl Instance {
    /// Makes it, with nothing recorded yet.
    pub fn new() -> Result<Self> {
        let instances = Path::new(TRACING).join("instances");
        match fs::read_dir(&instances) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                bail!("{TRACING}: {e}: `soloist trace` reads the kernel's trace, which wants root")
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
                    "{}: {e}: `soloist trace` makes a trace of its own, which wants root",
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
        made.write("buffer_size_kb", &BUFFER_KIB.to_string())?;
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

    /// Begins to record what is told of those who are watched.
    pub fn begin(&self, watch: &Watch) -> Result<()> {
        self.enable("sched/sched_switch", filter(watch, &["prev", "next"]))?;
        self.enable("sched/sched_wakeup", filter(watch, &[""]))?;
        self.enable("sched/sched_wakeup_new", filter(watch, &[""]))?;
        self.enable("sched/sched_process_exit", filter(watch, &[""]))?;
        // Who begins is told from who was there.
        self.enable("sched/sched_process_fork", None)?;
        for event in STOPS {
            // Without the module nobody stops a processor.
            if self.dir.join("events").join(event).is_dir() {
                self.enable(event, None)?;
            }
        }
        self.write("tracing_on", "1")
    }

    fn enable(&self, event: &str, filter: Option<String>) -> Result<()> {
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), &filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Hands on all lines that are there.
    pub fn read(&mut self, observer: &mut Observer) -> Result<()> {
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
            text.lines().for_each(|line| observer.read(line));
        }
    }

    /// Records no more.
    pub fn stop(&self) -> Result<()> {
        self.write("tracing_on", "0")
    }

    /// Events that the kernel counts as lost, on all processors.
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

/// Those events only in which one of them takes part, as the kernel's filters say
/// it; `None`: all. `sides`: how fields of the event begin.
fn filter(watch: &Watch, sides: &[&str]) -> Option<String> {
    if watch.children {
        return None;
    }
    let field = |side: &str, name: &str| match side {
        "" => name.to_owned(),
        _ => format!("{side}_{name}"),
    };
    let mut parts = Vec::new();
    for side in sides {
        let pid = field(side, "pid");
        parts.extend(watch.threads.keys().map(|id| format!("{pid}=={id}")));
        let comm = field(side, "comm");
        let names = watch.names.keys();
        parts.extend(names.map(|name| format!("{comm}==\"{}\"", soloist_rt::observe::cut(name))));
    }
    let text = parts.join("||");
    (text.len() <= LONGEST_FILTER).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn filters_let_through_who_is_watched() {
        let mut watch = Watch {
            threads: BTreeMap::from([(7, None), (9, None)]),
            names: BTreeMap::from([("a-name-of-18-bytes".to_owned(), None)]),
            ..Watch::default()
        };
        let made = filter(&watch, &[""]);
        assert_eq!(
            made.as_deref(),
            Some("pid==7||pid==9||comm==\"a-name-of-18-by\"")
        );
        let made = filter(&watch, &["prev", "next"]).unwrap_or_default();
        assert!(made.starts_with("prev_pid==7||prev_pid==9||prev_comm==\"a-"));
        assert!(made.contains("||next_pid==7||"));
        watch.children = true;
        assert_eq!(filter(&watch, &[""]), None);
        watch.children = false;
        watch.threads = (1000..2000).map(|pid| (pid, None)).collect();
        assert_eq!(filter(&watch, &[""]), None);
    }

    /// From a guest, with numbers that are not 0.
    #[test]
    fn a_processors_losses_are_added_up() {
        let stats = "entries: 321\noverrun: 5\ncommit overrun: 1\nbytes: 14924\noldest event ts:     9.005089\nnow ts:    10.545125\ndropped events: 2\nread events: 0\n";
        assert_eq!(lost_in(stats), 8);
    }
}
