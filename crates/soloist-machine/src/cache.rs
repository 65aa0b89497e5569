//! Caches: `[cache]`.

use serde::{Deserialize, Serialize};
use soloist_core::parse_size;

/// One cache of `[cache]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Size of one instance.
    pub size: Bytes,
    /// Associativity.
    pub ways: u32,
    /// CPUs that share one instance.
    pub shared_by: u32,
    /// Load-to-use latency in core clocks, where known.
    pub latency: Option<u32>,
    /// The set index is hashed over slices: page colours don't partition it.
    #[serde(default)]
    pub hashed: bool,
}

/// `[cache]`: line size and levels by name (`l1d`, `l1i`, `l2`, `l3`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Line, bytes.
    pub line: u32,
    /// First-level data cache.
    pub l1d: Option<Cache>,
    /// First-level instruction cache.
    pub l1i: Option<Cache>,
    /// Second level.
    pub l2: Option<Cache>,
    /// Third level.
    pub l3: Option<Cache>,
}

impl Caches {
    /// The last level, with its name.
    #[must_use]
    pub fn last(&self) -> Option<(&'static str, &Cache)> {
        let levels = [("L3", &self.l3), ("L2", &self.l2), ("L1", &self.l1d)];
        levels
            .into_iter()
            .find_map(|(name, cache)| Some((name, cache.as_ref()?)))
    }
}

/// A size in bytes, written `512K`, `6M`, `8G` or as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bytes(pub u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(from) {
            Ok(Either::Number(bytes)) => Ok(Self(bytes)),
            Ok(Either::Text(text)) => parse_size(&text)
                .map(Self)
                .map_err(serde::de::Error::custom),
            Err(_) => Err(serde::de::Error::custom(
                "expected a size such as \"512K\", \"6M\" or a number of bytes",
            )),
        }
    }
}
