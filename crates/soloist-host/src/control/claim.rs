//! Which node a command runs on where the user did not say: the one whose
//! colours are free, so that neither its memory is far from its processors nor
//! the choice left to chance.

use std::cmp::Reverse;
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;
use soloist_core::{AddrMap, NumList};

use crate::control::group::Group;
use crate::control::interface::Control;
use crate::control::request::{ColorPlan, ColorRequest};
use crate::machine::{allowed_cpus, cpus_of_node, may_allocate_on, Host};
use crate::HostError;

/// A memory node that this process may use: processors and memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Bank sets of it that no group owns.
    pub free: u32,
    /// All of its bank sets.
    pub sets: u32,
    /// We run there now.
    #[serde(skip)]
    pub here: bool,
}

/// The nodes to choose from, by number.
pub fn nodes(host: &Host, control: &Control, map: &AddrMap) -> Result<Vec<Node>, HostError> {
    let owned = owned(control, map)?;
    let allowed = allowed_cpus();
    let may_allocate_on = may_allocate_on(host);
    // SAFETY: takes no argument and touches no memory of ours.
    let here = u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0);
    let mut nodes = Vec::new();
    for node in map.memory_nodes() {
        let Some(cpus) = cpus_of_node(host, node) else {
            continue;
        };
        if !may_allocate_on(node) || !allowed.iter().any(|cpu| cpus.contains(cpu)) {
            continue;
        }
        let sets = (0..map.n_bank_sets()).filter(|&set| map.node_of_set(set) == node);
        nodes.push(Node {
            node,
            free: sets.clone().filter(|&set| !owned.contains(set)).count() as u32,
            sets: sets.count() as u32,
            here: cpus.contains(here),
        });
    }
    Ok(nodes)
}

/// `nodes` that have `wanted` free colours: most of them first; where several have as
/// many, the one that we are on, else the first.
fn best_first(mut nodes: Vec<Node>, wanted: u32) -> Vec<Node> {
    nodes.retain(|node| node.free >= wanted);
    nodes.sort_by_key(|node| (Reverse(node.free), !node.here, node.node));
    nodes
}

/// How often colours are asked for that nobody owns and that the kernel does not
/// give: pages of tasks that have just ended come back within a moment.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(100);

/// Gives `group` colours by `request`. Those of Soloist's own choice come from one
/// node, the one with most that are free; others may take them before us, so where
/// one has too few by then the next is asked, and all of them together at last.
pub fn claim(
    request: &ColorRequest,
    host: &Host,
    control: &Control,
    map: &AddrMap,
    group: &Group,
) -> Result<ColorPlan, HostError> {
    let anywhere = request.plan(map)?;
    let named = request.node.as_deref();
    let named = named.and_then(|list| NumList::parse(list, map.n_nodes()).ok());
    let is_named = |node: &Node| match &named {
        Some(list) => list.contains(node.node),
        None => request.near.is_empty() || request.near.contains(&node.node),
    };
    let free_choice = named.is_none() && request.near.is_empty();
    for _ in 0..TRIES {
        let mut nodes = nodes(host, control, map)?;
        nodes.retain(is_named);
        let nodes = best_first(nodes, anywhere.sets);
        if nodes.is_empty() || !anywhere.is_automatic() {
            break;
        }
        for node in nodes.iter().filter(|_| free_choice) {
            let near = vec![node.node];
            let plan = ColorRequest {
                near,
                ..request.clone()
            }
            .plan(map)?;
            match plan.apply(group, map) {
                // Too few colours, or too little memory in them.
                Err(error) if error.is_no_room() || matches!(error, HostError::Request(_)) => {}
                done => return done.map(|()| plan),
            }
        }
        match anywhere.apply(group, map) {
            Err(error) if error.is_no_room() => sleep(BETWEEN),
            done => return done.map(|()| anywhere),
        }
    }
    anywhere.apply(group, map)?;
    Ok(anywhere)
}

/// The bank sets that some group owns.
fn owned(control: &Control, map: &AddrMap) -> Result<NumList, HostError> {
    let mut owned = NumList::new(map.n_bank_sets());
    let named = control.each_group(|group| group.colors(map))?.into_iter();
    let implicit = control.implicit_groups(map)?.into_iter();
    for colors in named.chain(implicit.map(|group| group.colors)) {
        for set in colors.sets().into_iter().flat_map(NumList::iter) {
            owned.insert(set);
        }
    }
    Ok(owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn node(node: u32, free: u32, here: bool) -> Node {
        Node {
            node,
            free,
            sets: 8,
            here,
        }
    }

    #[test]
    fn the_node_with_most_free_colours_is_chosen() {
        let order = |nodes: &[Node], wanted| -> Vec<u32> {
            let best = best_first(nodes.to_vec(), wanted);
            best.iter().map(|node| node.node).collect()
        };
        assert_eq!(order(&[node(0, 3, true), node(1, 8, false)], 2), [1, 0]);
        assert_eq!(order(&[node(0, 8, false), node(1, 8, true)], 2), [1, 0]);
        assert_eq!(order(&[node(0, 8, false), node(1, 8, false)], 2), [0, 1]);
        assert_eq!(order(&[node(0, 3, true), node(1, 8, false)], 4), [1]);
        assert!(order(&[node(0, 3, true), node(1, 8, false)], 9).is_empty());
    }
}
