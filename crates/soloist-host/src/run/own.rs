//! Groups that `soloist run` makes for one command: `run-PID`, or `run-PID-2` where
//! that name is taken, or as `--create` names it. Who made one holds a lock on it for as long
//! as it lives, so that one whose run was killed is known: nobody holds it. The kernel gives
//! back its colours once its last task has ended (`ephemeral`); its directory, and what never
//! had a task, is swept by the next command.

use std::fs::File;
use std::io::ErrorKind;

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

use crate::control::{Control, Group};
use crate::HostError;

/// A group of one run, as long as this is held.
#[derive(Debug)]
pub struct Held {
    _lock: File,
}

/// So many names are tried: more runs of one process id can't have left groups.
const NAMES: u32 = 1000;

impl Control {
    /// Makes a group for one command of this process.
    pub fn create_own_group(&self) -> Result<(Group, Held), HostError> {
        let pid = std::process::id();
        let first = format!("run-{pid}");
        let more = (2..NAMES).map(|n| format!("run-{pid}-{n}"));
        let mut taken = Err(HostError::BadName(first.clone()));
        for name in std::iter::once(first).chain(more) {
            let group = match self.create_group(&name) {
                Err(error @ HostError::Exists { .. }) => {
                    taken = Err(error);
                    continue;
                }
                made => made?,
            };
            // Another sweep may have been quicker.
            if let Some(held) = group.hold()? {
                return Ok((group, held));
            }
        }
        taken
    }

    /// Makes the group `name` for one command of this process; `None`: somebody else holds it.
    pub fn create_named_group(&self, name: &str) -> Result<(Group, Option<Held>), HostError> {
        check_lasting_name(name)?;
        let group = self.create_group(name)?;
        let held = group.hold()?;
        Ok((group, held))
    }

    /// Removes what runs left that were killed: their groups without tasks, and
    /// directories of groups that are gone. That it can't is no reason not to do what
    /// the user asked for.
    pub fn sweep(&self) {
        for group in self.groups().unwrap_or_default() {
            let _ = match group.is_gone() {
                true => group.remove(),
                false => group.remove_abandoned(),
            };
        }
    }
}

impl Group {
    /// Holds the group; `None` where somebody does, or it was removed.
    fn hold(&self) -> Result<Option<Held>, HostError> {
        // Root's alone, so that nobody else can hold it for ever.
        let path = self.members_path();
        let lock = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            lock => lock.map_err(|error| HostError::io(&path, error))?,
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(HostError::io(&path, error.into())),
            Ok(()) => Ok(path.exists().then_some(Held { _lock: lock })),
        }
    }

    /// Did a run make it, with whose last task it goes?
    pub(crate) fn is_of_a_run(&self) -> bool {
        is_of_one_run(self.name()) || self.is_ephemeral() || self.is_gone()
    }

    /// Removes it if a run made it, nobody holds it and it has no task, in no namespace.
    fn remove_abandoned(&self) -> Result<(), HostError> {
        let Some(_held) = self
            .is_of_a_run()
            .then(|| self.hold())
            .transpose()?
            .flatten()
        else {
            return Ok(());
        };
        match self.is_empty()? {
            true => self.remove(),
            false => Ok(()),
        }
    }
}

/// Refuses a name that `soloist run` gives its own groups: any command may remove these.
///
/// # Errors
/// That, in words.
pub fn check_lasting_name(name: &str) -> Result<(), HostError> {
    match is_of_one_run(name) {
        true => Err(HostError::Request(format!(
            "{name}: so `soloist run` calls its own groups, which go when they have no task; take another name"
        ))),
        false => Ok(()),
    }
}

/// `run-1234`, `run-1234-2`.
fn is_of_one_run(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let mut parts = name.strip_prefix("run-").unwrap_or("").split('-');
    let pid = parts.next().is_some_and(number);
    pid && parts.next().is_none_or(number) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::is_of_one_run;

    #[test]
    fn names_of_runs() {
        for name in ["run-1", "run-4711-2"] {
            assert!(is_of_one_run(name), "{name}");
        }
        for name in [
            "run",
            "run-",
            "run-x",
            "run-1-",
            "run-1-x",
            "run-1-2-3",
            "rerun-1",
        ] {
            assert!(!is_of_one_run(name), "{name}");
        }
    }
}
