//! What share of random task sets can be proved under which isolation.
//!
//! All have the same analysis ([`soloist_rt::analysis::response`]), the same candidates
//! for cores ([`soloist_rt::plan::candidates`]), rate-monotonic priorities and the same
//! sets. They differ in what cores share and which cores have a limit. Nothing is
//! played: `wcet` and lines are taken for those of a job under each isolation, though
//! fewer banks and less cache cost time too. A core with deadlines never has a limit.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_memory::Platform;

use soloist_core::time::{Time, MS};
use soloist_play::programs::ProgramKind;
use soloist_rt::analysis::interference::{Conditions, Costs, Shared, Sharing};
use soloist_rt::analysis::ProfiledSet;
use soloist_rt::model::profile::Profile;
use soloist_rt::plan::candidates::{candidates, Candidate};
use soloist_rt::plan::colors::{deal, groups, Dealt, Group};
use soloist_rt::plan::proof::all_hold;
use soloist_rt::plan::LIMITS;
use soloist_rt::tasks::{Behaviour, Order, Release, Task, TaskSet};

use crate::random::{period, utilisations};

/// What keeps tasks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing: banks, controllers and last level are shared.
    None,
    /// MemGuard: cores without deadlines have an equal part of what their node's
    /// controller can do at least.
    MemGuard,
    /// The same, with so many bytes a second for each of these cores.
    Limited(u64),
    /// PALLOC: banks of their own.
    Palloc,
    /// CAMC: banks of their own, and tasks with deadlines on other controllers than
    /// the rest.
    Camc,
    /// The same, and colours of the last level.
    CamcCache,
    /// `soloist plan`: the same, and limits where they help.
    Plan,
}

impl Isolation {
    /// All, the weakest first.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::MemGuard,
        Self::Palloc,
        Self::Camc,
        Self::CamcCache,
        Self::Plan,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no isolation",
            Self::MemGuard => "MemGuard",
            Self::Limited(_) => "MemGuard, limits chosen",
            Self::Palloc => "PALLOC",
            Self::Camc => "CAMC",
            Self::CamcCache => "CAMC + cache",
            Self::Plan => "soloist plan",
        }
    }
}

/// How sets are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Processor time of all tasks with deadlines, cores.
    pub utilisation: f64,
    /// How many there are.
    pub timed: usize,
    /// How many run whenever they can, and never stop to ask memory.
    pub others: usize,
}

/// Periods, ps.
const PERIODS: (u64, u64) = (10 * MS, 200 * MS);
/// Part of its time that a task would wait for memory if its misses came one by
/// one, evenly on a logarithmic scale.
const WAITING: (f64, f64) = (0.001, 0.1);
/// KiB of memory.
const SIZES: [u64; 4] = [256, 1024, 2048, 4096];
/// What private caches ask for, in lines that memory moves.
const REQUESTS: u64 = 2;

/// A random set, and what its jobs ask of memory.
pub fn draw(platform: &Platform, how: Draw, seed: u64) -> (TaskSet, Vec<Profile>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let costs = Costs::of(platform);
    let shares = shares(&mut rng, how);
    let mut tasks = Vec::new();
    let mut profiles = Vec::new();
    for n in 0..how.timed + how.others {
        let bytes = SIZES.choose(&mut rng).copied().unwrap_or(SIZES[0]) << 10;
        let mut task = Task {
            name: format!("t{n}"),
            release: None,
            wcet: Time(0),
            core: None,
            bytes,
            behaviour: Behaviour::Lines(0),
            recorded: None,
            recording: None,
            line: 0,
        };
        let mut profile = Profile::default();
        if let Some(share) = shares.get(n) {
            let period = period(&mut rng, PERIODS.0, PERIODS.1);
            let wcet = ((period as f64 * share) as u64).max(1);
            let waiting = rng.gen_range(WAITING.0.ln()..WAITING.1.ln()).exp();
            let lines = (wcet as f64 * waiting) as u64 / costs.miss_ps.max(1);
            task.wcet = Time(wcet);
            // Its accesses are all known, as of a program that is played from empty caches.
            task.behaviour = Behaviour::Program {
                kind: ProgramKind::Stream,
                ipc: 1.0,
                mpki: 0.0,
                writes: 0.0,
            };
            task.release = Some(Release {
                period: Time(period),
                deadline: Time(period),
                phase: Time(0),
                jitter: Time(0),
                priority: 0,
            });
            profile = Profile {
                accesses: REQUESTS * lines,
                lines,
                requests: REQUESTS * lines,
            };
        }
        tasks.push(task);
        profiles.push(profile);
    }
    let set = TaskSet::of(Order::RateMonotonic, tasks);
    (set, profiles)
}

