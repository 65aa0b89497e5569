//! Whole pages on simulated machines, with and without page colours.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use soloist_bench::cores::Attack;
use soloist_bench::pages::sim::{SimCaching, Truth};
use soloist_bench::pages::{measure, By, Caching, NoPages, Size, Split, Tried};
use soloist_bench::slices::Plan;
use soloist_detect::cache::eviction::{self, Sorted};
use soloist_machine::known;

const NOTHING: Truth = Truth {
    cache: 1 << 18,
    page: 4096,
    cache_bits: 0,
    cache_hash: [0; 2],
    bank_bits: 0,
    same_bank_ns: 0.0,
    others_ns: 4.0,
    neighbours: 3,
};

fn splits(truth: Truth, seed: u64) -> Vec<Split> {
    let mut machine = SimCaching::new(truth, 2 << 20, seed);
    all(&mut machine, None, seed)
}

/// By colours and by address bits.
fn all(machine: &mut SimCaching, sorted: Option<&Sorted>, seed: u64) -> Vec<Split> {
    measure(machine, sorted, Tried::All, plan(seed), &mut |_| {}).unwrap()
}

fn plan(seed: u64) -> Plan {
    Plan {
        blocks: 24,
        time: Duration::from_secs(600),
        seed,
    }
}

/// Beside writers.
fn by(splits: &[Split], by: &By, size: Size) -> Split {
    let of = |split: &&Split| (&split.by, split.size, split.attack) == (by, size, Attack::Write);
    splits.iter().find(of).unwrap().clone()
}

fn of(splits: &[Split], bits: &[u32], size: Size) -> Split {
    by(splits, &By::Bits(bits.to_vec()), size)
}

/// The address bits that a split is by; none: by something else.
fn bits(split: &Split) -> &[u32] {
    match &split.by {
        By::Bits(bits) => bits,
        _ => &[],
    }
}

/// A hash that keeps no page together: of 20 runs with 20 judgements each at 0.5 % for all of a
/// run hardly one claims something.
#[test]
fn no_colours_are_hardly_ever_claimed() {
    let claim = |seed: &u64| splits(NOTHING, *seed).iter().any(|split| split.saved.shown);
    let claims = (0..20).filter(claim).count();
    assert!(claims <= 1, "{claims} of 20");
}

/// A bit that chooses cache sets helps a working set inside the cache.
#[test]
fn a_cache_bit_is_found_and_no_other() {
    let truth = Truth {
        cache_bits: 1 << 14,
        ..NOTHING
    };
    let splits = splits(truth, 1);
    let inside = of(&splits, &[14], Size::Inside);
    assert!(inside.saved.shown, "{inside:?}");
    assert!(inside.private.ns < 0.9 * inside.spread.ns, "{inside:?}");
    let others = splits.iter().filter(|s| !bits(s).contains(&14));
    assert!(others.clone().count() > 10);
    for other in others {
        assert!(!other.saved.shown, "{other:?}");
    }
}

/// One that chooses banks helps a working set beyond it, and both together do most.
#[test]
fn a_bank_bit_and_a_cache_bit_add_up() {
    let truth = Truth {
        cache_bits: 1 << 14,
        bank_bits: 1 << 17,
        same_bank_ns: 60.0,
        ..NOTHING
    };
    let splits = splits(truth, 2);
    let beyond = of(&splits, &[17], Size::Beyond);
    assert!(beyond.saved.shown, "{beyond:?}");
    let both = |size: Size| {
        let mut both = splits.iter();
        both.find(|s| bits(s).len() == 2 && s.size == size && s.attack == Attack::Write)
            .unwrap()
    };
    assert!(bits(both(Size::Beyond)).contains(&17));
    let both = both(Size::Inside);
    let mut best = bits(both).to_vec();
    best.sort_unstable();
    assert_eq!(best, [14, 17]);
    assert!(
        both.saved.shown && both.verdict().contains("in pages of its own"),
        "{both:?}"
    );
}

