//! How often banks are shown on simulated machines: `two_banks [RUNS [NS]]`, where a
//! neighbour in the same bank adds NS nanoseconds (0: no machine has an effect).
//! Each run is another machine, with another seed. As a table by noise.

use std::time::Duration;

use soloist_bench::banks::sets;
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::two_banks::{measure, Design};
use soloist_detect::meter::Meter;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_machine::known;

const MACHINES: [&str; 6] = [
    "opteron-6128",
    "haswell",
    "skylake",
    "server-6-channels",
    "ryzen-9900x",
    "qemu-4node",
];
const NOISES: [&str; 8] = [
    "low", "high", "drift", "outliers", "bursts", "guest", "aliases", "all",
];

fn main() {
    let word = |i: usize| std::env::args().nth(i);
    let runs: u64 = word(1).map_or(240, |n| n.parse().expect("RUNS"));
    let same_bank_ns: f64 = word(2).map_or(0.0, |n| n.parse().expect("NS"));
    println!("noise,machines,no sets,not beside,shown,true in the interval");
    for (kind, name) in NOISES.iter().enumerate() {
        let (mut tried, mut none, mut absent, mut shown, mut held) = (0, 0, 0, 0, 0);
        for seed in (0..runs).filter(|seed| *seed as usize % NOISES.len() == kind) {
            tried += 1;
            let machine = MACHINES[seed as usize / NOISES.len() % MACHINES.len()];
            let noise = name.parse().expect("a kind of noise");
            let machine = known::find(machine).expect("a known machine");
            let mut memory = SimSource::new(&machine, SimPool::unprivileged(21, 64), noise, seed);
            let mut meter = Meter::new(&mut memory, Duration::from_secs(600), seed);
            let Ok(found) = sets::find(&mut meter, &mut |_| {}) else {
                none += 1;
                continue;
            };
            let truth = Truth {
                same_bank_ns,
                same_channel_ns: 0.0,
                others_ns: 20.0,
                taken: 0.02,
                noise,
            };
            let mut cores = SimCores::new(&memory, truth, seed);
            match measure(&mut cores, &found, Design { blocks: 30, seed }, &mut |_| {}) {
                Ok(measured) => {
                    shown += u32::from(measured.is_shown());
                    let added = measured.costs[0].added_ns;
                    held += u32::from(added.low <= same_bank_ns && same_bank_ns <= added.high);
                }
                Err(_) => absent += 1,
            }
        }
        println!("{name},{tried},{none},{absent},{shown},{held}");
    }
}
