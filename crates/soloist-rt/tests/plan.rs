//! Plans on a small machine: what holds is proved and played, what does not is
//! told, and what can't be names its line.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::time::Time;
use soloist_machine::Machine;
use soloist_memory::Platform;
use soloist_rt::analysis::interference::{
    surroundings, Conditions, Costs, Shared, Sharing, Surroundings,
};
use soloist_rt::analysis::response::{analyse, Answer};
use soloist_rt::analysis::ProfiledSet;
use soloist_rt::model::policy::{places, Policy};
use soloist_rt::model::profile::Profile;
use soloist_rt::plan::candidates::candidates;
use soloist_rt::plan::check::simulate;
use soloist_rt::plan::evidence::{html, Source};
use soloist_rt::plan::grounds::Grounds;
use soloist_rt::plan::inputs::Input;
use soloist_rt::plan::plan;
use soloist_rt::tasks::file::parse;
use soloist_trace::gantt;
use soloist_trace::measured::{Measured, Task};

fn small() -> Platform {
    Platform::find(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml")).unwrap()
}

const SMALL: &str = include_str!("small.toml");

/// What is a guess in the file's text.
fn grounds(text: &str) -> Grounds {
    Grounds::of(&Machine::parse(text, "small.toml").unwrap(), text)
}

const TASKS: &str = r#"
[[task]]
name = "control"
period = "1 ms"
wcet = "60 us"
memory = "256K"
kind = "latency"

[[task]]
name = "camera"
period = "10 ms"
wcet = "300 us"
memory = "1M"
kind = "bandwidth-read"

[[task]]
name = "logger"
memory = "2M"
kind = "stream"
"#;

#[test]
fn a_plan_holds_apart_and_no_play_is_longer_than_its_proof() {
    let platform = small();
    let set = parse(TASKS, "tasks.toml").unwrap();
    let plan = plan(&platform, &set, 1).unwrap();
    assert!(plan.holds, "{:#?}", plan.analysis);
    let node = |name: &str| {
        let all = plan.assignments.iter();
        all.clone().find(|a| a.task == name).unwrap().node
    };
    // It is the last way that was tried, and others stand behind it.
    let ways = candidates(&platform, &set);
    assert!(plan.tried < ways.len(), "{} of {}", plan.tried, ways.len());
    let cores = plan.assignments.iter().map(|a| a.core);
    assert!(cores.eq(ways[plan.tried - 1].cores.iter().copied()));
    // CAMC's rule: what has no deadline is on another controller.
    assert_ne!(node("control"), node("logger"));
    assert_ne!(node("camera"), node("logger"));
    let check = simulate(&platform, &plan).unwrap();
    assert_eq!(check.tasks.len(), 2);
    for played in &check.tasks {
        let mut analysis = plan.analysis.iter();
        let proved = analysis.find(|a| a.task == played.task).unwrap();
        assert!(
            played.response <= proved.response.unwrap(),
            "{played:?} {proved:?}"
        );
        assert!(played.jobs > 0 && played.missed == 0, "{played:?}");
        // Longer than until all releases repeat: programs go on.
        let least = if played.task == "control" { 40 } else { 4 };
        assert!(played.jobs >= least, "{played:?}");
    }
    assert!(check.disproved(&plan.analysis).is_empty());
    let mut wrong = plan.analysis.clone();
    wrong[0].response = Some(Time(check.tasks[0].response.0 - 1));
    assert_eq!(check.disproved(&wrong), ["control"]);
    // What was never proved can't be disproved.
    wrong[0].holds = false;
    assert!(check.disproved(&wrong).is_empty());
    let measured = Measured {
        length_ns: 1_000_000_000,
        lost_events: 0,
        unread_lines: 0,
        tasks: vec![seen("control", 777_000)],
    };
    let mut source = Source {
        file: "tasks.toml",
        tasks: TASKS,
        config: "",
        inputs: &[Input::of("machine", "machines/x.toml", b"abc")],
        grounds: &grounds(SMALL),
        event: None,
        measured: None,
        command: "soloist plan tasks.toml",
        version: "0",
        seed: 1,
    };
    let page = html(&plan, &check, &source);
    assert!(page.contains("nothing here was measured") && !page.contains("777 us"));
    source.measured = Some(&measured);
    let page = html(&plan, &check, &source);
    for words in [
        "Every deadline is proved",
        "DMA",
        "not covered",
        "<svg",
        "claims no compliance",
        "by this plan's tasks",
        "anything else that runs on the machine",
        "small.toml says (trust: exact)",
        "controller.hit_cap 128",
        "bandwidth-read",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "777 us; 1 of 9 jobs missed",
        "(played: control 40, camera 10)",
        "a sample",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("may not hold"));
    source.event = Some("page-faults counts no lines");
    let page = html(&plan, &check, &source);
    assert!(page.contains("may not hold") && page.contains("page-faults counts no lines"));
    let chart = gantt::svg(&check.timeline, "a < b", 1);
    assert!(chart.contains("a &lt; b") && chart.contains(">control<"));
}

/// A figure that the file has counts as known, unless it has a range too; one that
/// no bound is made of is not told.
#[test]
fn guessed_figures_are_told_with_their_values() {
    let told = grounds(SMALL).to_string();
    for words in [
        "northbridge.victims 32",
        "core.outstanding 10",
        "controller.hit_cap 128",
    ] {
        assert!(told.contains(words), "{told}");
    }
    for words in ["guessed there", "request_ps", "window", "prefetch_slots"] {
        assert!(!told.contains(words), "{told}");
    }
    let known = SMALL.replace(
        "request_ps = 10000\n",
        "request_ps = 10000\nvictims = 8\n\n[memory.core]\noutstanding = 6\nprefetch = true\n",
    );
    let known = known.replace("response_ps = 10000\nbytes_per_us = 14400\n", "");
    let known = known + "\n[memory.range]\n\"core.outstanding\" = [2, 8]\n";
    let told = grounds(&known).to_string();
    assert!(
        told.contains("guessed there: core.outstanding 6;"),
        "{told}"
    );
    assert!(
        !told.contains("victims") && told.contains("prefetch_slots 8"),
        "{told}"
    );
}

/// What a row of the table says adds up to its response, also of a task that
/// others of its core leave dirty lines and page walks.
#[test]
fn a_response_is_the_sum_of_its_parts() {
    let text = TASKS.replace("[[task]]", "[[task]]\ncore = 0");
    let text = text.replacen("period", "jitter = \"1 us\"\nperiod", 1);
    let plan = plan(&small(), &parse(&text, "tasks.toml").unwrap(), 1).unwrap();
    for a in &plan.analysis {
        let Some(response) = a.response else { continue };
        let jitter = plan.set.tasks.iter().find(|t| t.name == a.task);
        let jitter = jitter.unwrap().release.unwrap().jitter.0;
        let parts = a.alone.0 + a.preempted.0 + a.memory.0 + jitter;
        assert_eq!(response.0, parts, "{a:?}");
    }
    assert!(plan.analysis.iter().any(|a| a.response.is_some()));
}

/// A task as it was traced.
fn seen(task: &str, worst_ns: u64) -> Task {
    Task {
        task: task.to_owned(),
        pid: 1,
        cores: vec![0],
        period_ns: None,
        deadline_ns: None,
        jobs: 9,
        missed: 1,
        miss_rate: 1.0 / 9.0,
        response_p50_ns: None,
        response_p999_ns: None,
        response_worst_ns: Some(worst_ns),
        worst_is_cut_off: false,
        execution_max_ns: 0,
        preempted: 0,
        yielded: 0,
        migrated: 0,
        throttled_ns: 0,
        held_ns: 0,
    }
}

#[test]
fn what_was_measured_is_found_by_what_a_kernel_keeps_of_a_name() {
    let measured = Measured {
        length_ns: 1,
        lost_events: 0,
        unread_lines: 0,
        tasks: vec![seen("a-name-of-twent", 1)],
    };
    assert!(measured.task("a-name-of-twenty-two").is_some());
    assert!(measured.task("a-name-of").is_none());
}

#[test]
fn what_misses_is_told_with_what_would_be_enough() {
    let tight = TASKS.replace("1 ms", "62 us");
    let set = parse(&tight, "tasks.toml").unwrap();
    let plan = plan(&small(), &set, 1).unwrap();
    assert!(!plan.holds);
    let missed = plan
        .relaxations
        .iter()
        .find(|r| r.task == "control")
        .unwrap();
    assert!(
        missed.misses_by.is_some_and(|time| time.0 > 0)
            && missed.change.contains("a wcet of at most"),
        "{missed:?}"
    );
}

/// A server of one node with three channels, whose pages lie in one each: tasks with
/// deadlines get one of them, all else the others.
#[test]
fn an_own_controller_is_a_channel_where_there_is_one_node() {
    let file = include_str!("../../../machines/server-3-channels.toml");
    let (_, timing) = include_str!("small.toml").split_once("[cache]").unwrap();
    let (timing, _) = timing.split_once("[[memory.hop]]").unwrap();
    let text = format!("{file}\n[cache]{timing}");
    let machine = Machine::parse(&text, "server-3-channels.toml").unwrap();
    let platform = Platform::of(&machine).unwrap();
    let set = parse(TASKS, "tasks.toml").unwrap();
    let places = places(Policy::DiffController, &platform, &set, None).unwrap();
    let map = &platform.memory.map;
    let channel = |i: usize| {
        let colors = places[i].colors.as_ref().unwrap();
        let mut sets = (0..map.n_bank_sets()).filter(|&set| colors.holds(set, 0));
        sets.next().unwrap() / (map.n_bank_sets() / 4)
    };
    let last = set.tasks.len() - 1;
    assert!((0..last).all(|i| set.tasks[i].release.is_some() == (channel(i) == 0)));
    assert_eq!(channel(last), 1);
}

/// In its colours a task may take longer than alone on the machine, so what is
/// advised must not be a time of the task in its colours.
#[test]
fn advice_is_less_than_what_was_asked() {
    const GUEST: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guest/cli/plan.toml"
    );
    let tasks = r#"
[[task]]
name = "camera"
period = "200 us"
wcet = "195 us"
memory = "2M"
kind = "program"
ipc = 0.9
mpki = 3

[[task]]
name = "logger"
memory = "8M"
kind = "stream"
"#;
    let set = parse(tasks, "tasks.toml").unwrap();
    let plan = plan(&Platform::find(GUEST).unwrap(), &set, 1).unwrap();
    let told: Vec<f64> = plan
        .relaxations
        .iter()
        .map(|r| {
            let (_, wcet) = r.change.split_once("a wcet of at most ").unwrap();
            wcet.split(' ').next().unwrap().parse().unwrap()
        })
        .collect();
    assert!(!told.is_empty(), "{plan:#?}");
    assert!(told.iter().all(|us| *us < 195.0), "{told:?}");
}