/// Pages that are worse off in banks of their own are said to be.
#[test]
fn a_bit_that_makes_it_worse_is_said() {
    let truth = Truth {
        bank_bits: 1 << 17,
        same_bank_ns: -60.0,
        ..NOTHING
    };
    let beyond = of(&splits(truth, 2), &[17], Size::Beyond);
    assert!(
        beyond.verdict().contains("so worse"),
        "{}",
        beyond.verdict()
    );
}

/// A machine's own banks count: where one address bit chooses among them, and where a sum of
/// bits does.
#[test]
fn banks_are_those_of_the_machine() {
    let beyond = |machine: &str| -> usize {
        let map = known::find(machine).unwrap().addr_map();
        let truth = Truth {
            same_bank_ns: 60.0,
            ..NOTHING
        };
        let mut machine = SimCaching::new(truth, 2 << 20, 1).in_banks_of(&map);
        let splits = all(&mut machine, None, 1);
        let single = splits
            .iter()
            .filter(|s| bits(s).len() == 1 && s.size == Size::Beyond);
        single.filter(|split| split.saved.shown).count()
    };
    let (simple, hashed) = (beyond("raspberry-pi-4"), beyond("haswell"));
    assert!(simple > 0, "raspberry-pi-4: {simple}");
    assert!(hashed < simple, "haswell: {hashed} of {simple}");
}

/// A kernel with pages of 16 KiB has no bits 12 and 13 to colour by.
#[test]
fn bits_are_those_above_the_kernels_pages() {
    let truth = Truth {
        cache: 1 << 19,
        page: 16 << 10,
        cache_bits: 1 << 14,
        ..NOTHING
    };
    let mut machine = SimCaching::new(truth, 8 << 20, 1);
    let splits = all(&mut machine, None, 1);
    let least = splits.iter().flat_map(bits).min();
    assert_eq!(least, Some(&14));
    let inside = of(&splits, &[14], Size::Inside);
    assert_eq!(inside.bytes, 1 << 17);
    assert!(inside.saved.shown, "{inside:?}");
}

/// How many page colours the cache has, where lines push each other out by address bits, by
/// linear functions of a slice, and by a hash that keeps no page together.
#[test]
fn colours_of_the_cache_are_counted_by_what_pushes_out() {
    let hash = [0x1_b5f5_7540, 0x2_eb5f_aa80];
    let kinds = [
        ("plain, 2", 1 << 12, [0; 2], 4096),
        ("plain, 8", 7 << 12, [0; 2], 4096),
        ("plain, 32", 0x1f << 12, [0; 2], 4096),
        ("two slices", 0, [hash[0], 0], 4096),
        ("four slices and 4", 3 << 12, hash, 4096),
        ("plain, 4, pages of 16 KiB", 3 << 14, [0; 2], 16 << 10),
        ("no page together", 0, [0; 2], 4096),
    ];
    let (mut false_claims, mut none, mut held, mut runs) = (0, 0, 0, 0);
    for (name, cache_bits, cache_hash, page) in kinds {
        let truth = Truth {
            cache: 1 << 20,
            page,
            cache_bits,
            cache_hash,
            ..NOTHING
        };
        let colors = truth.cache_colors() as f64;
        for seed in 0..10 {
            let mut machine = SimCaching::new(truth, 16 << 20, seed);
            let Some(found) = eviction::detect(&mut machine, seed, &mut |_| {}) else {
                none += 1;
                continue;
            };
            runs += 1;
            match colors > 1.0 {
                true => {
                    let most = found.most.unwrap_or(f64::INFINITY);
                    let is_in = found.is_of_pages() && found.least <= colors && colors <= most;
                    held += usize::from(is_in);
                    if !is_in {
                        println!("{name}, seed {seed}: {found:?}");
                    }
                }
                false => {
                    held += usize::from(found.colors() == 1.0);
                    false_claims += usize::from(found.colors() > 1.0);
                }
            }
        }
    }
    println!("{held} of {runs} true, {none} looks found nothing, {false_claims} false colours");
    assert_eq!(false_claims, 0);
    assert!(
        held + 2 >= runs && none <= 2,
        "{held} of {runs}, {none} none"
    );
}

