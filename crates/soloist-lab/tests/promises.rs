//! What a generator promises comes out when it runs alone on the model:
//! instructions per cycle, lines from memory, share of lines written to.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rayon::prelude::*;
use soloist_lab::cases::CaseTask;
use soloist_lab::jobs::{check, run, run_cases, Options};
use soloist_lab::judgement::answers;
use soloist_lab::known;
use soloist_lab::measurements::TaskResult;
use soloist_memory::Platform;
use soloist_play::guard::Regulated;

const ALONE: &str = r#"
policies = ["buddy"]
[experiment]
id = "alone"
title = "One program alone"
machine = "MACHINE"
[regulator]
modes = ["vanilla"]
r_min = 1200
peak = 6400
[[task]]
name = "task"
kind = "program"
ipc = 1.0
mpki = 1.0
cpus = "0"
bytes = "64M"
work = 30000
"#;

/// What was counted of `task` alone on `machine`.
fn alone(machine: &str, task: &CaseTask, lines: u64) -> Regulated {
    let scenario = known::parse(&ALONE.replace("MACHINE", machine), "alone").unwrap();
    let mut cases = scenario.cases(1).unwrap();
    cases[0].tasks[0].program.counters = task.program.counters;
    cases[0].tasks[0].program.work = lines;
    let options = Options {
        seed: 5,
        seeds: None,
        small: false,
        account: false,
        needed: false,
    };
    let results = run_cases(&scenario, &cases, options, &|_| {}).unwrap();
    results[0].runs[0].tasks[0].regulated.clone().unwrap()
}

/// Every program of the built-in experiments that is made from counters, with
/// the machine that it runs on.
fn shipped() -> Vec<(String, CaseTask)> {
    let mut all: Vec<(String, CaseTask)> = Vec::new();
    for (name, _) in known::EXPERIMENTS {
        let scenario = known::find(name).unwrap();
        let machine = scenario.experiment.machine.clone();
        for task in scenario.cases(1).unwrap().into_iter().flat_map(|c| c.tasks) {
            let same = |(m, t): &(String, CaseTask)| {
                *m == machine && t.program.counters == task.program.counters
            };
            if task.program.counters.is_some() && !all.iter().any(same) {
                all.push((machine.clone(), task));
            }
        }
    }
    all
}

