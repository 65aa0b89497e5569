//! The analysis is never below what the model plays.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/bounds/sets.rs"]
mod sets;

#[test]
fn no_play_is_longer_than_its_bound() {
    let mut checked = 0;
    for seed in 0..60 {
        for sample in sets::check(seed) {
            assert!(
                sample.bound_ps >= sample.played_ps,
                "seed {seed}: {sample:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked} tasks");
}
