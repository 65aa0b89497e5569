//! Each source of waiting by itself: a play in which it is nearly all that a job waits for stays
//! within what is proved, and so do the lines that a core moves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/bounds/case.rs"]
mod case;

use soloist_core::time::US;
use soloist_memory::Platform;
use soloist_rt::analysis::interference::{Sharing, Way};
use soloist_rt::tasks::file::parse;

use case::{Banks, Case, Ran};

/// Tasks on a small machine, changed: two nodes of two cores, a last level to a node. Each core
/// has banks and cache colours of its own.
fn case(changes: &str, tasks: &str) -> Case {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    Case {
        platform: Platform::find_changed(file, &changes.parse().unwrap()).unwrap(),
        set: parse(tasks, "tasks.toml").unwrap(),
        homes: [0; 4],
        banks: Banks::Own,
        cache_colors: true,
        limits: vec![None; 4],
        length_ps: 300 * US,
        seed: 1,
    }
}

/// The first task waited for longer than so many ps, and not beyond its bound. No job misses.
fn waits(ran: &Ran, least: u64) {
    assert_eq!(ran.played.timeline.figures(0, 0).missed, 0);
    let alone = ran.case.set.tasks[0].wcet.0;
    let (played, bound) = (ran.longest(0).unwrap(), ran.answers(0)[0].response);
    let bound = bound.map_or(u64::MAX, |r| r.0);
    assert!(played > alone + least, "alone {alone}, played {played}");
    assert!(bound >= played, "bound {bound}, played {played}");
}

fn task(name: &str, core: u32, rest: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\ncore = {core}\n{rest}\n")
}

fn job(period_us: u64, wcet_us: u64, memory_kib: u64, kind: &str) -> String {
    format!("period = \"{period_us} us\"\nwcet = \"{wcet_us} us\"\nmemory = \"{memory_kib}K\"\nkind = \"{kind}\"")
}

fn load(memory_kib: u64, kind: &str) -> String {
    format!("memory = \"{memory_kib}K\"\nkind = \"{kind}\"")
}

/// Lines that leave a last level for another node keep its victim buffer, whatever its colours.
#[test]
fn a_victim_buffer_is_shared_in_cache_colours_too() {
    let changes = "[core]\noutstanding = 1\n[northbridge]\nvictims = 1\n[[hop]]\nlatency_ps = 500000\nbytes_per_us = 12800\ncredits = 16\n[controller]\ndirection_cap = 16";
    let tasks = task("a", 0, &job(400, 10, 1024, "bandwidth-write"))
        + &task("b", 1, &load(1024, "bandwidth-write"));
    let mut case = case(changes, &tasks);
    case.homes = [0, 1, 1, 1];
    case.length_ps = US * 4000;
    waits(&case.run(), 5 * US);
}

/// Beside it, what crowds the other node keeps these lines waiting there.
#[test]
fn what_crowds_the_node_of_a_mates_lines_is_in_the_way() {
    let changes =
        "[core]\noutstanding = 1\n[northbridge]\nvictims = 1\n[controller]\ndirection_cap = 16";
    let mut tasks = task("a", 0, &job(150, 10, 1024, "bandwidth-write"))
        + &task("b", 1, &load(1024, "bandwidth-write"));
    for core in [2, 3] {
        tasks += &task(&format!("c{core}"), core, &load(1024, "random-write"));
    }
    let mut case = case(changes, &tasks);
    case.homes = [0, 1, 1, 1];
    case.banks = Banks::Shared;
    case.length_ps = US * 1500;
    let ran = case.run();
    waits(&ran, US / 10);
    let cores: Vec<u32> = ran.around(0).co_runners.iter().map(|c| c.core).collect();
    assert_eq!(cores, [1, 2, 3]);
    let around = ran.around(0);
    assert!(around.co_runners.iter().all(|c| c.way == Way::Elsewhere));
}

/// A core whose memory is elsewhere pushes out lines that belong to this node.
#[test]
fn lines_that_others_push_out_to_a_node_are_in_the_way_there() {
    let tasks = task("a", 0, &job(150, 10, 1024, "latency"))
        + &task("c", 2, &load(1024, "bandwidth-write"))
        + &task("d", 3, &load(1024, "bandwidth-read"));
    let mut case = case("[controller]\ndirection_cap = 16", &tasks);
    // Core 2 has its memory on node 0, and shares a last level with core 3, which has not.
    case.homes = [0, 0, 0, 1];
    case.cache_colors = false;
    let around = case.run().around(0);
    let sharing: Vec<Sharing> = around.co_runners.iter().map(|c| c.sharing).collect();
    assert_eq!(sharing, [Sharing::Controller, Sharing::Controller]);
}

