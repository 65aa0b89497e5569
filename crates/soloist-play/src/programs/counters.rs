//! What is known of a program that runs alone: its counters.

/// What a program's counters say when it runs alone, and how it walks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counters {
    /// Instructions per cycle.
    pub ipc: f64,
    /// Lines from memory per thousand instructions.
    pub mpki: f64,
    /// Share of these lines that are written to.
    pub writes: f64,
    /// Arrays that it walks in step; 0: lines in an order without pattern.
    pub arrays: u32,
    /// Share of the computing that happens in spells of its own.
    pub uneven: f64,
    /// Lines between two spells of computing, on average.
    pub spell: f64,
}

impl Counters {
    /// Instructions between two lines from memory.
    pub fn instructions(&self) -> f64 {
        1000.0 / self.mpki
    }
}

/// How a program comes to its instructions per cycle on one machine; found by
/// [`crate::pace`]. One of the two is always 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Misses in a group; between whole numbers, groups of both sizes.
    pub group: f64,
    /// Time of an instruction that misses nothing, over the machine's.
    pub slow: f64,
}

impl Pace {
    /// As slow as misses alone make it: each waits for the one before.
    pub const SERIAL: Self = Self {
        group: 1.0,
        slow: 1.0,
    };
}
