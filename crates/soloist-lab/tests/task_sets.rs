//! `evidence/verdicts.csv` keeps the verdicts on claims of task sets too
//! (evidence/lab.md has the command that writes it anew).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use soloist_lab::experiment::Experiment;
use soloist_lab::jobs::Options;
use soloist_lab::judgement::table::{lines, read_claims, ClaimLine};
use soloist_lab::known;
use soloist_lab::taskset::{find, run, TaskSetOutcome, EXPERIMENTS};

const KEPT: &str = include_str!("../../../evidence/verdicts.csv");

/// As `soloist lab run --small --seeds 3`.
const OPTIONS: Options = Options {
    seed: 1,
    seeds: Some(3),
    small: true,
    account: false,
    needed: false,
};

fn kept(experiment: &str) -> Vec<ClaimLine> {
    let all = read_claims(KEPT).unwrap().into_iter();
    all.filter(|line| line.experiment == experiment).collect()
}

/// The quickest, some seconds.
#[test]
fn verdicts_are_what_they_were() {
    let name = "palloc-real-time";
    let (spec, set) = find(name).unwrap();
    let outcome = run(spec, set, OPTIONS, &|| {}).unwrap();
    assert_eq!(lines(name, &outcome.verdicts), kept(name));
    // It reads again what it wrote.
    let text = serde_json::to_string(&outcome).unwrap();
    let again: TaskSetOutcome = serde_json::from_str(&text).unwrap();
    let (spec, set) = find(name).unwrap();
    assert!(again.is_of(&spec, &set, OPTIONS));
    assert!(!again.is_of(&spec, &set, Options { seed: 2, ..OPTIONS }));
    let judged = again.judged_by(spec.claims);
    assert_eq!(judged.verdicts, outcome.verdicts);
}

#[test]
fn what_is_kept_is_of_the_claims_as_they_stand() {
    for (name, ..) in EXPERIMENTS {
        let claims = find(name).unwrap().0.claims.into_iter();
        let stand: Vec<_> = claims.map(|c| (c.what, c.theirs)).collect();
        let kept = kept(name).into_iter().map(|line| (line.claim, line.theirs));
        assert_eq!(stand, kept.collect::<Vec<_>>(), "{name}");
    }
    for line in read_claims(KEPT).unwrap() {
        let name = line.experiment.as_str();
        let is_known = known::EXPERIMENTS.iter().any(|(n, _)| *n == name)
            || EXPERIMENTS.iter().any(|(n, ..)| *n == name);
        assert!(is_known, "{name}");
    }
}

const SET: &str = r#"
machine = "raspberry-pi-4"
[[task]]
name = "a"
core = 0
period = "2 ms"
wcet = "1 ms"
memory = "1M"
kind = "latency"
[[task]]
name = "b"
core = 1
memory = "1M"
kind = "stream"
"#;

const ABOUT: &str = r#"
id = "x"
title = "x"
source = "x"
tasks = "tasks.toml"
policies = ["single", "linux"]
scale = 4
warm = 0
hyperperiods = 1
seeds = 1
[[claim]]
what = "a never misses"
policy = "linux"
task = "a"
figure = "misses"
theirs = 0.0
"#;

/// What `soloist lab check` says of an experiment on `set`.
fn checked(set: &str, about: &str) -> Result<usize, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml");
    fs::write(dir.path().join("tasks.toml"), set).unwrap();
    fs::write(&file, about).unwrap();
    let found = Experiment::find(file.to_str().unwrap());
    let checked = found.and_then(|found| found.check(OPTIONS));
    checked.map_err(|e| format!("{}:{e}", e.line))
}

#[test]
fn what_could_not_be_played_is_refused_before_it_is() {
    assert_eq!(checked(SET, ABOUT), Ok(2));
    for (from, to, line, says) in [
        // It would never run, and miss nothing by that.
        ("core = 0\n", "", 3, "has no `core`"),
        ("core = 1\n", "", 10, "has no `core`"),
        ("core = 1\n", "core = 77\n", 10, "on core 77"),
        ("raspberry-pi-4", "raspberry-pi-9", 2, "raspberry-pi-9"),
        ("raspberry-pi-4", "ddr3-1600k", 2, "[cache]"),
    ] {
        let said = checked(&SET.replace(from, to), ABOUT).unwrap_err();
        let there = said.starts_with(&format!("{line}:")) && said.contains(says);
        assert!(there, "{to}: {said}");
    }
    let about = ABOUT.replace("\"linux\"]", "\"linux\", \"diff_controller\"]");
    let said = checked(SET, &about).unwrap_err();
    assert!(said.contains("one memory controller"), "{said}");
}
