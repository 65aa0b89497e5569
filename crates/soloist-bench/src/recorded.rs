//! A recorded program on real memory: what neighbours cost it, by the policy that placed
//! the pages.
//!
//! A block plays a piece of the program, drawn at random, alone and beside its neighbours
//! under each policy, in random order. It also draws which banks of the slice stand for
//! which of the policies', so that what makes some banks slower is no effect. A slowdown is
//! the time beside over the time alone of the same chunks of that piece under the same
//! policy. Signed ranks judge all differences together, as in [`crate::slices`].

use std::time::Instant;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use soloist_core::statistics::{median, ranked_quantile};

use crate::banks::{Banks, Owner};
use crate::cores::moves::{Kind, Move, Played, CHUNK, FARTHEST};
use crate::cores::Cores;
use crate::slices::{Plan, LEAST_BLOCKS, LINE, PATIENCE};
use crate::statistics::difference::{judge, Difference};
use crate::statistics::Interval;
use crate::two_banks::CHANCE;

/// Moves of a block, and of each neighbour until it repeats.
const PIECE: usize = 16_384;
const BESIDE: usize = 2 * PIECE;
/// A play of which less counts says nothing.
const LEAST_SHARE: f64 = 0.5;

/// One access of a program that a policy has placed; as [`Move`], but for its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Bank, from 0 to those of the slice.
    pub bank: u16,
    /// Line in the bank; behind the last of them it begins anew.
    pub index: u32,
    /// What happens to it.
    pub kind: Kind,
    /// How many accesses back the one is that must be done before it; 0: none.
    pub waits: u8,
    /// Time that the program computes before it, ps.
    pub gap_ps: u32,
}

/// A policy: what the program and its neighbours do, in the banks that it gives them.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The policy's name.
    pub name: String,
    /// The program, then its neighbours.
    pub programs: Vec<Vec<Access>>,
}

/// What came of a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The policy's name.
    pub placement: String,
    /// ns of a line alone: median over blocks, what is computed included.
    pub alone_ns: f64,
    /// The same beside the neighbours.
    pub beside_ns: f64,
    /// Time beside over time alone: median over blocks, and between what it lies in 99 of
    /// 100 cases.
    pub slowdown: Interval,
    /// The program's time beside over its time alone under the first policy: lines that a
    /// cache no longer has count, too. `None`: too few blocks of the first count.
    pub slowdown_to_first: Option<f64>,
    /// What neighbours add to a line, ns.
    pub adds: Difference,
    /// What the policy saves of that against the first one, ns of each line that the program
    /// asks memory for under the first; `None` of the first.
    pub saves: Option<Difference>,
    /// The program's time beside over its time beside under the first policy: what the
    /// policy gains or costs in all; `None` of the first.
    pub in_all: Option<Interval>,
    /// Its time alone under the first policy, ns of a line there.
    #[serde(skip)]
    first_alone_ns: f64,
    /// 99 of 100 single reads took at most this, alone, ns.
    pub p99_alone_ns: f64,
    /// The same beside the neighbours.
    pub p99_beside_ns: f64,
    /// Bytes a second of all neighbours.
    pub neighbours_bytes_per_second: f64,
    /// Blocks that count.
    pub blocks: usize,
}

impl Row {
    /// What the figures say, in a sentence; nothing that chance explains.
    #[must_use]
    pub fn verdict(&self) -> String {
        let costs = match self.adds.shown {
            true => format!(
                "{:.2} times as long beside the co-runners",
                self.slowdown.median
            ),
            false => format!(
                "nothing is shown; if the co-runners cost anything, it is less than {:.1} % (99 %)",
                100.0 * (self.slowdown.high - 1.0).max(0.0)
            ),
        };
        let share = |ns: f64| 100.0 * ns.max(0.0) / self.first_alone_ns;
        let saves = match self.saves {
            None => String::new(),
            Some(saves) if saves.shown => format!(
                "; it keeps off what co-runners add, {:.1} % of the time alone",
                share(saves.ns.median)
            ),
            Some(saves) if saves.shown_less => format!(
                "; co-runners add {:.1} % of the time alone more than under the first",
                share(-saves.ns.median)
            ),
            Some(saves) => format!(
                "; that it keeps anything off is not shown (at most {:.1} % of the time alone)",
                share(saves.ns.high)
            ),
        };
        format!("{}: {costs}{saves}{}.", self.placement, self.in_all())
    }

    /// What the policy gains or costs, its banks counted.
    fn in_all(&self) -> String {
        let Some(Interval { median, low, high }) = self.in_all else {
            return String::new();
        };
        let what = match (high < 1.0, low > 1.0) {
            (true, _) => "shorter",
            (_, true) => "longer",
            _ => "neither longer nor shorter by more than chance",
        };
        format!(
            "; in all the program takes {median:.3} times as long as under the first ({low:.3} to {high:.3}): {what}"
        )
    }
}

