//! Every built-in experiment is well formed and runs: its first and its last
//! case, with a fraction of the work.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use soloist_lab::experiment::ExperimentOutcome;
use soloist_lab::jobs::{run, run_all, Options, RunError};
use soloist_lab::judgement::compare::Comparison;
use soloist_lab::judgement::{answers, ScenarioOutcome};
use soloist_lab::known;
use soloist_lab::report::html;
use soloist_lab::sensitivity::{self, Of};
use soloist_lab::spec::{Basis, Scenario, TaskSpec};

const SMALL: Options = Options {
    seed: 1,
    seeds: None,
    small: true,
    account: false,
    needed: false,
};

fn outcome(scenario: Scenario, options: Options) -> ScenarioOutcome {
    let cases = run(&scenario, options, &|_| {}).unwrap();
    ScenarioOutcome::new(scenario, options, cases)
}

/// Tasks of a few thousand accesses under several policies.
const TINY: &str = r#"
policies = ["same_bank", "diff_controller"]
[experiment]
id = "tiny"
title = "Tiny"
machine = "opteron-6128"
small_repeats = 3
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
        for sweep in &mut end.sweep.0 {
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
    let scenario = known::parse(TINY, "tiny.toml").unwrap();
    let small = outcome(scenario, SMALL);
    for verdict in &small.verdicts {
        assert_eq!(verdict.holds, Some(true), "{verdict:?}");
    }
    // A plot that one outcome has no values for does not take the page of all.
    let mut bare = small.clone();
    bare.scenario.plot.as_mut().unwrap().metric = "reads".into();
    let page = html(&[bare], &[]).unwrap();
    assert!(page.contains("No plot: no values of <code>reads</code>"));
    let page = html(&[small], &[]).unwrap();
    for words in [
        "<svg",
        "2 of 2 orders hold",
        "soloist lab run tiny --seed 1 --small",
    ] {
        assert!(page.contains(words), "no {words}");
    }
}

#[test]
fn results_depend_on_the_seed_and_not_on_the_number_of_threads() {
    let [_, scenario] = ends(&known::parse(TINY, "tiny.toml").unwrap());
    let with = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let done = AtomicUsize::new(0);
        let options = Options { seed, ..SMALL };
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
fn exhausted_colours_spill_where_the_scenario_says_so() {
    let text = TINY
        .replacen(
            "bytes = \"16M\"\nwork",
            "bytes = \"600M\"\nsets = 1\nwork",
            1,
        )
        .replace("title =", "exhausted = \"spill\"\ntitle =");
    let [scenario, _] = ends(&known::parse(&text, "t").unwrap());
    let cases = run(&scenario, SMALL, &|_| {}).unwrap();
    let victim = &cases[0].runs[0].tasks[0];
    // A set has 512 MiB, of which a tenth is in use.
    assert!((30_000..60_000).contains(&victim.spilled), "{victim:?}");
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
        (
            "bytes = \"16M\"",
            "bytes = \"64G\"",
            "65536 MiB of memory together: 29491 MiB of the machine's 32768 are free",
        ),
    ] {
        let scenario = known::parse(&TINY.replacen(from, to, 1), "t").unwrap();
        let error: RunError = run(&scenario, SMALL, &|_| {}).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The example of the documentation, with little work.
#[test]
fn waits_add_up_to_the_slowdown_and_name_their_culprits() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/four-tasks.toml"
    );
    let mut scenario = known::find(path).unwrap();
    scenario
        .policies
        .retain(|p| p == "buddy" || p == "throttle" || p == "cat" || p == "mem");
    scenario.experiment.small_divide = 6;
    let options = Options {
        account: true,
        ..SMALL
    };
    let outcome = outcome(scenario, options);
    let answers = answers(&outcome.cases);
    let alone = outcome
        .cases
        .iter()
        .find(|c| c.case == "alone_control_0")
        .unwrap();
    let alone = alone.spread("control", "time").unwrap().mean;
    for a in &answers {
        let sum = a.beyond.total_ns();
        let slower = (a.time_ms - alone) * 1e6;
        assert!((sum - slower).abs() < 1.0, "{}: {sum} of {slower}", a.case);
        assert!(a.culprit.is_some() && a.p99_ns > 50.0, "{a:?}");
    }
    let [buddy, cat, throttle, mem] = ["buddy", "cat", "throttle", "mem"]
        .map(|p| answers.iter().find(|a| a.policy == p).unwrap());
    assert!(throttle.slowdown.value < buddy.slowdown.value);
    assert!(mem.slowdown.value < buddy.slowdown.value);
    assert_ne!(cat.slowdown.value, buddy.slowdown.value);
    let page = html(std::slice::from_ref(&outcome), &[]).unwrap();
    assert!(page.contains("microseconds beyond its time alone"));
}

