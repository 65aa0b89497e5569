//! `evidence/verdicts.csv` keeps the verdicts on claims of task sets too
//! (evidence/lab.md has the command that writes it anew).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
