//! Times the solver alone, from conflicting pairs to bank functions, for 4 to
//! 1024 banks: `cargo run --release -p soloist-map --example solver`. It prints
//! the median and the slowest of many runs on maps that are new every time.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_machine::gf2::{span, Basis};

const RUNS: usize = 200;
/// Conflicting pairs, as the detector collects them.
const PAIRS: usize = 64;

fn main() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    println!("{:>6} {:>12} {:>12}", "banks", "median", "slowest");
    for functions in 2..=10 {
        let mut times: Vec<Duration> = (0..RUNS).map(|_| solve(functions, &mut rng)).collect();
        times.sort_unstable();
        let (median, slowest) = (times[RUNS / 2], times[RUNS - 1]);
        let micros = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
        println!(
            "{:>6} {:>12} {:>12}",
            1 << functions,
            micros(median),
            micros(slowest)
        );
    }
}

/// Time to solve a random map of 256 GiB.
fn solve(functions: usize, rng: &mut ChaCha8Rng) -> Duration {
    let within = span(6, 37);
    let mut truth = Basis::new();
    while truth.rank() < functions {
        truth.insert(rng.gen::<u64>() & within);
    }
    let same_bank = truth.nullspace(within);
    let pairs: Vec<u64> = (0..PAIRS)
        .map(|_| {
            let rows = same_bank.rows().iter();
            rows.filter(|_| rng.gen()).fold(0, |sum, row| sum ^ row)
        })
        .collect();
    let started = Instant::now();
    let found = Basis::of(pairs).nullspace(within).lightest();
    let time = started.elapsed();
    assert_eq!(Basis::of(found), truth, "the pairs determine the functions");
    time
}
