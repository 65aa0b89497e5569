//! Runs the detector on simulated memory many times and counts how often it
//! recovers the map exactly: `recovery [RUNS [NOISE [MACHINE...]]]`.

use std::time::{Duration, Instant};

use soloist_map::detect::sim::{Noise, SimPool, SimSource};
use soloist_map::detect::{detect, Options};
use soloist_map::{compare, known, Machine};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runs: u64 = args.first().map_or(10, |n| n.parse().expect("RUNS"));
    let noise: Noise = args
        .get(1)
        .map_or(Noise::HIGH, |n| n.parse().expect("NOISE"));
    let names: Vec<String> = match args.get(2..) {
        Some(names) if !names.is_empty() => names.to_vec(),
        _ => known::names().map(str::to_owned).collect(),
    };
    for name in names {
        let machine: Machine = known::find(&name).expect("machine");
        let (mut good, mut slowest, mut samples) = (0, Duration::ZERO, 0);
        for seed in 0..runs {
            let started = Instant::now();
            let mut source = SimSource::new(&machine, SimPool::Everything, noise, seed);
            let options = Options {
                seed,
                ..Options::default()
            };
            let found = detect(&mut source, &options, &mut |_, _| {});
            slowest = slowest.max(started.elapsed());
            samples += found.samples;
            let verdict = match found.map() {
                Some(map) => compare::differences(&machine.map, &map),
                None => vec!["nothing found".to_owned()],
            };
            if verdict.is_empty() {
                good += 1;
            } else {
                println!("{name} seed {seed}: {}", verdict.join("; "));
            }
        }
        println!(
            "{name}: {good} of {runs} exact, slowest {:.2} s, {} samples a run",
            slowest.as_secs_f64(),
            samples / runs.max(1)
        );
    }
}
