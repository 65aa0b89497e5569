//! Ctrl-C, for all guests of this process: the first ends every one of them in
//! order, those that wait for their turn too; the second, or the first where no
//! guest runs, ends this process at once, and with it what it started
//! (the kernel sees to that: `PR_SET_PDEATHSIG`). A thread hears the signals, since what a guest
//! leaves in /tmp has to go then as well.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::error::{io, Error};

static RAISED: AtomicBool = AtomicBool::new(false);
/// Guests that run. A directory alone says nothing: what plays a recording has one too.
static GUESTS: AtomicUsize = AtomicUsize::new(0);
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
            let again = RAISED.swap(true, Ordering::Relaxed);
            if again || GUESTS.load(Ordering::Relaxed) == 0 {
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

/// A guest that runs, until it is dropped: the first signal is for it.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begin() -> Self {
        GUESTS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        GUESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A directory for as long as guests run, which goes when it is dropped, and when
/// the process ends in a hurry too. Only its owner sees what is in it: a guest's environment.
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes one where such directories are, [`std::env::temp_dir`].
    pub fn new(prefix: &str) -> Result<Self, Error> {
        Self::within(&std::env::temp_dir(), prefix)
    }

    /// Makes one in `dir`.
    pub fn within(dir: &Path, prefix: &str) -> Result<Self, Error> {
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(dir);
        let made = made.map_err(io(format!("cannot make a directory in {}", dir.display())))?;
        dirs(|dirs| dirs.insert(made.path().to_owned()));
        Ok(Self(made))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        dirs(|dirs| dirs.remove(self.0.path()));
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
    use std::process::{Child, Command, Stdio};

    use rustix::process::{kill_process, Pid, Signal};

    use super::*;

    /// Is started by the test below, as a process of its own.
    #[test]
    #[ignore = "no test by itself: it waits for Ctrl-C"]
    fn waits_with_a_directory() {
        let dir = Scratch::new("soloist-test-").unwrap();
        std::fs::write(dir.path().join("console"), "").unwrap();
        catch().unwrap();
        let _guest = Running::begin();
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

    /// The same, when its guest has ended, and what it left is played.
    #[test]
    #[ignore = "no test by itself: it waits for Ctrl-C"]
    fn waits_without_a_guest() {
        let dir = Scratch::new("soloist-test-").unwrap();
        catch().unwrap();
        drop(Running::begin());
        eprintln!("dir={}", dir.path().display());
        while !raised() {
            thread::yield_now();
        }
        // It would be ended by now.
        thread::sleep(std::time::Duration::from_secs(5));
    }

    /// One of the two above, and its lines.
    fn start(name: &str) -> (Child, impl FnMut(&str) -> String) {
        let name = format!("interrupt::tests::{name}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--ignored", "--nocapture"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let next = move |start: &str| -> String {
            let line = lines.find(|line| line.as_ref().unwrap().starts_with(start));
            line.unwrap().unwrap()
        };
        (child, next)
    }

    /// What a command does after its guests is ended as any other's work.
    #[test]
    fn the_first_ctrl_c_ends_a_process_whose_guests_have_ended() {
        let (mut child, mut next) = start("waits_without_a_guest");
        let dir = next("dir=")["dir=".len()..].to_owned();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(STATUS));
        assert!(!Path::new(&dir).exists());
    }

    #[test]
    fn only_its_owner_sees_what_is_in_a_directory() {
        let dir = Scratch::new("soloist-test-").unwrap();
        let mode = std::fs::metadata(dir.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_second_ctrl_c_takes_the_directory_along() {
        let (mut child, mut next) = start("waits_with_a_directory");
        let dir = next("dir=")["dir=".len()..].to_owned();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        next("raised");
        assert!(Path::new(&dir).exists());
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(STATUS));
        assert!(!Path::new(&dir).exists());
    }
}
