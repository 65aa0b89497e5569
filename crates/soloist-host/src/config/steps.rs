//! Changes of the control interface in order: all of them are done or none. A step that is
//! refused has those before it taken back, in reverse.

use std::fmt;

use serde::Serialize;

use crate::control::{in_use, Control, Group};
use crate::machine::Host;
use crate::run::HeldSignals;
use crate::HostError;

/// The file of which several lines may be written at once.
pub(super) const SETTINGS: &str = "guard/settings";

/// One change of the control interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// A group or rule is made.
    Make {
        /// `groups/video`.
        path: String,
    },
    /// A file is written.
    Write {
        /// `groups/video/bank_set`.
        path: String,
        /// What it says now.
        old: String,
        /// What it shall say.
        new: String,
    },
    /// A group or rule is removed; its tasks go on uncoloured.
    Remove {
        /// `groups/video`.
        path: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make { path } => write!(f, "+ {path}"),
            Self::Write { path, old, new } if path == SETTINGS => {
                let mut olds = old.lines().map(|line| line.split_once(' '));
                for (at, line) in new.lines().enumerate() {
                    let (key, value) = line.split_once(' ').unwrap_or((line, ""));
                    let old = olds.next().flatten().map_or("", |(_, old)| old);
                    let sign = if old.is_empty() { "" } else { " -> " };
                    let end = if at == 0 { "" } else { "\n" };
                    write!(f, "{end}  {path}: {key} {old}{sign}{value}")?;
                }
                Ok(())
            }
            Self::Write { path, old, new } => {
                // Of these a group's cgroups have several lines.
                let (old, new) = (old.replace('\n', ", "), new.replace('\n', ", "));
                let sign = if old.is_empty() { "" } else { " -> " };
                write!(f, "  {path}: {old}{sign}{new}")
            }
            Self::Remove { path } => write!(f, "- {path}"),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// In order.
    pub steps: Vec<Step>,
    /// Groups and rules that the file does not name and that stay.
    pub others: Vec<String>,
}

impl Steps {
    /// The groups that go although they have tasks, with their names.
    pub fn in_use(&self, host: &Host, control: &Control) -> Result<Vec<String>, HostError> {
        let gone = self.steps.iter().filter_map(|step| match step {
            Step::Remove { path } => path.strip_prefix("groups/"),
            _ => None,
        });
        let groups: Vec<Group> = gone.filter_map(|name| control.group(name).ok()).collect();
        in_use(host, &groups)
    }

    /// Does all of it, or nothing: what was removed before another removal is
    /// refused stays so, and the error names it. A signal that would end this process
    /// is a refusal, too.
    pub fn apply(&self, control: &Control) -> Result<(), HostError> {
        let signals = HeldSignals::hold();
        for (at, step) in self.steps.iter().enumerate() {
            let done = signals.check().and_then(|()| step.apply(control));
            if let Err(error) = done {
                // A group that was removed can't come back with its tasks, so
                // removals stand last and nothing but removals follows them.
                let done = &self.steps[..at];
                for step in done.iter().rev() {
                    let _ = step.take_back(control);
                }
                return Err(HostError::TakenBack {
                    but: removed(done),
                    error: Box::new(error),
                });
            }
        }
        Ok(())
    }
}

impl Step {
    fn apply(&self, control: &Control) -> Result<(), HostError> {
        match self {
            Self::Make { path } => control.make(path),
            Self::Write { path, new, .. } => control.write(path, new),
            Self::Remove { path } => match control.rmdir(path) {
                // Somebody else removed it meanwhile.
                Err(_) if !control.path(path).exists() => Ok(()),
                done => done,
            },
        }
    }

    fn take_back(&self, control: &Control) -> Result<(), HostError> {
        match self {
            Self::Make { path } => control.rmdir(path),
            Self::Write { path, old, .. } => control.write(path, old),
            Self::Remove { .. } => Ok(()),
        }
    }
}

/// ` but that groups/video is gone`, or nothing.
fn removed(done: &[Step]) -> String {
    let gone: Vec<&str> = done
        .iter()
        .filter_map(|step| match step {
            Step::Remove { path } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    match gone.len() {
        0 => String::new(),
        1 => format!(" but that {} is gone", gone[0]),
        _ => format!(" but that {} are gone", gone.join(", ")),
    }
}
