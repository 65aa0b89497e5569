//! Slices of few banks on simulated machines, with and without an effect of banks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use soloist_bench::banks::{Banks, How, Owner};
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::cores::Attack;
use soloist_bench::in_slices::InSlices;
use soloist_bench::slices::{measure, Cell, Plan};
use soloist_bench::{channels, paced, picture, whole};
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_machine::{gf2, known};

fn memory(machine: &str, noise: &str, seed: u64) -> SimSource {
    SimSource::new(
        &known::find(machine).unwrap(),
        SimPool::unprivileged(21, 48),
        noise.parse().unwrap(),
        seed,
    )
}

fn find(memory: &mut SimSource, neighbours: usize) -> Banks {
    let deadline = Duration::from_secs(600);
    Banks::find(memory, neighbours, deadline, 1, &mut |_, _| {}).unwrap()
}

fn cells(memory: &SimSource, banks: &Banks, same_bank_ns: f64, seed: u64) -> Vec<Cell> {
    cells_beside(3, memory, banks, truth(same_bank_ns, 0.0), seed)
}

fn cells_beside(
    most: usize,
    memory: &SimSource,
    banks: &Banks,
    truth: Truth,
    seed: u64,
) -> Vec<Cell> {
    let mut cores = SimCores::new(memory, truth, seed).with_neighbours(most);
    measure(&mut cores, banks, plan(seed), &mut |_| {})
}

/// Without interruptions: the tails of single accesses are what banks and channels make them.
fn calm(truth: Truth) -> Truth {
    Truth {
        taken: 0.003,
        noise: "low,refresh=0,outliers=0".parse().unwrap(),
        ..truth
    }
}

/// Banks of a slice are banks, whether functions say so or pairs.
#[test]
fn the_lines_of_a_bank_are_of_one_bank() {
    for (machine, by_pairs) in [
        ("haswell", false),
        ("zen2", false),
        ("server-6-channels", true),
    ] {
        let mut memory = memory(machine, "low", 3);
        let banks = find(&mut memory, 1);
        assert_eq!(
            banks.how == How::Pairs,
            by_pairs,
            "{machine}: {:?}",
            banks.how
        );
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut met = Vec::new();
        let slice = banks.slice(8);
        assert_eq!(slice.len(), 8);
        let owner = |number| Owner { number, owners: 2 };
        for &bank in &slice {
            let lines = banks.draw(&[bank], owner(0), 20, &mut rng);
            let theirs = banks.draw(&[bank], owner(1), 20, &mut rng);
            assert!(lines.iter().all(|line| !theirs.contains(line)), "{machine}");
            let truth = memory.bank(lines[0]).unwrap();
            let mut all = lines.iter().chain(&theirs);
            assert!(
                all.all(|&line| memory.bank(line) == Some(truth)),
                "{machine}"
            );
            met.push(truth);
        }
        met.sort_unstable();
        met.dedup();
        assert_eq!(met.len(), 8, "{machine}: eight banks");
    }
}

/// Nobody counted them: the few that were found pair by pair are not all that there are.
#[test]
fn banks_that_nobody_counted_stay_unknown() {
    let mut memory = memory("sapphire-rapids", "low", 1);
    let banks = find(&mut memory, 1);
    assert_eq!((&banks.how, banks.total), (&How::Pairs, None));
    let mut cores = SimCores::new(&memory, truth(600.0, 0.0), 1).with_neighbours(1);
    let report = InSlices::measure(&mut cores, &banks, plan(1), &mut |_, _| {});
    assert_eq!((report.banks, report.density.here), (None, None));
    let said = report.sentences().join("\n");
    assert!(said.contains("is not known"), "{said}");
    let picture = picture::svg("simulated", &report);
    assert!(
        !picture.contains("this machine") && !picture.contains("NaN"),
        "{picture}"
    );
}

