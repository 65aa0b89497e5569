//! Fits the generators of MemGuard's Table 1 to the model of its machine and
//! prints the rows of `TABLE_1` in src/profile.rs with what the fit leaves.
//! To be run again when the timing model or the machine file changes.

use rayon::prelude::*;
use soloist_lab::profile::{Profile, TABLE_1};
use soloist_lab::run::{run_cases, Options, RunError};
use soloist_lab::scenario::{Scenario, ScenarioError};

const ALONE: &str = r#"
policies = ["buddy"]
[experiment]
id = "fit"
title = "One benchmark alone"
machine = "core2quad-q8400"
[regulator]
modes = ["vanilla"]
r_min = 1200
peak = 6400
[[task]]
name = "task"
kind = "spec"
benchmark = 470
cpus = "0"
bytes = "64M"
work = 30000
"#;

#[derive(Debug, thiserror::Error)]
enum FitError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("{0}: {1}")]
    Case(String, String),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<(String, String)> for FitError {
    fn from((word, what): (String, String)) -> Self {
        Self::Case(word, what)
    }
}

/// Instructions per cycle and MB/s of a profile alone.
fn alone(profile: Profile) -> Result<(f64, f64), FitError> {
    let scenario = Scenario::parse(ALONE, "fit")?;
    let mut cases = scenario.cases(1)?;
    cases[0].tasks[0].profile = Some(profile);
    let options = Options {
        seed: 1,
        small: false,
    };
    let results = run_cases(&scenario, &cases, options, &|_| {})?;
    let of = |metric| results[0].spread("task", metric).map_or(0.0, |s| s.mean);
    Ok((of("ipns") / 2.667, of("reads")))
}

/// Finds the x for which `profile(x)` alone is as fast as Table 1. The time of
/// a miss is nearly linear in x: a secant gets there in a few steps.
fn solve(
    (low, high): (f64, f64),
    start: [f64; 2],
    profile: impl Fn(f64) -> Profile,
) -> Result<Profile, FitError> {
    let error = |x: f64| -> Result<f64, FitError> {
        let p = profile(x);
        Ok(1.0 / alone(p)?.1 - 1.0 / p.bandwidth)
    };
    let [mut before, mut x] = start;
    let (mut e_before, mut e) = (error(before)?, error(x)?);
    for _ in 0..4 {
        if (e - e_before).abs() < 1e-9 {
            break;
        }
        let next = (x - e * (x - before) / (e - e_before)).clamp(low, high);
        (before, e_before) = (x, e);
        x = next;
        e = error(x)?;
    }
    Ok(profile(x))
}

fn round(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

fn fit(p: Profile) -> Result<String, FitError> {
    let plain = Profile {
        group: 1.0,
        slow: 1.0,
        ..p
    };
    let fitted = if alone(plain)?.1 < p.bandwidth {
        solve((1.0 / 16.0, 1.0), [1.0, 0.5], |x| Profile {
            group: round(1.0 / x),
            ..plain
        })?
    } else {
        solve((1.0, 8.0), [1.0, 2.0], |x| Profile {
            slow: round(x),
            ..plain
        })?
    };
    let (ipc, bandwidth) = alone(fitted)?;
    Ok(format!(
        "    p({}, \"{}\", {:.2}, {:.1}, {:?}, {:?}), // {:+.1} %, {:+.1} %",
        p.spec,
        p.name,
        p.ipc,
        p.bandwidth,
        fitted.group,
        fitted.slow,
        100.0 * (ipc / p.ipc - 1.0),
        100.0 * (bandwidth / p.bandwidth - 1.0)
    ))
}

fn main() -> Result<(), FitError> {
    let rows: Result<Vec<String>, FitError> = TABLE_1.par_iter().map(|&p| fit(p)).collect();
    for row in rows? {
        println!("{row}");
    }
    Ok(())
}
