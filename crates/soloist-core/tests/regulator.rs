//! The regulator through Rust: the paper's example, refusals, pools.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::{
    pools, AddrMap, ColorSet, Order, Regulation, Regulator, Reservation, Sharing, NO_LIMIT,
};

/// Rates of this many lines in a period of 10 us.
fn lines(n: u64) -> u64 {
    n * 64 * 100_000
}

fn regulation(r_min: u64, sharing: Sharing) -> Regulation {
    Regulation {
        period_us: 10,
        line: 64,
        r_min: [lines(r_min), 0],
        peak: lines(1000),
        q_min: 1,
        ewma: 180,
        sharing,
    }
}

fn reservation(n: u64) -> Reservation {
    Reservation {
        rate: [lines(n), 0],
        weight: 0,
        reclaim: true,
    }
}

fn two_cores(sharing: Sharing) -> Regulator {
    let mut reg = Regulator::new(&regulation(6, sharing), 2).unwrap();
    for core in 0..2 {
        reg.reserve(core, Some(&reservation(3))).unwrap();
    }
    reg.begin();
    for core in 0..2 {
        let answer = reg.core(core, [0, 0]);
        assert_eq!((answer.order, answer.limit), (Order::Run, [3, NO_LIMIT]));
    }
    reg
}

#[test]
fn the_papers_example_comes_out_through_rust_too() {
    let mut reg = two_cores(Sharing::None);
    reg.begin();
    assert_eq!(reg.core(0, [1, 0]).limit[0], 1);
    assert_eq!(reg.core(1, [1, 0]).limit[0], 1);
    assert_eq!(reg.used(1, [1, 0]).limit[0], 3);
    assert_eq!(reg.used(1, [3, 0]).limit[0], 4);
    assert_eq!(reg.used(0, [1, 0]).limit[0], 2);
    assert_eq!(reg.used(1, [4, 0]).order, Order::Stop);
    assert!(reg.stopped(1) && !reg.stopped(0));
    let counts = reg.counts(1);
    assert_eq!((counts.reclaimed[0], counts.stops), (3, 1));
    assert_eq!(reg.counts(0).donated[0], 2);
}

#[test]
fn best_effort_frees_or_restarts_the_domain() {
    for (sharing, last) in [
        (Sharing::None, Order::Stop),
        (Sharing::Spare, Order::Free(0)),
        (Sharing::Proportional, Order::Restart(0)),
    ] {
        let mut reg = two_cores(sharing);
        assert_eq!(reg.used(0, [3, 0]).order, Order::Stop);
        assert_eq!(reg.used(1, [3, 0]).order, last);
        if sharing == Sharing::Proportional {
            reg.restart(0);
            assert_eq!(reg.core(0, [3, 0]).limit[0], 3);
        }
        assert_eq!(reg.stopped(0), sharing == Sharing::None);
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words_and_changes_nothing() {
    let mut reg = two_cores(Sharing::None);
    let refusal = reg.reserve(1, Some(&reservation(4))).unwrap_err();
    assert!(refusal.text.contains("guaranteed"), "{refusal}");
    assert!(reg.reserve(2, Some(&reservation(1))).is_err(), "no core 2");
    reg.begin();
    assert_eq!(reg.core(1, [3, 0]).limit[0], 3);
    reg.reserve(1, None).unwrap();
    assert!(Regulator::new(&regulation(0, Sharing::None), 2).is_err());
    assert!(Regulator::new(&regulation(6, Sharing::None), 0).is_err());
}

#[test]
fn cores_in_banks_of_their_own_are_in_domains_of_their_own() {
    let map = AddrMap::parse(
        "soloist-map 1\nname small\nline 64\nllc 12 13\nlayout\nbank 15 16 17\n\
         row 18 19 20 21 22 23 24 25\ncol 3 4 5 6 7 8 9 10 11 12 13 14\n\
         range 0x0 0x4000000 node 0\n",
    )
    .unwrap();
    let set = |n| ColorSet::any(&map).with_sets([n]);
    let (one, two) = (set(1), set(2));
    let found = pools(&map, &[Some(&one), Some(&two), Some(&two)]);
    assert_eq!(found[1], found[2]);
    assert_eq!(found[0] & found[1], 0);
    let mut reg = Regulator::new(&regulation(6, Sharing::Spare), 3).unwrap();
    reg.set_pools(&found).unwrap();
    // Twice r_min in all, but no bank has more than r_min to give.
    for (core, n) in [(0, 6), (1, 3), (2, 3)] {
        reg.reserve(core, Some(&reservation(n))).unwrap();
    }
    assert!(reg.set_pools(&[1, 1, 1]).is_err(), "now they share a bank");
    reg.begin();
    (0..3).for_each(|core| assert_eq!(reg.core(core, [0, 0]).order, Order::Run));
    assert_eq!(reg.domain(1), reg.domain(2));
    assert_ne!(reg.domain(0), reg.domain(1));
    assert_eq!(reg.used(0, [6, 0]).order, Order::Free(reg.domain(0)));
    assert_eq!(reg.used(1, [3, 0]).order, Order::Stop);
}

#[test]
#[should_panic(expected = "no core 2 of 2")]
fn a_core_that_is_not_there_panics() {
    two_cores(Sharing::None).used(2, [1, 0]);
}