/// What private banks save is shown where they save something, with its size, and
/// hardly ever where they save nothing.
#[test]
fn private_banks_are_said_to_save_only_what_they_save() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    let (mut runs, mut claimed) = (0, 0);
    for seed in 0..40 {
        let cells = cells(&memory, &banks, 0.0, seed);
        assert_eq!(cells.len(), (banks.sizes().len() + 1) * 2 * 3);
        runs += 1;
        let claims = cells.iter().filter(|cell| cell.saved.shown).count();
        if claims > 0 {
            println!("seed {seed}: {claims} of {} cells claimed", cells.len());
        }
        claimed += usize::from(claims > 0);
    }
    println!("{claimed} of {runs} runs without an effect claim one");
    assert!(claimed <= 3, "{claimed} of {runs}");

    let (mut shown, mut held, mut all) = (0, 0, 0);
    for seed in 0..10 {
        for cell in cells(&memory, &banks, 400.0, seed) {
            let truth = 400.0 * cell.neighbours as f64 / cell.banks as f64;
            let saved = cell.saved.ns;
            all += 1;
            // The lines that a simulated neighbour is known by are a sample.
            held += usize::from(saved.low <= 1.1 * truth && truth * 0.9 <= saved.high);
            if cell.banks == 8 {
                assert!(cell.saved.shown, "seed {seed}: {cell:?}");
                assert!(
                    cell.verdict().contains("with private ones"),
                    "{}",
                    cell.verdict()
                );
                shown += 1;
            }
            // All in the victim's quarter: four times as often.
            assert!(
                cell.banks > 8 || cell.same.ns > cell.shared.ns + 50.0,
                "{cell:?}"
            );
        }
    }
    println!("{shown} cells of 8 banks shown; the truth lies in {held} of {all} intervals");
    assert!(held * 10 >= all * 9, "{held} of {all}");
}

/// As many co-runners as there may be, by functions: each number of them has its own effect, and
/// where banks cost nothing hardly any is claimed.
#[test]
fn up_to_fifteen_co_runners_are_told_apart() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 15);
    assert!(banks.are_all(), "{:?}", banks.how);
    let numbers = [1, 3, 7, 15];
    let (mut runs, mut cells_of, mut claims) = (0, 0, 0);
    for seed in 0..2 {
        let none = cells_beside(15, &memory, &banks, truth(0.0, 0.0), seed);
        assert_eq!(none.len(), (banks.sizes().len() + 1) * numbers.len() * 3);
        runs += 1;
        cells_of += none.len();
        let claimed = none
            .iter()
            .filter(|cell| cell.saved.shown || cell.saved.shown_less || cell.neighbours_lose.shown);
        claims += claimed.count();
    }
    println!("{claims} of {cells_of} cells of {runs} runs without an effect claim one");
    assert!(claims <= 1, "{claims} of {cells_of}");
    let (mut held, mut all) = (0, 0);
    for cell in cells_beside(15, &memory, &banks, calm(truth(400.0, 0.0)), 9) {
        let truth = 400.0 * cell.neighbours as f64 / cell.banks as f64;
        let saved = cell.saved.ns;
        all += 1;
        held += usize::from(saved.low <= 1.1 * truth && truth * 0.9 <= saved.high);
        assert!(cell.saved.shown || truth < 30.0, "{cell:?}");
        // In the tails, too: nobody is in the victim's banks.
        assert!(
            cell.private.p999_ns < cell.shared.p999_ns || truth < 30.0,
            "{cell:?}"
        );
        assert!(numbers.contains(&cell.neighbours));
    }
    println!("the truth lies in {held} of {all} intervals");
    assert!(held * 10 >= all * 9, "{held} of {all}");
}

/// Neighbours that never run are no measurement, and no endless one.
#[test]
fn slices_beside_neighbours_that_do_not_run_are_left_out() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    let truth = Truth {
        same_bank_ns: 0.0,
        same_channel_ns: 0.0,
        others_ns: 10.0,
        taken: 1.0,
        noise: "low".parse().unwrap(),
    };
    let mut cores = SimCores::new(&memory, truth, 1).with_neighbours(1);
    let plan = Plan {
        blocks: 10,
        time: Duration::from_secs(600),
        seed: 1,
    };
    assert!(measure(&mut cores, &banks, plan, &mut |_| {}).is_empty());
}

fn plan(seed: u64) -> Plan {
    Plan {
        blocks: 24,
        time: Duration::from_secs(600),
        seed,
    }
}

fn truth(same_bank_ns: f64, same_channel_ns: f64) -> Truth {
    Truth {
        same_bank_ns,
        same_channel_ns,
        others_ns: 10.0,
        taken: 0.01,
        noise: "low".parse().unwrap(),
    }
}