#[test]
fn programs_made_from_counters_keep_them() {
    let wrong: Vec<String> = shipped()
        .par_iter()
        .flat_map(|(machine, task)| {
            let counters = task.program.counters.unwrap();
            let lines = (counters.spell as u64 * 20).max(80_000);
            let got = alone(machine, task, lines);
            let platform = Platform::find(machine).unwrap();
            let clock_ghz = 1e6 * platform.core.cpi / platform.instruction_fs as f64;
            let ours = [
                got.instructions as f64 / got.time_ns / clock_ghz,
                1000.0 * got.reads as f64 / got.instructions as f64,
                got.writes as f64 / got.reads as f64,
            ];
            let theirs = [counters.ipc, counters.mpki, counters.writes];
            let pairs = ours.into_iter().zip(theirs).zip(["ipc", "mpki", "writes"]);
            pairs
                .filter(|((ours, theirs), _)| (ours / theirs - 1.0).abs() > 0.05)
                .map(|((ours, theirs), what)| {
                    format!("{machine} {} {what}: {ours:.3} for {theirs}", task.name)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// On a narrower bus lbm is played as fast as it can be, unless that is nowhere near.
#[test]
fn a_printed_benchmark_may_be_somewhat_slower() {
    let on = |bus: &str| {
        let mut scenario = known::find("memguard-figure-2").unwrap();
        scenario.change_model("northbridge.shared", "true").unwrap();
        scenario
            .change_model("northbridge.bytes_per_us", bus)
            .unwrap();
        check(&scenario, Options::default())
    };
    assert!(on("3400").is_ok());
    let told = on("2000").unwrap_err().to_string();
    assert!(told.contains("cannot be on this machine"), "{told}");
}

const STREAMS: &str = r#"
policies = ["buddy"]
[experiment]
id = "streams"
title = "One program alone"
machine = "opteron-6128"
[[task]]
name = "task"
kind = "streamcluster"
cpus = "0"
bytes = "48M"
work = 60000
"#;

/// What the papers attack with must keep several lines on their way, though
/// more instructions than a window lie between two: a prefetcher does it.
#[test]
fn streamcluster_streams_and_alternating_strides_defeat_prefetch() {
    let rate = |kind: &str, prefetch: &str| {
        let text = STREAMS.replace("streamcluster", kind);
        let mut scenario = known::parse(&text, "streams").unwrap();
        scenario.change_model("core.prefetch", prefetch).unwrap();
        let options = Options {
            seed: 1,
            seeds: Some(1),
            ..Options::default()
        };
        let results = run(&scenario, options, &|_| {}).unwrap();
        results[0].spread("task", "bandwidth").unwrap().mean
    };
    let rates = |kind: &str| (rate(kind, "true"), rate(kind, "false"));
    let (with, without) = rates("streamcluster");
    assert!(with > 1.5 * without, "{with} and {without} MB/s");
    let (with, without) = rates("alternating-stride");
    assert!((with - without).abs() < 1e-9, "{with} and {without} MB/s");
}

/// Writers that are done before the victim has done half of its work.
const EARLY: &str = r#"
policies = ["buddy"]
[experiment]
id = "early"
title = "Neighbours that end early"
machine = "skylake"
[[task]]
name = "victim"
kind = "latency"
cpus = "0"
bytes = "32M"
work = 4000
[[task]]
name = "noise"
kind = "bandwidth-write"
cpus = "1-3"
bytes = "32M"
work = 6000
"#;

/// The 99th percentile is of all of a task's work, whether waits are noted or not.
#[test]
fn latencies_of_the_first_half_count() {
    let tasks = |account| {
        let scenario = known::parse(EARLY, "early").unwrap();
        let options = Options {
            seed: 1,
            seeds: Some(1),
            account,
            ..Options::default()
        };
        run(&scenario, options, &|_| {}).unwrap()[0].runs[0]
            .tasks
            .clone()
    };
    let (plain, noted) = (tasks(false), tasks(true));
    let half = plain[0].half_ns.unwrap();
    assert!(plain[1..].iter().all(|noise| noise.time_ns < half));
    let p99s = |tasks: &[TaskResult]| tasks.iter().map(|task| task.p99_ns).collect::<Vec<f64>>();
    assert_eq!(p99s(&plain), p99s(&noted));
}

const COPIES: &str = r#"
policies = ["buddy"]
[experiment]
id = "copies"
title = "Two copies, one far from its memory"
machine = "opteron-6128"
repeats = 2
[[task]]
name = "task"
kind = "latency"
cpus = "CPUS"
bytes = "16M"
work = 5000
node = 0
"#;

/// `numactl --membind` takes nobody's memory off his own node while that is free.
#[test]
fn a_node_each_is_the_own_one_where_nobody_has_it() {
    let remote = |cpus: &str| -> Vec<f64> {
        let text = COPIES.replace("CPUS", cpus).replace("buddy", "membind");
        let scenario = known::parse(&text.replace("node = 0", ""), "copies").unwrap();
        let results = run(&scenario, Options::default(), &|_| {}).unwrap();
        let tasks = results[0].runs[0].tasks.iter();
        tasks.map(|task| task.remote).collect()
    };
    assert_eq!(remote("0,12"), [0.0, 0.0]);
    assert_eq!(remote("12,0"), [0.0, 0.0]);
    // Of two on one node the second has the next one.
    assert_eq!(remote("0,1,12"), [0.0, 100.0, 0.0]);
}

/// Copies that do not disturb each other are as fast as each by itself, whichever of
/// them is far from the memory.
#[test]
fn each_copy_is_held_against_itself_alone() {
    for cpus in ["0,12", "12,0"] {
        let scenario = known::parse(&COPIES.replace("CPUS", cpus), "copies").unwrap();
        let options = Options {
            seed: 1,
            account: true,
            ..Options::default()
        };
        let results = run(&scenario, options, &|_| {}).unwrap();
        let all = answers(&results);
        assert_eq!(all.len(), 1);
        let slowdown = all[0].slowdown.value;
        assert!((slowdown - 1.0).abs() < 0.02, "{cpus}: {slowdown}");
    }
}