/// The docs say that cache colours isolate a task that reuses the cache, and that banks don't.
#[test]
fn a_megabyte_reused_beside_streams_wants_cache_colors() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/reuse.toml"
    );
    let mut scenario = known::find(path).unwrap();
    scenario
        .policies
        .retain(|p| p == "buddy" || p == "mem" || p == "llc");
    scenario.experiment.small_divide = 2;
    let options = Options {
        account: true,
        ..SMALL
    };
    let answers = answers(&outcome(scenario, options).cases);
    let slowdown = |policy: &str| {
        let mut of = answers.iter().filter(|a| a.policy == policy);
        of.next().unwrap().slowdown.value
    };
    assert!(slowdown("llc") < 1.5, "{answers:?}");
    assert!(
        slowdown("buddy") > 3.0 && slowdown("mem") > 3.0,
        "{answers:?}"
    );
}

/// Claims that were made better since are those of what ran, and of nothing else.
#[test]
fn a_built_in_experiment_is_judged_by_its_claims_as_they_are_now() {
    let id = "camc-table-2";
    let ran = |arguments: &str, change: &str| {
        let mut scenario = known::find(id).unwrap().with_change(change).unwrap();
        scenario.claims.truncate(1);
        scenario.claims[0].what = "as it was".to_owned();
        let outcome = ScenarioOutcome::new(scenario, SMALL, Vec::new());
        let outcome = ExperimentOutcome::Scenario(outcome).typed(arguments.to_owned());
        outcome.judged_now().judged().verdicts[0].what.clone()
    };
    let same = "used=0.1";
    for arguments in [id, ""] {
        assert_ne!(ran(arguments, same), "as it was", "{arguments}");
    }
    for (arguments, change) in [("./mine.toml", same), (id, "used=0.2"), ("", "used=0.2")] {
        assert_eq!(ran(arguments, change), "as it was", "{arguments} {change}");
    }
}

#[test]
fn the_model_can_be_changed_and_what_changed_is_said() {
    let [scenario, _] = ends(&known::parse(TINY, "t").unwrap());
    let mut other = scenario.clone();
    other
        .change_model("northbridge.request_ps", "90000")
        .unwrap();
    assert!(other.change_model("northbridge.request_ps", "{").is_err());
    let (before, after) = (outcome(scenario, SMALL), outcome(other, SMALL));
    let time = |o: &ScenarioOutcome| o.cases[0].spread("victim", "time").unwrap().mean;
    assert!(time(&after) > 1.2 * time(&before));
    let changes = Comparison::new(&[(&before).into()], &[(&after).into()]).changes;
    assert!(
        changes.iter().all(|c| c.experiment == "tiny"),
        "{changes:?}"
    );
    assert!(unchanged(&before));
}

/// Nothing changes between a run and itself.
fn unchanged(o: &ScenarioOutcome) -> bool {
    let same = Comparison::new(&[o.into()], &[o.into()]);
    same.changes.is_empty() && same.before == same.after
}

/// Side by side or one by one, scenarios come out the same; `seeds` stands for
/// what the file says.
#[test]
fn scenarios_run_side_by_side() {
    let [first, last] = ends(&known::parse(TINY, "t").unwrap());
    let options = Options {
        seeds: Some(2),
        ..SMALL
    };
    let jobs = [(first, options), (last, options)];
    let mut results = [None, None];
    run_all(&jobs, &|| {}, |i, cases| {
        results[i] = Some(cases.unwrap());
        true
    });
    for ((scenario, options), cases) in jobs.iter().zip(results) {
        let cases = cases.unwrap();
        assert_eq!(cases[0].runs.len(), 2);
        assert_eq!(options.runs(scenario), 2);
        assert_eq!(cases, run(scenario, *options, &|_| {}).unwrap());
    }
}

