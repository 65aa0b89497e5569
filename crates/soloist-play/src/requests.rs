//! Traces of requests, played against the controllers of a machine without cores or caches.

use std::io::Read;

use soloist_memory::checker::Checker;
use soloist_memory::controller::Completion;
use soloist_memory::error::Result;
use soloist_memory::replay::{Replay, Report, Source};
use soloist_memory::Machine;

/// What came of the traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Its figures.
    pub report: Report,
    /// DRAM commands that were checked against the data sheet, all legal; `None`: none was
    /// asked for.
    pub commands_checked: Option<u64>,
}

/// Plays `sources` together; `check`: each command against the rules of the data sheet.
/// `see` is told every completion with its source.
///
/// # Errors
/// A trace that cannot be read, and the first command that is not legal.
pub fn play<R: Read>(
    machine: &Machine,
    sources: Vec<Source<R>>,
    check: bool,
    see: impl FnMut(usize, &Completion),
) -> Result<Played> {
    let mut replay = Replay::new(machine, sources);
    let (report, commands_checked) = if check {
        let (report, commands) = Checker::of(machine).play(&mut replay, see)?;
        (report, Some(commands))
    } else {
        (replay.run(see, None)?, None)
    };
    Ok(Played {
        report,
        commands_checked,
    })
}
