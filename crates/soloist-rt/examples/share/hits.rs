//! What row hits that pass an older request cost without isolation: the same sets
//! with less that may pass.

use std::fmt::Write;

use crate::isolation::{Draw, Isolation};
use soloist_memory::Platform;
use soloist_rt::analysis::interference::Costs;

use crate::{push_shares, shares};

const ISOLATIONS: [Isolation; 2] = [Isolation::None, Isolation::Palloc];

/// Requests in a bank's queue, and hits that pass the oldest of them.
const CHANGES: [(u32, u32); 6] = [(8, 128), (5, 128), (4, 128), (2, 128), (1, 128), (1, 1)];

/// Share of sets that are proved without isolation, by what may pass; sets are
/// those of the main table's first line.
pub fn csv(machine: &str, how: Draw, seed: u64, sets: u64) -> String {
    let mut text = "bank queue,hit cap,us a line,no isolation,PALLOC\n".to_owned();
    let unchanged = Platform::find(machine).unwrap();
    for (queue, cap) in CHANGES {
        let changes = format!("[controller]\nbank_queue = {queue}\nhit_cap = {cap}");
        let changes = toml::from_str(&changes).unwrap();
        let platform = Platform::find_changed(machine, &changes).unwrap();
        // The machine's own sets: the change is in the bound alone.
        let proved = shares(&unchanged, how, seed, sets, &platform, &ISOLATIONS);
        let passed_us = Costs::of(&platform).passed_ps as f64 / 1e6;
        let _ = write!(text, "{queue},{cap},{passed_us:.2}");
        push_shares(&mut text, &proved);
    }
    text
}
