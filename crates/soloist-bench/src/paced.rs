//! Neighbours that are slowed down, as a reservation of bandwidth slows them: what they
//! cost against what they get, in shared banks and in private ones.

use std::time::Instant;

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;

use crate::banks::{Banks, Owner};
use crate::cores::{Attack, Company, Cores, Round};
use crate::slices::{Plan, LEAST_BLOCKS, LINE, NEIGHBOUR_LINES, PATIENCE, VICTIM_LINES};
use crate::statistics::difference::{judge, Difference};
use crate::statistics::Interval;
use crate::two_banks::CHANCE;

/// How long neighbours wait after 16 accesses, ns.
const PAUSES: [u32; 6] = [0, 250, 1_000, 4_000, 16_000, 64_000];
/// Curves of a run, which share one limit for chance.
const CURVES: f64 = 2.0;
/// A slowdown that nobody minds.
const HARMLESS: f64 = 1.05;

/// One pace.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Point {
    /// How long each neighbour waits after 16 accesses, ns.
    pub pause_ns: u32,
    /// Time of an access over alone, all tasks in all banks.
    pub shared: Interval,
    /// Bytes a second of all neighbours there.
    pub shared_bytes_per_second: f64,
    /// The same, neighbours in other banks than the victim.
    pub private: Interval,
    /// Bytes a second of all neighbours there.
    pub private_bytes_per_second: f64,
    /// What neighbours add in shared banks.
    #[serde(default)]
    pub adds: Difference,
    /// What private banks save of it.
    #[serde(default)]
    pub saved: Difference,
}

/// The curve for one slice and attack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paced {
    /// Banks of the slice.
    pub banks: usize,
    /// Neighbours.
    pub neighbours: usize,
    /// What they do.
    pub attack: Attack,
    /// By pause, ascending.
    pub points: Vec<Point>,
    /// Blocks that count.
    pub blocks: usize,
}

impl Paced {
    /// The most that neighbours get with a slowdown that surely is at most `bound`, bytes a
    /// second, in shared or in private banks; `None`: no pace is shown to be slow enough.
    #[must_use]
    pub fn within(&self, bound: f64, private: bool) -> Option<f64> {
        let cost_and_rate = |point: &Point| match private {
            true => (point.private.high, point.private_bytes_per_second),
            false => (point.shared.high, point.shared_bytes_per_second),
        };
        let kept = self.points.iter().map(cost_and_rate).rev();
        let kept = kept.take_while(|&(high, _)| high <= bound);
        kept.map(|(_, rate)| rate).reduce(f64::max)
    }

    /// What neighbours may have for one slowdown, bytes a second: the slowdown, in shared
    /// banks, in private ones. The shared banks have every doubt: their neighbours may be as
    /// fast as is not shown to be too fast. `None`: private banks are not shown to give more.
    #[must_use]
    pub fn given(&self) -> Option<(f64, f64, f64)> {
        let full = self.points.first()?;
        let bound = full.private.high.max(HARMLESS);
        let is_too_fast = |point: &&Point| point.saved.shown && point.shared.low > bound;
        let too_fast = self.points.iter().take_while(is_too_fast).count();
        let shared = self.points[too_fast..].iter();
        let shared = shared.map(|point| point.shared_bytes_per_second);
        let shared = shared.fold(0.0, f64::max);
        let private = full.private_bytes_per_second;
        (too_fast > 0 && private > shared).then_some((bound, shared, private))
    }

    /// How colours and reservations combine, in a sentence; nothing that chance explains.
    #[must_use]
    pub fn verdict(&self) -> String {
        let who = self.attack.neighbours(self.neighbours);
        let head = format!("{} banks, {who}:", self.banks);
        let worse = |point: &&Point| point.saved.shown_less;
        if let Some(point) = self.points.iter().find(worse) {
            return format!(
                "{head} at a pace of {:.0} MB/s private banks are worse: {:.2} times as long, {:.2} with \
                 shared ones.",
                point.private_bytes_per_second / 1e6,
                point.private.median,
                point.shared.median
            );
        }
        let Some((bound, shared, private)) = self.given() else {
            return format!(
                "{head} that they may be faster in private banks for the same slowdown is not shown."
            );
        };
        let shared = match shared > 0.0 {
            true => format!("{:.0} MB/s", shared / 1e6),
            false => "less than was tried".to_owned(),
        };
        format!(
            "{head} for a slowdown of at most {bound:.2} co-runners may have {shared} with shared banks, \
             {:.0} MB/s with private ones.",
            private / 1e6
        )
    }
}

