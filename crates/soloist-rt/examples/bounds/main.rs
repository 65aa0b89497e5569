//! Thousands of random sets and machines: is a bound ever below what was played
//! (it fails then), and how tight is it? `cargo run --release -p soloist-rt --example bounds [N [long|alone|colors|wide|beside [FIRST SEED]]]`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints"
)]

mod sets;

use std::collections::BTreeMap;
use std::process::ExitCode;

use rayon::prelude::*;

/// Bounds over plays, upper ends of the bars.
const BARS: [f64; 8] = [
    2.0,
    10.0,
    30.0,
    100.0,
    300.0,
    1000.0,
    10_000.0,
    f64::INFINITY,
];

fn main() -> ExitCode {
    let n: u64 = std::env::args().nth(1).map_or(1000, |n| n.parse().unwrap());
    let draw = match std::env::args().nth(2).as_deref() {
        Some("long") => sets::Draw::Long,
        Some("alone") => sets::Draw::Alone,
        Some("colors") => sets::Draw::Colors,
        Some("wide") => sets::Draw::Wide,
        _ => sets::Draw::Beside,
    };
    let first: u64 = std::env::args().nth(3).map_or(0, |n| n.parse().unwrap());
    let samples: Vec<(u64, sets::Sample)> = (first..first + n)
        .into_par_iter()
        .flat_map_iter(|seed| sets::check(seed, draw).into_iter().map(move |s| (seed, s)))
        .collect();
    let below = samples.iter().filter(|(_, s)| s.bound_ps < s.played_ps);
    for (seed, sample) in below.clone() {
        println!("BELOW: seed {seed}: {sample:?}");
    }
    let below = below.count();
    println!(
        "{n} sets from seed {first}, {} tasks: {below} bounds below the longest play",
        samples.len()
    );
    let mut by_policy: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, s) in &samples {
        let ratio = match s.bound_ps {
            u64::MAX => f64::INFINITY,
            bound => bound as f64 / s.played_ps as f64,
        };
        by_policy.entry(s.policy).or_default().push(ratio);
    }
    println!("bound / longest play, tasks in each range; none: without a bound");
    print!("{:20}", "");
    BARS.iter()
        .for_each(|bar| print!("{:>9}", format!("<{bar}")));
    println!("{:>9}{:>9}", "none", "median");
    for (policy, mut ratios) in by_policy {
        ratios.sort_by(f64::total_cmp);
        print!("{policy:20}");
        let mut from = 0;
        for bar in BARS {
            let to = ratios.partition_point(|&r| r < bar);
            print!("{:>9}", to - from);
            from = to;
        }
        let median = ratios[ratios.len() / 2];
        print!("{:>9}", ratios.len() - from);
        if median.is_finite() {
            println!("{median:>9.2}");
        } else {
            println!("{:>9}", "none");
        }
    }
    ExitCode::from(u8::from(below > 0))
}
