//! Who a machine is, and how far its map can be trusted.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;

use crate::file::Wrong;

/// How far a map can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Agrees with decodes that the machine itself printed.
    Exact,
    /// The functions were published; what was not (often rows and columns) is
    /// filled in.
    Published,
    /// Found by timing on the machine.
    Detected,
    /// Solved or found in part: some of it was not shown by anything, and is
    /// filled in.
    Incomplete,
    /// No facts are public: plausible, for the simulator only.
    Assumed,
    /// Made up for virtual machines: their memory has no banks of its own.
    Synthetic,
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Published => "published",
            Self::Detected => "detected",
            Self::Incomplete => "incomplete",
            Self::Assumed => "assumed",
            Self::Synthetic => "synthetic",
        })
    }
}

/// What `[machine]` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, also the file's: lower-case letters, digits, `-`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// How far the map can be trusted.
    pub trust: Trust,
    /// Where the facts come from.
    #[serde(default)]
    pub source: Vec<String>,
}

/// What a host must look like for the machine to fit (`[host]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFit {
    /// Globs over the CPU's model name.
    #[serde(default)]
    pub cpu: Vec<String>,
    /// Populated memory channels of one node, where the map depends on it.
    #[serde(default, deserialize_with = "at_least_one")]
    pub channels: Option<u32>,
    /// Memory modules of the whole machine, where the map depends on it.
    #[serde(default, deserialize_with = "at_least_one")]
    pub dimms: Option<u32>,
}

/// No machine has none.
fn at_least_one<'de, D: Deserializer<'de>>(number: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(number)? {
        0 => Err(D::Error::custom("expected at least 1, found 0")),
        n => Ok(Some(n)),
    }
}

pub(crate) fn check_name(about: &Spanned<About>) -> Result<(), Wrong> {
    let name = &about.get_ref().name;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 31 || !name.chars().all(fits) {
        return Err((
            about.span(),
            format!("name `{name}`: expected 1 to 31 lower-case letters, digits and `-`"),
        ));
    }
    Ok(())
}