/// Measures the curve in a slice of `size` banks, beside as many neighbours as there are
/// processors; `None`: they hardly ran.
pub fn measure(
    cores: &mut dyn Cores,
    banks: &Banks,
    size: usize,
    attack: Attack,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Option<Paced> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let neighbours = cores.most_neighbours();
    let slice = banks.slice(size);
    let begun = Instant::now();
    // A round alone in all banks and in few, then two for each pause.
    let mut blocks: Vec<Vec<Round>> = Vec::new();
    let mut tried = 0;
    while blocks.len() < plan.blocks && tried < PATIENCE as usize * plan.blocks {
        let late = begun.elapsed();
        if late > PATIENCE * plan.time || (late > plan.time && blocks.len() >= LEAST_BLOCKS) {
            break;
        }
        tried += 1;
        blocks.extend(block(cores, banks, &slice, neighbours, attack, &mut rng));
        progress(blocks.len() as f64 / plan.blocks as f64);
    }
    if blocks.len() < LEAST_BLOCKS {
        return None;
    }
    let slowdown = |at: usize, alone: usize| {
        let ratios: Vec<f64> = blocks
            .iter()
            .map(|rounds| 1.0 + (rounds[at].ns - rounds[alone].ns) / rounds[0].ns)
            .collect();
        Interval::of_median(&ratios)
    };
    let rate = |at: usize| {
        let mut rates: Vec<f64> = blocks.iter().map(|rounds| rounds[at].rate).collect();
        median(&mut rates) * 1e6 * LINE
    };
    let difference = |of: &dyn Fn(&[Round]) -> f64| {
        let values: Vec<f64> = blocks.iter().map(|rounds| of(rounds)).collect();
        Difference::of(&values)
    };
    let points = PAUSES.iter().enumerate().map(|(i, &pause_ns)| Point {
        pause_ns,
        shared: slowdown(2 + 2 * i, 0),
        shared_bytes_per_second: rate(2 + 2 * i),
        private: slowdown(3 + 2 * i, 1),
        private_bytes_per_second: rate(3 + 2 * i),
        adds: difference(&|r| r[2 + 2 * i].ns - r[0].ns),
        saved: difference(&|r| (r[2 + 2 * i].ns - r[0].ns) - (r[3 + 2 * i].ns - r[1].ns)),
    });
    let mut points: Vec<Point> = points.collect();
    let all = points.iter_mut();
    let all = all.flat_map(|point| [&mut point.adds, &mut point.saved]);
    judge(all.collect(), Vec::new(), CHANCE / CURVES);
    Some(Paced {
        banks: size,
        neighbours,
        attack,
        points,
        blocks: blocks.len(),
    })
}

/// Every condition once, in random order.
fn block(
    cores: &mut dyn Cores,
    banks: &Banks,
    slice: &[usize],
    neighbours: usize,
    attack: Attack,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<Round>> {
    let (own, others) = Banks::split(slice, rng);
    let count = 2 + 2 * PAUSES.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(rng);
    let mut rounds: Vec<Option<Round>> = vec![None; count];
    let owners = neighbours + 1;
    for i in order {
        let (victim, theirs): (&[usize], &[usize]) = match i % 2 {
            0 => (slice, slice),
            _ => (&own, &others),
        };
        let lines = banks.draw(victim, Owner { number: 0, owners }, VICTIM_LINES, rng);
        if i < 2 {
            rounds[i] = Some(cores.round(&lines, None)?);
            continue;
        }
        let theirs: Vec<Vec<u64>> = (1..owners)
            .map(|number| banks.draw(theirs, Owner { number, owners }, NEIGHBOUR_LINES, rng))
            .collect();
        let company = Company {
            attack,
            lines: &theirs,
            pause_ns: PAUSES[i / 2 - 1],
        };
        rounds[i] = Some(cores.round(&lines, Some(&company))?);
    }
    rounds.into_iter().collect()
}