/// Slower neighbours cost less, and private banks let them be faster for the same cost.
#[test]
fn the_curve_of_paced_neighbours_falls() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    let mut cores = SimCores::new(&memory, truth(400.0, 0.0), 1).with_neighbours(3);
    let found = paced::measure(&mut cores, &banks, 8, Attack::Read, plan(1), &mut |_| {}).unwrap();
    let (first, last) = (found.points[0], found.points[found.points.len() - 1]);
    assert!(
        first.shared.low > 2.0 && last.shared.high < 1.2,
        "{found:?}"
    );
    assert!(last.shared_bytes_per_second < first.shared_bytes_per_second / 50.0);
    let mut of_three = InSlices::measure(&mut cores, &banks, plan(1), &mut |_, _| {});
    of_three.paced = vec![found.clone()];
    let picture = picture::svg("simulated", &of_three);
    for words in [
        "8 banks, 3 readers, paced",
        "private banks, 64000 ns between",
        "by a fit",
    ] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    assert!(
        !picture.contains("NaN") && !picture.contains("inf"),
        "{picture}"
    );
    let (shared, private) = (found.within(1.3, false), found.within(1.3, true));
    assert!(private > shared, "{private:?} {shared:?}");
    assert!(
        found.verdict().contains("with private ones"),
        "{}",
        found.verdict()
    );
}

/// Where banks cost nothing, hardly any curve gives one kind of them more than the other.
#[test]
fn curves_without_an_effect_claim_nothing() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    let (mut curves, mut claims) = (0, 0);
    for seed in 0..40 {
        for attack in [Attack::Read, Attack::Write] {
            let mut cores = SimCores::new(&memory, truth(0.0, 0.0), seed).with_neighbours(3);
            let found =
                paced::measure(&mut cores, &banks, 8, attack, plan(seed), &mut |_| {}).unwrap();
            curves += 1;
            claims += usize::from(!found.verdict().contains("is not shown"));
        }
    }
    println!("{claims} of {curves} curves without an effect claim one");
    assert!(claims <= 1, "{claims} of {curves}");
}

/// Private banks that make it worse are said to.
#[test]
fn harm_is_said() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    for cell in cells(&memory, &banks, -100.0, 1) {
        let is_said = cell.verdict().contains("private banks are worse");
        assert_eq!(is_said, cell.saved.shown_less, "{}", cell.verdict());
        assert!(
            is_said || cell.banks > 8 || cell.neighbours < 3,
            "{}",
            cell.verdict()
        );
    }
    let cores = || SimCores::new(&memory, truth(-100.0, -15.0), 1).with_neighbours(3);
    let found =
        paced::measure(&mut cores(), &banks, 8, Attack::Read, plan(1), &mut |_| {}).unwrap();
    assert!(
        found.verdict().contains("private banks are worse"),
        "{}",
        found.verdict()
    );
    let found = channels::measure(&mut cores(), &banks, plan(1), &mut |_| {}).unwrap();
    assert!(found.verdict().contains("cost more"), "{}", found.verdict());
}

/// The channel's function, and no other, where neighbours on one channel cost something.
#[test]
fn a_channel_is_shown_where_it_costs_something_to_share_one() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 3);
    let mut claimed = 0;
    for seed in 0..12 {
        let found = |same_channel_ns| {
            let truth = truth(400.0, same_channel_ns);
            let mut cores = SimCores::new(&memory, truth, seed).with_neighbours(3);
            channels::measure(&mut cores, &banks, plan(seed), &mut |_| {}).unwrap()
        };
        let with = found(15.0);
        let shown = |side: &&channels::Side| side.saved.shown;
        let seen: Vec<&str> = with
            .sides
            .iter()
            .filter(shown)
            .map(|s| &s.function[..])
            .collect();
        // Readers and writers.
        assert_eq!(
            seen,
            ["7^8^9^12^13^18^19"; 2],
            "seed {seed}: {}",
            with.verdict()
        );
        let without = found(0.0);
        claimed += without.sides.iter().filter(shown).count();
        assert!(
            without.verdict().contains("is shown to save anything") || claimed > 0,
            "{}",
            without.verdict()
        );
    }
    assert!(claimed <= 1, "{claimed} of 12 runs");
}

