//! Colours that are counted twice: what CAMC's 128 colours would be on a machine whose
//! channels are interleaved by line, so that only 64 pairs of banks exist.

use soloist_core::{ColorSet, Refusal};

use super::{Coloring, Policy, Tenant, Turn};

pub(super) static POLICIES: &[&dyn Policy] = &[&COUNTED];

/// As many colours as private banks would have, on the first program's node. The upper
/// half of a node's colours are the banks of the lower half, so programs meet in pairs
/// once their colours fill more than half of a node.
pub static COUNTED: Coloring =
    Coloring::new("counted", "own colours, banks counted twice", counted);

fn counted(turn: &Turn) -> Result<ColorSet, Refusal> {
    let sets: Vec<u32> = turn.map.sets_of_node(turn.home()).collect();
    let colors = |tenant: &Tenant| 2 * tenant.sets as usize;
    let first: usize = turn.tenants[..turn.index].iter().map(colors).sum();
    let own = first..first + colors(&turn.tenant());
    let banks = own.map(|color| sets[color % sets.len()]);
    Ok(turn.any().with_sets(banks))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation should fail the test
mod tests {
    use soloist_memory::Platform;

    use super::*;

    #[test]
    fn four_programs_with_even_shares_meet_in_pairs() {
        let map = Platform::find("opteron-6128").unwrap().memory.map;
        let banks = |sets| {
            let tenants = [Tenant { node: 0, sets }; 4];
            let colors = COUNTED.colors(&map, &tenants).unwrap();
            colors.into_iter().map(Option::unwrap).collect::<Vec<_>>()
        };
        let even = banks(4);
        assert!(even[0] == even[2] && even[1] == even[3] && even[0] != even[1]);
        let few = banks(1);
        assert!(few[0] != few[2] && few[1] != few[3]);
    }
}
