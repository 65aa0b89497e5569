//! How a guest ended, and what became of its command.

use std::path::PathBuf;

use serde::Serialize;

use crate::console::Trouble;

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "detail")]
pub enum Verdict {
    /// The command exited with this status.
    Exit(i32),
    /// The command was killed by this signal.
    Signal(i32),
    /// The guest could not run the command, and says why.
    Failed(String),
    /// The guest died: a panic, or QEMU itself.
    Died(String),
    /// The time limit passed.
    Timeout,
    /// The command printed nothing for too long.
    Silent,
    /// Ctrl-C.
    Interrupted,
}

/// What became of a guest.
#[derive(Debug, Clone, Serialize)]
pub struct GuestOutcome {
    /// The kernel's version.
    pub kernel: String,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// From the start of QEMU until the command started, seconds.
    pub boot_s: Option<f64>,
    /// From the start of QEMU to its end, seconds.
    pub wall_s: f64,
    /// What the console should not hold.
    pub troubles: Vec<Trouble>,
    /// The log of the console, where it was kept.
    pub log: Option<PathBuf>,
    /// The part of the log that explains a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// What the command printed, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What the command printed as errors, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Why not all that the command printed could be passed on, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl GuestOutcome {
    /// Whether the kernel was well throughout; the command may have failed.
    pub fn healthy(&self) -> bool {
        self.troubles.is_empty() && matches!(self.verdict, Verdict::Exit(_) | Verdict::Signal(_))
    }

    /// The status to end with: the command's own; 1 if the kernel was not
    /// well or output was lost, 124 for the time limit, 128 + the signal that killed the
    /// command.
    pub fn status(&self) -> u8 {
        match self.verdict {
            Verdict::Timeout | Verdict::Silent => 124,
            Verdict::Interrupted => 130,
            _ if !self.healthy() => 1,
            Verdict::Exit(0) => u8::from(self.lost.is_some()),
            Verdict::Exit(status) => status as u8,
            Verdict::Signal(signal) => 128u8.saturating_add(signal as u8),
            Verdict::Failed(_) | Verdict::Died(_) => 1,
        }
    }
}
