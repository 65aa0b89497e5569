//! The analysis is never below what the model plays.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recording;
#[path = "../examples/bounds/sets.rs"]
mod sets;

use std::path::Path;

use recording::record;
use sets::case::{Banks, Case};
use soloist_core::time::US;
use soloist_machine::Machine;
use soloist_memory::{Controller, Platform, Request};
use soloist_record::Kind;
use soloist_rt::analysis::interference::{CoRunner, Costs, Sharing, Way};
use soloist_rt::tasks::file;

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

/// Reads of the first rank of which 24 are under way, each of which puts a dirty line of the
/// second rank out; beside them one read of the second, from when so many requests are served.
/// Returns how many are served before it.
fn served_before(platform: &Platform, begin: usize) -> usize {
    const VICTIM: u64 = u64::MAX;
    let memory = &platform.memory;
    let mut controller = Controller::new(&memory.device, &memory.geometry, &memory.policy);
    let banks = u64::from(memory.geometry.banks);
    let request = |token: u64, write: bool| {
        let bank = match write {
            _ if token == VICTIM => 2 * banks - 1,
            true => banks + token % (banks - 1),
            false => token % banks,
        };
        Request {
            token,
            line: token.wrapping_mul(2) + u64::from(write),
            bank: bank as u16,
            row: 0,
            write,
            owner: 0,
        }
    };
    let (mut now, mut done, mut begun) = (0, Vec::new(), false);
    let (mut sent, mut due) = ([0; 2], [24, 8]);
    while done.len() < 6000 {
        now += 1;
        let before = done.len();
        while controller.next().is_some_and(|at| at <= now) {
            done.extend(controller.step());
        }
        for read in done[before..].iter().filter(|c| !c.write) {
            if read.token == VICTIM {
                return done.len() - begin;
            }
            due = due.map(|n| n + 1);
        }
        controller.idle_until(now);
        now = now.max(controller.now().saturating_sub(1));
        for write in [false, true] {
            let way = usize::from(write);
            if due[way] == 0 || controller.room_at(write).is_none_or(|at| at > now) {
                continue;
            }
            if !write && !begun && done.len() > begin {
                begun = true;
                done.extend(controller.push(now, request(VICTIM, false)));
                continue;
            }
            done.extend(controller.push(now, request(sent[way], write)));
            sent[way] += 1;
            due[way] -= 1;
        }
    }
    done.len()
}

/// Reads of one rank and writes of the other obey both caps, and starve a read beside the writes
/// until a refresh.
#[test]
fn what_two_ranks_do_in_turn_is_bounded_by_no_turn() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ranks.toml");
    let changes = "controller.direction_cap = 1\ncontroller.rank_cap = 1";
    let platform = Platform::find_changed(file, &changes.parse().unwrap()).unwrap();
    let before = served_before(&platform, 1340);
    assert!(before > 500, "{before}");
    assert_eq!(Costs::of(&platform).turn_ps, None);
}

