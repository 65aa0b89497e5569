//! CAMC's policies, and those that it compares with (sections 4.2 and 4.4.1).

use soloist_core::{AddrMap, ColorSet, Refusal, Want};

use super::{Coloring, Policy, Turn};

/// What a machine that can't give what is wanted is refused with.
const EINVAL: i32 = 22;

pub(super) static POLICIES: &[&dyn Policy] =
    &[&SAME_BANK, &DIFF_BANK, &DIFF_CONTROLLER, &AUTO, &CONTROLLER];

/// All programs on one bank set of the first one's node.
pub static SAME_BANK: Coloring =
    Coloring::new("same_bank", "all in one bank", same_bank).on_slices();

/// Private bank sets, all on the first program's node.
pub static DIFF_BANK: Coloring = Coloring::new("diff_bank", "own banks, one node", |turn| {
    turn.private(turn.home())
})
.on_slices();

/// Private bank sets, on a controller of its own: a node, or on a machine of one node a
/// channel, where pages lie in one.
pub static DIFF_CONTROLLER: Coloring =
    Coloring::new("diff_controller", "own banks, own node", diff_controller);

/// The automatic assignment: private, on the node of the program's core.
pub static AUTO: Coloring = Coloring::new("camc", "CAMC's assignment", |turn| {
    turn.private(turn.tenant().node)
});

/// All banks of a controller of its own (the report).
pub static CONTROLLER: Coloring = Coloring::new("controller", "own node, all banks", controller);

fn same_bank(turn: &Turn) -> Result<ColorSet, Refusal> {
    let sets = turn.map.sets_of_node(turn.home());
    let first = turn.tenants[0].sets as usize;
    Ok(turn.any().with_sets(sets.take(first)))
}

fn diff_controller(turn: &Turn) -> Result<ColorSet, Refusal> {
    has_several(turn.map)?;
    if !has_one_node(turn.map) {
        return turn.private(turn.own_node());
    }
    let own = own_channel(turn.map, turn.index);
    let want = Want {
        sets: turn.tenant().sets,
        ..Want::default()
    };
    let elsewhere = |set| u64::from(!own.contains(&set));
    turn.palette.assign_with(&want, &elsewhere)
}

fn controller(turn: &Turn) -> Result<ColorSet, Refusal> {
    let map = turn.map;
    has_several(map)?;
    Ok(match has_one_node(map) {
        true => turn.any().with_sets(own_channel(map, turn.index)),
        false => turn.any().with_sets(map.sets_of_node(turn.own_node())),
    })
}

/// On one controller its own would be everybody's.
fn has_several(map: &AddrMap) -> Result<(), Refusal> {
    match has_one_node(map) && map.controllers().len() < 2 {
        false => Ok(()),
        true => Err(Refusal {
            line: None,
            text: "the machine has one memory controller: controllers of their own need two"
                .to_owned(),
            errno: EINVAL,
        }),
    }
}

fn has_one_node(map: &AddrMap) -> bool {
    map.memory_nodes().len() == 1
}

/// Bank sets of the tenant's own channel, on a machine of one node.
fn own_channel(map: &AddrMap, index: usize) -> Vec<u32> {
    let mut controllers = map.controllers();
    let at = index % controllers.len().max(1);
    match controllers.is_empty() {
        true => Vec::new(),
        false => controllers.swap_remove(at),
    }
}