/// What all processors read at once says which functions choose the channel, on machines with two
/// channels, and with one says none.
#[test]
fn channels_are_found_by_what_all_read_at_once() {
    const TWO: [&str; 1] = ["7^8^9^12^13^18^19"];
    let machines = [
        ("haswell", &TWO[..]),
        ("skylake", &["8^9^12^13^18^19"]),
        ("e3-1230", &[]),
        ("i7-6700k", &[]),
        ("raspberry-pi-4", &[]),
    ];
    let (mut found, mut wanted, mut claimed) = (0, 0, 0);
    for (machine, truth) in machines {
        for seed in 0..6 {
            let mut memory = memory(machine, "low", seed);
            let banks = find(&mut memory, 1);
            assert!(banks.are_all(), "{machine}, seed {seed}: {:?}", banks.how);
            let seen: Vec<String> = banks.channel.iter().map(|&f| gf2::show(f)).collect();
            wanted += truth.len();
            match seen == truth {
                true => found += truth.len(),
                false => claimed += seen.len(),
            }
        }
    }
    println!("{found} of {wanted} channel functions found, {claimed} claimed that are none");
    assert!(
        claimed == 0 && found >= wanted - 1,
        "{found} of {wanted}, {claimed} claimed"
    );
}

/// Where the function is known, it alone is tried, so less is enough to be shown: beside 3, 7 and
/// 15 co-runners, that read or write.
#[test]
fn what_an_own_channel_saves_is_said_of_the_channel() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 15);
    let (mut all, mut held, mut claimed) = (0, 0, 0);
    for (neighbours, seeds) in [(3, 8), (7, 4), (15, 4)] {
        for seed in 0..seeds {
            for same_channel_ns in [0.0, 15.0] {
                let calm = calm(truth(400.0, same_channel_ns));
                let cores = SimCores::new(&memory, calm, seed);
                let mut cores = cores.with_neighbours(neighbours);
                let found = channels::measure(&mut cores, &banks, plan(seed), &mut |_| {}).unwrap();
                assert_eq!(found.by_throughput, ["7^8^9^12^13^18^19"]);
                let attacks = found.sides.iter().map(|side| side.attack);
                assert!(attacks.eq([Attack::Read, Attack::Write]), "{found:?}");
                let said = found.verdict();
                assert!(said.contains("The channel is chosen by"), "{said}");
                let truth = neighbours as f64 * same_channel_ns;
                for side in &found.sides {
                    let saved = side.saved;
                    all += 1;
                    held += usize::from(saved.ns.low <= truth && truth <= saved.ns.high);
                    claimed += usize::from(side.neighbours_lose.shown);
                    if same_channel_ns == 0.0 {
                        claimed += usize::from(saved.shown || saved.shown_less);
                        continue;
                    }
                    assert!(saved.shown, "{found:?}");
                    assert_eq!(said.matches("cost less").count(), 2, "{said}");
                    // The tails are as far apart as the means.
                    let apart = side.near.p99_ns - side.far.p99_ns;
                    assert!((apart - truth).abs() < 15.0 + 0.3 * truth, "{side:?}");
                }
            }
        }
    }
    println!("the truth lies in {held} of {all} intervals; {claimed} claimed");
    assert!(
        held + 4 >= all && claimed <= 1,
        "{held} of {all}, {claimed}"
    );
}

/// What all of a large machine's banks would save is known of few of them, with the truth in
/// its interval: 15 readers, each in the victim's bank once in 1024 times.
#[test]
fn slices_say_what_private_banks_save_in_all_of_memory() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../soloist-detect/tests/data/banks-1024.toml"
    );
    let mut memory = memory(file, "low", 1);
    let banks = find(&mut memory, 15);
    let mut held = 0;
    for seed in 1..=3 {
        let cores = SimCores::new(&memory, truth(300.0, 0.0), seed).with_neighbours(15);
        let mut cores = cores.with_processors(16);
        let report = InSlices::measure(&mut cores, &banks, plan(seed), &mut |_, _| {});
        assert_eq!(report.density.here, Some(64.0));
        let alone = report.cells.iter().map(|cell| cell.alone.ns).sum::<f64>();
        let alone = alone / report.cells.len() as f64;
        let truth = 300.0 * 15.0 / 1024.0 / alone;
        let [low, middle, high] = report.density.expected().unwrap();
        held += usize::from((low..=high).contains(&truth));
        assert!(
            (0.5..2.0).contains(&(middle / truth)),
            "{middle} for {truth}"
        );
    }
    assert!(held >= 2, "{held} of 3");
}

