//! The programs, and how one is run and watched.

use std::hash::{DefaultHasher, Hasher};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use rustix::process::{kill_process_group, Pid, Signal};
use soloist_core::AddrMap;
use soloist_host::machine::Host;

use crate::placement::Size;
use crate::{Placement, Run};

const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(150);

/// A program of Debian's and what it shall do.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, and how.
    pub about: &'static str,
    /// What `soloist run` is told.
    pub colors: &'static str,
    /// A shell's line; writes its result to standard output.
    line: &'static str,
}

/// The programs of the demo.
pub fn all() -> [Program; 3] {
    [
        Program {
            name: "sqlite3",
            about: "a database of 40,000 rows in memory, sorted by text",
            colors: "--node 1",
            line: "exec sqlite3 :memory: \
                \"CREATE TABLE t(a, b); \
                  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) \
                  INSERT INTO t SELECT i, hex(i * 2654435761 % 4294967296) || ' row ' || i FROM n; \
                  CREATE INDEX by_b ON t(b); \
                  SELECT count(*), sum(a), max(b) FROM (SELECT a, b FROM t ORDER BY b DESC LIMIT 20000);\"",
        },
        Program {
            name: "python3",
            about: "a parent and two children that it forks, 8 MiB changed by each",
            colors: "--colors 4 --node 2",
            line: "exec /usr/bin/python3 -c '
import os
data = bytearray(range(256)) * (8 << 12)
def work(seed):
    for i in range(0, len(data), 4096):
        data[i] = (data[i] + seed + i // 4096) % 256
    return sum(data[::4096])
pipes = []
for seed in (1, 2):
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, str(work(seed)).encode()); os._exit(0)
    os.close(w); pipes.append(r)
for r in pipes:
    print(os.read(r, 100).decode())
    os.wait()
print(work(3))'",
        },
        Program {
            name: "zstd",
            about: "8 MiB of text compressed by 4 threads",
            colors: "--colors 8 --node 3",
            line: "exec zstd --quiet -6 --threads=4 -B1M --stdout text",
        },
    ]
}

/// Makes what the programs read: words in an order that does not repeat.
pub fn prepare() -> Result<()> {
    const WORDS: [&str; 8] = [
        "bank ", "row ", "colour ", "frame ", "page ", "cache ", "node ", "the ",
    ];
    let mut text = String::new();
    let mut state = 1_u64;
    while text.len() < 8 << 20 {
        // Knuth's multiplier: the high bits are as good as drawn.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(WORDS[(state >> 61) as usize]);
        if state >> 56 & 7 == 0 {
            text.push_str(&(state >> 40).to_string());
        }
    }
    std::fs::write("text", text).context("writing text")
}

impl Program {
    /// Runs it, as it is or coloured, and looks at it again and again.
    pub fn run(&self, host: &Host, map: &AddrMap, colored: bool) -> Result<Run> {
        let prefix = if colored {
            format!("exec soloist run {} -- ", self.colors)
        } else {
            String::new()
        };
        let line = format!("{prefix}sh -c {}", quote(self.line));
        let out = tempfile::NamedTempFile::new_in(".").context("a file for the result")?;
        let started = Instant::now();
        let mut child = Command::new("sh")
            .args(["-c", if colored { &line } else { self.line }])
            .stdin(Stdio::null())
            .stdout(out.reopen()?)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", self.name))?;
        let watched = watch(&mut child, host, map, started);
        if watched.is_err() {
            // It may have ended meanwhile; then there is nothing to kill.
            let _ = child.kill();
        }
        let placement = watched.with_context(|| format!("watching {}", self.name))?;
        let done = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.success(),
            "{} ended with {}: {said}",
            self.name,
            done.status
        );
        let mut hasher = DefaultHasher::new();
        let result = std::fs::read(out.path())?;
        ensure!(!result.is_empty(), "{} printed nothing: {said}", self.name);
        hasher.write(&result);
        Ok(Run {
            placement,
            result: hasher.finish(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// The placement when it had most pages. A look takes long, so the program is
/// stopped for it, and is looked at only when it has grown.
fn watch(child: &mut Child, host: &Host, map: &AddrMap, started: Instant) -> Result<Placement> {
    let mut most = Placement::default();
    let mut size = Size::default();
    while child.try_wait()?.is_none() {
        ensure!(
            started.elapsed() < PATIENCE,
            "it did not end within {} s",
            PATIENCE.as_secs()
        );
        let now = Size::of_process_group(child.id());
        if now.outgrew(&size) {
            size = now;
            signal_group(child.id(), Signal::STOP);
            let seen = Placement::of_process_group(host, map, child.id());
            signal_group(child.id(), Signal::CONT);
            if seen.pages > most.pages {
                most = seen;
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(most)
}

fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group as i32) {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, signal);
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