/// On one core, control makes the camera's filter fetch its cache again after each
/// preemption: more time alone is no help there. Where it is, it must be enough.
#[test]
fn advice_that_is_followed_makes_it_hold() {
    let platform = Platform::find("raspberry-pi-4").unwrap();
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/three-tasks.toml"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let advice = |text: &str| {
        let made = plan(&platform, &parse(text, "tasks.toml").unwrap(), 1).unwrap();
        let told = made.relaxations.iter().map(|r| r.change.as_str());
        (made.holds, told.collect::<Vec<_>>().join("; "))
    };
    let together = text.replace("\nperiod", "\ncore = 0\nperiod");
    let (holds, change) = advice(&together);
    assert!(!holds && change.contains("another core"), "{change}");
    let apart = text.replace("name = \"camera\"", "name = \"camera\"\ncore = 1");
    let (holds, change) = advice(&apart);
    assert!(!holds);
    let (_, period) = change
        .split_once("a period and deadline of at least ")
        .unwrap();
    let period: Vec<&str> = period.split([' ', ',']).take(2).collect();
    let followed = apart.replace("\"5 ms\"", &format!("\"{}\"", period.join(" ")));
    assert!(advice(&followed).0, "{change}");
}

#[test]
fn what_cannot_be_names_its_line() {
    for (from, to, line, words) in [
        ("\"2M\"", "\"40M\"", 16, "bank sets on node"),
        (
            "name = \"camera\"",
            "name = \"camera\"\ncore = 9",
            9,
            "small has 0 to 3",
        ),
        (
            "kind = \"latency\"",
            "lines = 99999999",
            2,
            "lengthen `wcet` or name fewer `lines`",
        ),
        (
            "\"10 ms\"\nwcet = \"300 us\"",
            "\"10 us\"\nwcet = \"9950 ns\"",
            9,
            "refreshes of memory take that",
        ),
    ] {
        let set = parse(&TASKS.replace(from, to), "tasks.toml").unwrap();
        let error = plan(&small(), &set, 1).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("tasks.toml:{line}: ")) && error.contains(words),
            "{error}"
        );
    }
    let fast = TASKS.replacen(
        "kind = \"latency\"",
        "kind = \"program\"\nipc = 7\nmpki = 400",
        1,
    );
    let pi = Platform::find("raspberry-pi-4").unwrap();
    let error = plan(&pi, &parse(&fast, "tasks.toml").unwrap(), 1).unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("tasks.toml:2: ") && told.contains("lower `ipc` or `mpki`"),
        "{told}"
    );
    let idle = parse("[[task]]\nname = \"a\"\n", "tasks.toml").unwrap();
    let error = plan(&small(), &idle, 1).unwrap_err().to_string();
    assert!(error.contains("nothing to plan for"), "{error}");
    let many: String = (0..5)
        .map(|i| format!("[[task]]\nname = \"t{i}\"\nperiod = \"1 ms\"\nwcet = \"900 us\"\n"))
        .collect();
    let error = plan(&small(), &parse(&many, "tasks.toml").unwrap(), 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("don't fit the 4 of small"), "{error}");
    let many = many.replace("900 us", "700 us");
    let error = plan(&small(), &parse(&many, "tasks.toml").unwrap(), 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no way was found to deal them"), "{error}");
}

