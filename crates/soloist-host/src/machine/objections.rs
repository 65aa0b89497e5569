//! What a host, or what its drivers count, has against a machine file.

/// What speaks against a machine file.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Objections {
    /// The host says otherwise, in words: the map is another machine's.
    pub against: Vec<String>,
    /// What can't be known, in words.
    pub unknown: Vec<String>,
}
