//! TintMalloc's policies: private bank sets of the local node, private LLC colours, or
//! both, one of them shared by a node's threads.

use soloist_core::{ColorSet, Refusal};

use super::{share, Coloring, Policy, Turn};

pub(super) static POLICIES: &[&dyn Policy] = &[&MEM, &LLC, &MEM_LLC, &MEM_LLC_PART, &LLC_MEM_PART];

/// Private banks of the local node.
pub static MEM: Coloring =
    Coloring::new("mem", "own banks", |turn| turn.private(turn.tenant().node));

/// Private LLC colours, any bank.
pub static LLC: Coloring = Coloring::new("llc", "own cache colours", llc);

/// Both private.
pub static MEM_LLC: Coloring = Coloring::new("mem+llc", "own banks and cache", |turn| {
    Ok(own_pairs(turn, Sharing::Own, Sharing::Own))
});

/// Private banks, LLC colours shared by the threads of a node.
pub static MEM_LLC_PART: Coloring =
    Coloring::new("mem+llc(part)", "own banks, cache by node", |turn| {
        Ok(own_pairs(turn, Sharing::Own, Sharing::Group))
    });

/// Private LLC colours, banks shared by the threads of a node.
pub static LLC_MEM_PART: Coloring =
    Coloring::new("llc+mem(part)", "own cache, banks by node", |turn| {
        Ok(own_pairs(turn, Sharing::Group, Sharing::Own))
    });

fn llc(turn: &Turn) -> Result<ColorSet, Refusal> {
    let own = share(turn.map.n_llc(), turn.count(), turn.index);
    Ok(turn.any().with_llc(own))
}

/// Private to the tenant, or shared by the tenants of its node.
#[derive(Clone, Copy, PartialEq)]
enum Sharing {
    Own,
    Group,
}

/// Shares of the node's bank sets and of the LLC's colours such that every
/// tenant has pairs that can hold a page (LLC bits may be bank bits too).
fn own_pairs(turn: &Turn, bank: Sharing, llc: Sharing) -> ColorSet {
    let (map, tenants, index) = (turn.map, turn.tenants, turn.index);
    let node = tenants[index].node;
    let mates = tenants.iter().filter(|s| s.node == node).count();
    let rank = tenants[..index].iter().filter(|s| s.node == node).count();
    let sets: Vec<u32> = map.sets_of_node(node).collect();
    let sets = match bank {
        Sharing::Group => sets,
        Sharing::Own => share(sets.len() as u32, mates, rank)
            .map(|i| sets[i as usize])
            .collect(),
    };
    // Bank sets are shared out in contiguous runs: their low bits, which are
    // LLC bits too on some maps, take every value in each share.
    let groups: Vec<u32> = {
        let mut nodes: Vec<u32> = tenants.iter().map(|s| s.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let llc: Vec<u32> = match llc {
        Sharing::Group => {
            let at = groups.iter().position(|&n| n == node).unwrap_or(0);
            interleaved(map.n_llc(), groups.len(), at)
        }
        Sharing::Own => interleaved(map.n_llc(), tenants.len(), index),
    };
    ColorSet::any(map).with_sets(sets).with_llc(llc)
}

/// Every `n`th LLC colour, beginning with `index`: such a share meets every
/// value of the high bits, where LLC and bank bits coincide.
fn interleaved(total: u32, n: usize, index: usize) -> Vec<u32> {
    (index as u32..total).step_by(n).collect()
}
