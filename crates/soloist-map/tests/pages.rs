//! Whole pages on simulated machines, with and without page colours.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use soloist_machine::known;
use soloist_map::silicon::pages::sim::{SimCaching, Truth};
use soloist_map::silicon::pages::{measure, NoPages, Size, Split};
use soloist_map::silicon::slices::Plan;

const NOTHING: Truth = Truth {
    cache: 1 << 18,
    cache_bits: 0,
    bank_bits: 0,
    same_bank_ns: 0.0,
    others_ns: 4.0,
    neighbours: 3,
};

fn splits(truth: Truth, seed: u64) -> Vec<Split> {
    let mut machine = SimCaching::new(truth, 2 << 20, seed);
    measure(&mut machine, plan(seed), &mut |_| {}).unwrap()
}

fn plan(seed: u64) -> Plan {
    Plan {
        blocks: 24,
        time: Duration::from_secs(600),
        seed,
    }
}

fn of(splits: &[Split], bits: &[u32], size: Size) -> Split {
    let found = splits.iter().find(|s| s.bits == bits && s.size == size);
    found.unwrap().clone()
}

/// A hash that keeps no page together: of 20 runs with 20 judgements each at 0.5 % for all of a
/// run hardly one claims something.
#[test]
fn no_colours_are_hardly_ever_claimed() {
    let claim = |seed: &u64| splits(NOTHING, *seed).iter().any(|split| split.saved.shown);
    let claims = (0..20).filter(claim).count();
    assert!(claims <= 1, "{claims} of 20");
}

/// A bit that chooses cache sets helps a working set inside the cache.
#[test]
fn a_cache_bit_is_found_and_no_other() {
    let truth = Truth {
        cache_bits: 1 << 14,
        ..NOTHING
    };
    let splits = splits(truth, 1);
    let inside = of(&splits, &[14], Size::Inside);
    assert!(inside.saved.shown, "{inside:?}");
    assert!(inside.private_ns < 0.9 * inside.spread_ns, "{inside:?}");
    let others = splits.iter().filter(|s| !s.bits.contains(&14));
    assert!(others.clone().count() > 10);
    for other in others {
        assert!(!other.saved.shown, "{other:?}");
    }
}

/// One that chooses banks helps a working set beyond it, and both together do most.
#[test]
fn a_bank_bit_and_a_cache_bit_add_up() {
    let truth = Truth {
        cache_bits: 1 << 14,
        bank_bits: 1 << 17,
        same_bank_ns: 60.0,
        ..NOTHING
    };
    let splits = splits(truth, 2);
    let beyond = of(&splits, &[17], Size::Beyond);
    assert!(beyond.saved.shown, "{beyond:?}");
    let both = splits
        .iter()
        .find(|s| s.bits.len() == 2 && s.size == Size::Beyond);
    assert!(both.unwrap().bits.contains(&17));
    let both = splits
        .iter()
        .find(|s| s.bits.len() == 2 && s.size == Size::Inside);
    let both = both.unwrap();
    let mut bits = both.bits.clone();
    bits.sort_unstable();
    assert_eq!(bits, [14, 17]);
    assert!(
        both.saved.shown && both.verdict().contains("in pages of its own"),
        "{both:?}"
    );
}

/// Pages that are worse off in banks of their own are said to be.
#[test]
fn a_bit_that_makes_it_worse_is_said() {
    let truth = Truth {
        bank_bits: 1 << 17,
        same_bank_ns: -60.0,
        ..NOTHING
    };
    let beyond = of(&splits(truth, 2), &[17], Size::Beyond);
    assert!(
        beyond.verdict().contains("so worse"),
        "{}",
        beyond.verdict()
    );
}

/// A machine's own banks count: where one address bit chooses among them, and where a sum of
/// bits does.
#[test]
fn banks_are_those_of_the_machine() {
    let beyond = |machine: &str| -> usize {
        let map = known::find(machine).unwrap().addr_map();
        let truth = Truth {
            same_bank_ns: 60.0,
            ..NOTHING
        };
        let mut machine = SimCaching::new(truth, 2 << 20, 1).in_banks_of(&map);
        let splits = measure(&mut machine, plan(1), &mut |_| {}).unwrap();
        let single = splits
            .iter()
            .filter(|s| s.bits.len() == 1 && s.size == Size::Beyond);
        single.filter(|split| split.saved.shown).count()
    };
    let (simple, hashed) = (beyond("raspberry-pi-4"), beyond("haswell"));
    assert!(simple > 0, "raspberry-pi-4: {simple}");
    assert!(hashed < simple, "haswell: {hashed} of {simple}");
}

#[test]
fn too_little_memory_is_refused() {
    let plan = Plan {
        blocks: 8,
        time: Duration::from_secs(1),
        seed: 1,
    };
    let mut machine = SimCaching::new(NOTHING, 1 << 19, 1);
    let refused = measure(&mut machine, plan, &mut |_| {}).unwrap_err();
    assert_eq!(refused, NoPages::Memory);
}