/// What is proved of `low` under `high`, each of `memory` KiB and doing `what`, beside a
/// stream on another node, or in their last level; in jobs of so many lines and no other access.
fn proved(what: &str, memory: u64, lines: u64, llc: bool) -> Answer {
    let task = |name: &str, period: u64, wcet: u64| {
        format!("[[task]]\nname = \"{name}\"\ncore = 0\nperiod = \"{period} ms\"\nwcet = \"{wcet} us\"\nmemory = \"{memory}K\"\n{what}\n")
    };
    let beside = if llc { 1 } else { 2 };
    let text = task("high", 100_000, 50)
        + &task("low", 400_000, 100)
        + &format!(
            "[[task]]\nname = \"load\"\ncore = {beside}\nmemory = \"2M\"\nkind = \"stream\"\n"
        );
    let set = parse(&text, "tasks.toml").unwrap();
    let profile = Profile {
        accesses: lines,
        lines,
        requests: lines,
    };
    let profiles = [profile, profile, Profile::default()];
    let tasks = ProfiledSet::new(&set, &profiles);
    let shared = |_, _| Shared {
        memory: Sharing::Nothing,
        llc,
        elsewhere: true,
    };
    let platform = small();
    let conditions = Conditions {
        platform: &platform,
        limits: &[None; 4],
        shared: &shared,
    };
    let around = surroundings(tasks, 0, conditions);
    analyse(tasks, 0, &around).remove(1)
}

