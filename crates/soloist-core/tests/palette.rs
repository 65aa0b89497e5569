//! Ownership: disjoint, whole or not at all, and given back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::{AddrMap, ColorSet, Palette, Want};

/// Two nodes of eight banks; bank bits 15 and 16 are LLC bits too.
const SMALL: &str = "\
soloist-map 1
name small
line 64
llc 12 13 14 15 16
layout
bank 15 16 17
row 18 19 20 21 22 23 24 25
col 3 4 5 6 7 8 9 10 11 12 13 14
range 0x0 0x4000000 node 0
range 0x4000000 0x8000000 node 1
";

fn small() -> AddrMap {
    AddrMap::parse(SMALL).unwrap()
}

fn exclusive(map: &AddrMap, sets: &[u32]) -> ColorSet {
    let mut colors = ColorSet::any(map).with_sets(sets.iter().copied());
    colors.exclusive = true;
    colors
}

#[test]
fn exclusive_owners_share_nothing() {
    let map = small();
    let mut palette = Palette::new(&map);
    palette.change(1, Some(exclusive(&map, &[0, 1]))).unwrap();
    let refusal = palette.change(2, Some(exclusive(&map, &[1, 2])));
    assert!(!refusal.unwrap_err().text.is_empty());
    assert!(palette.colors(2).is_none());
    assert_eq!(palette.set_usage(2).unwrap().owners, 0, "nothing half done");
    palette.change(1, None).unwrap();
    palette.change(2, Some(exclusive(&map, &[1, 2]))).unwrap();
    assert_eq!(palette.set_usage(1).unwrap().exclusive, 1);
    assert_eq!(palette.owners().count(), 1);
    assert!(palette.set_usage(16).is_none() && palette.llc_usage(32).is_none());
}

#[test]
fn impossible_pairs_are_refused() {
    let map = small();
    let mut palette = Palette::new(&map);
    // Bank 0 has physical bits 15 and 16 zero: LLC colours 8 and up lie elsewhere.
    let never = ColorSet::any(&map).with_sets([0]).with_llc([8]);
    assert!(never.cells(&map).is_empty());
    assert_eq!(never.bytes(&map), 0);
    let refusal = palette.change(1, Some(never)).unwrap_err();
    assert_eq!(refusal.errno, 22, "{refusal}");
}

#[test]
fn assignment_is_near_and_free() {
    let map = small();
    let mut palette = Palette::new(&map);
    let want = Want {
        sets: 8,
        near: 0b10,
        strict: true,
        ..Want::default()
    };
    let colors = palette.assign(&want).unwrap();
    assert!(colors
        .sets()
        .unwrap()
        .iter()
        .all(|s| map.node_of_set(s) == 1));
    palette.change(7, Some(colors)).unwrap();
    let refusal = palette.assign(&want).unwrap_err();
    assert_eq!(refusal.errno, 28, "{refusal}");
}

#[test]
fn busy_sets_are_not_assigned() {
    let map = small();
    let palette = Palette::new(&map);
    let busy = |set: u32| u64::from(set != 11);
    let colors = palette.assign_with(&Want::default(), &busy).unwrap();
    assert_eq!(colors.sets().unwrap().to_string(), "11");
}

proptest! {
    #[test]
    fn assignments_are_disjoint(wants in proptest::collection::vec((1u32..4, 0u32..3, 0u64..4, any::<bool>()), 1..12)) {
        let map = small();
        let mut palette = Palette::new(&map);
        for (owner, (sets, llc, near, realtime)) in wants.into_iter().enumerate() {
            let want = Want { sets, llc, near, realtime, ..Want::default() };
            if let Ok(colors) = palette.assign(&want) {
                prop_assert_eq!(colors.sets().unwrap().len(), sets);
                prop_assert!(!colors.cells(&map).is_empty());
                palette.change(owner as u32, Some(colors)).unwrap();
            }
        }
        for set in 0..map.n_bank_sets() {
            let owners = palette.owners().filter(|(_, c)| c.sets().unwrap().contains(set)).count();
            prop_assert!(owners <= 1, "bank set {} has {} owners", set, owners);
            prop_assert_eq!(palette.set_usage(set).unwrap().owners as usize, owners);
        }
        let owners: Vec<u32> = palette.owners().map(|(id, _)| id).collect();
        for owner in owners {
            palette.change(owner, None).unwrap();
        }
        for set in 0..map.n_bank_sets() {
            prop_assert_eq!(palette.set_usage(set).unwrap().owners, 0);
        }
    }
}
