//! Every built-in experiment is well formed and runs: its first and its last
//! case, with a fraction of the work.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use soloist_lab::known;
use soloist_lab::outcome::Outcome;
use soloist_lab::report::html;
use soloist_lab::run::{run, Options, RunError};
use soloist_lab::scenario::{Scenario, TaskSpec};

const SMALL: Options = Options {
    seed: 1,
    small: true,
};

fn outcome(scenario: Scenario, options: Options) -> Outcome {
    let cases = run(&scenario, options, &|_| {}).unwrap();
    Outcome::new(scenario, options.seed, options.small, cases)
}

/// Tasks of a few thousand accesses under several policies.
const TINY: &str = r#"
policies = ["same_bank", "diff_controller"]
[experiment]
id = "tiny"
title = "Tiny"
machine = "opteron-6128"
[sweep]
name = "n"
values = [0, 3]
[[task]]
name = "victim"
kind = "latency"
cpus = "0"
bytes = "16M"
work = 20000
[[task]]
name = "other"
kind = "stream"
cpus = "1-3"
bytes = "24M"
work = 1
copies = "$n"
background = true
[[claim]]
what = "neighbours in the same bank cost time"
ours = "same_bank_3_victim_time / same_bank_0_victim_time"
holds = "same_bank_3_victim_time > 1.1 * same_bank_0_victim_time"
[[claim]]
what = "neighbours on other controllers cost little"
ours = "diff_controller_3_victim_time / diff_controller_0_victim_time"
holds = "diff_controller_3_victim_time < 1.1 * diff_controller_0_victim_time"
[plot]
task = "victim"
metric = "time"
y = "time, ms"
"#;

#[test]
fn every_experiment_parses_and_is_named_after_its_file() {
    for (name, _) in known::EXPERIMENTS {
        let scenario = known::find(name).unwrap();
        assert_eq!(scenario.experiment.id, *name);
        assert!(!scenario.claims.is_empty(), "{name} claims nothing");
        assert!(!scenario.experiment.source.is_empty(), "{name}");
        for claim in &scenario.claims {
            assert!(claim.theirs.is_some() || claim.holds.is_some(), "{name}");
        }
    }
}

/// The first and the last case of a scenario, with little work.
fn ends(scenario: &Scenario) -> [Scenario; 2] {
    let mut ends = [scenario.clone(), scenario.clone()];
    for (i, end) in ends.iter_mut().enumerate() {
        let keep = |n: usize| if i == 0 { 0 } else { n - 1 };
        end.policies = vec![end.policies[keep(end.policies.len())].clone()];
        if let Some(sweep) = &mut end.sweep {
            sweep.values = vec![sweep.values[keep(sweep.values.len())]];
        }
        if let Some(regulator) = &mut end.regulator {
            regulator.modes = vec![regulator.modes[keep(regulator.modes.len())].clone()];
        }
        end.experiment.small_divide = 512;
        end.experiment.small_repeats = 1;
    }
    ends
}

#[test]
fn every_experiment_runs() {
    let parts: Vec<Scenario> = known::EXPERIMENTS
        .iter()
        .flat_map(|(name, _)| ends(&known::find(name).unwrap()))
        .collect();
    parts.par_iter().for_each(|scenario| {
        let name = &scenario.experiment.id;
        let cases = run(scenario, SMALL, &|_| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(cases.len(), 1);
        // What runs in the background may not come far in so little time.
        let ahead = |name: &str| {
            let of = |t: &&TaskSpec| name.starts_with(&t.name);
            !scenario.tasks.iter().filter(of).any(|t| t.background)
        };
        for task in cases[0].runs[0].tasks.iter().filter(|t| ahead(&t.name)) {
            assert!(task.time_ns > 0.0 && task.accesses > 0, "{name}: {task:?}");
        }
    });
}

#[test]
fn every_experiment_file_is_built_in() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let known = known::EXPERIMENTS.iter().any(|(name, _)| *name == stem);
            assert!(known, "{stem} is not in known.rs");
        }
    }
}

#[test]
fn policies_isolate_as_they_claim_and_the_page_says_so() {
    let scenario = Scenario::parse(TINY, "tiny.toml").unwrap();
    let small = outcome(scenario, SMALL);
    for verdict in &small.verdicts {
        assert_eq!(verdict.holds, Some(true), "{verdict:?}");
    }
    let page = html(&[small]).unwrap();
    for words in [
        "<svg",
        "2 hold, 0 miss",
        "soloist lab run tiny --seed 1 --small",
    ] {
        assert!(page.contains(words), "no {words}");
    }
}

#[test]
fn results_depend_on_the_seed_and_not_on_the_number_of_threads() {
    let [_, scenario] = ends(&Scenario::parse(TINY, "tiny.toml").unwrap());
    let with = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let done = AtomicUsize::new(0);
        let options = Options { seed, small: true };
        let cases = pool.install(|| {
            run(&scenario, options, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(done.into_inner(), 1);
        cases.unwrap()
    };
    let one = with(1, 1);
    assert_eq!(one, with(2, 1));
    assert_ne!(one, with(1, 2));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    for (from, to, words) in [
        ("cpus = \"0\"", "cpus = \"16\"", "no cpu 16"),
        ("cpus = \"0\"", "cpus = \"1\"", "one task a cpu"),
        (
            "kind = \"latency\"",
            "kind = \"latency\"\nnode = 4",
            "no node 4",
        ),
        ("\"opteron-6128\"", "\"qemu-2node\"", "no [memory] table"),
        (
            "bytes = \"16M\"\nwork = 20000",
            "bytes = \"600M\"\nsets = 1\nwork = 9",
            "no page left",
        ),
    ] {
        let scenario = Scenario::parse(&TINY.replacen(from, to, 1), "t").unwrap();
        let error: RunError = run(&scenario, SMALL, &|_| {}).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