/// The core goes on with a job when a line is here that another task of its asked for.
#[test]
fn what_a_core_waits_for_when_a_job_comes_is_in_its_bound() {
    let changes = "[core]\noutstanding = 1\nstore_buffer = 1\n[northbridge]\nvictims = 1\nrequest_ps = 3000000\nresponse_ps = 3000000\n[controller]\nwrite_queue = 1\nbank_queue = 1\ndrain_high = 1\ndrain_low = 0\ndrain_idle = 1\ndirection_cap = 16";
    let tasks =
        task("a", 0, "period = \"97 us\"\nwcet = \"1 us\"") + &task("b", 0, &load(1024, "latency"));
    let mut case = case(changes, &tasks);
    case.length_ps = US * 3000;
    waits(&case.run(), 3 * US);
}

/// Writes that a drain has moved to the banks' queues are still before a job that begins.
#[test]
fn writes_in_banks_queues_are_handed_over() {
    let ran = case("", &task("a", 0, &job(150, 10, 64, "latency"))).run();
    let costs = ran.around(0).costs;
    assert_eq!(costs.handed_over, costs.in_flight + costs.kept);
    assert!(costs.kept >= 8 * 8);
}

/// Each line of a job may come when a drain begins, not its first alone.
#[test]
fn a_drain_may_be_before_each_line() {
    let changes = "[core]\noutstanding = 1\n[northbridge]\nvictims = 1\n[controller]\ndirection_cap = 1\nbank_queue = 1\nwrite_queue = 512\ndrain_high = 512\ndrain_low = 0\ndrain_idle = 512";
    // A line comes as often as a drain begins.
    let lines = "period = \"3440 us\"\nwcet = \"1720 us\"\nmemory = \"1M\"\nlines = 100";
    let mut tasks = task("a", 0, lines);
    for core in 1..4 {
        tasks += &task(&format!("b{core}"), core, &load(1024, "bandwidth-write"));
    }
    let mut case = case(changes, &tasks);
    case.length_ps = US * 17_200;
    waits(&case.run(), 200 * US);
}

/// A stopped core has more lines on their way than a small budget, in each period.
#[test]
fn a_limit_lets_go_what_it_held_in_each_period() {
    let changes = "[core]\noutstanding = 10\nstore_buffer = 16\n[controller]\ndirection_cap = 16";
    let tasks = task("a", 0, &job(900, 10, 64, "latency"))
        + &task("b", 1, &job(20_000, 19_000, 1024, "bandwidth-write"));
    let mut case = case(changes, &tasks);
    case.limits[1] = Some(256_000);
    case.length_ps = US * 40_000;
    let ran = case.run();
    let stats = &ran.played.stats[1];
    let moved = stats.llc_misses + stats.write_backs;
    let counted = ran.around(0).co_runners[0].lines(&ran.around(0).costs, 40_000 * US);
    assert!(moved <= counted.unwrap(), "{moved} {counted:?}");
}

/// Where others fill the last level, each line that a job writes moves three: itself, what it
/// pushes out there, and what it pushes out when it comes back from the private caches.
#[test]
fn no_job_moves_more_lines_than_are_counted() {
    let changes = "[core]\noutstanding = 1\n[controller]\ndirection_cap = 16";
    let tasks = task("a", 0, &job(290, 12, 32, "bandwidth-write"))
        + &task("b", 1, &load(1024, "bandwidth-write"));
    let mut case = case(changes, &tasks);
    case.cache_colors = false;
    case.length_ps = US * 3000;
    let ran = case.run();
    let profile = ran.profiles[0];
    let (moved, counted) = (ran.played.lines[0], ran.around(0).lines(&profile));
    assert!(moved > 5 * profile.requests / 2, "{moved} {profile:?}");
    assert!(
        moved <= counted + ran.around(0).costs.in_flight,
        "{moved} {counted} {profile:?}"
    );
}
