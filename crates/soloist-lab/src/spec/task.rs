//! `[[task]]`: who runs, and what is known of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::ProgramKind;

use super::number::Number;
use super::regulator::ReserveSpec;

/// `[[task]]`: one task per cpu of the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its name in measured values.
    pub name: String,
    /// What it does.
    pub kind: ProgramKind,
    /// The cpus, as the kernel writes lists: `"0-3"`; one task on each.
    pub cpus: String,
    /// How many of `cpus` are used (default: all); may be `"$sweep"`.
    pub copies: Option<Number>,
    /// Bytes of memory of each; a recording has its own.
    pub bytes: Option<Number>,
    /// Steps of work of each (what a step is depends on the kind).
    pub work: Option<Number>,
    /// Bytes from one access to the next, for kinds that stride (default: a
    /// line).
    pub stride: Option<Number>,
    /// Runs as long as the others do, and is not waited for.
    #[serde(default)]
    pub background: bool,
    /// Pages come from this node whatever the policy; may be `"$sweep"`.
    pub node: Option<Number>,
    /// Bank sets that a private assignment gives it (default: 1, or what its
    /// bytes need).
    pub sets: Option<Number>,
    /// Even parts of `work` that end with a barrier of all tasks of this name;
    /// 0: none.
    #[serde(default)]
    pub rounds: u32,
    /// Cpu whose thread touches the memory first (default: its own).
    pub first_touch: Option<u32>,
    /// Number of the SPEC benchmark, for kind `spec`; may be `"$sweep"`.
    pub benchmark: Option<Number>,
    /// Bandwidth that its cpu reserves.
    pub reserve: Option<ReserveSpec>,
    /// Of a `program`: instructions per cycle when it runs alone.
    pub ipc: Option<f64>,
    /// Of a `program`: lines from memory per thousand instructions.
    pub mpki: Option<f64>,
    /// Of a `program` (4) or `spec`: arrays that it walks in step; 0: its lines
    /// come in an order without pattern.
    pub arrays: Option<u32>,
    /// Of a `program` (0.3) or `spec`: share of its lines that it writes to.
    pub writes: Option<f64>,
    /// Of a `spec`: share of its computing that it does in spells of its own
    /// (default: what is known of the benchmark).
    pub uneven: Option<f64>,
    /// Of a generator that no counters make: so many times as many instructions
    /// between its accesses (default 1).
    pub instructions: Option<f64>,
    /// Of a `recorded`: the directory of the recording, seen from the file's.
    pub recording: Option<PathBuf>,
    /// The same in memory ([`crate::known::parse`] reads it).
    #[serde(skip)]
    pub recorded: Option<Recorded>,
}

impl TaskSpec {
    /// A recording of those that are `recorded`, and of nobody else.
    ///
    /// # Errors
    /// One is there, or missing.
    pub fn check_recording(&self) -> Result<(), String> {
        match (&self.recording, self.kind) {
            (None, ProgramKind::Recorded) => Err(
                "kind \"recorded\" needs `recording`, a directory that `soloist vm record` made"
                    .to_owned(),
            ),
            (Some(_), kind) if kind != ProgramKind::Recorded => {
                Err("`recording` is for kind \"recorded\"".to_owned())
            }
            _ => Ok(()),
        }
    }
}
