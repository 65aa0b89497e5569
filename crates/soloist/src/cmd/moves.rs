//! What `soloist group --evict`, `--move` and `soloist recolor` share.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use soloist_cli::Ctx;
use soloist_host::control::{Group, MoveReport};
use soloist_host::HostError;

/// Migrations that a command asks for.
pub struct Wanted<'a> {
    /// Processes whose pages move in.
    pub recolor: &'a [i32],
    /// Others' pages move out.
    pub evict: bool,
    /// Bytes a second that --evict may move.
    pub rate: Option<u64>,
}

/// Own pages move in first, so that they don't count as others'.
pub fn after(wanted: &Wanted<'_>, group: &Group, ctx: &Ctx) -> Result<()> {
    for &pid in wanted.recolor {
        let report = group.recolor(Some(pid))?;
        say(&format!("process {pid}"), &report, ctx)?;
    }
    if wanted.evict {
        let report = watched(group, || group.evict(wanted.rate))?;
        say(&format!("others in {}", group.name()), &report, ctx)?;
    }
    Ok(())
}

/// What became of the pages; with --json the command's own object follows alone.
pub fn say(whose: &str, report: &MoveReport, ctx: &Ctx) -> Result<()> {
    if ctx.json {
        return Ok(());
    }
    outln!("{whose}: {}", report.words())?;
    for line in report.stays_in_words() {
        outln!("  {line}")?;
    }
    Ok(())
}

/// Shows on a terminal how far an eviction is.
fn watched<T>(group: &Group, evict: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
    if !io::stderr().is_terminal() {
        return evict();
    }
    let (end, ended) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                if let Ok(now) = group.eviction() {
                    let (moved, dropped) = (now.moved, now.dropped);
                    let _ = write!(io::stderr(), "\r{moved} pages moved, {dropped} dropped ");
                }
            }
            let _ = write!(io::stderr(), "\r\x1b[K");
        });
        let done = evict();
        drop(end);
        done
    })
}
