//! All of memory, where no slice is of all banks: what neighbours add there bounds what
//! private banks could save.

use std::time::Instant;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::banks::{Banks, Owner};
use crate::cores::{Attack, Company, Cores, Round};
use crate::slices::{
    figures, Figures, Plan, LEAST_BLOCKS, NEIGHBOUR_LINES, PATIENCE, VICTIM_LINES,
};
use crate::statistics::difference::{at_most, judge, Difference};
use crate::two_banks::CHANCE;

/// What neighbours add in all of memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Whole {
    /// Neighbours.
    pub neighbours: usize,
    /// What they do.
    pub attack: Attack,
    /// The victim alone.
    pub alone: Figures,
    /// Beside them.
    pub shared: Figures,
    /// What they add.
    pub adds: Difference,
    /// Blocks that count.
    pub blocks: usize,
}

impl Whole {
    /// The most that private banks could save, as a share of an access alone.
    #[must_use]
    pub fn bound(&self) -> f64 {
        self.adds.ns.high.max(0.0) / self.alone.ns
    }

    /// What the figures say, in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let who = self.attack.neighbours(self.neighbours);
        let is_seen = self.adds.shown || self.adds.shown_less;
        let seen = match is_seen {
            true => format!(
                "{:.2} times as long",
                1.0 + self.adds.ns.median / self.alone.ns
            ),
            false => "nothing is shown".to_owned(),
        };
        format!(
            "All of memory, {who}: {seen}; private banks could save {} of an access alone (99 %).",
            at_most(self.bound())
        )
    }
}

/// Measures beside as many neighbours as there are processors, for each attack.
pub fn measure(
    cores: &mut dyn Cores,
    banks: &Banks,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Vec<Whole> {
    const ATTACKS: [Attack; 3] = [Attack::Read, Attack::Write, Attack::Both];
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let neighbours = cores.most_neighbours();
    if banks.anywhere.len() < 64 * (neighbours + 1) {
        return Vec::new();
    }
    let mut taken: [Vec<[Round; 2]>; 3] = Default::default();
    let begun = Instant::now();
    for turn in 0..PATIENCE as usize * plan.blocks {
        let least = taken.iter().map(Vec::len).min().unwrap_or(0);
        let late = begun.elapsed();
        let enough = least >= plan.blocks || (late > plan.time && least >= LEAST_BLOCKS);
        if enough || late > PATIENCE * plan.time {
            break;
        }
        let mut order = [0, 1, 2];
        order.shuffle(&mut rng);
        for i in order {
            taken[i].extend(block(cores, banks, neighbours, ATTACKS[i], &mut rng));
        }
        progress((turn + 1) as f64 / plan.blocks as f64);
    }
    let enough = ATTACKS.into_iter().zip(&taken);
    let enough = enough.filter(|(_, blocks)| blocks.len() >= LEAST_BLOCKS);
    let mut found: Vec<Whole> = enough
        .map(|(attack, blocks)| {
            let added: Vec<f64> = blocks
                .iter()
                .map(|[alone, shared]| shared.ns - alone.ns)
                .collect();
            Whole {
                neighbours,
                attack,
                alone: figures(blocks.iter().map(|rounds| &rounds[0])),
                shared: figures(blocks.iter().map(|rounds| &rounds[1])),
                adds: Difference::of(&added),
                blocks: blocks.len(),
            }
        })
        .collect();
    let all = found.iter_mut().map(|one| &mut one.adds);
    judge(all.collect(), Vec::new(), CHANCE);
    found
}

/// Alone and beside the neighbours, either first.
fn block(
    cores: &mut dyn Cores,
    banks: &Banks,
    neighbours: usize,
    attack: Attack,
    rng: &mut ChaCha8Rng,
) -> Option<[Round; 2]> {
    let owners = neighbours + 1;
    let lines = banks.draw_anywhere(Owner { number: 0, owners }, VICTIM_LINES, rng);
    let theirs: Vec<Vec<u64>> = (1..owners)
        .map(|number| banks.draw_anywhere(Owner { number, owners }, NEIGHBOUR_LINES, rng))
        .collect();
    let company = Company {
        attack,
        lines: &theirs,
        pause_ns: 0,
    };
    match rng.gen() {
        true => {
            let alone = cores.round(&lines, None)?;
            Some([alone, cores.round(&lines, Some(&company))?])
        }
        false => {
            let shared = cores.round(&lines, Some(&company))?;
            Some([cores.round(&lines, None)?, shared])
        }
    }
}
