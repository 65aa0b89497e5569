//! A memory channel of AMD's Zen, as its kernel names it.

/// A channel with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Number of AMD's node: a socket, or a die of the first generation.
    pub node: u32,
    /// Its number there.
    pub number: u32,
    /// A CPU there.
    pub cpu: u32,
    /// Bytes.
    pub bytes: u64,
}
