//! `evidence/verdicts.csv` keeps the verdicts on claims, so that a
//! change of the model or of a machine file shows itself. evidence/lab.md has the
//! command that writes the file anew; here the quickest are run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use soloist_lab::jobs::{run, run_all, Options};
use soloist_lab::judgement::table::{claims, read_claims, ClaimLine};
use soloist_lab::judgement::ScenarioOutcome;
use soloist_lab::known;

const KEPT: &str = include_str!("../../../evidence/verdicts.csv");
/// Of all experiments in full, which no test runs.
const FULL: &str = include_str!("../../../evidence/verdicts-full.csv");

/// Those that take some seconds each.
const QUICK: [&str; 4] = [
    "camc-table-2",
    "report-controllers",
    "palloc-peak",
    "palloc-solo-soplex",
];

/// As `soloist lab run --small --seeds 3`.
const OPTIONS: Options = Options {
    seed: 1,
    seeds: Some(3),
    small: true,
    account: false,
    needed: false,
};

fn lines_of(file: &str, experiment: &str) -> Vec<ClaimLine> {
    let all = read_claims(file).unwrap();
    let lines = all.into_iter();
    lines.filter(|line| line.experiment == experiment).collect()
}

fn kept(experiment: &str) -> Vec<ClaimLine> {
    lines_of(KEPT, experiment)
}

#[test]
fn verdicts_are_what_they_were() {
    let jobs = QUICK.map(|name| (known::find(name).unwrap(), OPTIONS));
    run_all(&jobs, &|| {}, |i, cases| {
        let outcome = ScenarioOutcome::new(jobs[i].0.clone(), OPTIONS, cases.unwrap());
        assert_eq!(claims(&[outcome]), kept(QUICK[i]), "{}", QUICK[i]);
        true
    });
}

/// A constant of the model that is another shows itself.
#[test]
fn another_constant_gives_other_verdicts() {
    let mut scenario = known::find("palloc-peak").unwrap();
    scenario.change_model("controller.bank_queue", "1").unwrap();
    let cases = run(&scenario, OPTIONS, &|_| {}).unwrap();
    let outcome = ScenarioOutcome::new(scenario, OPTIONS, cases);
    assert_ne!(claims(&[outcome]), kept("palloc-peak"));
}

/// Also of those that are not run here. Another test sees that every name is known.
#[test]
fn what_is_kept_is_of_the_claims_as_they_stand() {
    let lines = read_claims(KEPT).unwrap();
    let names: BTreeSet<&str> = lines.iter().map(|line| line.experiment.as_str()).collect();
    assert!(QUICK.iter().all(|name| names.contains(name)), "{names:?}");
    let known = |name: &&str| known::EXPERIMENTS.iter().any(|(n, _)| n == name);
    for name in names.into_iter().filter(known) {
        let claims = known::find(name).unwrap().claims;
        let stand: Vec<_> = claims.iter().map(|c| (c.what.clone(), c.theirs)).collect();
        for file in [KEPT, FULL] {
            let kept = lines_of(file, name).into_iter();
            let kept: Vec<_> = kept.map(|line| (line.claim, line.theirs)).collect();
            assert_eq!(stand, kept, "{name}");
        }
    }
}