/// At each end of a range of the machine's file a figure is what it is with
/// that value set.
#[test]
fn sensitivity_shows_both_ends_of_what_no_document_says() {
    let [mut scenario, _] = ends(&known::parse(TINY, "t").unwrap());
    scenario.claims.truncate(1);
    scenario.claims[0].ours = "same_bank_0_victim_time".into();
    (scenario.claims[0].holds, scenario.claims[0].theirs) = (None, Some(1.0));
    let key = "controller.page".to_owned();
    let lines = sensitivity::table(&[scenario], &[key], false, SMALL, &|_| {}).unwrap();
    // As shipped, rows stay open: that end is no change.
    let [shipped, closed] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(shipped.change.of, Of::Nothing);
    assert_eq!(
        (&*closed.change.key, &*closed.change.value),
        ("controller.page", "\"closed\"")
    );
    assert!(shipped.claim.ours != closed.claim.ours, "{lines:?}");
    let spread = &sensitivity::spreads(&lines)[0];
    assert!(spread.least.value < spread.most.value, "{spread:?}");
    let moved = sensitivity::settings(&lines, "predicted");
    assert_eq!((moved.len(), moved[0].of_claims), (1, 1), "{moved:?}");
    let csv = sensitivity::csv::write(&lines).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert_eq!(sensitivity::csv::read(&csv).unwrap(), lines);
}

/// A range of an input changes what is run, and only that; both ends of two inputs
/// are run together where that is asked for.
#[test]
fn ranges_of_inputs_change_what_is_run() {
    let range = "[range]\nused = [0.1, 0.4]\nvictim.bytes = [\"16M\", \"256K\"]\nother.instructions = [1, 50]\n";
    let mut scenario =
        known::parse(&TINY.replace("[sweep]", &format!("{range}[sweep]")), "t").unwrap();
    scenario.claims.truncate(1);
    (scenario.claims[0].holds, scenario.claims[0].theirs) = (None, Some(1.3));
    let asked = ["used", "victim.bytes", "other.instructions"].map(str::to_owned);
    let lines = sensitivity::table(&[scenario.clone()], &asked, false, SMALL, &|_| {}).unwrap();
    let changes: Vec<_> = lines
        .iter()
        .map(|l| (l.change.of, &*l.change.key, &*l.change.value))
        .collect();
    // A value that the file has already is no change.
    let inputs = [
        ("other.instructions", "50"),
        ("used", "0.4"),
        ("victim.bytes", "\"256K\""),
    ];
    assert_eq!(changes[0].0, Of::Nothing);
    assert_eq!(
        changes[1..],
        inputs.map(|(key, value)| (Of::Experiment, key, value))
    );
    let ours: Vec<f64> = lines.iter().map(|l| l.claim.ours.unwrap()).collect();
    // A chase in its own caches meets nobody in a bank; attackers that compute disturb less.
    assert!(ours[3] < 1.1 && ours[0] > 1.5, "{ours:?}");
    assert!(ours[1] < ours[0], "{ours:?}");
    let spread = &sensitivity::spreads(&lines)[0];
    assert_eq!(spread.bracketed(), "inputs (victim.bytes)", "{ours:?}");

    let pairs = sensitivity::table(&[scenario], &asked, true, SMALL, &|_| {}).unwrap();
    let pair = |l: &sensitivity::Line| l.change.of == Of::Pair;
    assert_eq!(pairs.iter().filter(|l| pair(l)).count(), 3, "{pairs:?}");
}

/// Cases that no claim is about are not run where only the needed are asked for.
#[test]
fn needed_cases_are_those_of_claims() {
    let mut scenario = known::parse(TINY, "t").unwrap();
    let needed = Options {
        needed: true,
        ..SMALL
    };
    let all = run(&scenario, needed, &|_| {}).unwrap();
    assert_eq!(all.len(), 4);
    scenario.claims.truncate(1);
    let cases = run(&scenario, needed, &|_| {}).unwrap();
    let names: Vec<_> = cases.iter().map(|c| &*c.case).collect();
    assert_eq!(names, ["same_bank_0", "same_bank_3"]);
    assert_eq!(cases, all[..2]);
}

/// No experiment is left out of the sensitivity table for want of ranges.
#[test]
fn every_experiments_machine_says_what_no_document_does() {
    for (name, _) in known::EXPERIMENTS {
        let scenario = known::find(name).unwrap();
        let own = !scenario.range.is_empty();
        assert!(
            own || scenario.experiment.basis == Basis::Ablation,
            "{name}"
        );
        assert!(!sensitivity::keys(&[scenario]).is_empty(), "{name}");
    }
}