/// A core with deadlines beside one that streams without end, in other banks of its controller.
fn beside_a_stream(machine: &str, caps: &str) -> (Surroundings, u64) {
    let changes = format!("[controller]\n{caps}");
    let file = format!("{}/tests/{machine}.toml", env!("CARGO_MANIFEST_DIR"));
    let platform = Platform::find_changed(&file, &toml::from_str(&changes).unwrap()).unwrap();
    let text = "[[task]]\nname = \"a\"\ncore = 0\nperiod = \"9 ms\"\nwcet = \"1 ms\"\nmemory = \"1M\"\nlines = 9\n\
        [[task]]\nname = \"b\"\ncore = 1\nmemory = \"2M\"\nkind = \"stream\"\n";
    let set = parse(text, "tasks.toml").unwrap();
    let profiles = [Profile::default(); 2];
    let shared = |_, _| Shared {
        memory: Sharing::Controller,
        llc: false,
        elsewhere: false,
    };
    let conditions = Conditions {
        platform: &platform,
        limits: &[None; 4],
        shared: &shared,
    };
    let around = surroundings(ProfiledSet::new(&set, &profiles), 0, conditions);
    let delay = around.delay(9, 1_000_000_000);
    (around, delay)
}

/// Without a cap on turns of the bus a stream goes first for as long as it lasts.
#[test]
fn what_nothing_ends_is_not_bounded_by_what_is_in_flight() {
    for (machine, caps) in [
        ("ranks", "direction_cap = 4"),
        ("ranks", "direction_cap = 4\nrank_cap = 4"),
        ("channels", "direction_cap = 4"),
        ("small", "rank_cap = 4"),
        ("small", ""),
    ] {
        let (around, delay) = beside_a_stream(machine, caps);
        assert_eq!(around.costs.turn_ps, None, "{caps}");
        assert_eq!(delay, u64::MAX, "{caps}");
        // A job that asks for nothing waits for nobody.
        assert!(around.delay(0, 1_000_000_000) < 1_000_000_000);
    }
    let (few, short) = beside_a_stream("small", "direction_cap = 4");
    let (_, long) = beside_a_stream("small", "direction_cap = 64");
    assert!(short < long && long < 1_000_000_000, "{short} {long}");
    assert!(few.costs.turn_ps.unwrap() > 8 * few.costs.refresh.line_ps);
}