/// Evenly distributed over all that have this sum, though no task can have more
/// than a core. What tasks leave of their cores is distributed alike, so where
/// less is left than used, that is drawn: of 9 tasks with 8 cores, one draw in
/// 17 million would have none above 1.
fn shares(rng: &mut ChaCha8Rng, how: Draw) -> Vec<f64> {
    let left = how.timed as f64 - how.utilisation;
    let mirrored = left < how.utilisation;
    let sum = if mirrored { left } else { how.utilisation };
    loop {
        let shares = utilisations(rng, how.timed, sum);
        if shares.iter().all(|&u| u <= 1.0) {
            let unmirrored = |u: f64| if mirrored { 1.0 - u } else { u };
            return shares.into_iter().map(unmirrored).collect();
        }
    }
}

/// Under which isolations is there a way to put the tasks on cores with which all
/// deadlines are proved?
pub fn proved_under(
    platform: &Platform,
    tasks: ProfiledSet,
    isolations: &[Isolation],
) -> Vec<bool> {
    let all = candidates(platform, tasks.set);
    let proved = |&isolation: &Isolation| {
        all.iter()
            .any(|candidate| holds(platform, tasks, candidate, isolation))
    };
    isolations.iter().map(proved).collect()
}

fn holds(
    platform: &Platform,
    tasks: ProfiledSet,
    candidate: &Candidate,
    isolation: Isolation,
) -> bool {
    let set = candidate.bind(tasks.set);
    let near = |core: &u32| platform.node_of_core[*core as usize] as u32;
    // Where nobody chooses controllers, memory is the core's node's.
    let nodes: Vec<u32> = match isolation {
        Isolation::Camc | Isolation::CamcCache | Isolation::Plan => candidate.nodes.clone(),
        _ => candidate.cores.iter().map(near).collect(),
    };
    let (groups, _) = groups(&set, &nodes);
    let Ok(dealt) = deal(platform, &groups) else {
        return false;
    };
    let cores = platform.node_of_core.len();
    // Asked for once for each pair: the analysis comes back to all of them.
    let table: Vec<Shared> = (0..cores * cores)
        .map(|at| {
            let (a, b) = ((at / cores) as u32, (at % cores) as u32);
            shared(platform, &groups, &dealt, isolation, a, b)
        })
        .collect();
    let proved = |limits: &[Option<u64>]| {
        let conditions = Conditions {
            platform,
            limits,
            shared: &|a, b| table[a as usize * cores + b as usize],
        };
        all_hold(ProfiledSet::new(&set, tasks.profiles), conditions)
    };
    let loud = loud(&set);
    let limited = |limit: &dyn Fn(u32) -> u64| {
        let mut limits = vec![None; cores];
        loud.iter()
            .for_each(|&core| limits[core as usize] = Some(limit(core)));
        limits
    };
    match isolation {
        Isolation::MemGuard => proved(&limited(&|core| part(platform, near(&core) as usize))),
        Isolation::Limited(limit) => proved(&limited(&|_| limit)),
        // No bound grows as a limit falls, so that the least decides.
        Isolation::Plan => {
            let least = LIMITS.iter().min().copied().unwrap_or(0);
            proved(&limited(&|_| least * 1_000_000))
        }
        _ => proved(&vec![None; cores]),
    }
}

/// What a pair of cores shares under an isolation.
fn shared(
    platform: &Platform,
    groups: &[Group],
    dealt: &[Dealt],
    isolation: Isolation,
    a: u32,
    b: u32,
) -> Shared {
    let groups_of = |core: u32| (0..groups.len()).filter(move |&g| core == groups[g].core);
    let has = |core: u32, node: u32| groups_of(core).any(|g| groups[g].node == node);
    let common = groups_of(a).any(|g| has(b, groups[g].node));
    let memory = match (common, isolation) {
        (false, _) => Sharing::Nothing,
        (true, Isolation::None | Isolation::MemGuard | Isolation::Limited(_)) => Sharing::Banks,
        (true, _) => Sharing::Controller,
    };
    let same_llc = platform.llc_of_core[a as usize] == platform.llc_of_core[b as usize];
    let colored = matches!(isolation, Isolation::CamcCache | Isolation::Plan);
    let own = colored && groups_of(a).chain(groups_of(b)).all(|g| dealt[g].own_llc);
    Shared {
        memory,
        llc: same_llc && !own,
        elsewhere: groups_of(b).any(|g| !has(a, groups[g].node)),
    }
}

