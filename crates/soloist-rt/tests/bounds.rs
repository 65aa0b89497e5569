//! The analysis is never below what the model plays.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/bounds/sets.rs"]
mod sets;

fn check(seeds: std::ops::Range<u64>, draw: sets::Draw) {
    let mut checked = 0;
    let least = seeds.end - seeds.start;
    for seed in seeds {
        for sample in sets::check(seed, draw) {
            assert!(
                sample.bound_ps >= sample.played_ps,
                "seed {seed}: {sample:?}"
            );
            checked += 1;
        }
    }
    assert!(checked >= least, "{checked} tasks");
}

#[test]
fn no_play_is_longer_than_its_bound() {
    check(0..60, sets::Draw::Beside);
}

/// Nobody is in another's cache.
#[test]
fn no_play_in_cache_colours_is_longer_than_its_bound() {
    check(0..60, sets::Draw::Colors);
}

/// Nobody is in their way, and other jobs, or the same when refreshes fall elsewhere,
/// are longer.
#[test]
fn no_play_is_longer_than_the_longest_of_the_same_jobs_alone() {
    for seed in [83, 231, 452, 716, 989] {
        check(seed..seed + 1, sets::Draw::Colors);
    }
}

/// Nothing but each other's lines in the caches of one core.
#[test]
fn no_play_beside_tasks_of_its_core_is_longer_than_its_bound() {
    check(0..120, sets::Draw::Alone);
}

/// Sets of which a job did what the first two of its program don't: it was longer
/// alone than what the analysis was told.
#[test]
fn no_play_is_longer_where_a_later_job_is_the_longest() {
    for seed in [1107, 1366, 1824, 4_000_479, 5_000_782, 5_003_290, 5_003_628] {
        check(seed..seed + 1, sets::Draw::Alone);
    }
}
