//! MemGuard on the modelled machine: what is reserved is what is had.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_lab::jobs::{check, run, Options, RunError};
use soloist_lab::known;
use soloist_lab::measurements::{metric, CaseResult};

const PAIR: &str = r#"
policies = ["buddy"]
[experiment]
id = "pair"
title = "Pair"
machine = "core2quad-q8400"
[regulator]
modes = MODES
r_min = 1200
r_min_writes = 1200
peak = 6400
[[task]]
name = "a"
kind = KIND
cpus = "0"
bytes = "8M"
work = WORK
reserve = RESERVE_A
[[task]]
name = "b"
kind = KIND
cpus = "2"
bytes = "8M"
work = WORK
background = true
reserve = RESERVE_B
"#;

/// A kind, and what it needs.
const SPEC: &str = "\"spec\"\nbenchmark = 470";

/// `PAIR` with its words in capitals replaced.
fn pair(words: &[(&str, &str)]) -> Result<Vec<CaseResult>, RunError> {
    let defaults = [
        ("MODES", "[\"ro\"]"),
        ("KIND", SPEC),
        ("WORK", "2000"),
        ("RESERVE_A", "{ reads = 400 }"),
        ("RESERVE_B", "{ reads = 200 }"),
    ];
    let mut text = PAIR.to_owned();
    for (from, to) in words.iter().chain(&defaults) {
        text = text.replace(from, to);
    }
    let options = Options {
        seed: 1,
        seeds: None,
        small: false,
        account: false,
        needed: false,
    };
    run(&known::parse(&text, "pair.toml").unwrap(), options, &|_| {})
}

fn figure(case: &CaseResult, task: &str, name: &str) -> f64 {
    let tasks = &case.runs[0].tasks;
    let task = tasks.iter().find(|t| t.name == task).unwrap();
    metric(task, name).unwrap()
}

fn near(ours: f64, expected: f64, within: f64) {
    assert!(
        (ours / expected - 1.0).abs() < within,
        "{ours} is not {expected}"
    );
}

#[test]
fn steady_traffic_gets_its_reservation_to_one_per_cent() {
    let cases = pair(&[]).unwrap();
    near(figure(&cases[0], "a", "reads"), 400.0, 0.01);
    near(figure(&cases[0], "b", "reads"), 200.0, 0.01);
    assert!(figure(&cases[0], "b", "stopped") > 50.0);
    assert_eq!(cases, pair(&[]).unwrap(), "runs repeat");
}

#[test]
fn proportional_sharing_keeps_the_ratio_and_spare_sharing_does_not() {
    let modes = "[\"vanilla\", \"br+ss\", \"br+ps\"]";
    let cases = pair(&[
        ("MODES", modes),
        ("KIND", "\"fps\""),
        ("WORK", "60000"),
        ("RESERVE_A", "{ weight = 3 }"),
        ("RESERVE_B", "{ weight = 1 }"),
    ])
    .unwrap();
    let ratio = |case| figure(case, "a", "ipns") / figure(case, "b", "ipns");
    near(ratio(&cases[0]), 1.0, 0.05);
    near(ratio(&cases[2]), 3.0, 0.02);
    let spare = ratio(&cases[1]);
    assert!(spare > 1.05 && spare < 2.5, "{spare}");
    for case in &cases[1..] {
        assert!(figure(case, "a", "reads") > 900.0, "best effort is on top");
    }
}

#[test]
fn writes_have_budgets_of_their_own() {
    let words = [
        ("MODES", "[\"ro\", \"ro+writes\"]"),
        ("KIND", "\"bandwidth-write\""),
        ("WORK", "30000"),
        ("RESERVE_A", "{ reads = 600, writes = 200 }"),
        ("RESERVE_B", "{ reads = 300, writes = 300 }"),
    ];
    let cases = pair(&words).unwrap();
    near(figure(&cases[0], "a", "reads"), 600.0, 0.02);
    near(figure(&cases[1], "a", "writes"), 200.0, 0.02);
    assert!(figure(&cases[0], "a", "writes") > 500.0);
}

#[test]
fn cores_in_banks_of_their_own_are_not_stopped_for_each_other() {
    let case = |policy: &str, modes: &str| {
        let modes = format!("{modes}\nr_min = 1200");
        let text = [("[\"buddy\"]", policy), ("MODES\nr_min = 1200", &modes)];
        pair(&text).unwrap().remove(0)
    };
    let shared = case("[\"buddy\"]", "[\"br+ss+banks\"]");
    let apart = case("[\"palloc\"]", "[\"br+ss+banks\"]");
    // In banks of its own each is free as soon as it has used its budget.
    assert!(figure(&apart, "b", "stopped") < 1.0);
    assert!(figure(&shared, "b", "stopped") > 5.0);
}

#[test]
fn a_run_without_a_whole_period_has_no_figure() {
    let case = pair(&[("WORK", "2")]).unwrap().remove(0);
    let counted = case.runs[0].tasks[1].regulated.as_ref().unwrap();
    assert!(counted.time_ns <= 0.0, "{counted:?}");
    for name in [
        "reads",
        "writes",
        "ipns",
        "stopped",
        "underruns",
        "unevenness",
    ] {
        assert!(figure(&case, "b", name).is_nan(), "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = pair(&[("RESERVE_A", "{ reads = 1100 }")]).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("guaranteed 1199 MB/s") || text.contains("guaranteed 1200 MB/s"),
        "{text}"
    );
    // `soloist lab check` says so too, before anything runs.
    let text = PAIR
        .replace("MODES", "[\"ro\"]")
        .replace("KIND", SPEC)
        .replace("WORK", "1")
        .replace("RESERVE_A", "{ reads = 1100 }")
        .replace("RESERVE_B", "{ reads = 200 }");
    let checked = check(
        &known::parse(&text, "pair.toml").unwrap(),
        Options::default(),
    );
    assert!(checked.unwrap_err().to_string().contains("guaranteed"));
    let refused = pair(&[("RESERVE_A", "{ reads = 0 }")]).unwrap_err();
    assert!(
        refused.to_string().contains("would stop it for good"),
        "{refused}"
    );
    for (from, to, line, words) in [
        ("MODES", "[\"rw\"]", 8, "no mode `rw`"),
        ("MODES", "[]", 8, "at least one"),
        (
            "benchmark = 470",
            "benchmark = 471471",
            13,
            "SPEC CPU2006 number",
        ),
        ("RESERVE_A", "{ bytes = 3 }", 19, "unknown field `bytes`"),
        (
            "RESERVE_A",
            "{ weight = 1, reads = 3 }",
            13,
            "`weight`, which is instead",
        ),
        // Without a period that ends it would be counted for ever.
        ("MODES", "[\"vanilla\"]\nperiod_us = 0", 7, "period 0 us"),
        ("MODES", "[\"ro\"]\newma = 60000", 7, "weight 60000/256"),
        ("peak = 6400", "peak = 0", 7, "above the peak"),
        (
            "peak = 6400",
            "peak = 9223372036854775807",
            7,
            "at most 10 TB/s",
        ),
        (
            "r_min = 1200",
            "r_min = 9223372036854775807",
            7,
            "above the peak",
        ),
    ] {
        let text = PAIR
            .replace("KIND", SPEC)
            .replacen(from, to, 1)
            .replace("WORK", "1");
        let text = text.replace("MODES", "[\"ro\"]");
        let text = text.replace("RESERVE_A", "{}").replace("RESERVE_B", "{}");
        let error = known::parse(&text, "pair.toml").unwrap_err();
        assert!(error.message.contains(words), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
}