/// MemGuard's equal part of a node, bytes a second: what its controller can do at
/// least (one bank, `r_min`), divided by its cores.
pub fn part(platform: &Platform, node: usize) -> u64 {
    let mates = platform.node_of_core.iter().filter(|&&n| n == node);
    platform.memory.device.one_bank_bandwidth() as u64 / mates.count().max(1) as u64
}

/// Cores without deadlines.
fn loud(set: &TaskSet) -> Vec<u32> {
    let timed = |core: u32| {
        let mut here = set.tasks.iter().filter(|t| t.core == Some(core));
        here.any(|t| t.release.is_some())
    };
    let cores = set.tasks.iter().filter_map(|t| t.core);
    cores.filter(|&core| !timed(core)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_rt::analysis::interference::{CoRunner, Way};

    #[test]
    fn shares_have_their_sum_and_none_is_above_a_core() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for utilisation in [0.5, 4.4, 4.6, 8.0, 8.9] {
            let how = Draw {
                utilisation,
                timed: 9,
                others: 0,
            };
            let all = shares(&mut rng, how);
            assert!(all.iter().all(|u| (0.0..=1.0).contains(u)), "{all:?}");
            assert!((all.iter().sum::<f64>() - utilisation).abs() < 1e-9);
        }
    }

    /// By the bound, one core with an equal part of `r_min` can be in the way all
    /// the time: such a limit proves what no limit does. Lower ones do more.
    #[test]
    fn an_equal_part_of_a_bank_fills_all_time() {
        const WINDOW: u64 = 100 * MS;
        for machine in ["opteron-6128", "raspberry-pi-4"] {
            let platform = Platform::find(machine).unwrap();
            let costs = Costs::of(&platform);
            let line = u64::from(platform.memory.map.line_size());
            let delay = |bytes: u64| {
                let co_runner = CoRunner {
                    core: 1,
                    sharing: Sharing::Banks,
                    way: Way::Same,
                    shares_llc: true,
                    llc: 0,
                    limit: Some(bytes / line),
                    stop_ps: 0,
                    tasks: Vec::new(),
                    best_effort: true,
                };
                co_runner.job_ps(&costs, WINDOW) as f64 / WINDOW as f64
            };
            let (equal, low) = (delay(part(&platform, 0)), delay(16_000_000));
            println!(
                "{machine}: {} ns a line; {equal:.2}, {low:.3} of all time",
                costs.same_bank_ps / 1000
            );
            assert!(equal > 1.0 && low < 0.4, "{machine}: {equal} {low}");
        }
    }

    /// What shares less, on the same cores, is never proved less often.
    #[test]
    fn more_isolation_never_loses_a_set() {
        let mut proved = [0; 6];
        for machine in ["opteron-6128", "raspberry-pi-4"] {
            let platform = Platform::find(machine).unwrap();
            for seed in 0..30 {
                let how = Draw {
                    utilisation: 0.02 + 0.04 * seed as f64,
                    timed: 4,
                    others: 2,
                };
                let (set, profiles) = draw(&platform, how, seed);
                let held = proved_under(
                    &platform,
                    ProfiledSet::new(&set, &profiles),
                    &Isolation::ALL,
                );
                let [none, memguard, palloc, camc, cache, plan] = held[..] else {
                    panic!("{held:?}");
                };
                assert!(!none || (memguard && palloc), "{machine} {seed}: {held:?}");
                assert!(!camc || cache, "{machine} {seed}: {held:?}");
                assert!(!cache || plan, "{machine} {seed}: {held:?}");
                for (count, held) in proved.iter_mut().zip(held) {
                    *count += u32::from(held);
                }
            }
        }
        // Neither all nor nothing: the sets tell them apart.
        assert!(proved[5] > proved[0] && proved[5] < 60, "{proved:?}");
    }
}
