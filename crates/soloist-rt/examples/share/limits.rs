//! What MemGuard's limits prove, from the paper's equal part of `r_min` down to
//! nothing: is it the part, or what limits can't reach?

use std::fmt::Write;

use crate::isolation::{part, Draw, Isolation};
use soloist_memory::Platform;

use crate::{push_shares, shares};

/// Bytes a second, after the equal part.
const LOWER: [u64; 5] = [64_000_000, 16_000_000, 4_000_000, 1_000_000, 0];

/// Sets that are proved, by utilisation and limit; `alike` draws the same sets as
/// the main table.
pub fn csv(platform: &Platform, alike: &[(Draw, u64)], sets: u64) -> String {
    let equal = part(platform, 0);
    let mut isolations = vec![Isolation::None, Isolation::MemGuard];
    isolations.extend(LOWER.map(Isolation::Limited));
    let mut text = format!("utilisation,no limit,{:.1} MB/s", equal as f64 / 1e6);
    for limit in LOWER {
        let _ = write!(text, ",{} MB/s", limit / 1_000_000);
    }
    text.push_str(",PALLOC\n");
    isolations.push(Isolation::Palloc);
    for (how, seed) in alike {
        let _ = write!(text, "{:.2}", how.utilisation);
        let proved = shares(platform, *how, *seed, sets, platform, &isolations);
        push_shares(&mut text, &proved);
    }
    text
}