/// Plays of one policy.
#[derive(Default)]
struct Taken {
    /// Block by block, ns of a line alone and beside, and the neighbours' rate; `None`: it
    /// does not count.
    blocks: Vec<Option<[f64; 3]>>,
    singles: [Vec<f32>; 2],
}

/// Moves that a program needs for a piece.
pub const LEAST_MOVES: usize = CHUNK;

/// Plays all policies on a slice of so many banks, block by block. A policy of which too few
/// blocks count is left out: a neighbour hardly ran.
pub fn measure(
    cores: &mut dyn Cores,
    banks: &Banks,
    size: usize,
    policies: &[Placed],
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Vec<Row> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut taken: Vec<Taken> = policies.iter().map(|_| Taken::default()).collect();
    let owners = policies
        .iter()
        .map(|one| one.programs.len())
        .max()
        .unwrap_or(1);
    let lines: Vec<Vec<Vec<u64>>> = (0..owners)
        .map(|number| {
            let share = |bank| banks.share(bank, Owner { number, owners });
            banks.slice(size).into_iter().map(share).collect()
        })
        .collect();
    let begun = Instant::now();
    for turn in 0..PATIENCE as usize * plan.blocks {
        let least = taken.iter().map(Taken::counted).min().unwrap_or(0);
        let late = begun.elapsed();
        let out_of_time = late > plan.time && least >= LEAST_BLOCKS;
        if least >= plan.blocks || out_of_time || late > PATIENCE * plan.time {
            break;
        }
        block(cores, &lines, policies, &mut taken, &mut rng);
        let by_time = late.as_secs_f64() / plan.time.as_secs_f64().max(1e-9);
        progress((turn as f64 / plan.blocks as f64).max(by_time).min(1.0));
    }
    let rows = policies.iter().zip(&mut taken);
    let rows: Vec<Option<Row>> = rows.map(|(policy, taken)| row(policy, taken)).collect();
    judged(compared(rows, &taken, &weights(policies)))
}

/// Lines that the program asks memory for under each policy, over those under the first.
fn weights(policies: &[Placed]) -> Vec<f64> {
    let lines = |placed: &Placed| placed.programs.first().map_or(1, Vec::len).max(1) as f64;
    let first = policies.first().map_or(1.0, lines);
    policies.iter().map(|one| lines(one) / first).collect()
}

/// Every policy alone and beside, in random order, of the same piece of the program.
fn block(
    cores: &mut dyn Cores,
    lines: &[Vec<Vec<u64>>],
    policies: &[Placed],
    taken: &mut [Taken],
    rng: &mut ChaCha8Rng,
) {
    let (place, others): (f64, f64) = (rng.gen(), rng.gen());
    let mut stands_for: Vec<usize> = (0..lines[0].len()).collect();
    stands_for.shuffle(rng);
    let mut order: Vec<(usize, bool)> = (0..policies.len())
        .flat_map(|policy| [(policy, false), (policy, true)])
        .collect();
    order.shuffle(rng);
    let mut played: Vec<[Option<Played>; 2]> = policies.iter().map(|_| [None, None]).collect();
    for (at, has_company) in order {
        let programs = policies[at].programs.iter().zip(lines).enumerate();
        let mut pieces = programs.map(|(owner, (program, lines))| {
            let (place, count) = if owner == 0 {
                (place, PIECE)
            } else {
                (others, BESIDE)
            };
            piece(program, place, count, lines, &stands_for)
        });
        let own = pieces.next().unwrap_or_default();
        let beside: Vec<Vec<Move>> = if has_company {
            pieces.collect()
        } else {
            Vec::new()
        };
        played[at][usize::from(has_company)] = cores.play(&own, &beside);
    }
    for (taken, played) in taken.iter_mut().zip(played) {
        let both = match played {
            [Some(alone), Some(beside)] => taken.take(alone, beside),
            _ => None,
        };
        taken.blocks.push(both);
    }
}