/// Slices that functions of the address choose have page colours, which no single bit finds.
#[test]
fn a_class_of_pages_isolates_where_no_bit_does() {
    let truth = Truth {
        cache: 1 << 20,
        cache_hash: [0x1_b5f5_7540, 0x2_eb5f_aa80],
        ..NOTHING
    };
    let mut machine = SimCaching::new(truth, 8 << 20, 1);
    let found = eviction::detect(&mut machine, 1, &mut |_| {}).unwrap();
    let sorted = found.sort(&mut machine, 1).unwrap();
    for split in all(&mut machine, Some(&sorted), 1) {
        let is_class = split.by == By::Class;
        assert_eq!(
            split.saved.shown,
            is_class && split.size == Size::OfClass,
            "{split:?}"
        );
        let said = split.verdict().contains("Pages by what pushes out");
        assert_eq!(said, is_class, "{}", split.verdict());
    }
}

/// Every fourth pair of pages, as if it were a class of four.
fn every_fourth(machine: &SimCaching) -> Sorted {
    let pages = Caching::pages(machine).into_iter();
    let (own, others) = pages.partition(|page| page >> 13 & 3 == 0);
    Sorted {
        own,
        others,
        classes: 4.0,
    }
}

/// Pages sorted into classes that are none isolate nothing.
#[test]
fn classes_that_are_none_are_hardly_ever_claimed() {
    let claims = (0..20).filter(|&seed| {
        let mut machine = SimCaching::new(NOTHING, 2 << 20, seed);
        let sorted = every_fourth(&machine);
        let splits = all(&mut machine, Some(&sorted), seed);
        by(&splits, &By::Class, Size::OfClass).saved.shown
    });
    let claims = claims.count();
    println!("{claims} of 20 claimed");
    assert!(claims <= 1, "{claims} of 20");
}

/// Few pages of other classes are less pressure; that is no saving by a class of its own.
#[test]
fn neighbours_press_as_hard_spread_as_by_class() {
    let mut machine = SimCaching::new(NOTHING, 2 << 20, 1);
    let pages = Caching::pages(&machine);
    let sorted = Sorted {
        own: pages[..64].to_vec(),
        others: pages[64..84].to_vec(),
        classes: 4.0,
    };
    let splits = all(&mut machine, Some(&sorted), 1);
    let class = by(&splits, &By::Class, Size::OfClass);
    assert!(!class.saved.shown, "{class:?}");
}

#[test]
fn too_little_memory_is_refused() {
    let plan = Plan {
        blocks: 8,
        time: Duration::from_secs(1),
        seed: 1,
    };
    let mut machine = SimCaching::new(NOTHING, 1 << 19, 1);
    let mut refused = |tried| measure(&mut machine, None, tried, plan, &mut |_| {}).unwrap_err();
    assert_eq!(refused(Tried::All), NoPages::Memory);
    // Nothing is known that could be tried.
    assert_eq!(refused(Tried::Colors), NoPages::Colors);
}

/// Four classes of pages by address bits, and four bank colours.
const BOTH: Truth = Truth {
    cache: 1 << 20,
    cache_bits: 3 << 12,
    bank_bits: 3 << 17,
    same_bank_ns: 60.0,
    ..NOTHING
};

/// Without address bits: class, banks, and both, which the machine's detector found.
fn colors(truth: Truth, neighbours: usize, seed: u64) -> Vec<Split> {
    let truth = Truth {
        neighbours,
        ..truth
    };
    let mut machine = SimCaching::new(truth, 8 << 20, seed);
    let found = eviction::detect(&mut machine, seed, &mut |_| {}).unwrap();
    let sorted = found.sort(&mut machine, seed);
    measure(
        &mut machine,
        sorted.as_ref(),
        Tried::Colors,
        plan(seed),
        &mut |_| {},
    )
    .unwrap()
}

