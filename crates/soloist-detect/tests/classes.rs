//! Conflict classes: where no function holds, where some do, and their files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_detect::check::{check_classes, Verdict};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::pool::Pool;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::{Addresses, TimingSource};
use soloist_detect::{detect, Detected, Options};
use soloist_machine::classmap::Proof;
use soloist_machine::classmap::{Addresses as Named, ClassMap};
use soloist_machine::About;
use soloist_machine::RamRange;
use soloist_machine::{known, Machine, Trust};

fn options(pages: usize) -> Options {
    Options {
        seed: 3,
        deadline: Duration::from_secs(600),
        class_pages: Some(pages),
    }
}

fn about() -> About {
    About {
        name: "found".into(),
        description: "a \"quoted\" one".into(),
        trust: Trust::Detected,
        source: Vec::new(),
    }
}

/// A guest whose 2 MiB pages are made of scattered frames on the host, on a
/// machine with three channels by division: address bit 8 and the frame make
/// the channel, so that frames share one channel or two. 3 times 64 banks; the
/// frame says which 8 of the 64.
struct Scattered {
    frames: Vec<u64>,
    pool: Pool,
    rng: ChaCha8Rng,
}

impl Scattered {
    fn new(frames: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let frames: Vec<u64> = (0..frames).map(|_| rng.gen_range(0..1u64 << 24)).collect();
        let end = (frames.len() as u64) << 12;
        let pool = Pool::new((0..end).step_by(2 << 20).collect(), 21);
        Self { frames, pool, rng }
    }

    /// Which of the 8 groups of banks a frame has.
    fn group(&self, frame: usize) -> u64 {
        self.frames[frame] / 3 % 8
    }

    /// Bank and row.
    fn place(&self, address: u64) -> ((u64, u64), u64) {
        let frame = self.frames[(address >> 12) as usize];
        let channel = (2 * (frame % 3) + (address >> 8 & 1)) % 3;
        let inside = (address >> 6 & 1) | (address >> 9 & 3) << 1;
        let group = self.group((address >> 12) as usize);
        ((channel, group << 3 | inside), frame)
    }
}

impl TimingSource for Scattered {
    fn ranges(&self) -> Vec<RamRange> {
        let huge = (self.frames.len() as u64) << 12 >> 21;
        let page = |i| RamRange {
            start: i << 21,
            end: (i + 1) << 21,
            node: 0,
        };
        (0..huge).map(page).collect()
    }
    fn addresses(&self) -> Addresses {
        Addresses::InsidePages { page_shift: 21 }
    }
    fn pool(&self) -> &Pool {
        &self.pool
    }
    fn sample(&mut self, a: u64, b: u64) -> u32 {
        let ((bank, row), (other, other_row)) = (self.place(a), self.place(b));
        let conflict = bank == other && row != other_row;
        let outlier = self.rng.gen_ratio(1, 10);
        let noise: u32 = (0..4).map(|_| self.rng.gen_range(0..20u32)).sum();
        let late = if outlier {
            self.rng.gen_range(0..400)
        } else {
            0
        };
        250 + noise + late + if conflict { 110 } else { 0 }
    }
    fn guest_address(&self, page: u64) -> Option<u64> {
        Some(0x1_0000_0000 + page)
    }
}

/// Whether frames are of one class exactly when `truth` says one number.
fn agree(found: &Detected, truth: impl Fn(u64) -> u64) {
    let classes = found.classes.as_ref().unwrap();
    let mut number_of = BTreeMap::new();
    for page in classes.pages.iter() {
        let Some(class) = page.class else { continue };
        let number = number_of.entry(class).or_insert_with(|| truth(page.page));
        assert_eq!(*number, truth(page.page), "page {:#x}", page.page);
    }
    let mut numbers: Vec<u64> = number_of.values().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), classes.classes, "a class fell apart");
}

#[test]
fn frames_of_a_guest_on_scattered_memory_are_sorted() {
    let mut guest = Scattered::new(512);
    let found = detect(&mut guest, &options(96), &mut |_, _| {});
    assert!(found.map().is_none());
    assert!(found.is_complete(), "{:?}", found.classes);
    agree(&found, |page| guest.group((page >> 12) as usize));
    let classes = found.classes.unwrap();
    assert_eq!((classes.page_shift, classes.classes), (12, 8));
    assert!(classes.functions.is_empty());

    // The file says the same, and stands up to a check; pages moved by the
    // host do not.
    let map = classes.to_file(about(), 6);
    let back = ClassMap::parse(&map.to_text(&map.sentences()), "x.toml").unwrap();
    assert_eq!(back, map);
    let frame = &classes.pages[5];
    let place = back.decode(0x1_0000_0000 + frame.page + 0x7c0).unwrap();
    assert_eq!(Some(place.class), frame.class);
    assert!(back.decode(0x5000).is_none(), "not measured");
    assert_eq!(back.bank_sets().len(), 8);
    let (verdict, held, _) = check_classes(&mut guest, &map, &options(0)).unwrap();
    assert_eq!((verdict, held), (Verdict::Fits, map.pages.len()));
    guest.frames.rotate_left(1);
    let (verdict, _, proof) = check_classes(&mut guest, &map, &options(0)).unwrap();
    assert_eq!(verdict, Verdict::Contradicted, "{proof:?}");
}

