//! A neighbour in the same bank, on simulated machines with and without banks.
//! `examples/two_banks` does the same some hundred times over.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_bench::banks::sets::{self, Sets, SetsError};
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::two_banks::{measure, Design, Measured, NotBeside};
use soloist_detect::meter::{Meter, Stop};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::pool::Pool;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::{Addresses, TimingSource};
use soloist_machine::{known, RamRange};

/// What the same bank adds where it does, ns.
const EFFECT: f64 = 12.0;

fn memory(machine: &str, noise: &str, seed: u64) -> SimSource {
    let pool = SimPool::unprivileged(21, 64);
    SimSource::new(
        &known::find(machine).unwrap(),
        pool,
        noise.parse().unwrap(),
        seed,
    )
}

fn find(memory: &mut dyn TimingSource, seed: u64) -> Result<Sets, SetsError> {
    let mut meter = Meter::new(memory, Duration::from_secs(600), seed);
    sets::find(&mut meter, &mut |_| {})
}

fn truth(noise: &str) -> Truth {
    Truth {
        same_bank_ns: 0.0,
        same_channel_ns: 0.0,
        others_ns: 20.0,
        taken: 0.01,
        noise: noise.parse().unwrap(),
    }
}

fn measured(
    memory: &SimSource,
    sets: &Sets,
    truth: Truth,
    seed: u64,
) -> Result<Measured, NotBeside> {
    let design = Design { blocks: 30, seed };
    let mut cores = SimCores::new(memory, truth, seed);
    measure(&mut cores, sets, design, &mut |_| {})
}

/// The lines are of two banks, and what they cost is seen with and without an effect.
#[test]
fn banks_are_shown_where_there_are_some_and_only_there() {
    let (mut shown, mut held, mut claimed) = (0, 0, 0);
    for (i, (machine, noise)) in [
        ("opteron-6128", "low"),
        ("haswell", "high"),
        ("server-6-channels", "outliers"),
        ("qemu-4node", "bursts"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut memory = memory(machine, noise, i as u64);
        let sets = find(&mut memory, i as u64).unwrap();
        let banks = sets.banks.each_ref().map(|bank| {
            let mut all = bank.victim.iter().chain(&bank.neighbour);
            let first = memory.bank(*all.next().unwrap());
            assert!(all.all(|&line| memory.bank(line) == first), "{machine}");
            first
        });
        assert_ne!(banks[0], banks[1], "{machine}");
        for seed in 0..50 {
            let none = measured(&memory, &sets, truth(noise), seed).unwrap();
            claimed += usize::from(none.is_shown());
            if seed < 5 {
                let with = Truth {
                    same_bank_ns: EFFECT,
                    ..truth(noise)
                };
                let found = measured(&memory, &sets, with, seed).unwrap();
                shown += usize::from(found.is_shown());
                let cost = found.costs[0].added_ns;
                held += usize::from(cost.low <= EFFECT && EFFECT <= cost.high);
            }
        }
    }
    println!("of 200 without banks {claimed} shown; of 20 with, {shown}, {held} in the interval");
    assert!(claimed <= 5, "{claimed} of 200");
    assert!(shown >= 19 && held >= 19, "{shown}, {held} of 20");
}

#[test]
fn a_neighbour_that_does_not_run_is_said() {
    let mut memory = memory("opteron-6128", "low", 3);
    let sets = find(&mut memory, 3).unwrap();
    let taken = Truth {
        taken: 0.9,
        ..truth("low")
    };
    let error = measured(&memory, &sets, taken, 3).unwrap_err();
    assert_eq!((error.dropped, error.tried), (120, 120));
    assert!(error.to_string().contains("120 of 120 blocks"), "{error}");
}

#[test]
fn noise_above_all_conflicts_is_no_bank() {
    let mut memory = memory("opteron-6128", "sigma=900", 4);
    assert_eq!(
        find(&mut memory, 4).unwrap_err(),
        SetsError::Stop(Stop::NoConflicts)
    );
}

/// Memory in which one pair in 16 is slow for good, whatever its lines are paired
/// with otherwise: no banks.
struct Accidents {
    pool: Pool,
    rng: ChaCha8Rng,
}

impl TimingSource for Accidents {
    fn ranges(&self) -> Vec<RamRange> {
        vec![RamRange {
            start: 0,
            end: 64 << 21,
            node: 0,
        }]
    }

    fn addresses(&self) -> Addresses {
        Addresses::InsidePages { page_shift: 21 }
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn sample(&mut self, a: u64, b: u64) -> u32 {
        let pair = ChaCha8Rng::seed_from_u64((a.min(b) << 32) ^ a.max(b)).gen::<u8>();
        let slow = pair % 16 == 0;
        Noise::LOW.reading(
            if slow { 340.0 } else { 260.0 },
            260.0,
            u64::from(pair),
            &mut self.rng,
        )
    }
}

#[test]
fn pairs_that_are_slow_by_accident_are_no_bank() {
    let mut memory = Accidents {
        pool: Pool::new((0..64).map(|page| page << 21).collect(), 21),
        rng: ChaCha8Rng::seed_from_u64(1),
    };
    let error = find(&mut memory, 5).unwrap_err();
    assert!(
        matches!(error, SetsError::DoNotHold { within, .. } if within < 10),
        "{error}"
    );
}

/// Of 1024 banks one pair in 1024 conflicts: 256 lines take more pairs than any constant that
/// time does not set.
#[test]
fn lines_are_looked_for_until_the_deadline() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../soloist-detect/tests/data/banks-1024.toml"
    );
    let mut of_many = memory(file, "low", 1);
    let mut meter = Meter::new(&mut of_many, Duration::from_secs(600), 1);
    let found = sets::many(&mut meter, 2, 256, &mut |_| {}).unwrap();
    assert!(found.iter().all(|lines| lines.len() == 256));
    let mut meter = Meter::new(&mut of_many, Duration::from_millis(200), 1);
    let error = sets::many(&mut meter, 2, 4096, &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, SetsError::TooFew { pairs, found, .. } if pairs > found),
        "{error}"
    );
}