/// `small.toml` with other caches, and other figures of memory.
fn small(changes: &str, caches: [(&str, &str); 3]) -> Platform {
    let mut text = include_str!("small.toml").replace("[\"12-13\"]", "[\"12\"]");
    for (from, to) in caches {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let mut machine = Machine::parse(&text, "small.toml").unwrap();
    let memory = machine.memory_table().unwrap();
    machine.memory = Some(memory.changed(&changes.parse().unwrap()).unwrap());
    Platform::of(&machine).unwrap()
}

const L1: &str = "\"4K\", ways = 2";
const L2: &str = "\"16K\", ways = 4";
const L3: &str = "\"64K\", ways = 4";

/// `a` on core 0, with banks and cache colours of its own, beside `b` on core 1; how much longer
/// than alone a job of `a` is, played and by its bound, ps.
fn added(
    platform: Platform,
    dir: &Path,
    tasks: [&str; 2],
    limit: Option<u64>,
    ps: u64,
) -> [u64; 2] {
    let tasks = [0, 1].map(|i| {
        let name = ["a", "b"][i];
        format!("[[task]]\nname = \"{name}\"\ncore = {i}\n{}\n", tasks[i])
    });
    std::fs::write(dir.join("tasks.toml"), tasks.concat()).unwrap();
    let case = Case {
        platform,
        set: file::read(&dir.join("tasks.toml")).unwrap(),
        homes: [0; 4],
        banks: Banks::Own,
        cache_colors: true,
        limits: vec![None, limit, None, None],
        length_ps: ps,
        seed: 1,
    };
    let ran = case.run();
    let alone = ran.case.set.tasks[0].wcet.0;
    let bound = ran.answers(0)[0].response.map_or(u64::MAX, |r| r.0);
    [ran.longest(0).unwrap().saturating_sub(alone), bound - alone]
}

const CHASE: &str = "period = \"1 ms\"\nwcet = \"20 us\"\nmemory = \"256K\"\nkind = \"latency\"";

/// A limit is of reads: writes of a core are what its reads push out, of each private cache and
/// of the last level.
#[test]
fn what_a_limited_core_writes_is_in_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    // Each read pushes a dirty line out of the private caches, which is not in the last level.
    let steps = (0..40_000u64).map(|i| {
        let (kind, n) = match i % 2 {
            0 => (Kind::Read, i / 2),
            _ => (Kind::WriteBack, i / 2 + 8192),
        };
        (kind, n / 64 * 7 % 256, (n % 64) as u8, 0)
    });
    record(&dir.path().join("rec"), 1, steps);
    let tasks = [CHASE, "kind = \"recorded\"\nrecording = \"rec\""];
    for limit in [1_000_000, 400_000_000] {
        let platform = small("", [(L1, L1), (L2, L2), (L3, L3)]);
        let [played, bound] = added(platform, dir.path(), tasks, Some(limit), 3_000 * US);
        assert!(played <= bound, "{limit}: {played} {bound}");
    }
    let costs = Costs::of(&small("", [(L1, L1), (L2, L2), (L3, L3)]));
    let of = |limit: u64| {
        let core = CoRunner {
            core: 1,
            sharing: Sharing::Controller,
            way: Way::Apart,
            shares_llc: false,
            llc: 0,
            limit: Some(limit),
            stop_ps: 0,
            tasks: Vec::new(),
            best_effort: true,
        };
        core.job_ps(&costs, 1) / costs.other_bank_ps
    };
    // A thousand lines more in each of two periods, each with one from every cache.
    assert_eq!(of(2_000_000) - of(1_000_000), 2 * 1000 * (1 + costs.pushes));
}

/// A burst of a core's own fills the victim buffer but for the place of another's line, and waits
/// for that.
#[test]
fn lines_of_a_burst_may_wait_for_each_place() {
    const BURST: u64 = 1000;
    let dir = tempfile::tempdir().unwrap();
    let line = |n: u64| (1 + n / 64 % 200, (n % 64) as u8);
    let bursts = (0..100 * (BURST + 2)).map(|i| match i % (BURST + 2) {
        0 => (Kind::Read, 0, 0, 20_000),
        at @ 1..=BURST => {
            let (page, line) = line(i / (BURST + 2) * BURST + at);
            (Kind::WriteBack, page, line, 0)
        }
        _ => (Kind::Read, 0, 1, 0),
    });
    record(&dir.path().join("bursts"), 1, bursts);
    let slow = (0..6000).map(|i| match (i % 2, line(i / 2)) {
        (0, _) => (Kind::Read, 0, 0, 9000),
        (_, (page, line)) => (Kind::WriteBack, page, line, 0),
    });
    record(&dir.path().join("slow"), 1, slow);
    let changes = "core.outstanding = 1\ncontroller.direction_cap = 16\n\
        [northbridge]\nvictims = 1000\nrequest_ps = 2000000\nresponse_ps = 2000000";
    let platform = small(changes, [(L1, L1), (L2, L2), (L3, "\"192K\", ways = 24")]);
    let tasks = [
        "period = \"2 ms\"\nwcet = \"850 us\"\nkind = \"recorded\"\nrecording = \"bursts\"",
        "period = \"500 us\"\nwcet = \"450 us\"\nkind = \"recorded\"\nrecording = \"slow\"",
    ];
    let [played, bound] = added(platform, dir.path(), tasks, None, 12_000 * US);
    assert!(played > 100 * US && played <= bound, "{played} {bound}");
}