/// Where banks are found pair by pair there are slices enough for a law.
#[test]
fn banks_found_pair_by_pair_have_a_law() {
    let mut memory = memory("server-6-channels", "low", 5);
    let banks = find(&mut memory, 3);
    assert_eq!((&banks.how, banks.sizes()), (&How::Pairs, vec![16, 8, 4]));
    let mut cores = SimCores::new(&memory, truth(600.0, 0.0), 1).with_neighbours(3);
    let report = InSlices::measure(&mut cores, &banks, plan(1), &mut |_, _| {});
    let law = report.density.law.expect("a law");
    assert_eq!(law.points, 3);
    assert!((0.5..1.5).contains(&law.exponent), "{law:?}");
}

/// Which functions choose the channel is denied only where somebody looked.
#[test]
fn channels_that_nobody_looked_for_are_not_denied() {
    let mut memory = memory("haswell", "low", 5);
    let mut banks = find(&mut memory, 3);
    let says = |banks: &Banks| {
        let mut cores = SimCores::new(&memory, truth(400.0, 0.0), 1).with_neighbours(3);
        let found = channels::measure(&mut cores, banks, plan(1), &mut |_| {}).unwrap();
        found.verdict()
    };
    assert_eq!(banks.channel_why, None);
    banks.channel.clear();
    let said = says(&banks);
    assert!(said.contains("No function is seen to halve"), "{said}");
    banks.channel_why = Some("the deadline has passed".to_owned());
    let said = says(&banks);
    assert!(!said.contains("No function is seen to halve"), "{said}");
    assert!(
        said.contains("is not known: the deadline has passed"),
        "{said}"
    );
}

/// All of it, as it is written to a file and read from it again.
#[test]
fn a_report_is_read_back_and_says_what_the_machine_has() {
    let mut memory = memory("haswell", "low", 5);
    let banks = find(&mut memory, 1);
    assert_eq!(banks.page_sets().len(), 16, "sets of 2 banks");
    let cores = SimCores::new(&memory, truth(400.0, 0.0), 1).with_neighbours(1);
    let mut cores = cores.with_processors(8);
    let report = InSlices::measure(&mut cores, &banks, plan(1), &mut |_, _| {});
    // 32 banks are 4 for each of 8 processors, however few took part.
    assert_eq!(report.density.here, Some(4.0));
    assert_eq!(report.busy(2), "2 of 8 CPUs");
    assert!(report.is_of_few_processors(7) && !report.is_of_few_processors(8));
    let text = serde_json::to_string(&report).unwrap();
    let back: InSlices = serde_json::from_str(&text).unwrap();
    assert_eq!(report.sentences(), back.sentences());
    let said = back.sentences().join("\n");
    for words in [
        "8 banks, 1 reader: 1.",
        "16 bank colours",
        "banks for each busy core",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(back.cells.iter().any(|cell| cell.by_pages));
    let picture = picture::svg("simulated", &back);
    assert!(
        picture.starts_with("<svg") && picture.contains("private banks"),
        "{picture}"
    );
}

/// Where banks are found pair by pair, what neighbours add in all of memory bounds what
/// private banks can save.
#[test]
fn all_of_memory_bounds_what_private_banks_save() {
    let mut memory = memory("server-6-channels", "low", 5);
    let banks = find(&mut memory, 3);
    assert!(!banks.are_all());
    let beside = |same_bank_ns| {
        let mut cores = SimCores::new(&memory, truth(same_bank_ns, 0.0), 1).with_neighbours(3);
        whole::measure(&mut cores, &banks, plan(1), &mut |_| {})
    };
    let found = beside(0.0);
    assert_eq!(found.len(), 3, "attacks");
    // Neighbours cost something wherever they are.
    assert!(
        found.iter().all(|one| one.adds.shown && one.bound() < 0.4),
        "{found:?}"
    );
    let more = beside(20_000.0);
    assert!(more.iter().all(|one| one.bound() > 0.5), "{more:?}");
}