/// So many moves from a place on, 0 to 1, in whole chunks; at the end it goes on at the
/// start. What waits for a move before the piece waits for nothing.
fn piece(
    program: &[Access],
    place: f64,
    count: usize,
    lines: &[Vec<u64>],
    stands_for: &[usize],
) -> Vec<Move> {
    let from = ((program.len() as f64 * place) as usize).min(program.len());
    let count = count.min(program.len()) / CHUNK * CHUNK;
    let around = program[from..].iter().chain(&program[..from]);
    let mut taken: Vec<Move> = around
        .take(count)
        .map(|access| {
            let own = &lines[stands_for[usize::from(access.bank) % stands_for.len()]];
            Move {
                line: own[access.index as usize % own.len()],
                kind: access.kind,
                waits: access.waits,
                gap_ps: access.gap_ps,
            }
        })
        .collect();
    for (at, one) in taken.iter_mut().enumerate().take(FARTHEST.into()) {
        if usize::from(one.waits) > at {
            one.waits = 0;
        }
    }
    taken
}

impl Taken {
    fn counted(&self) -> usize {
        self.blocks.iter().flatten().count()
    }

    /// Takes the chunks that count in both plays; `None`: too few do.
    fn take(&mut self, alone: Played, beside: Played) -> Option<[f64; 3]> {
        let chunks = alone.chunks.iter().zip(&beside.chunks);
        let both: Vec<(f64, f64)> = chunks.filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
        if (both.len() as f64) < LEAST_SHARE * alone.chunks.len() as f64 || both.is_empty() {
            return None;
        }
        let lines = (both.len() * CHUNK) as f64;
        let sum = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / lines;
        self.singles[0].extend(alone.singles);
        self.singles[1].extend(beside.singles);
        Some([sum(|both| both.0), sum(|both| both.1), beside.rate])
    }
}

/// `None`: too few blocks count.
fn row(policy: &Placed, taken: &mut Taken) -> Option<Row> {
    let blocks: Vec<[f64; 3]> = taken.blocks.iter().flatten().copied().collect();
    if blocks.len() < LEAST_BLOCKS {
        return None;
    }
    let all = |of: fn(&[f64; 3]) -> f64| blocks.iter().map(of).collect::<Vec<f64>>();
    let [alone, beside] = &mut taken.singles;
    Some(Row {
        placement: policy.name.clone(),
        alone_ns: median(&mut all(|block| block[0])),
        beside_ns: median(&mut all(|block| block[1])),
        slowdown: Interval::of_median(&all(|block| block[1] / block[0])),
        slowdown_to_first: None,
        adds: Difference::of(&all(|block| block[1] - block[0])),
        saves: None,
        in_all: None,
        first_alone_ns: 0.0,
        p99_alone_ns: ranked_quantile(alone, 0.99),
        p99_beside_ns: ranked_quantile(beside, 0.99),
        neighbours_bytes_per_second: median(&mut all(|block| block[2])) * 1e6 * LINE,
        blocks: blocks.len(),
    })
}

/// A block under the first policy and under another, as in [`Taken`].
struct Both {
    first: [f64; 3],
    own: [f64; 3],
}

/// Compares each policy with the first, by blocks that count for both; a line weighs as many
/// as the program has in its place under the first.
fn compared(rows: Vec<Option<Row>>, taken: &[Taken], weights: &[f64]) -> Vec<Row> {
    let Some(first) = taken.first() else {
        return Vec::new();
    };
    let first_alone_ns = median(
        &mut first
            .blocks
            .iter()
            .flatten()
            .map(|one| one[0])
            .collect::<Vec<_>>(),
    );
    let first_counts = first.counted() >= LEAST_BLOCKS;
    let both = rows.into_iter().zip(taken).zip(weights).enumerate();
    let rows = both.filter_map(|(at, ((row, taken), weight))| {
        let both: Vec<Both> = first
            .blocks
            .iter()
            .zip(&taken.blocks)
            .filter_map(|(first, own)| {
                Some(Both {
                    first: (*first)?,
                    own: (*own)?,
                })
            })
            .collect();
        let compares = at > 0 && both.len() >= LEAST_BLOCKS;
        let of = |each: &dyn Fn(&Both) -> f64| both.iter().map(each).collect::<Vec<f64>>();
        let saved = of(&|Both { first, own }| first[1] - first[0] - weight * (own[1] - own[0]));
        let in_all = of(&|Both { first, own }| weight * own[1] / first[1]);
        row.map(|row| Row {
            saves: compares.then(|| Difference::of(&saved)),
            in_all: compares.then(|| Interval::of_median(&in_all)),
            slowdown_to_first: first_counts.then(|| weight * row.beside_ns / first_alone_ns),
            first_alone_ns,
            ..row
        })
    });
    rows.collect()
}

/// Says which differences are more than chance, over all rows together.
fn judged(mut rows: Vec<Row>) -> Vec<Row> {
    let differences = rows.iter_mut();
    let differences =
        differences.flat_map(|row| std::iter::once(&mut row.adds).chain(&mut row.saves));
    judge(differences.collect(), Vec::new(), CHANCE);
    rows
}
