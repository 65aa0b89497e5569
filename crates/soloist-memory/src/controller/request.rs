//! What a controller takes and gives back.

use serde::Serialize;

use crate::dram::Cycle;

/// A request for one line.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Given back in the [`Completion`].
    pub token: u64,
    /// Line number; equal lines are the same data.
    pub line: u64,
    /// Flat bank: `rank * banks + bank`.
    pub bank: u16,
    /// Row.
    pub row: u32,
    /// Write or read.
    pub write: bool,
    /// Core or source that it is for.
    pub owner: u16,
}

/// How a request found its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Its row was open.
    Hit,
    /// The bank was closed.
    Closed,
    /// Another row was open and had to be closed.
    Conflict,
    /// Served from the write buffer (or merged into it); no DRAM access.
    Buffered,
}

/// A served request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Token of the request.
    pub token: u64,
    /// Cycle in which the controller took it.
    pub arrival: Cycle,
    /// Cycle of the last beat of its data.
    pub done: Cycle,
    /// Write or read.
    pub write: bool,
    /// How it found its bank.
    pub outcome: RowOutcome,
}

/// Commands issued, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommandCounts {
    /// Activates.
    pub activates: u64,
    /// Precharges (of one bank, on demand).
    pub precharges: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Write drains begun.
    pub drains: u64,
}
