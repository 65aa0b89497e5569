//! Recordings on simulated memory whose truth is known.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use soloist_bench::banks::Banks;
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::cores::Attack;
use soloist_bench::slices::Plan;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_machine::known;
use soloist_memory::Platform;
use soloist_play::import::{import, Format, Target};
use soloist_play::policy::Policy;
use soloist_play::replay::{load, Part, WORN};
use soloist_record::meta::Cache;
use soloist_record::Lines;
use soloist_validate::cut::Cut;
use soloist_validate::place::Terms;
use soloist_validate::stage::{Both, Player, Silicon};

const BANKS: usize = 16;

/// A program of these reads, one every `work` cycles, behind a cache of two lines.
fn read(dir: &Path, machine: &str, lines: impl Iterator<Item = u64>, work: u64) -> Part {
    let line = |(at, line): (u64, u64)| format!("{line:#x} READ {}\n", at * work);
    let trace = dir.join("trace");
    fs::write(&trace, (0..).zip(lines).map(line).collect::<String>()).unwrap();
    let target = Target {
        out: &dir.join("rec"),
        name: "reads".to_owned(),
        machine: machine.to_owned(),
        map: String::new(),
        caches: vec![Cache {
            name: "l1d".to_owned(),
            sets: 1,
            ways: 2,
        }],
    };
    import(&[trace], Format::Dramsim3, &target).unwrap();
    load(&dir.join("rec"), 0, Lines::ALL).unwrap()
}

/// A program that reads lines all over 4 MiB.
fn recording(dir: &Path) -> Part {
    let lines = (0..2_000).map(|i| i * 0x9e37_79b9 % (1 << 22) & !63);
    read(dir, "sapphire-rapids-slice", lines, 200)
}

/// A program that reads 4 MiB line by line, over and over.
fn reuse(dir: &Path) -> Part {
    let lines = (0..200_000).map(|i| i * 64 % (4 << 20));
    read(dir, "skylake", lines, 50)
}

/// No page colour divides a hashed cache, so a quarter of the banks costs no part of it.
/// Where a cache is divided, the lines that it lost count in the program's time.
#[test]
fn private_banks_leave_a_hashed_cache_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (part, memory) = (reuse(dir.path()), memory());
    let both = play_on("skylake", &part, (&memory.0, &memory.1), 0.0, 1);
    let hits: Vec<f64> = both.iter().map(|one| one.hits_percent).collect();
    assert!(hits.iter().all(|&one| one > 60.0), "{hits:?}");
    assert!((hits[0] - hits[1]).abs() < 2.0, "{hits:?}");

    let both = play_on("raspberry-pi-4", &part, (&memory.0, &memory.1), 0.0, 1);
    for one in &both {
        let (first, row) = (both[0].lines as f64, one.silicon.as_ref().unwrap());
        let time = row.beside_ns * one.lines as f64 / first;
        let of_first = both[0].silicon.as_ref().unwrap().alone_ns;
        assert!(
            (row.slowdown_to_first.unwrap() / (time / of_first) - 1.0).abs() < 1e-9,
            "{row:?}"
        );
    }
}

fn memory() -> (SimSource, Banks) {
    let machine = known::find("haswell").unwrap();
    let pool = SimPool::unprivileged(21, 48);
    let mut memory = SimSource::new(&machine, pool, "low".parse().unwrap(), 5);
    let deadline = Duration::from_secs(600);
    let banks = Banks::find(&mut memory, 3, deadline, 1, &mut |_, _| {}).unwrap();
    (memory, banks)
}

fn play(
    part: &Part,
    (memory, banks): &(SimSource, Banks),
    same_bank_ns: f64,
    seed: u64,
) -> Vec<Both> {
    play_on(
        "sapphire-rapids-slice",
        part,
        (memory, banks),
        same_bank_ns,
        seed,
    )
}

fn play_on(
    machine: &str,
    part: &Part,
    (memory, banks): (&SimSource, &Banks),
    same_bank_ns: f64,
    seed: u64,
) -> Vec<Both> {
    let mut players = vec![Player::Recorded(part.clone())];
    players.extend((0..3).map(|_| Player::Loop(Attack::Write)));
    let platform = Platform::find(machine).unwrap();
    let silicon = Silicon {
        cut: Cut::new(platform, BANKS, Silicon::pages(&players)).unwrap(),
        players,
        terms: Terms {
            sets: 4,
            history: WORN,
            seed: 1,
        },
    };
    let truth = Truth {
        same_bank_ns,
        same_channel_ns: 0.0,
        others_ns: 10.0,
        taken: 0.01,
        noise: "low".parse().unwrap(),
    };
    let mut cores = SimCores::new(memory, truth, seed).with_neighbours(3);
    let policies: Vec<&'static dyn Policy> = ["buddy", "diff_bank", "same_bank"]
        .map(|name| name.parse().unwrap())
        .to_vec();
    let plan = Plan {
        blocks: 20,
        time: Duration::from_secs(600),
        seed,
    };
    silicon
        .play(&policies, &mut cores, banks, plan, &mut |_, _| {})
        .unwrap()
}

/// Private banks save what the truth says, same banks nothing, and none where banks cost
/// nothing; the model stands beside.
#[test]
fn each_policy_costs_what_its_banks_cost() {
    let dir = tempfile::tempdir().unwrap();
    let (part, memory) = (recording(dir.path()), memory());
    let both = play(&part, &memory, 400.0, 1);
    let rows: Vec<_> = both
        .iter()
        .map(|one| one.silicon.as_ref().unwrap())
        .collect();
    let added = |at: usize| rows[at].adds.ns.median;
    // Three neighbours, each in the victim's bank once in 16 times, or in 4.
    assert!((added(0) - added(1) - 75.0).abs() < 15.0, "{rows:?}");
    assert!((added(2) - added(1) - 300.0).abs() < 40.0, "{rows:?}");
    assert!(rows[1].saves.unwrap().shown, "{rows:?}");
    assert!(!rows[2].saves.unwrap().shown, "{rows:?}");
    let said = rows[1].verdict();
    assert!(said.contains("keeps off what co-runners add"), "{said}");
    assert!(said.contains(": shorter."), "{said}");
    let said = rows[2].verdict();
    assert!(said.contains("more than under the first"), "{said}");
    assert!(said.contains(": longer."), "{said}");
    for one in &both {
        assert!(one.model.slowdown > 1.0, "{one:?}");
        assert!(one.lines > 1_900, "{one:?}");
        assert_eq!(one.spilled, 0);
    }
    assert!(both[2].model.slowdown > both[1].model.slowdown, "{both:?}");

    let both = play(&part, &memory, 0.0, 2);
    let mut saves = both.iter().filter_map(|one| one.silicon.as_ref()?.saves);
    assert!(saves.all(|saves| !saves.shown), "{both:?}");
}

/// Who writes pays for it: in the model no fill of another core waits until a co-runner's
/// written line is gone.
#[test]
fn nobody_waits_for_the_written_lines_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let (part, memory) = (recording(dir.path()), memory());
    let both = play_on("raspberry-pi-4", &part, (&memory.0, &memory.1), 400.0, 1);
    for one in &both {
        assert!(
            one.model.slowdown < 12.0,
            "{}: {:?}",
            one.placement,
            one.model
        );
    }
}
