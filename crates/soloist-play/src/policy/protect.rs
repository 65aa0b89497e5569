//! One program with few banks: shared with all others, or its own, the others sharing
//! what is left.

use soloist_core::{AddrMap, ColorSet, Refusal};

use super::{Coloring, Policy, Turn};

pub(super) static POLICIES: &[&dyn Policy] = &[&PROTECT, &TOGETHER];

/// As many bank sets of its node, over all channels, as the first program wants, and
/// all programs share them.
pub static TOGETHER: Coloring = Coloring::new("together", "all in the first one's banks", |turn| {
    let sets = over_channels(turn.map, turn.home()).into_iter();
    let first = turn.tenants[0].sets as usize;
    Ok(turn.any().with_sets(sets.take(first)))
})
.on_slices();

/// The first bank sets of its node, over all channels, are the first program's; the
/// others share as many of those behind them as the second one wants.
pub static PROTECT: Coloring = Coloring::new("protect", "own banks, the first alone", protect)
    .on_slices()
    .sharing_the_rest();

fn protect(turn: &Turn) -> Result<ColorSet, Refusal> {
    let first = turn.tenants[0].sets as usize;
    let sets = over_channels(turn.map, turn.home()).into_iter();
    let mine: Vec<u32> = match turn.index {
        0 => sets.take(first).collect(),
        _ => {
            let behind = turn.tenants[1].sets as usize;
            sets.skip(first).take(behind).collect()
        }
    };
    match mine.is_empty() {
        // Where none is left the palette says so.
        true => turn.private(turn.home()),
        false => Ok(turn.any().with_sets(mine)),
    }
}

/// The bank sets of `node` that have memory, one of each channel in turn: so all get a
/// share of every channel's bandwidth.
fn over_channels(map: &AddrMap, node: u32) -> Vec<u32> {
    let all = map.controllers();
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    let of_turn = |i| all.iter().filter_map(move |sets| sets.get(i).copied());
    let here = |set: &u32| map.node_of_set(*set) == node;
    (0..most).flat_map(of_turn).filter(here).collect()
}
