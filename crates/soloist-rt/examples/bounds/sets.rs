//! Random machines and sets, each analysed and played.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::time::{Time, US};
use soloist_core::ColorSet;
use soloist_memory::Platform;
use soloist_rt::analysis::interference::{surroundings, Conditions, Costs, Shared, Sharing};
use soloist_rt::analysis::response::analyse;
use soloist_rt::analysis::ProfiledSet;
use soloist_rt::model::cores::{play, seed_of, PageSource, Setup};
use soloist_rt::model::in_colors::{in_colors, Jobs};
use soloist_rt::model::profile::profiles;
use soloist_rt::tasks::file::parse;
use soloist_rt::tasks::TaskSet;
use soloist_trace::timeline::End;

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

/// Analyses and plays the set of a seed.
pub fn check(seed: u64, draw: Draw) -> Vec<Sample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut turns = ChaCha8Rng::seed_from_u64(!seed);
    let platform = machine(&mut rng, &mut turns);
    let mut set = tasks(&mut rng, draw);
    let at = rng.gen_range(0..POLICIES.len());
    let map = &platform.memory.map;
    // Cores 0 and 1 live on node 0, whose last level they share.
    let node = |core: u32| platform.node_of_core[core as usize] as u32;
    let home = |core: u32| match at {
        2 => node(core) ^ u32::from(core == 1),
        3 => 0,
        _ => 0,
    };
    let place = |core: u32| {
        let sets: Vec<u32> = map.sets_of_node(home(core)).collect();
        let own = match at {
            0 => sets[..2].to_vec(),
            _ => [2 * core, 2 * core + 1]
                .map(|at| sets[at as usize * sets.len() / 8])
                .to_vec(),
        };
        let banks = ColorSet::any(map).with_sets(own);
        // Two cores use a last level.
        let half = map.n_llc() / 2;
        let first = core % 2 * half;
        PageSource {
            colors: Some(match draw {
                Draw::Colors => banks.with_llc(first..first + half),
                _ => banks,
            }),
            node: None,
        }
    };
    let places: Vec<PageSource> = set.tasks.iter().map(|t| place(t.core.unwrap())).collect();
    let mut limits = vec![None; 4];
    if at == 3 {
        for limit in &mut limits[1..] {
            let rate = rng.gen_range(50..400) * 1_000_000;
            *limit = Some(if draw == Draw::Long { rate / 4 } else { rate });
        }
    }
    let (makers, mut profiles) = profiles(&platform, &set, 1).unwrap();
    // As a plan has it: the longest of the jobs that are played, alone in the colours
    // given. Another job of a program, or another draw, may be longer.
    let length_ps = if draw == Draw::Long { 25_000 } else { 300 } * US;
    for (i, place) in places.iter().enumerate() {
        let Some(release) = set.tasks[i].release else {
            continue;
        };
        let jobs = Jobs {
            least: length_ps.div_ceil(release.period.0),
            seed: seed_of(seed, i),
            in_flight: Costs::of(&platform).in_flight,
        };
        let (task, maker) = (&set.tasks[i], &makers[i]);
        let alone = in_colors(&platform, task, maker, &profiles[i], place, jobs).unwrap();
        set.tasks[i].wcet = alone.longest.max(set.tasks[i].wcet);
        profiles[i] = alone.profile;
    }
    let shared = |a: u32, b: u32| {
        let memory = match at {
            0 => Sharing::Banks,
            _ if home(a) == home(b) => Sharing::Controller,
            _ => Sharing::Nothing,
        };
        Shared {
            memory,
            llc: node(a) == node(b) && draw != Draw::Colors,
        }
    };
    let accesses: Vec<u64> = profiles.iter().map(|p| p.accesses).collect();
    let played = play(&Setup {
        platform: &platform,
        set: &set,
        makers: &makers,
        accesses: &accesses,
        places: &places,
        limits: &limits,
        scale: 1,
        length_ps,
        seed,
    })
    .unwrap();
    // What a job would take had it no deadline.
    let mut patient = set.clone();
    for task in &mut patient.tasks {
        if let Some(release) = &mut task.release {
            release.deadline = Time(release.period.0 * 1000);
        }
    }
    let mut samples = Vec::new();
    let mut cores: Vec<u32> = set.tasks.iter().filter_map(|t| t.core).collect();
    cores.dedup();
    // Those whose memory is on their own node: what the analysis is for.
    cores.retain(|&core| home(core) == node(core));
    for core in cores {
        let tasks = ProfiledSet::new(&set, &profiles);
        let conditions = Conditions {
            platform: &platform,
            limits: &limits,
            shared: &shared,
        };
        let around = surroundings(tasks, core, conditions);
        let patient = ProfiledSet::new(&patient, tasks.profiles);
        for answer in analyse(patient, core, &around) {
            let task = set
                .tasks
                .iter()
                .position(|t| t.name == answer.task)
                .unwrap();
            let mine = played.timeline.jobs.iter().filter(|j| j.task == task);
            let longest = mine.filter_map(|job| match job.end {
                End::Completed(at) => Some(at - job.release_ps),
                End::Missed => job.deadline_ps.map(|d| d - job.release_ps),
                End::Open => None,
            });
            let Some(played_ps) = longest.max() else {
                continue;
            };
            samples.push(Sample {
                policy: POLICIES[at],
                task: format!("{} {:?}", answer.task, set.tasks[task].behaviour),
                played_ps,
                alone_ps: set.tasks[task].wcet.0,
                bound_ps: answer.response.map_or(u64::MAX, |r| r.0),
            });
        }
    }
    samples
}
