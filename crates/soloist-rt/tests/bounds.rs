//! The analysis is never below what the model plays.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/bounds/sets.rs"]
mod sets;

use soloist_memory::{Controller, Platform, Request};
use soloist_rt::analysis::interference::Costs;

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

/// Latencies of reads that come one by one, in cycles, from so many banks in turn.
fn latencies(platform: &Platform, banks: u16) -> Vec<u64> {
    let memory = &platform.memory;
    let mut controller = Controller::new(&memory.device, &memory.geometry, &memory.policy);
    let mut now = 0;
    let read = |token: u64| {
        let bank = (token % u64::from(banks)) as u16;
        let request = Request {
            token,
            line: token,
            bank,
            row: 0,
            write: false,
            owner: 0,
        };
        controller.idle_until(now);
        let mut done = controller.push(now, request);
        while done.is_none() {
            done = controller.step();
        }
        let completion = done.unwrap();
        now = completion.done + 1;
        completion.done - completion.arrival
    };
    (0..60_000).map(read).collect()
}

/// A refresh closes rows before it and has them opened behind it, in each rank.
#[test]
fn no_refresh_costs_more_than_is_charged() {
    for machine in ["opteron-6128", "haswell", "skylake", "raspberry-pi-4"] {
        let platform = Platform::find(machine).unwrap();
        let (device, shape) = (&platform.memory.device, &platform.memory.geometry);
        let refresh = Costs::of(&platform).refresh;
        let tck = u64::from(device.tck_ps);
        // What was charged once. Refreshed bank by bank, the next read may come when most of
        // it is over.
        let rfc = match device.refresh_units() {
            1 => u64::from(device.trfc),
            _ => 0,
        };
        for banks in [1, shape.banks, shape.ranks * shape.banks] {
            let all = latencies(&platform, banks as u16);
            let hit = all[1..].iter().min().unwrap();
            let delays: Vec<u64> = all[banks as usize..]
                .iter()
                .map(|l| (l - hit) * tck)
                .collect();
            let length = all.iter().sum::<u64>() * tck;
            let longest = *delays.iter().max().unwrap();
            assert!(
                longest <= refresh.time_ps,
                "{machine}: {longest} {refresh:?}"
            );
            assert!(longest > rfc * tck, "{machine}: {longest}");
            let ranks = u64::from(banks.div_ceil(shape.banks));
            let times = (length / refresh.interval_ps + 1) * ranks;
            let charged = times * (refresh.time_ps + refresh.rows * refresh.reopen_ps);
            let delay = delays.iter().sum::<u64>();
            assert!(
                delay <= charged,
                "{machine}, {banks} banks: {delay} {charged}"
            );
            assert!(u64::from(shape.ranks) <= refresh.ranks);
        }
    }
}

/// A drain lasts as long as writes come, whatever the cap on turns. On one channel they end, since
/// reads wait; on several they need not.
#[test]
fn what_drains_for_as_long_as_writes_come_is_bounded_by_no_turn() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let changes = "controller.direction_cap = 16".parse().unwrap();
    let platform = Platform::find_changed(file, &changes).unwrap();
    let memory = &platform.memory;
    let mut controller = Controller::new(&memory.device, &memory.geometry, &memory.policy);
    let (mut now, mut done) = (0, Vec::new());
    for token in 0..2000 {
        let read = token == 200;
        let request = Request {
            token,
            line: token,
            // Each opens another row.
            bank: if read { 7 } else { token as u16 % 4 },
            row: token as u32,
            write: !read,
            owner: 0,
        };
        now += 1;
        while controller.room_at(!read).is_none() || controller.next().is_some_and(|at| at <= now) {
            done.extend(controller.step());
            now = now.max(controller.now());
        }
        controller.idle_until(now);
        done.extend(controller.push(now, request));
    }
    // When it waits for the last of them it has passed 1700 of them by.
    assert!(done.iter().all(|completion| completion.write));
    assert!(Costs::of(&platform).turn_ps.is_some());
    let two = Costs::of(&Platform::find("haswell").unwrap());
    assert_eq!(two.turn_ps, None);
}

/// Refreshes also come in the time that refreshes add.
#[test]
fn time_that_refreshes_add_has_refreshes_too() {
    let refresh = Costs::of(&Platform::find("raspberry-pi-4").unwrap()).refresh;
    let (delay, own) = (1_000_000_000, 1_000_000);
    let added = refresh.added(delay, own);
    let due = (delay + added).div_ceil(refresh.interval_ps) * refresh.ranks;
    assert!(added >= due * refresh.time_ps, "{added} {due}");
    // A job of one line waits for one of them.
    assert_eq!(
        refresh.added(0, 1),
        refresh.time_ps + refresh.reopen_ps * refresh.rows.min(1)
    );
}
