//! As few banks as a small machine has: what neighbours cost where all tasks share
//! them, and where each has its own.
//!
//! For each slice, number of neighbours and attack a block has five conditions in
//! random order: the victim *alone* in all banks of the slice; *shared*: all tasks in
//! all banks, as Linux places them; alone in a quarter of the banks, drawn anew for
//! each block; *private*: the neighbours in the others; *same*: the neighbours in the
//! victim's quarter too. What neighbours cost is a condition less the victim alone in
//! the same banks, so that what makes some banks slower drops out of it. All
//! judgements of a run share one limit for chance (Holm).

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::{median, ranked_quantile};

use crate::banks::{Banks, Owner, LEAST_BANKS};
use crate::cores::{Attack, Company, Cores, Round};
use crate::statistics::difference::{at_most, judge, Difference, Loss};
use crate::two_banks::CHANCE;

/// Numbers of neighbours that are tried.
pub const NEIGHBOURS: [usize; 4] = [1, 3, 7, 15];
/// Lines of the victim, and of each neighbour.
pub(super) const VICTIM_LINES: usize = 1024;
pub(super) const NEIGHBOUR_LINES: usize = 2048;
/// Bytes of a line.
pub(super) const LINE: f64 = 64.0;
/// With fewer blocks nothing is judged.
pub(super) const LEAST_BLOCKS: usize = 8;
/// Time in which a block is tried again, in times of what was asked for.
pub(super) const PATIENCE: u32 = 3;

/// How often.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Blocks at most.
    pub blocks: usize,
    /// No block begins after this, once there are enough to judge.
    pub time: Duration,
    /// Seed of orders, lines and the bootstrap.
    pub seed: u64,
}

/// What the victim took under one condition.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Figures {
    /// ns of an access: median over blocks.
    pub ns: f64,
    /// Mean of single accesses, ns.
    pub mean_ns: f64,
    /// 99 of 100 single accesses took at most this, ns.
    pub p99_ns: f64,
    /// 999 of 1000.
    pub p999_ns: f64,
    /// Bytes a second of all neighbours.
    pub neighbours_bytes_per_second: f64,
}

impl Figures {
    /// ns of an access, and in brackets p99 and p99.9 of single ones.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{:.0} ({:.0}, {:.0})", self.ns, self.p99_ns, self.p999_ns)
    }
}

/// One slice, number of neighbours and attack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    /// Banks of the slice.
    pub banks: usize,
    /// Private banks are those of page colours: all that the victim's pages lie in.
    pub by_pages: bool,
    /// Neighbours.
    pub neighbours: usize,
    /// What they do.
    pub attack: Attack,
    /// The victim alone in all banks.
    pub alone: Figures,
    /// All tasks in all banks.
    pub shared: Figures,
    /// The victim alone in a quarter of the banks.
    pub alone_private: Figures,
    /// Neighbours in the other banks.
    pub private: Figures,
    /// Neighbours in the victim's banks.
    pub same: Figures,
    /// What neighbours add where banks are shared.
    pub shared_adds: Difference,
    /// What they add where banks are private.
    pub private_adds: Difference,
    /// What private banks save of it.
    pub saved: Difference,
    /// By which share the neighbours are slower in their private banks than in shared ones.
    pub neighbours_lose: Loss,
    /// Blocks that count.
    pub blocks: usize,
    /// Blocks in which a neighbour hardly ran.
    pub dropped: usize,
}

impl Cell {
    /// Time of an access beside neighbours in shared banks over alone.
    #[must_use]
    pub fn shared_slowdown(&self) -> f64 {
        1.0 + self.shared_adds.ns.median / self.alone.ns
    }

    /// The same in private banks, over alone in all banks of the slice.
    #[must_use]
    pub fn private_slowdown(&self) -> f64 {
        1.0 + self.private_adds.ns.median / self.alone.ns
    }

