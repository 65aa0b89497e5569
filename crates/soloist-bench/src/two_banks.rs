//! Does a neighbour in the same bank cost more than one in another?
//!
//! The core experiment: a victim in one bank, a neighbour in the same bank or in the
//! other, both ways round. What is judged is the *interaction*:
//! (A beside A) + (B beside B) - (A beside B) - (B beside A). What makes one bank
//! or one set of lines slower, or a neighbour faster, drops out of it.

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use soloist_core::statistics::median;

use crate::banks::sets::{Bank, Sets};
use crate::cores::{Attack, Company, Cores, Round};
use crate::statistics::difference::{judge, Difference};
use crate::statistics::Interval;

/// An effect is shown if luck gives one as large less often than this, over all
/// attacks together.
pub const CHANCE: f64 = 0.01;
/// Blocks that are begun for one that counts, at most.
const TRIES: usize = 4;

/// The attacks.
pub const ATTACKS: [Attack; 2] = [Attack::Read, Attack::Write];

/// How often.
#[derive(Debug, Clone, Copy)]
pub struct Design {
    /// Blocks: each has every condition once.
    pub blocks: usize,
    /// Seed of orders and of the bootstrap.
    pub seed: u64,
}

/// What one attack costs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// What the neighbour did.
    pub attack: Attack,
    /// Median ns of an access beside it in the same bank.
    pub same_ns: f64,
    /// The same in the other bank.
    pub other_ns: f64,
    /// Accesses of the neighbour in a microsecond, in the same bank.
    pub same_rate: f64,
    /// In the other bank.
    pub other_rate: f64,
    /// What the same bank adds to an access, ns: median over blocks, and
    /// between what it lies in 99 of 100 cases.
    pub added_ns: Interval,
    /// Chance that luck alone adds as much.
    pub chance: f64,
    /// Whether that is an effect.
    pub shown: bool,
    /// Whether the same bank is shown to make an access shorter.
    pub shown_less: bool,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Median ns of an access alone.
    pub alone_ns: f64,
    /// By attack.
    pub costs: Vec<Cost>,
    /// Blocks that count.
    pub blocks: usize,
    /// Blocks in which the neighbour hardly ran.
    pub dropped: usize,
}

impl Measured {
    /// Whether any attack shows banks.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.costs.iter().any(|cost| cost.shown)
    }
}

/// The neighbour did not run beside the victim often enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("in {dropped} of {tried} blocks the co-runner hardly ran beside the victim: other tasks use the CPUs")]
pub struct NotBeside {
    /// Blocks in which it didn't.
    pub dropped: usize,
    /// Blocks that were begun.
    pub tried: usize,
}

/// A condition of a block: whose lines the victim has, and its neighbour.
#[derive(Clone, Copy)]
struct Condition {
    victim: usize,
    neighbour: Option<(usize, usize)>,
}

/// Measures the victim in each bank: alone, beside each attack in each bank.
///
/// # Errors
/// When the two hardly ever ran at the same time.
pub fn measure(
    cores: &mut dyn Cores,
    sets: &Sets,
    design: Design,
    progress: &mut dyn FnMut(f64),
) -> Result<Measured, NotBeside> {
    let mut rng = ChaCha8Rng::seed_from_u64(design.seed);
    let conditions: Vec<Condition> = (0..2)
        .flat_map(|victim| {
            let beside = (0..ATTACKS.len()).flat_map(|attack| [(attack, 0), (attack, 1)]);
            std::iter::once(None)
                .chain(beside.map(Some))
                .map(move |neighbour| Condition { victim, neighbour })
        })
        .collect();
    // One entry a block in each.
    let mut blocks: Vec<Vec<Round>> = Vec::new();
    let mut dropped = 0;
    while blocks.len() < design.blocks {
        if blocks.len() + dropped >= TRIES * design.blocks {
            return Err(NotBeside {
                dropped,
                tried: blocks.len() + dropped,
            });
        }
        match block(cores, &sets.banks, &conditions, &mut rng) {
            Some(rounds) => blocks.push(rounds),
            None => dropped += 1,
        }
        progress(blocks.len() as f64 / design.blocks as f64);
    }
    let median_of = |wanted: &dyn Fn(&Condition) -> bool, value: &dyn Fn(&Round) -> f64| {
        let all = blocks.iter().flat_map(|rounds| {
            let kept = rounds.iter().zip(&conditions);
            kept.filter(|(_, c)| wanted(c)).map(|(r, _)| value(r))
        });
        median(&mut all.collect::<Vec<f64>>())
    };
    let ns = |round: &Round| round.ns;
    let rate = |round: &Round| round.rate;
    let added = |attack: usize| -> Vec<f64> {
        let same = |c: &Condition| c.neighbour == Some((attack, c.victim));
        let other = |c: &Condition| c.neighbour == Some((attack, 1 - c.victim));
        let sum = |rounds: &[Round], wanted: &dyn Fn(&Condition) -> bool| -> f64 {
            let kept = rounds.iter().zip(&conditions);
            kept.filter(|(_, c)| wanted(c)).map(|(r, _)| r.ns).sum()
        };
        let added = |rounds: &Vec<Round>| (sum(rounds, &same) - sum(rounds, &other)) / 2.0;
        blocks.iter().map(added).collect()
    };
    let mut differences: [Difference; ATTACKS.len()] =
        std::array::from_fn(|attack| Difference::of(&added(attack)));
    judge(differences.iter_mut().collect(), Vec::new(), CHANCE);
    let costs = ATTACKS.iter().enumerate().map(|(attack, &name)| {
        let same = |c: &Condition| c.neighbour == Some((attack, c.victim));
        let other = |c: &Condition| c.neighbour == Some((attack, 1 - c.victim));
        let added = differences[attack];
        Cost {
            attack: name,
            same_ns: median_of(&same, &ns),
            other_ns: median_of(&other, &ns),
            same_rate: median_of(&same, &rate),
            other_rate: median_of(&other, &rate),
            added_ns: added.ns,
            chance: added.chance,
            shown: added.shown,
            shown_less: added.shown_less,
        }
    });
    let costs = costs.collect();
    Ok(Measured {
        alone_ns: median_of(&|c: &Condition| c.neighbour.is_none(), &ns),
        costs,
        blocks: blocks.len(),
        dropped,
    })
}

/// Every condition once, in random order; `None`: a neighbour did not run.
fn block(
    cores: &mut dyn Cores,
    banks: &[Bank; 2],
    conditions: &[Condition],
    rng: &mut ChaCha8Rng,
) -> Option<Vec<Round>> {
    let mut order: Vec<usize> = (0..conditions.len()).collect();
    order.shuffle(rng);
    let mut rounds = vec![None; conditions.len()];
    for i in order {
        let Condition { victim, neighbour } = conditions[i];
        let own = &banks[victim].victim;
        let round = match neighbour {
            None => cores.round(own, None)?,
            Some((attack, bank)) => {
                let company = Company {
                    attack: ATTACKS[attack],
                    lines: std::slice::from_ref(&banks[bank].neighbour),
                    pause_ns: 0,
                };
                cores.round(own, Some(&company))?
            }
        };
        rounds[i] = Some(round);
    }
    rounds.into_iter().collect()
}