/// Where no cap ends a stream, a core that is limited and one that pushes out lines to another
/// node are each bounded by what is known of it.
#[test]
fn a_stream_that_is_limited_is_bounded_by_its_limit() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let platform = Platform::find(file).unwrap();
    let mut text = "[[task]]\nname = \"a\"\ncore = 0\nperiod = \"9 ms\"\nwcet = \"1 ms\"\nmemory = \"1M\"\nlines = 9\n".to_owned();
    for core in [1, 2] {
        text += &format!(
            "[[task]]\nname = \"b{core}\"\ncore = {core}\nmemory = \"2M\"\nkind = \"stream\"\n"
        );
    }
    let set = parse(&text, "tasks.toml").unwrap();
    let profiles = [Profile::default(); 3];
    // Core 1 has memory of another node, and core 2, which is limited, of this one.
    let shared = |a, b| Shared {
        memory: match a + b {
            2 => Sharing::Controller,
            _ => Sharing::Nothing,
        },
        llc: a + b == 1,
        elsewhere: a + b != 2,
    };
    let limited = [None, None, Some(16_000_000), None];
    let delay = |limits: &[Option<u64>]| {
        let conditions = Conditions {
            platform: &platform,
            limits,
            shared: &shared,
        };
        let around = surroundings(ProfiledSet::new(&set, &profiles), 0, conditions);
        assert_eq!(around.costs.turn_ps, None);
        around.delay(9, 1_000_000_000)
    };
    assert!(delay(&limited) < 1_000_000_000, "{}", delay(&limited));
    // Without the limit nothing is known of it.
    assert_eq!(delay(&[None; 4]), u64::MAX);
}

/// A core that has used its budget up goes on until it is stopped, in each period.
#[test]
fn the_time_until_a_core_is_stopped_is_in_the_bound() {
    let text = include_str!("../../../docs/examples/three-tasks-pi.toml");
    let platform = Platform::find("raspberry-pi-4").unwrap();
    let made = |stop: &str| {
        let set = parse(&format!("stop = \"{stop}\"\n{text}"), "tasks.toml").unwrap();
        plan(&platform, &set, 1).unwrap()
    };
    let (soon, late) = (made("1 us"), made("300 us"));
    let response = |plan: &soloist_rt::plan::Plan| plan.analysis[0].response;
    assert!(
        soon.holds && !late.holds,
        "{:?} {:?}",
        response(&soon),
        response(&late)
    );
    let (five, ten) = (made("2 us"), made("12 us"));
    let between = |a, b| response(b).unwrap().0 - response(a).unwrap().0;
    // So many periods begin in the response, and in each it is in the way for that time more.
    let periods = response(&five).unwrap().0 / 1_000_000_000;
    assert!(
        between(&five, &ten) >= periods * 10_000_000,
        "{:?} {:?}",
        response(&five),
        response(&ten)
    );
}

/// A limit is of reads. Where the last level has fewer ways than the private caches a core can go
/// on writing without any: three times as long as counted, in a play of such a machine.
#[test]
fn no_limit_is_given_where_a_core_can_write_without_reading() {
    let text = include_str!("../../../machines/raspberry-pi-4.toml");
    let (few, many) = ("\"32K\", ways = 2", "\"512K\", ways = 32");
    assert!(text.contains(few));
    let set = include_str!("../../../docs/examples/three-tasks-pi.toml");
    let set = parse(set, "tasks.toml").unwrap();
    let made = |text: &str| {
        let machine = Machine::parse(text, "pi.toml").unwrap();
        plan(&Platform::of(&machine).unwrap(), &set, 1).unwrap()
    };
    let limits = |plan: &soloist_rt::plan::Plan| {
        let all = plan.assignments.iter();
        all.filter(|a| a.limit.is_some()).count()
    };
    let (limited, free) = (made(text), made(&text.replace(few, many)));
    assert!(limited.holds && limits(&limited) == 1);
    assert!(!free.holds && limits(&free) == 0);
}

