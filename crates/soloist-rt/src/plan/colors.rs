//! Which banks and which last-level colours each group of tasks gets.
//!
//! A group is what runs on one core with memory of one node: its tasks never run
//! at once, so they share its colours. It gets as few bank sets as its memory
//! needs, but [`PARALLEL`] where there are so many (CAMC 4.6: three banks nearly
//! suffice for three streams of accesses). Each last-level colour goes to a group of
//! that last level whose banks can be combined with it. Where that leaves a group
//! without room, no group of that last level has colours of it.

use soloist_core::{AddrMap, ColorSet};
use soloist_memory::Platform;

use crate::model::cores::PlayError;
use crate::model::policy::sets_for;
use crate::tasks::TaskSet;

/// Bank sets that a group gets for the sake of parallel accesses.
pub const PARALLEL: u32 = 2;

/// A group of tasks that wants colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name: the task's, or `core-N`.
    pub name: String,
    /// Core that it runs on.
    pub core: u32,
    /// Node of its memory.
    pub node: u32,
    /// Bytes of all its tasks.
    pub bytes: u64,
    /// It has a task with deadlines.
    pub timed: bool,
}

/// Groups of a candidate, and the group of each task.
#[must_use]
pub fn groups(set: &TaskSet, nodes: &[u32]) -> (Vec<Group>, Vec<usize>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = Vec::new();
    for (task, &node) in set.tasks.iter().zip(nodes) {
        let core = task.core.unwrap_or(0);
        let known = groups.iter().position(|g| g.core == core && g.node == node);
        let at = known.unwrap_or_else(|| {
            groups.push(Group {
                name: task.name.clone(),
                core,
                node,
                bytes: 0,
                timed: false,
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        if group.bytes > 0 {
            group.name = format!("core-{core}-node-{node}");
        }
        group.bytes += task.bytes;
        group.timed |= task.release.is_some();
        group_of.push(at);
    }
    (groups, group_of)
}

/// The colours that a group was dealt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dealt {
    /// Its colours.
    pub colors: ColorSet,
    /// No other core fills its part of the last level.
    pub own_llc: bool,
}

/// Deals colours to each group.
///
/// # Errors
/// When a node has not enough banks.
pub fn deal(platform: &Platform, groups: &[Group]) -> Result<Vec<Dealt>, PlayError> {
    let map = &platform.memory.map;
    let mut sets: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
    for node in 0..map.n_nodes() {
        let here: Vec<usize> = (0..groups.len())
            .filter(|&g| groups[g].node == node)
            .collect();
        deal_banks(map, groups, &here, node, &mut sets)?;
    }
    let mut llc: Vec<Option<Vec<u32>>> = vec![None; groups.len()];
    for cache in 0..platform.llcs() {
        let uses = |g: &usize| platform.llc_of_core[groups[*g].core as usize] == cache;
        let here: Vec<usize> = (0..groups.len()).filter(uses).collect();
        if platform.llc.shape.hashed || map.n_llc() < 2 {
            continue;
        }
        let dealt = deal_llc(map, &here, &sets);
        let roomy = here.iter().zip(&dealt).all(|(&g, mine)| {
            let colors = colors(map, &sets[g], Some(mine));
            !mine.is_empty() && colors.bytes(map) / 10 * 7 >= groups[g].bytes
        });
        for (&g, mine) in here.iter().zip(dealt).filter(|_| roomy) {
            llc[g] = Some(mine);
        }
    }
    let own = |g: usize| {
        let mates = groups
            .iter()
            .filter(|o| {
                platform.llc_of_core[o.core as usize]
                    == platform.llc_of_core[groups[g].core as usize]
            })
            .count();
        llc[g].is_some() || mates == 1
    };
    Ok((0..groups.len())
        .map(|g| Dealt {
            colors: colors(map, &sets[g], llc[g].as_deref()),
            own_llc: own(g),
        })
        .collect())
}

fn colors(map: &AddrMap, sets: &[u32], llc: Option<&[u32]>) -> ColorSet {
    let banks = ColorSet::any(map).with_sets(sets.iter().copied());
    match llc {
        Some(llc) => banks.with_llc(llc.iter().copied()),
        None => banks,
    }
}

/// What each group needs; then one more to each in turn, up to [`PARALLEL`].
fn deal_banks(
    map: &AddrMap,
    groups: &[Group],
    here: &[usize],
    node: u32,
    sets: &mut [Vec<u32>],
) -> Result<(), PlayError> {
    let mut free = map.sets_of_node(node).collect::<Vec<u32>>().into_iter();
    for &g in here {
        let need = sets_for(map, groups[g].bytes);
        let left = free.len() as u32;
        if need > left {
            return Err(PlayError::Banks {
                task: groups[g].name.clone(),
                sets: need,
                node,
                left,
            });
        }
        sets[g].extend(free.by_ref().take(need as usize));
    }
    for _ in 1..PARALLEL {
        if free.len() < here.len() {
            break;
        }
        for &g in here {
            if (sets[g].len() as u32) < PARALLEL {
                sets[g].extend(free.next());
            }
        }
    }
    for &g in here {
        sets[g].sort_unstable();
    }
    Ok(())
}

/// Each colour to the group with the fewest among those that can use it.
fn deal_llc(map: &AddrMap, here: &[usize], sets: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut dealt: Vec<Vec<u32>> = vec![Vec::new(); here.len()];
    for color in 0..map.n_llc() {
        let can = |at: &usize| {
            sets[here[*at]]
                .iter()
                .any(|&s| map.cell_frames(s, color) > 0)
        };
        let next = (0..here.len())
            .filter(can)
            .min_by_key(|&at| dealt[at].len());
        if let Some(at) = next {
            dealt[at].push(color);
        }
    }
    dealt
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// On these machines last-level bits are bank bits too: no group may get
    /// colours that can't be combined.
    #[test]
    fn every_group_has_room_and_shares_nothing() {
        for machine in ["opteron-6128", "raspberry-pi-4", "zen2", "xeon-w3530"] {
            let platform = Platform::find(machine).unwrap();
            let map = &platform.memory.map;
            let cores = platform.node_of_core.len().min(4) as u32;
            let groups: Vec<Group> = (0..cores)
                .map(|core| Group {
                    name: format!("g{core}"),
                    core,
                    node: platform.node_of_core[core as usize] as u32,
                    bytes: 16 << 20,
                    timed: core == 0,
                })
                .collect();
            let dealt = deal(&platform, &groups).unwrap();
            let mut seen = std::collections::HashSet::new();
            for (Dealt { colors, .. }, group) in dealt.iter().zip(&groups) {
                let cells = colors.cells(map);
                assert!(colors.bytes(map) >= group.bytes, "{machine}: {group:?}");
                assert!(cells.iter().all(|&c| seen.insert(c)), "{machine}");
            }
        }
    }
}
