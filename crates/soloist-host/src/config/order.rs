//! In which order groups change hands of colours. An exclusive owner must be
//! alone (core/colors/palette.c), so of two groups that swap their colours
//! neither could be the first. Those that meet another's old or new colours are
//! shareable while all change, and exclusive again afterwards.

use std::collections::{BTreeMap, BTreeSet};

use soloist_core::{AddrMap, NumList};

use crate::config::file::{Config, GroupConfig};
use crate::control::Mode;

/// How many bank sets and LLC colours there are.
pub(super) fn how_many(map: Option<&AddrMap>) -> (u32, u32) {
    map.map_or((0, 0), |map| (map.n_bank_sets(), map.n_llc()))
}

/// Names of the exclusive groups that must be shareable while colours change.
/// `prune`: groups that are not wanted give theirs up.
pub(crate) fn loosened(
    now: &Config,
    wanted: &Config,
    map: Option<&AddrMap>,
    prune: bool,
) -> BTreeSet<String> {
    let claims: BTreeMap<&String, Claim> = now
        .groups
        .keys()
        .chain(wanted.groups.keys())
        .filter(|name| prune || wanted.groups.contains_key(*name))
        .map(|name| {
            let both = [now.groups.get(name), wanted.groups.get(name)];
            (name, Claim::of(both, map))
        })
        .collect();
    let exclusive = now.groups.iter().filter(|(name, group)| {
        group.mode == Mode::Exclusive
            && claims.get(name).is_some_and(|own| own.meets(name, &claims))
    });
    exclusive.map(|(name, _)| name.clone()).collect()
}

/// The colours that a group has or will have.
struct Claim {
    sets: BTreeSet<u32>,
    llc: BTreeSet<u32>,
    changes: bool,
}

impl Claim {
    fn of(both: [Option<&GroupConfig>; 2], map: Option<&AddrMap>) -> Self {
        let (n_sets, n_llc) = how_many(map);
        let all = |list: fn(&GroupConfig) -> &String, limit| {
            let parsed = both
                .into_iter()
                .flatten()
                .filter_map(|group| NumList::parse(list(group), limit).ok());
            parsed
                .flat_map(|list| list.iter().collect::<Vec<_>>())
                .collect()
        };
        let colors = |group: &GroupConfig| (group.bank_sets.clone(), group.llc.clone());
        Self {
            sets: all(|group| &group.bank_sets, n_sets),
            llc: all(|group| &group.llc, n_llc),
            changes: both[0].map(colors) != both[1].map(colors),
        }
    }

    /// Does it meet another's, of which one is to change?
    fn meets(&self, name: &String, claims: &BTreeMap<&String, Self>) -> bool {
        claims.iter().any(|(other, theirs)| {
            *other != name
                && (self.changes || theirs.changes)
                && !(self.sets.is_disjoint(&theirs.sets) && self.llc.is_disjoint(&theirs.llc))
        })
    }
}