/// A stream in one rank starves a task of the other, and no cap ends that.
#[test]
fn no_stream_starves_a_task_beyond_its_bound() {
    let text = include_str!("starve.toml");
    let machine = Machine::parse(text, "starve.toml").unwrap();
    let platform = Platform::of(&machine).unwrap();
    let mut tasks = "[[task]]\nname = \"victim\"\ncore = 0\nperiod = \"30 ms\"\nwcet = \"100 us\"\nmemory = \"8M\"\nkind = \"latency\"\n".to_owned();
    for (core, memory) in [(1, 700), (2, 340), (3, 340)] {
        tasks += &format!("[[task]]\nname = \"s{core}\"\ncore = {core}\nmemory = \"{memory}M\"\nkind = \"bandwidth-read\"\n");
    }
    let plan = plan(&platform, &parse(&tasks, "tasks.toml").unwrap(), 1).unwrap();
    let check = simulate(&platform, &plan).unwrap();
    assert!(plan.holds);
    assert!(check.disproved(&plan.analysis).is_empty(), "{check:?}");
}

/// Writes that controllers keep for long are drained at once, in the way of whoever is there.
#[test]
fn writes_that_wait_from_before_a_job_are_in_its_bound() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let queue = "write_queue = 4096\ndrain_high = 3500\ndrain_low = 0\ndrain_idle = 3500";
    let changes = format!("[controller]\ndirection_cap = 16\n{queue}");
    let platform = Platform::find_changed(file, &changes.parse().unwrap()).unwrap();
    let task = |core: u32, period: u64| {
        format!("[[task]]\nname = \"t{core}\"\ncore = {core}\nperiod = \"{period} ns\"\nwcet = \"100 ns\"\nmemory = \"1M\"\nkind = \"bandwidth-write\"\n")
    };
    let tasks = task(0, 41_000) + &task(1, 40_100);
    let plan = plan(&platform, &parse(&tasks, "tasks.toml").unwrap(), 1).unwrap();
    let check = simulate(&platform, &plan).unwrap();
    // None has a drain of its own.
    let alone = plan.analysis.iter().map(|a| a.alone.0).max();
    assert!(alone < Some(1_000_000), "{:?}", plan.analysis);
    let longest = check.tasks.iter().map(|played| played.response.0).max();
    assert!(longest > Some(10_000_000), "{:?}", check.tasks);
    assert!(check.disproved(&plan.analysis).is_empty(), "{check:?}");
}

/// Lines of the task that had the core before are served first, writes that the controller
/// keeps too.
#[test]
fn what_a_preempted_task_has_on_its_way_is_in_the_bound() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/starve.toml");
    let changes = "core.outstanding = 32\ncontroller.direction_cap = 16\ncontroller.rank_cap = 16";
    let platform = Platform::find_changed(file, &changes.parse().unwrap()).unwrap();
    let tasks = "[[task]]\nname = \"high\"\ncore = 0\nperiod = \"97 us\"\ndeadline = \"80 us\"\nwcet = \"1 us\"\nmemory = \"4K\"\nkind = \"latency\"\n\
        [[task]]\nname = \"low\"\ncore = 0\nmemory = \"64M\"\nkind = \"is\"\n";
    let plan = plan(&platform, &parse(tasks, "tasks.toml").unwrap(), 1).unwrap();
    assert!(plan.holds, "{:?}", plan.analysis);
    let check = simulate(&platform, &plan).unwrap();
    assert!(check.disproved(&plan.analysis).is_empty(), "{check:?}");
    // Each line is in the way once.
    let lines = plan.analysis[0].preempted.0 / plan.costs.same_bank_ps;
    assert!(lines >= plan.costs.in_flight, "{lines}");
}

/// A slow core goes on with what it has begun.
#[test]
fn what_a_core_does_before_it_preempts_is_in_the_bound() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let changes = "[core]\ncpi = 100.0\noutstanding = 1\n[northbridge]\nvictims = 1\n[controller]\nwrite_queue = 1\nbank_queue = 1\ndrain_high = 1\ndrain_low = 0\ndrain_idle = 1";
    let platform = Platform::find_changed(file, &changes.parse().unwrap()).unwrap();
    let tasks = "[[task]]\nname = \"high\"\ncore = 0\nperiod = \"97 us\"\nwcet = \"1 us\"\nmemory = \"4K\"\nkind = \"latency\"\n\
        [[task]]\nname = \"low\"\ncore = 0\n";
    let plan = plan(&platform, &parse(tasks, "tasks.toml").unwrap(), 1).unwrap();
    let check = simulate(&platform, &plan).unwrap();
    let (proved, played) = (&plan.analysis[0], check.task("high").unwrap());
    let chunk = plan.costs.chunk_ps;
    assert!(proved.holds && played.response.0 > chunk / 2, "{check:?}");
    assert!(check.disproved(&plan.analysis).is_empty(), "{check:?}");
}

