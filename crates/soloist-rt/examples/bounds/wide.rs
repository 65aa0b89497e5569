//! Machines and sets of what the other draws hold still: standards, channels, idle rows,
//! schedulers, a bus that answers in order, slow ways, long write queues; jitter, phases, equal
//! priorities, several tasks to a core, memory on either node, small limits. Few lines are in
//! flight, and few others, so that bounds are near.

use std::fmt::Write;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::time::US;
use soloist_memory::Platform;
use soloist_rt::tasks::file::parse;

use super::case::{Banks, Case};

const KINDS: [&str; 8] = [
    "stream",
    "latency",
    "bandwidth-write",
    "bandwidth-read",
    "random-write",
    "random-read",
    "alternating-stride",
    "is",
];

fn one<'a>(rng: &mut ChaCha8Rng, of: &[&'a str]) -> &'a str {
    of.choose(rng).unwrap()
}

/// `min..=max`, small numbers as often as great ones.
fn some(rng: &mut ChaCha8Rng, min: u64, max: u64) -> u64 {
    let (low, high) = ((min as f64).ln(), (max as f64).ln());
    (rng.gen_range(low..=high).exp().round() as u64).clamp(min, max)
}

fn machine(rng: &mut ChaCha8Rng) -> Platform {
    let (file, devices): (_, &[&str]) = match rng.gen_range(0..4) {
        0 => ("ranks", &["ddr3-1066f", "ddr3-1333h", "ddr3-1600k"]),
        1 => ("channels", &["ddr3-1333h", "ddr4-2400r", "ddr4-3200aa"]),
        _ => (
            "small",
            &["ddr3-1066f", "ddr3-1600k", "lpddr4-3200", "ddr2-800"],
        ),
    };
    let queue = some(rng, 1, 256);
    let high = some(rng, 1, queue);
    let idle = some(rng, 1, queue);
    let in_order = if rng.gen_bool(0.2) {
        some(rng, 1, 12)
    } else {
        0
    };
    let mut text = format!(
        "device = \"{}\"\n[controller]\nscheduler = \"{}\"\norder = \"{}\"\npage = {}\n",
        one(rng, devices),
        one(rng, &["fr-fcfs", "fr-fcfs", "fcfs"]),
        one(rng, &["oldest", "round-robin"]),
        one(
            rng,
            &["\"open\"", "\"closed\"", "{ idle = 1 }", "{ idle = 16 }"]
        ),
    );
    let numbers = [
        ("read_queue", some(rng, 1, 32)),
        ("write_queue", queue),
        ("bank_queue", rng.gen_range(1..9)),
        ("hit_cap", some(rng, 1, 64)),
        ("hit_limit", some(rng, 1, 64)),
        ("drain_high", high),
        ("drain_low", rng.gen_range(0..high)),
        ("drain_idle", idle),
        ("direction_cap", some(rng, 1, 32)),
        ("rank_cap", some(rng, 1, 32)),
    ];
    for (name, number) in numbers {
        writeln!(text, "{name} = {number}").unwrap();
    }
    let cpi = one(rng, &["0.25", "1.0", "4.0"]);
    let walk = one(rng, &["", "tlb = 16\nwalk = 35", "tlb = 64\nwalk = 400"]);
    write!(
        text,
        "[core]\noutstanding = {}\nstore_buffer = {}\nprefetch = {}\nprefetch_slots = {}\nwindow = {}\ncpi = {cpi}\n{walk}\n\
         [northbridge]\nvictims = {}\nshared = {}\nin_order = {in_order}\ndeferred = {}\nrequest_ps = {}\nresponse_ps = {}\n\
         [[hop]]\nlatency_ps = {}\nbytes_per_us = {}\ncredits = {}\n",
        some(rng, 1, 10),
        some(rng, 1, 10),
        rng.gen_bool(0.3),
        some(rng, 1, 8),
        some(rng, 4, 200),
        some(rng, 1, 32),
        rng.gen_bool(0.3),
        rng.gen_range(0..=in_order),
        some(rng, 1000, 500_000),
        some(rng, 1000, 500_000),
        some(rng, 1000, 1_000_000),
        some(rng, 2000, 20_000),
        some(rng, 1, 16),
    )
    .unwrap();
    let file = format!("{}/tests/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    Platform::find_changed(&file, &toml::from_str(&text).unwrap()).unwrap()
}

/// Times of a task with deadlines.
fn times(rng: &mut ChaCha8Rng, fixed: bool) -> String {
    let wcet = some(rng, 1, 25);
    let period = wcet * rng.gen_range(6..20);
    let jitter = if rng.gen_bool(0.3) {
        rng.gen_range(1..=period / 4)
    } else {
        0
    };
    let mut text = format!(
        "period = \"{period} us\"\nwcet = \"{wcet} us\"\nphase = \"{} us\"\njitter = \"{jitter} us\"\n",
        rng.gen_range(0..period)
    );
    if fixed {
        writeln!(text, "priority = {}", rng.gen_range(1..4)).unwrap();
    }
    text
}

fn tasks(rng: &mut ChaCha8Rng) -> String {
    let order = one(rng, &["rate-monotonic", "deadline-monotonic", "fixed"]);
    let mut text = format!("order = \"{order}\"\n");
    let cores = rng.gen_range(1..=4);
    for core in 0..cores {
        for n in 0..rng.gen_range(1..4) {
            let timed = match (core, n) {
                (0, 0) => true,
                _ => rng.gen_bool(0.4),
            };
            write!(text, "[[task]]\nname = \"t{core}{n}\"\ncore = {core}\n").unwrap();
            if timed {
                text += &times(rng, order == "fixed");
            }
            if rng.gen_bool(0.9) {
                let kib = [4, 8, 16, 32, 64, 256, 1024].choose(rng).unwrap();
                let kind = one(rng, &KINDS);
                write!(text, "memory = \"{kib}K\"\nkind = \"{kind}\"\n").unwrap();
            }
        }
    }
    text
}

/// The case of a seed, and how memory is given there.
pub fn case(seed: u64) -> (Case, &'static str) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x51de);
    let platform = machine(&mut rng);
    let set = parse(&tasks(&mut rng), "wide").unwrap();
    let mut homes = [0; 4];
    for (core, home) in homes.iter_mut().enumerate() {
        let own = core as u32 / 2;
        *home = if rng.gen_bool(0.7) { own } else { 1 - own };
    }
    let limits = (0..4).map(|core| {
        let limited = core > 0 && rng.gen_bool(0.3);
        limited.then(|| some(&mut rng, 200, 200_000) * 1000)
    });
    let limits = limits.collect();
    let (banks, policy) = match rng.gen_bool(0.5) {
        true => (Banks::Shared, "wide, same bank"),
        false => (Banks::Own, "wide, own bank"),
    };
    let case = Case {
        platform,
        set,
        homes,
        banks,
        cache_colors: rng.gen_bool(0.6),
        limits,
        length_ps: 1000 * US,
        seed,
    };
    (case, policy)
}
