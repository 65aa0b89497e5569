//! Ctrl-C, for all guests of this process: the first ends every one of them in
//! order, those that wait for their turn too; the second ends this process at
//! once, and with it what it started ([`crate::qemu`] sees to that). A thread
//! hears the signals, since what a guest leaves in /tmp has to go then as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use signal_hook::iterator::Signals;

use crate::{io, Error};

static RAISED: AtomicBool = AtomicBool::new(false);
static CAUGHT: Mutex<bool> = Mutex::new(false);
static DIRS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What a shell says of a program that Ctrl-C ended.
const STATUS: i32 = 130;

/// From now on signals end the guests, not the process.
pub(crate) fn catch() -> Result<(), Error> {
    let mut caught = CAUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    if *caught {
        return Ok(());
    }
    let mut signals = Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
        .map_err(io("cannot catch Ctrl-C"))?;
    thread::spawn(move || {
        for _ in signals.forever() {
            if RAISED.swap(true, Ordering::Relaxed) {
                end();
            }
        }
    });
    *caught = true;
    Ok(())
}

/// Ends the guests, as Ctrl-C does.
pub(crate) fn raise() {
    RAISED.store(true, Ordering::Relaxed);
}

/// Whether they are to end.
pub(crate) fn raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}

/// A directory of a guest, which goes when the process ends in a hurry too.
pub(crate) struct Listed(PathBuf);

/// Lists `dir` for as long as what is returned is kept.
pub(crate) fn list(dir: &Path) -> Listed {
    dirs(|dirs| dirs.insert(dir.to_owned()));
    Listed(dir.to_owned())
}

impl Drop for Listed {
    fn drop(&mut self) {
        dirs(|dirs| dirs.remove(&self.0));
    }
}

fn dirs<T>(what: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    what(&mut DIRS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn end() -> ! {
    // Nothing can be said of what can't be removed: we are asked to be quick.
    dirs(|dirs| {
        dirs.iter()
            .for_each(|dir| drop(std::fs::remove_dir_all(dir)))
    });
    std::process::exit(STATUS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use rustix::process::{kill_process, Pid, Signal};

    use super::*;

    /// Is started by the test below, as a process of its own.
    #[test]
    #[ignore = "no test by itself: it waits for Ctrl-C"]
    fn waits_with_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("console"), "").unwrap();
        let _listed = list(dir.path());
        catch().unwrap();
        // Not by print!, which the test's runner keeps to itself.
        eprintln!("dir={}", dir.path().display());
        while !raised() {
            thread::yield_now();
        }
        eprintln!("raised");
        loop {
            thread::park();
        }
    }

    #[test]
    fn a_second_ctrl_c_takes_the_directory_along() {
        let name = "interrupt::tests::waits_with_a_directory";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut next = |start: &str| -> String {
            let line = lines.find(|line| line.as_ref().unwrap().starts_with(start));
            line.unwrap().unwrap()
        };
        let dir = next("dir=")["dir=".len()..].to_owned();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::Int).unwrap();
        next("raised");
        assert!(Path::new(&dir).exists());
        kill_process(pid, Signal::Int).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(STATUS));
        assert!(!Path::new(&dir).exists());
    }
}