    /// What the figures say, in a sentence; nothing that chance explains.
    #[must_use]
    pub fn verdict(&self) -> String {
        let who = self.attack.neighbours(self.neighbours);
        let most = |ns: f64| at_most(ns / self.alone.ns);
        let lose = self.neighbours_lose.says();
        let how = if self.by_pages {
            " by page colours"
        } else {
            ""
        };
        let head = format!("{} banks{how}, {who}:", self.banks);
        if self.saved.shown_less {
            return format!(
                "{head} private banks are worse: {:.2} times as long, {:.2} with shared ones{lose}.",
                self.private_slowdown(),
                self.shared_slowdown()
            );
        }
        if !self.shared_adds.shown {
            return format!(
                "{head} nothing is shown; if they cost anything where banks are shared, it is {} of an \
                 access alone (99 %){lose}.",
                most(self.shared_adds.ns.high)
            );
        }
        let shared = format!(
            "{head} {:.2} times as long with shared banks",
            self.shared_slowdown()
        );
        if self.saved.shown {
            return format!(
                "{shared}, {:.2} with private ones{lose}.",
                self.private_slowdown()
            );
        }
        format!(
            "{shared}; that private banks save any of it is not shown ({} of an access alone){lose}.",
            most(self.saved.ns.high)
        )
    }
}

/// Conditions of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Alone,
    Shared,
    AlonePrivate,
    Private,
    Same,
}

const CONDITIONS: [Condition; 5] = [
    Condition::Alone,
    Condition::Shared,
    Condition::AlonePrivate,
    Condition::Private,
    Condition::Same,
];

/// What a cell has measured so far.
struct Taken {
    size: usize,
    by_pages: bool,
    neighbours: usize,
    attack: Attack,
    /// A round for each condition, a block each.
    blocks: Vec<[Round; CONDITIONS.len()]>,
    dropped: usize,
}

/// Measures all slices that `banks` gives.
pub fn measure(
    cores: &mut dyn Cores,
    banks: &Banks,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Vec<Cell> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let most = cores.most_neighbours();
    let mut taken: Vec<Taken> = Vec::new();
    let sets = banks.page_sets();
    let sizes = banks.sizes();
    let mut slices: Vec<(usize, bool)> = sizes.iter().map(|&size| (size, false)).collect();
    // Where each bank is a page colour, it is what the first slice has.
    if sets.len() >= LEAST_BANKS && sets[0].len() > 1 {
        slices.insert(0, (sizes[0], true));
    }
    for (size, by_pages) in slices {
        for neighbours in numbers(most) {
            for attack in [Attack::Read, Attack::Write, Attack::Both] {
                taken.push(Taken {
                    size,
                    by_pages,
                    neighbours,
                    attack,
                    blocks: Vec::new(),
                    dropped: 0,
                });
            }
        }
    }
    let begun = Instant::now();
    for turn in 0.. {
        let least = taken.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
        let late = begun.elapsed();
        let out_of_time = late > plan.time && least >= LEAST_BLOCKS;
        if least >= plan.blocks
            || out_of_time
            || late > PATIENCE * plan.time
            || turn > PATIENCE as usize * plan.blocks
        {
            break;
        }
        let mut order: Vec<usize> = (0..taken.len()).collect();
        order.shuffle(&mut rng);
        for i in order {
            if taken[i].blocks.len() >= plan.blocks || begun.elapsed() > PATIENCE * plan.time {
                continue;
            }
            match block(cores, banks, &sets, &taken[i], &mut rng) {
                Some(rounds) => taken[i].blocks.push(rounds),
                None => taken[i].dropped += 1,
            }
        }
        let by_time = begun.elapsed().as_secs_f64() / plan.time.as_secs_f64().max(1e-9);
        progress((least as f64 / plan.blocks as f64).max(by_time).min(1.0));
    }
    let judged = taken
        .into_iter()
        .filter(|one| one.blocks.len() >= LEAST_BLOCKS);
    judged_together(judged.map(cell).collect())
}

/// Numbers of neighbours up to `most`, which is one of them where it lies between.
fn numbers(most: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = NEIGHBOURS.into_iter().filter(|&n| n <= most).collect();
    if most < 15 && !numbers.contains(&most) && most > 0 {
        numbers.push(most);
    }
    numbers
}

