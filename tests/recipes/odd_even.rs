//! Two camps: programs of even places share the even bank sets, the others the odd ones.

use soloist_core::{ColorSet, Refusal};

use super::{Coloring, Policy, Turn};

pub(super) static POLICIES: &[&dyn Policy] = &[&ODD_EVEN];

/// Half of the bank sets, by the program's place.
pub static ODD_EVEN: Coloring =
    Coloring::new("odd_even", "two camps of banks", camp).from_all_nodes();

fn camp(turn: &Turn) -> Result<ColorSet, Refusal> {
    let mine = (0..turn.map.n_bank_sets()).filter(|set| *set as usize % 2 == turn.index % 2);
    Ok(turn.any().with_sets(mine))
}
