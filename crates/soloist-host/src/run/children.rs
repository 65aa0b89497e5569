//! Ends what this process started.

use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{getpid, kill_process, set_child_subreaper, wait, Pid, Signal, WaitOptions};

use crate::machine::text_of;
use crate::HostError;

/// Between two looks at what was killed.
const LOOK: Duration = Duration::from_millis(10);

/// Kills all children of this process and what these leave, and waits until they are gone.
pub fn kill_children() -> Result<(), HostError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| HostError::io(what, io::Error::from(error))
    };
    // Else init gets the processes that a killed child started.
    set_child_subreaper(Some(getpid())).map_err(failed("PR_SET_CHILD_SUBREAPER"))?;
    loop {
        for child in children()? {
            kill_process(child, Signal::KILL).map_err(failed("kill"))?;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Errno::CHILD) => return Ok(()),
                Err(error) => return Err(failed("wait")(error)),
            }
        }
        sleep(LOOK);
    }
}

/// Those that were not waited for. One that ends while we look is a child still.
fn children() -> Result<Vec<Pid>, HostError> {
    let own = getpid().to_string();
    let entries = fs::read_dir("/proc").map_err(|error| HostError::io("/proc", error))?;
    let child = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = text_of(fs::read(entry.path().join("stat")).ok()?);
        // `pid (name) state parent`; a name may hold anything.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        Pid::from_raw(pid).filter(|_| parent == own)
    };
    Ok(entries.filter_map(child).collect())
}