#[test]
fn huge_pages_with_functions_make_a_file_too() {
    let machine = known::find("haswell").unwrap();
    let pool = SimPool::unprivileged(21, 24);
    let mut source = SimSource::new(&machine, pool, Noise::LOW, 7);
    let found = detect(&mut source, &options(24), &mut |_, _| {});
    assert!(found.is_complete());
    let map = found.classes.as_ref().unwrap().to_file(about(), 6);
    assert_eq!(map.addresses, Named::Guest);
    assert_eq!(ClassMap::parse(&map.to_text(&[]), "x.toml").unwrap(), map);
    // Bank numbers are the banks, by other names.
    let truth = machine.addr_map();
    let mut number_of = BTreeMap::new();
    for &page in map.pages.keys() {
        for line in (page..page + (2 << 20)).step_by(64 * 97) {
            let bank = truth.decode(line).unwrap().color;
            let number = map.decode(line).unwrap().bank;
            assert_eq!(*number_of.entry(bank).or_insert(number), number);
        }
    }
    let mut numbers: Vec<u32> = number_of.values().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), number_of.len());
    let (verdict, held, _) = check_classes(&mut source, &map, &options(0)).unwrap();
    assert_eq!((verdict, held), (Verdict::Fits, map.pages.len()));
}

#[test]
fn small_pages_of_unknown_address_are_sorted() {
    let machine = known::find("xeon-w3530").unwrap();
    let pool = SimPool::unprivileged(12, 160);
    let mut source = SimSource::new(&machine, pool, Noise::LOW, 5);
    let found = detect(&mut source, &options(160), &mut |_, _| {});
    assert!(found.is_complete(), "{:?}", found.classes);
    let truth = machine.addr_map();
    agree(&found, |page| {
        u64::from(truth.decode(source.physical(page)).unwrap().color)
    });
}

#[test]
fn a_machine_is_not_made_of_classes() {
    let text = "[machine]\nname = \"x\"\n\n[classes]\npage = 4096\n";
    let error = Machine::parse(text, "x.toml").unwrap_err();
    assert!(error.message.contains("conflict classes"), "{error}");
}

const GOOD: &str = "\
[machine]
name = \"x\"
description = \"x\"
trust = \"detected\"

[classes]
page = \"2M\"
line = 64
addresses = \"guest\"
functions = [\"6^13\", \"14^18\"]
proof = { same = [20, 20], other = [0, 200] }

[[classes.class]]
number = 3
pages = [\"0x200000-0x600000\"]

[[classes.class]]
number = 1
pages = [\"0x800000\"]
";

#[test]
fn wrong_class_files_are_refused_in_words() {
    let good = ClassMap::parse(GOOD, "x.toml").unwrap();
    assert_eq!(good.pages.len(), 4);
    assert_eq!(good.decode(0x40_2040).unwrap().bank, 3, "6^13 cancel");
    assert_eq!(good.decode(0x40_0040).unwrap().bank, 2);
    for (from, to, says) in [
        ("\"2M\"", "\"3M\"", "power of two"),
        ("line = 64", "line = 4096", "power of two"),
        ("6^13", "6^21", "bits 6 to 20"),
        ("14^18", "6^13", "follows from"),
        ("\"0x800000\"", "\"0x400000\"", "listed twice"),
        ("0x800000", "0x800040", "no page begins"),
        ("0x200000-0x600000", "0x600000-0x200000", "ascend"),
        ("0x200000-0x600000", "0x200000-0xfffffffe00000", "ascend"),
        ("number = 1", "number = 70000", "less than"),
        ("\"guest\"", "\"host\"", "unknown variant"),
        ("functions", "function", "unknown field"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = ClassMap::parse(&text, "x.toml").unwrap_err();
        assert!(error.message.contains(says), "{to}: {error}");
        assert!(error.line > 0, "{to}: {error}");
    }
}

#[test]
fn a_proof_holds_only_when_conflicts_keep_apart() {
    let holds = |same, other| Proof { same, other }.holds();
    assert!(holds((26, 2500), (0, 25000)));
    assert!(!holds((2, 2500), (0, 25000)), "hardly a conflict");
    assert!(!holds((26, 2500), (13, 25000)), "conflicts across");
    assert!(!holds((26, 2500), (0, 0)), "one class only");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = ClassMap::is_one(&text);
        let _ = ClassMap::parse(&text, "x.toml");
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, 32u8..127), 1..5),
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (at, kind, byte) in damage {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        if let Ok(map) = ClassMap::parse(&String::from_utf8_lossy(&bytes), "x.toml") {
            if map.pages.len() < 1000 {
                let _ = map.sentences();
            }
            prop_assert_eq!(ClassMap::parse(&map.to_text(&[]), "x.toml"), Ok(map));
        }
    }

    #[test]
    fn files_come_back(pages in prop::collection::btree_map(0u64..1 << 20, 0u32..20, 1..60)) {
        let map = ClassMap {
            about: about(),
            page_shift: 12,
            line_shift: 6,
            addresses: Named::Run,
            functions: Vec::new(),
            pages: pages.into_iter().map(|(page, class)| (page << 12, class)).collect(),
            proof: Proof::default(),
        };
        prop_assert_eq!(ClassMap::parse(&map.to_text(&[]), "x.toml"), Ok(map));
    }
}
