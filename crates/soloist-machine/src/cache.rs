//! Caches: `[cache]`.

use serde::{Deserialize, Serialize};
use soloist_core::parse_size;

use crate::gf2;

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

impl Cache {
    /// Sets of one instance, which lines of `line` bytes make with its ways.
    ///
    /// # Errors
    /// When size, ways and line contradict each other, in words.
    pub fn sets(&self, line: u32) -> Result<u64, String> {
        let way = u64::from(self.ways) * u64::from(line);
        let (size, ways) = (self.size.0, self.ways);
        if way == 0 || size == 0 || size % way != 0 {
            return Err(format!(
                "{size} bytes are not {ways} ways of whole lines of {line} bytes"
            ));
        }
        let sets = size / way;
        match self.hashed || sets.is_power_of_two() {
            true => Ok(sets),
            false => Err(format!(
                "{size} bytes in {ways} ways have {sets} sets: expected a power of two (or \
                 `hashed = true`)"
            )),
        }
    }
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

    /// Whether sizes, ways and sets go together, and `llc`, the colour functions of the
    /// map, choose among sets of the last level.
    pub(crate) fn check(&self, llc: &[u64]) -> Result<(), String> {
        if !self.line.is_power_of_two() {
            return Err(format!("line {}: expected a power of two", self.line));
        }
        for (name, cache) in [
            ("l1d", &self.l1d),
            ("l1i", &self.l1i),
            ("l2", &self.l2),
            ("l3", &self.l3),
        ] {
            let Some(cache) = cache else { continue };
            cache
                .sets(self.line)
                .map_err(|what| format!("{name}: {what}"))?;
        }
        let Some((name, last)) = self.last().filter(|(_, last)| !last.hashed) else {
            return Ok(());
        };
        // A set is chosen by the address bits between those within a line and this one.
        let end = (last.sets(self.line)? * u64::from(self.line)).trailing_zeros();
        match llc.iter().find(|&&function| function >> end != 0) {
            None => Ok(()),
            Some(&function) => Err(format!(
                "the {name} chooses its {} sets by address bits below {end}, the map's llc has {}",
                last.sets(self.line)?,
                gf2::show(function)
            )),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn last(size: u64, ways: u32) -> Caches {
        let cache = |size, ways| Cache {
            size: Bytes(size),
            ways,
            shared_by: 4,
            latency: None,
            hashed: false,
        };
        Caches {
            line: 64,
            l1d: Some(cache(32 << 10, 2)),
            l1i: None,
            l2: Some(cache(size, ways)),
            l3: None,
        }
    }

    /// Sizes and ways that the manuals of the Cortex-A53, A57 and A72 and of the DynamIQ
    /// Shared Unit give, and the highest colour bit of each.
    #[test]
    fn sets_follow_from_size_and_ways() {
        for (kib, ways, sets, top) in [
            (512, 16, 512, 14),
            (1024, 16, 1024, 15),
            (2048, 16, 2048, 16),
            (3072, 12, 4096, 17),
            (4096, 16, 4096, 17),
        ] {
            let caches = last(kib << 10, ways);
            let colors = |top| (12..=top).map(|bit| 1u64 << bit).collect::<Vec<_>>();
            assert_eq!(caches.last().map(|(_, last)| last.sets(64)), Some(Ok(sets)));
            assert_eq!(caches.check(&colors(top)), Ok(()), "{kib} KiB");
            let said = caches.check(&colors(top + 1));
            assert!(said.is_err_and(|said| said.contains("by address bits below")));
        }
    }

    #[test]
    fn what_can_be_no_cache_is_refused() {
        for (size, ways, says) in [
            (3 << 20, 16, "3072 sets: expected a power of two"),
            (1 << 20, 12, "not 12 ways"),
            (1 << 20, 0, "not 0 ways"),
            (0, 16, "0 bytes"),
            (1000, 1, "whole lines"),
        ] {
            let said = last(size, ways).check(&[]);
            assert!(
                said.as_ref().is_err_and(|said| said.contains(says)),
                "{said:?}"
            );
        }
        let mut hashed = last(3 << 20, 16);
        hashed.l2.iter_mut().for_each(|l2| l2.hashed = true);
        assert_eq!(hashed.check(&[1 << 30]), Ok(()));
    }
}
