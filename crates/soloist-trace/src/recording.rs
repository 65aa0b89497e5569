//! A recording of the running system: a trace of our own with the events of the
//! watched tasks, read until it is over.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::observer::{Observer, Record};
use crate::tracefs::{self, Instance, TraceError};
use crate::track::Timing;
use crate::watch::{kept_bytes, Watch};

/// Between two looks at what was recorded: short beside what the buffers hold.
const LOOK: Duration = Duration::from_millis(50);
/// Of each processor's buffer: a line takes some 60 bytes.
const BUFFER_KIB: u32 = 2048;
/// The kernel takes a page.
const LONGEST_FILTER: usize = 4000;
/// Events of the module.
const STOPS: [&str; 2] = ["soloist/soloist_cpu_stop", "soloist/soloist_cpu_go"];

/// A recording that goes on.
#[derive(Debug)]
pub struct Recording {
    instance: Instance,
    observer: Observer,
    end_ps: u64,
}

impl Recording {
    /// Begins to record the watched tasks.
    ///
    /// # Errors
    /// If there is no tracefs, it wants root, or the kernel lacks an event.
    pub fn begin(watch: Watch) -> Result<Self, TraceError> {
        let instance = Instance::new("trace", BUFFER_KIB)?;
        enable(&instance, &watch)?;
        Ok(Self {
            instance,
            observer: Observer::new(watch, now_ps()),
            end_ps: 0,
        })
    }

    /// Watches a thread too. Nothing was read yet, so that its first events count
    /// even if they came before.
    pub fn watch_thread(&mut self, id: u32, timing: Option<Timing>) {
        self.observer.watch_thread(id, timing);
    }

    /// Reads until `length` is over, a signal asks us to end, or the watched tasks
    /// are `gone`.
    ///
    /// # Errors
    /// If the trace cannot be read, or as `gone`.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        mut gone: impl FnMut() -> io::Result<bool>,
    ) -> Result<(), TraceError> {
        let until = length.map(|length| Instant::now() + length);
        loop {
            self.read()?;
            let over = until.is_some_and(|until| Instant::now() >= until);
            if gone().map_err(TraceError::Command)? || tracefs::ended() || over {
                return Ok(());
            }
            sleep(until.map_or(LOOK, |until| {
                LOOK.min(until.saturating_duration_since(Instant::now()))
            }));
        }
    }

    /// Records no more.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn stop(&mut self) -> Result<(), TraceError> {
        self.end_ps = now_ps();
        self.instance.stop()
    }

    /// Reads what is left of a recording that was stopped.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn finish(mut self) -> Result<Record, TraceError> {
        self.read()?;
        let mut record = self.observer.finish(self.end_ps);
        record.lost = record.lost.max(self.instance.lost()?);
        Ok(record)
    }

    fn read(&mut self) -> Result<(), TraceError> {
        self.instance.read(|line| self.observer.read(line))
    }
}

/// Has the kernel record the events of the watched tasks.
fn enable(instance: &Instance, watch: &Watch) -> Result<(), TraceError> {
    instance.enable("sched/sched_switch", filter(watch, &["prev", "next"]))?;
    instance.enable("sched/sched_wakeup", filter(watch, &[""]))?;
    instance.enable("sched/sched_wakeup_new", filter(watch, &[""]))?;
    instance.enable("sched/sched_process_exit", filter(watch, &[""]))?;
    // A fork tells a task that begins from one that was there before.
    instance.enable("sched/sched_process_fork", None)?;
    // Under another name, the events of a task that is watched by its name are filtered out.
    instance.enable("task/task_rename", None)?;
    for event in STOPS {
        // Without the module nobody stops a processor.
        if instance.has(event) {
            instance.enable(event, None)?;
        }
    }
    instance.start()
}

/// Those events only in which one of them takes part, as the kernel's filters say
/// it; `None`: all. `sides`: how fields of the event begin.
fn filter(watch: &Watch, sides: &[&str]) -> Option<Vec<u8>> {
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
        let threads = watch.threads.keys();
        parts.extend(threads.map(|id| format!("{pid}=={id}").into_bytes()));
        let comm = field(side, "comm");
        let names = watch.names.keys();
        let before = format!("{comm}==\"").into_bytes();
        parts.extend(names.map(|name| [&before, kept_bytes(name), b"\""].concat()));
    }
    let text = parts.join(&b"||"[..]);
    (text.len() <= LONGEST_FILTER).then_some(text)
}

/// The trace's clock.
fn now_ps() -> u64 {
    let now = tracefs::now();
    (now.as_secs() * 1_000_000_000 + u64::from(now.subsec_nanos())) * 1000
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
        let filter = |watch: &Watch, sides: &[&str]| {
            let made = filter(watch, sides)?;
            Some(made.escape_ascii().to_string().replace("\\\"", "\""))
        };
        let made = filter(&watch, &[""]);
        assert_eq!(
            made.as_deref(),
            Some("pid==7||pid==9||comm==\"a-name-of-18-by\"")
        );
        let made = filter(&watch, &["prev", "next"]).unwrap_or_default();
        assert!(made.starts_with("prev_pid==7||prev_pid==9||prev_comm==\"a-"));
        assert!(made.contains("||next_pid==7||"));
        // Half of the last letter.
        watch.threads.clear();
        watch.names = BTreeMap::from([("Bildverarbeits\u{e4}tze".to_owned(), None)]);
        let made = filter(&watch, &[""]);
        assert_eq!(made.as_deref(), Some("comm==\"Bildverarbeits\\xc3\""));
        watch.children = true;
        assert_eq!(filter(&watch, &[""]), None);
        watch.children = false;
        watch.threads = (1000..2000).map(|pid| (pid, None)).collect();
        assert_eq!(filter(&watch, &[""]), None);
    }
}