/// Linux stops no job at its deadline: one that misses runs on, beside tasks of other cores.
#[test]
fn what_is_beside_a_task_that_misses_is_not_proved() {
    let task = |name: &str, core: u32, times: &str| {
        format!("[[task]]\nname = \"{name}\"\ncore = {core}\nperiod = \"10 ms\"\nmemory = \"16K\"\nlines = 9\n{times}\n")
    };
    let beside = |deadline: &str| {
        let tasks = task("a", 0, "wcet = \"1 ms\"")
            + &task("b", 1, "wcet = \"900 us\"")
            + &task(
                "c",
                1,
                &format!("wcet = \"900 us\"\ndeadline = \"{deadline} us\""),
            );
        plan(&small(), &parse(&tasks, "tasks.toml").unwrap(), 1).unwrap()
    };
    assert!(beside("5000").holds);
    let plan = beside("1000");
    let held: Vec<bool> = plan.analysis.iter().map(|a| a.holds).collect();
    assert_eq!(held, [false; 3], "{:?}", plan.analysis);
    let told = plan.relaxations.iter().find(|r| r.task == "a").unwrap();
    assert!(told.change.contains("make the others hold"), "{told:?}");
}

/// So it may keep a core busy for longer than Linux lets it, and what goes before it is stopped.
#[test]
fn a_task_that_misses_leaves_others_no_known_time() {
    let task =
        |name: &str, times: &str| format!("[[task]]\nname = \"{name}\"\ncore = 0\n{times}\n");
    let tasks = task("a", "period = \"200 ms\"\nwcet = \"1 ms\"")
        + &task("b", "period = \"1 s\"\nwcet = \"350 ms\"")
        + &task(
            "c",
            "period = \"1 s\"\ndeadline = \"360 ms\"\nwcet = \"350 ms\"",
        );
    let plan = plan(&small(), &parse(&tasks, "tasks.toml").unwrap(), 1).unwrap();
    let held: Vec<bool> = plan.analysis.iter().map(|a| a.holds).collect();
    assert_eq!(held, [true, true, false], "{:?}", plan.analysis);
    assert!(
        plan.analysis[..2].iter().all(|a| a.others.0 > 0),
        "{:?}",
        plan.analysis
    );
}

/// Refreshes that a controller adds are in no bound.
#[test]
fn a_machine_that_adds_refreshes_has_no_plan() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let changes = "controller.refresh_management = 16".parse().unwrap();
    let platform = Platform::find_changed(file, &changes).unwrap();
    let error = plan(&platform, &parse(TASKS, "tasks.toml").unwrap(), 1).unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("small has controller.refresh_management"),
        "{told}"
    );
}

/// Periods of minutes are not waited for, nor first jobs that come in minutes; jobs without end
/// are not played.
#[test]
fn no_times_make_a_play_endless() {
    let tasks = |times: &str| {
        let text = format!("[[task]]\nname = \"a\"\ncore = 0\n{times}\n[[task]]\nname = \"b\"\ncore = 1\nperiod = \"40 ms\"\nwcet = \"1 us\"\n");
        parse(&text, "tasks.toml").unwrap()
    };
    let platform = small();
    for times in [
        "period = \"600 s\"\nwcet = \"1 ms\"",
        "period = \"10 ms\"\nphase = \"600 s\"\nwcet = \"1 ms\"",
    ] {
        let plan = plan(&platform, &tasks(times), 1).unwrap();
        let check = simulate(&platform, &plan).unwrap();
        assert!(check.timeline.end_ps <= 1_000_000_000_000, "{times}");
        assert!(check.task("a").unwrap().jobs > 0, "{times}");
    }
    let many = tasks("period = \"2 ns\"\nwcet = \"1 ns\"");
    let told = plan(&platform, &many, 1).unwrap_err().to_string();
    assert!(
        told.starts_with("tasks.toml:1: ") && told.contains("by any core"),
        "{told}"
    );
}

