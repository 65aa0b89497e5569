//! The detector on simulated memory. `examples/recovery.rs` does the same a
//! hundred times over for every machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use soloist_map::detect::check::{check, Verdict};
use soloist_map::detect::sim::{Noise, SimPool, SimSource};
use soloist_map::detect::source::{Addresses, OsRange, TimingSource};
use soloist_map::detect::{detect, Detected, Options};
use soloist_map::gf2::Basis;
use soloist_map::machine::{About, Topology};
use soloist_map::{compare, known, write, Machine, Trust};

fn options(seed: u64) -> Options {
    Options {
        seed,
        // Tests share their processors with others.
        deadline: Duration::from_secs(600),
        ..Options::default()
    }
}

fn run(machine: &Machine, pool: SimPool, noise: Noise, seed: u64) -> Detected {
    let mut source = SimSource::new(machine, pool, noise, seed);
    detect(&mut source, &options(seed), &mut |_, _| {})
}

fn data(name: &str) -> Machine {
    let path = format!("{}/tests/data/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Machine::read(path.as_ref()).unwrap()
}

#[test]
fn maps_come_back_exactly_through_heavy_noise() {
    let machines = [
        known::find("opteron-6128").unwrap(),
        known::find("zen2").unwrap(),
        data("ddr5"),
        data("asymmetric"),
        data("hidden-base"),
        data("banks-1024"),
        data("banks-4"),
    ];
    for machine in machines {
        let found = run(&machine, SimPool::Everything, Noise::HIGH, 5);
        let map = found.map().unwrap();
        let wrong = compare::differences(&machine.map, &map);
        assert!(wrong.is_empty(), "{}: {wrong:?}", machine.about.name);
        assert!(found.is_complete(), "{}", machine.about.name);
    }
}

#[test]
fn scattered_frames_of_4_kib_are_enough() {
    let machine = known::find("ivy-bridge").unwrap();
    let found = run(&machine, SimPool::Frames { sparse: 3 }, Noise::LOW, 3);
    let wrong = compare::differences(&machine.map, &found.map().unwrap());
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn without_noise_too() {
    let machine = known::find("p4080").unwrap();
    let found = run(&machine, SimPool::Everything, Noise::NONE, 1);
    let wrong = compare::differences(&machine.map, &found.map().unwrap());
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn what_was_found_makes_a_machine_file() {
    let machine = data("asymmetric");
    let found = run(&machine, SimPool::Everything, Noise::LOW, 2);
    let about = About {
        name: "found".into(),
        description: "x \"quoted\"".into(),
        trust: Trust::Detected,
        source: Vec::new(),
    };
    let topology: Topology = machine.topology.clone();
    let text = write::machine_file(&about, &topology, &found.map().unwrap(), &found.notes());
    let back = Machine::parse(&text, "found.toml").unwrap();
    assert!(
        compare::differences(&machine.map, &back.map).is_empty(),
        "{text}"
    );
}

#[test]
fn pages_of_unknown_address_give_functions_inside_and_classes() {
    let machine = known::find("skylake").unwrap();
    let pool = SimPool::Unprivileged {
        page_shift: 21,
        pages: 24,
    };
    let mut source = SimSource::new(&machine, pool, Noise::LOW, 7);
    let found = detect(&mut source, &options(7), &mut |_, _| {});
    assert!(found.map().is_none());
    let inside = (1 << 21) - 64;
    let truth = Basis::of(
        machine.map.layouts[0]
            .bank_functions()
            .iter()
            .map(|f| f & inside),
    );
    assert_eq!(Basis::of(found.regions[0].functions.iter().copied()), truth);
    // Two pages are of one class exactly when their first lines share a bank.
    let classes = found.classes.unwrap();
    let map = machine.addr_map();
    let mut bank_of_class = BTreeMap::new();
    for page in &classes.pages {
        let bank = map.decode(source.physical(page.page)).unwrap().color;
        let known = bank_of_class.entry(page.class.unwrap()).or_insert(bank);
        assert_eq!(*known, bank, "page {:#x}", page.page);
    }
    let mut banks: Vec<u32> = bank_of_class.values().copied().collect();
    banks.sort_unstable();
    banks.dedup();
    assert_eq!(banks.len(), classes.classes);
    assert!(classes.classes > 1);
}

#[test]
fn check_tells_the_right_map_from_a_wrong_one() {
    let host = known::find("skylake").unwrap();
    let verdict = |name: &str| {
        let machine = known::find(name).unwrap();
        let mut source = SimSource::new(&host, SimPool::Everything, Noise::LOW, 4);
        check(&mut source, &machine.map, &options(4)).unwrap().0
    };
    assert_eq!(verdict("skylake"), Verdict::Fits);
    for other in ["haswell", "e3-1230", "i7-6700k", "p4080"] {
        assert_eq!(verdict(other), Verdict::Contradicted, "{other}");
    }
}

/// Memory in which nothing ever conflicts, or that is too slow to finish.
struct Flat {
    delay: Duration,
}

impl TimingSource for Flat {
    fn ranges(&self) -> Vec<OsRange> {
        vec![OsRange {
            start: 0,
            end: 1 << 30,
            node: 0,
        }]
    }
    fn addresses(&self) -> Addresses {
        Addresses::Physical
    }
    fn random(&mut self, range: &OsRange, rng: &mut ChaCha8Rng) -> Option<u64> {
        Some(rand::Rng::gen_range(rng, range.start..range.end) & !63)
    }
    fn has(&self, _address: u64) -> bool {
        true
    }
    fn sample(&mut self, _a: u64, _b: u64) -> u32 {
        std::thread::sleep(self.delay);
        200
    }
}

#[test]
fn memory_without_conflicts_is_said_to_have_none() {
    let mut flat = Flat {
        delay: Duration::ZERO,
    };
    let found = detect(&mut flat, &options(1), &mut |_, _| {});
    assert!(found.regions.is_empty() && !found.is_complete());
    assert!(found.unsolved[0].1.to_string().contains("no row conflicts"));
}

#[test]
fn the_deadline_holds() {
    let mut slow = Flat {
        delay: Duration::from_micros(200),
    };
    let started = Instant::now();
    let limit = Options {
        deadline: Duration::from_millis(300),
        ..options(1)
    };
    let found = detect(&mut slow, &limit, &mut |_, _| {});
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(found.unsolved[0].1.to_string().contains("deadline"));
}
