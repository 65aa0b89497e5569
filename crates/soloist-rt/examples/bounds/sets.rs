//! Random machines and sets, each analysed and played.

#[path = "case.rs"]
pub mod case;
#[path = "wide.rs"]
mod wide;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::time::US;
use soloist_memory::Platform;
use soloist_rt::tasks::file::parse;
use soloist_rt::tasks::TaskSet;

use case::{Banks, Case};

/// A task whose bound was compared.
#[derive(Debug)]
#[allow(dead_code, reason = "each user prints other fields")]
pub struct Sample {
    /// How memory was given.
    pub policy: &'static str,
    /// What ran.
    pub task: String,
    /// Longest response played; that of a missed job is at least its deadline.
    pub played_ps: u64,
    /// Alone.
    pub alone_ps: u64,
    /// The bound.
    pub bound_ps: u64,
}

const KINDS: [&str; 5] = [
    "stream",
    "latency",
    "bandwidth-write",
    "bandwidth-read",
    "alternating-stride",
];
const POLICIES: [&str; 4] = [
    "same bank",
    "own bank",
    "own controller",
    "own bank, limited",
];

/// What is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// One or two tasks of 5 to 25 us on core 0, and something on each other core.
    Beside,
    /// Two or three tasks on core 0, and nobody else.
    Alone,
    /// As `Beside`, but of 1 to 5 ms, and limits are a quarter.
    #[allow(dead_code, reason = "the example's alone")]
    Long,
    /// As `Beside`, but each core has cache colours of its own.
    Colors,
    /// What the others never draw ([`wide`]).
    #[allow(dead_code, reason = "the example's alone")]
    Wide,
}

/// Of one rank or two, with caps on turns: without them nothing bounds a wait but all that
/// others move. `turns` draws these.
fn machine(rng: &mut ChaCha8Rng, turns: &mut ChaCha8Rng) -> Platform {
    let device = ["ddr3-1066f", "ddr3-1333h", "ddr3-1600k"]
        .choose(rng)
        .unwrap();
    let order = ["oldest", "round-robin"].choose(rng).unwrap();
    let page = ["open", "closed"].choose(rng).unwrap();
    let high = rng.gen_range(2..16);
    let changes = format!(
        "device = \"{device}\"\n[controller]\norder = \"{order}\"\npage = \"{page}\"\nread_queue = {}\n\
         write_queue = 16\nbank_queue = {}\nhit_cap = {}\ndrain_high = {high}\ndrain_low = {}\n\
         drain_idle = {}\ndirection_cap = {}\nrank_cap = {}\n[core]\noutstanding = {}\nstore_buffer = {}\nprefetch = {}\n{}\n\
         [northbridge]\nvictims = {}\nshared = {}\n",
        rng.gen_range(4..32),
        rng.gen_range(2..9),
        rng.gen_range(2..40),
        rng.gen_range(0..high),
        rng.gen_range(1..8),
        turns.gen_range(1..17),
        turns.gen_range(1..17),
        rng.gen_range(1..11),
        rng.gen_range(1..16),
        rng.gen_bool(0.3),
        ["", "tlb = 16\nwalk = 35", "tlb = 512\nwalk = 35"]
            .choose(rng)
            .unwrap(),
        rng.gen_range(4..64),
        false,
    );
    let file = match turns.gen_bool(0.5) {
        true => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml"),
        false => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ranks.toml"),
    };
    Platform::find_changed(file, &toml::from_str(&changes).unwrap()).unwrap()
}

fn tasks(rng: &mut ChaCha8Rng, draw: Draw) -> TaskSet {
    let beside = draw != Draw::Alone;
    let times = if draw == Draw::Long {
        1000..5000
    } else {
        5..25
    };
    let mut text = String::new();
    let mut add = |rng: &mut ChaCha8Rng, name: String, core: u32, wcet: Option<u64>| {
        let kind = KINDS.choose(rng).unwrap();
        let kib = [8, 32, 256, 1024].choose(rng).unwrap();
        text += &format!(
            "[[task]]\nname = \"{name}\"\ncore = {core}\nmemory = \"{kib}K\"\nkind = \"{kind}\"\n"
        );
        if let Some(wcet) = wcet {
            let period = wcet * rng.gen_range(4..12);
            text += &format!("period = \"{period} us\"\nwcet = \"{wcet} us\"\n");
        }
    };
    let own = if beside { 1..3 } else { 2..4 };
    for i in 0..rng.gen_range(own) {
        let wcet = rng.gen_range(times.clone());
        add(rng, format!("a{i}"), 0, Some(wcet));
    }
    for core in (1..4).filter(|_| beside) {
        let wcet = rng.gen_bool(0.3).then(|| rng.gen_range(times.clone()));
        add(rng, format!("b{core}"), core, wcet);
    }
    parse(&text, "random").unwrap()
}

/// The case of a seed, and how memory is given there.
fn case(seed: u64, draw: Draw) -> (Case, &'static str) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut turns = ChaCha8Rng::seed_from_u64(!seed);
    let platform = machine(&mut rng, &mut turns);
    let set = tasks(&mut rng, draw);
    let at = rng.gen_range(0..POLICIES.len());
    // Cores 0 and 1 live on node 0, whose last level they share.
    let homes = match at {
        2 => [0, 1, 1, 1],
        _ => [0; 4],
    };
    let mut limits = vec![None; 4];
    if at == 3 {
        for limit in &mut limits[1..] {
            let rate = rng.gen_range(50..400) * 1_000_000;
            *limit = Some(if draw == Draw::Long { rate / 4 } else { rate });
        }
    }
    let case = Case {
        platform,
        set,
        homes,
        banks: match at {
            0 => Banks::Shared,
            _ => Banks::Own,
        },
        cache_colors: draw == Draw::Colors,
        limits,
        length_ps: if draw == Draw::Long { 25_000 } else { 300 } * US,
        seed,
    };
    (case, POLICIES[at])
}

/// Analyses and plays the set of a seed.
pub fn check(seed: u64, draw: Draw) -> Vec<Sample> {
    let (case, policy) = match draw {
        Draw::Wide => wide::case(seed),
        _ => case(seed, draw),
    };
    let ran = case.run();
    let case = &ran.case;
    let mut cores: Vec<u32> = case.set.tasks.iter().filter_map(|t| t.core).collect();
    cores.dedup();
    // Those whose memory is on their own node, and which the guard does not stop: what the
    // analysis is for.
    let node = |core: u32| case.platform.node_of_core[core as usize] as u32;
    let free = |core: u32| case.limits[core as usize].is_none();
    cores.retain(|&core| case.homes[core as usize] == node(core) && free(core));
    let mut samples = Vec::new();
    for answer in cores.into_iter().flat_map(|core| ran.answers(core)) {
        let tasks = &case.set.tasks;
        let task = tasks.iter().position(|t| t.name == answer.task).unwrap();
        let Some(played_ps) = ran.longest(task) else {
            continue;
        };
        samples.push(Sample {
            policy,
            task: format!("{} {:?}", answer.task, tasks[task].behaviour),
            played_ps,
            alone_ps: tasks[task].wcet.0,
            bound_ps: answer.response.map_or(u64::MAX, |r| r.0),
        });
    }
    samples
}