/// Bank colours keep neighbours out of the victim's banks, a class keeps them out of its part of
/// the cache, and both together do both: where the class has no room for all, it alone is worse
/// than none. Beside 3, 7 and 15 co-runners that read or write.
#[test]
fn bank_colours_a_class_and_both_save_what_they_should() {
    let (mut held, mut all) = (0, 0);
    for (neighbours, seed) in [(3, 1), (7, 2), (15, 3)] {
        let splits = colors(BOTH, neighbours, seed);
        assert_eq!(splits.len(), 12, "three ways, two sizes, two attacks");
        for split in &splits {
            assert_eq!(split.neighbours, neighbours);
            let truth = truth_of(split);
            all += 1;
            held += usize::from(
                split.saved.ns.low - 1.5 <= truth && truth <= split.saved.ns.high + 1.5,
            );
            if truth > 4.0 {
                assert!(split.saved.shown, "{truth}: {split:?}");
            }
            assert!(truth > -4.0 || split.saved.shown_less, "{truth}: {split:?}");
        }
        let beyond = |way: &By| by(&splits, way, Size::BeyondClass);
        let (class, both) = (beyond(&By::Class), beyond(&By::ClassAndBanks));
        assert!(class.verdict().contains("so worse"), "{}", class.verdict());
        assert!(both.saved.shown, "{}", both.verdict());
        // Of single accesses the slow ones are misses, which meet nobody in private banks.
        let (spread, private) = (both.spread.p99_ns, both.private.p99_ns);
        assert!(
            (150.0..175.0).contains(&spread) && private == 100.0,
            "{both:?}"
        );
    }
    println!("the truth lies in {held} of {all} intervals");
    assert!(held + 2 >= all, "{held} of {all}");
}

/// What a split saves by the truth of [`BOTH`], ns of an access.
fn truth_of(split: &Split) -> f64 {
    let (cache, own) = (BOTH.cache as f64, split.bytes as f64);
    let of_class = cache / 4.0;
    let bank = match split.attack {
        Attack::Read => 30.0,
        _ => 60.0,
    };
    let spread = (1.0 - cache / (cache + own)) * (80.0 + bank);
    let missed = match split.by {
        By::Banks => 1.0 - cache / (cache + own),
        _ => 1.0 - (of_class / own).min(1.0),
    };
    let meets = if split.by == By::Class { bank } else { 0.0 };
    spread - missed * (80.0 + meets)
}

/// Bank colours without an effect, and classes that are none: of 20 runs beside 15 co-runners
/// hardly one claims anything.
#[test]
fn bank_colours_without_an_effect_are_hardly_ever_claimed() {
    let claims = (0..20).filter(|&seed| {
        let truth = Truth {
            bank_bits: 3 << 17,
            neighbours: 15,
            ..NOTHING
        };
        let mut machine = SimCaching::new(truth, 2 << 20, seed);
        let sorted = every_fourth(&machine);
        let tried = Tried::Colors;
        let splits = measure(&mut machine, Some(&sorted), tried, plan(seed), &mut |_| {}).unwrap();
        assert_eq!(splits.len(), 12);
        splits.iter().any(Split::shows_anything)
    });
    let claims = claims.count();
    println!("{claims} of 20 claimed");
    assert!(claims <= 1, "{claims} of 20");
}

/// Where nobody found the banks, they are not tried.
#[test]
fn hidden_banks_are_no_colours() {
    let mut machine = SimCaching::new(BOTH, 8 << 20, 1).with_hidden_banks();
    let refused = measure(&mut machine, None, Tried::Colors, plan(1), &mut |_| {}).unwrap_err();
    assert_eq!(refused, NoPages::Colors);
}