/// The Raspberry Pi's device has faster refreshes than the board's memory may have.
#[test]
fn a_device_that_may_be_another_is_told() {
    let machine = soloist_machine::known::find("raspberry-pi-4").unwrap();
    let text = soloist_rt::plan::grounds::machine_text(&machine).unwrap();
    let told = Grounds::of(&machine, &text).to_string();
    assert!(
        told.contains("guessed there: device \"lpddr4-3200-x32\""),
        "{told}"
    );
    assert!(told.contains("controller.direction_cap 0"), "{told}");
    // It has one rank, and its file has a clock and latencies.
    for words in ["rank_cap", "clock_mhz", "latency"] {
        assert!(!told.contains(words), "{told}");
    }
    let told = grounds(&SMALL.replace("clock_mhz = 2000\n", "")).to_string();
    for words in ["topology.clock_mhz 2000", "cache.l3.latency 40"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("cache.l2"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file that says how many lines come from memory says nothing of those that come from
    /// caches: after a preemption, and where others fill the last level, these count too.
    #[test]
    fn fewer_lines_never_prove_less(
        memory in 4_u64..512,
        (few, more) in (1_u64..400, 0_u64..400),
        llc in any::<bool>(),
    ) {
        let lines = |n: u64| proved(&format!("lines = {n}"), memory, n, llc);
        let known = proved("kind = \"latency\"", memory, few + more, llc);
        let program = proved("kind = \"program\"\nipc = 1.0\nmpki = 0.001", memory, few, llc);
        for stated in [lines(few), lines(few + more), program] {
            prop_assert!(stated.response >= known.response, "{stated:?} {known:?}");
        }
        prop_assert!(lines(few).response >= lines(few + more).response);
    }
}

/// A task that computes on a core of its own fetches nothing there; on one that it shares, after
/// each job of another, all its memory, and each line waits for those of other cores.
#[test]
fn what_others_of_its_core_put_out_between_jobs_waits_for_memory() {
    let task = |name: &str, core: u32, ms: u64, more: &str| {
        format!("[[task]]\nname = \"{name}\"\ncore = {core}\nperiod = \"{ms} ms\"\nwcet = \"1 ms\"\n{more}\n")
    };
    let memory = |mate: u32, lines: u64| {
        let text = task("a", 0, 100, &format!("memory = \"16K\"\nlines = {lines}"))
            + &task("mate", mate, 900, "memory = \"32K\"\nlines = 0")
            + &task("noise", 2, 900, "memory = \"64K\"\nlines = 9999");
        let set = parse(&text, "tasks.toml").unwrap();
        let profiles = [1, 1, 9999].map(|lines| Profile {
            accesses: lines,
            lines,
            requests: lines,
        });
        let tasks = ProfiledSet::new(&set, &profiles);
        let shared = |_, _| Shared {
            memory: Sharing::Controller,
            llc: false,
            elsewhere: false,
        };
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
        let changes = "controller.direction_cap = 16".parse().unwrap();
        let platform = Platform::find_changed(file, &changes).unwrap();
        let conditions = Conditions {
            platform: &platform,
            limits: &[None; 4],
            shared: &shared,
        };
        let around = surroundings(tasks, 0, conditions);
        let answer = analyse(tasks, 0, &around).remove(0);
        assert_eq!(answer.task, "a");
        (answer.memory.0, around.costs.other_bank_ps)
    };
    let lines = 16 * 1024 / 64;
    for stated in [0, 1] {
        let ((apart, _), (together, line_ps)) = (memory(1, stated), memory(0, stated));
        assert!(
            together > apart + lines * line_ps,
            "{stated}: {apart} {together}"
        );
    }
}

/// All that its private caches ask for may be in the last level that others fill.
#[test]
fn what_a_file_does_not_say_of_the_last_level_is_no_proof() {
    let costs = Costs::of(&small());
    let alone = |answer: Answer| answer.memory.0 / costs.pushed_ps;
    let hits = 150_000_000 / costs.hit_ps;
    for what in ["lines = 1", "kind = \"program\"\nipc = 1.0\nmpki = 0.001"] {
        assert!(alone(proved(what, 64, 1, false)) < 10, "{what}");
        assert!(alone(proved(what, 64, 1, true)) > hits, "{what}");
    }
    // A task that only computes asks for what another of its core put out.
    let computes = proved("lines = 0", 64, 0, true);
    assert!(computes.memory < proved("lines = 1", 64, 1, true).memory);
}
