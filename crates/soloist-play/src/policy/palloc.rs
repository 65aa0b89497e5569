//! PALLOC, and BPM: bank bits without nodes or controllers.

use soloist_core::{AddrMap, ColorSet, Refusal};

use super::{share, Coloring, Policy, Turn};

pub(super) static POLICIES: &[&dyn Policy] = &[&PALLOC, &BPM];

/// Banks of the same numbers on every node: PALLOC knows no nodes.
pub static PALLOC: Coloring = Coloring::new("palloc", "PALLOC: own banks", palloc)
    .from_all_nodes()
    .on_slices();

/// The same and LLC colours: BPM knows no controllers.
pub static BPM: Coloring = Coloring::new("bpm", "BPM: own banks, cache", bpm).from_all_nodes();

fn palloc(turn: &Turn) -> Result<ColorSet, Refusal> {
    let sets = on_every_node(turn.map, turn.count(), turn.index);
    Ok(turn.any().with_sets(sets))
}

fn bpm(turn: &Turn) -> Result<ColorSet, Refusal> {
    let llc = own_llc(turn.map, turn.count(), turn.index);
    Ok(palloc(turn)?.with_llc(llc))
}

/// A share of a node's bank sets, the same on every node, as an allocator has
/// it that knows bank bits only.
fn on_every_node(map: &AddrMap, n: usize, index: usize) -> Vec<u32> {
    (0..map.n_nodes())
        .flat_map(|node| {
            let sets: Vec<u32> = map.sets_of_node(node).collect();
            share(sets.len() as u32, n, index)
                .map(|i| sets[i as usize])
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// LLC colours for the tenant with the bank sets of [`on_every_node`]: those that
/// these can have (LLC bits may be bank bits too) are shared out to all tenants
/// that could have them.
fn own_llc(map: &AddrMap, n: usize, index: usize) -> Vec<u32> {
    let possible = |tenant: usize| -> Vec<u32> {
        let sets = on_every_node(map, n, tenant);
        let holds = |llc: &u32| sets.iter().any(|&set| map.cell_frames(set, *llc) > 0);
        (0..map.n_llc()).filter(holds).collect()
    };
    let mine = possible(index);
    let alike = |tenant: &usize| possible(*tenant) == mine;
    let rank = (0..index).filter(alike).count();
    let peers = rank + (index..n).filter(alike).count();
    share(mine.len() as u32, peers, rank)
        .map(|i| mine[i as usize])
        .collect()
}