/// Every condition once, in random order; `None`: a neighbour did not run.
fn block(
    cores: &mut dyn Cores,
    banks: &Banks,
    sets: &[Vec<usize>],
    of: &Taken,
    rng: &mut ChaCha8Rng,
) -> Option<[Round; CONDITIONS.len()]> {
    let slice = banks.slice(of.size);
    let (own, others) = match of.by_pages {
        false => Banks::split(&slice, rng),
        true => {
            let numbers: Vec<usize> = (0..sets.len()).collect();
            let (own, others) = Banks::split(&numbers, rng);
            let all = |colors: Vec<usize>| colors.iter().flat_map(|&i| sets[i].clone()).collect();
            (all(own), all(others))
        }
    };
    let mut order: Vec<usize> = (0..CONDITIONS.len()).collect();
    order.shuffle(rng);
    let mut rounds: [Option<Round>; CONDITIONS.len()] = Default::default();
    for i in order {
        let (victim, neighbours) = match CONDITIONS[i] {
            Condition::Alone => (&slice, None),
            Condition::Shared => (&slice, Some(&slice)),
            Condition::AlonePrivate => (&own, None),
            Condition::Private => (&own, Some(&others)),
            Condition::Same => (&own, Some(&own)),
        };
        let owners = of.neighbours + 1;
        let lines = banks.draw(victim, Owner { number: 0, owners }, VICTIM_LINES, rng);
        rounds[i] = match neighbours {
            None => Some(cores.round(&lines, None)?),
            Some(theirs) => {
                let theirs: Vec<Vec<u64>> = (1..owners)
                    .map(|number| {
                        banks.draw(theirs, Owner { number, owners }, NEIGHBOUR_LINES, rng)
                    })
                    .collect();
                let company = Company {
                    attack: of.attack,
                    lines: &theirs,
                    pause_ns: 0,
                };
                Some(cores.round(&lines, Some(&company))?)
            }
        };
    }
    let [a, b, c, d, e] = rounds;
    Some([a?, b?, c?, d?, e?])
}

/// What the rounds of one condition came to.
pub(super) fn figures<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Figures {
    let rounds = || rounds.clone();
    let mut singles: Vec<f32> = rounds().flat_map(|r| r.singles.iter().copied()).collect();
    let all: f64 = singles.iter().map(|&ns| f64::from(ns)).sum();
    let rate = median(&mut rounds().map(|r| r.rate).collect::<Vec<_>>());
    Figures {
        ns: median(&mut rounds().map(|r| r.ns).collect::<Vec<_>>()),
        mean_ns: all / singles.len().max(1) as f64,
        p99_ns: ranked_quantile(&mut singles, 0.99),
        p999_ns: ranked_quantile(&mut singles, 0.999),
        neighbours_bytes_per_second: rate * 1e6 * LINE,
    }
}

fn cell(taken: Taken) -> Cell {
    let blocks = &taken.blocks;
    let difference = |of: &dyn Fn(&[Round; CONDITIONS.len()]) -> f64| {
        Difference::of(&blocks.iter().map(of).collect::<Vec<f64>>())
    };
    let [alone, shared, alone_private, private, same] =
        [0, 1, 2, 3, 4].map(|at| figures(blocks.iter().map(move |rounds| &rounds[at])));
    let rates = blocks.iter().map(|r| (r[1].rate, r[3].rate));
    Cell {
        banks: taken.size,
        by_pages: taken.by_pages,
        neighbours: taken.neighbours,
        attack: taken.attack,
        alone,
        shared,
        alone_private,
        private,
        same,
        shared_adds: difference(&|r| r[1].ns - r[0].ns),
        private_adds: difference(&|r| r[3].ns - r[2].ns),
        saved: difference(&|r| (r[1].ns - r[0].ns) - (r[3].ns - r[2].ns)),
        neighbours_lose: Loss::of(rates),
        blocks: blocks.len(),
        dropped: taken.dropped,
    }
}

/// Says which differences are more than chance, over all cells together.
fn judged_together(mut cells: Vec<Cell>) -> Vec<Cell> {
    let (mut differences, mut losses) = (Vec::new(), Vec::new());
    for cell in &mut cells {
        differences.extend([
            &mut cell.shared_adds,
            &mut cell.private_adds,
            &mut cell.saved,
        ]);
        losses.push(&mut cell.neighbours_lose);
    }
    judge(differences, losses, CHANCE);
    cells
}
