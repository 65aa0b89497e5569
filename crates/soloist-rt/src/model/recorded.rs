//! What recordings say of tasks, instead of a user's guess: misses, writes, memory
//! (`soloist plan --profile`).
//!
//! Counted are all of a recorded program's instructions, its start included, with
//! the machine's whole last level to itself. Instructions and lines are real; the
//! time that they took was an emulator's, so a task's `ipc` stays its file's.

use std::path::{Path, PathBuf};

use serde::Serialize;
use soloist_machine::FileError;
use soloist_memory::Platform;
use soloist_play::profile::{profile, Profile};
use soloist_play::programs::ProgramKind;
use soloist_play::replay::load;
use soloist_record::Lines;

use crate::tasks::{Behaviour, TaskSet};

/// A task, and what its recording said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// The task.
    pub task: String,
    /// Its recording.
    pub from: PathBuf,
    /// Misses of the last level per thousand instructions.
    pub mpki: f64,
    /// Share of the missed lines that are written back, 0 to 1.
    pub writes: f64,
    /// Bytes of its pages.
    pub bytes: u64,
}

/// Gives each task of kind `program` that has a recording `dir/NAME` what is
/// recorded there: counters, and memory where it is more than the file says.
///
/// # Errors
/// With the task's line: a recording that can't be read or has several threads, a
/// task that has neither `mpki` nor a recording. No task has one: the folder.
pub fn fill(
    set: &mut TaskSet,
    platform: &Platform,
    dir: &Path,
) -> Result<Vec<Recorded>, FileError> {
    let file = set.file.clone();
    let mut found = Vec::new();
    for task in &mut set.tasks {
        let Behaviour::Program {
            kind: ProgramKind::Program,
            mpki,
            writes,
            ..
        } = &mut task.behaviour
        else {
            continue;
        };
        let wrong = |message| FileError {
            file: file.clone(),
            line: task.line,
            message,
        };
        let from = dir.join(&task.name);
        if !from.join("recording.json").exists() {
            if *mpki == 0.0 {
                return Err(wrong(format!(
                    "{:?} needs `mpki`, or a recording: there is none in {} (soloist vm record --out {} -- CMD)",
                    task.name,
                    from.display(),
                    from.display()
                )));
            }
            continue;
        }
        let seen = look(&from, platform)
            .map_err(|what| wrong(format!("{:?}: {}: {what}", task.name, from.display())))?;
        // What is never missed still is a program's.
        *mpki = seen.mpki.max(0.001);
        let out = seen.writes / 100.0;
        *writes = (out / (1.0 - out)).min(1.0);
        let bytes = (seen.footprint_mib * 1_048_576.0) as u64;
        task.bytes = task.bytes.max(bytes);
        task.recording = Some(from.clone());
        found.push(Recorded {
            task: task.name.clone(),
            from,
            mpki: *mpki,
            writes: *writes,
            bytes,
        });
    }
    if found.is_empty() {
        let what = "no task of kind \"program\" has a recording there: it is looked for by the task's name";
        return Err(FileError::whole(dir.display().to_string(), what));
    }
    Ok(found)
}

fn look(from: &Path, platform: &Platform) -> Result<Profile, String> {
    let part = load(from, 0, Lines::ALL).map_err(|e| e.to_string())?;
    if let Some(damage) = part.program.damage.first() {
        return Err(damage.to_string());
    }
    let seen = profile(&part, platform);
    match seen.lanes {
        1 => Ok(seen),
        n => Err(format!("it has {n} threads, and a task is one")),
    }
}
