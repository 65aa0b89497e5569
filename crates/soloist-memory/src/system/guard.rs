//! The seam for bandwidth regulation.

/// Decides whether a core may go on after a last-level miss.
pub trait Guard {
    /// Core `core` misses the last level at `now_ps`; `write` for a line that
    /// is pushed out to memory, which goes out whatever the answer. False: the
    /// fill is held back, or the room of the line that pushed the other out, and
    /// with it soon the core.
    fn miss(&mut self, core: usize, now_ps: u64, write: bool) -> bool;

    /// When [`Self::alarm`] wants to be called, if nothing happens before.
    fn alarm_ps(&self) -> u64 {
        u64::MAX
    }

    /// That time has come.
    fn alarm(&mut self, _now_ps: u64) {}

    /// A core whose fills need not be held back any longer. Asked after each
    /// call until there is none.
    fn released(&mut self) -> Option<usize> {
        None
    }
}

/// No regulation.
pub struct Free;

impl Guard for Free {
    fn miss(&mut self, _core: usize, _now_ps: u64, _write: bool) -> bool {
        true
    }
}
