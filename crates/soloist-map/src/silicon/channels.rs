//! Another channel: what it adds to private banks.
//!
//! Which functions choose the channel is known where all processors at once read half of the
//! lines half as fast ([`Banks::channel`]). Those are tried; where there are none, each bank
//! function, and sums of them (functions are known up to sums). The victim has a few banks on one side of it; neighbours have as many other banks on
//! the same side, or on the other. Banks are private both times. Where the function
//! chooses the channel, neighbours on the other side share no bus and no queue with the
//! victim, and cost less.

use std::time::Instant;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;
use soloist_machine::gf2::{self, Basis};

use super::banks::{Banks, How, Owner};
use super::difference::{at_most, judge, Difference};
use super::slices::{Plan, LEAST_BLOCKS, NEIGHBOUR_LINES, PATIENCE, VICTIM_LINES};
use super::two_banks::CHANCE;
use super::{Attack, Company, Cores};

/// Functions of which all sums are tried.
const FEW_FUNCTIONS: usize = 5;
/// Banks of the victim, and of the neighbours.
const FEW: usize = 4;

/// What neighbours on the other side of one function save.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Side {
    /// The function, as bits of the address.
    pub function: String,
    /// What an access takes less.
    pub saved: Difference,
}

impl Side {
    /// Whether lines of one page of so many bytes lie on both sides.
    #[must_use]
    pub fn is_inside(&self, page_bytes: u64) -> bool {
        let bits = self.function.split('^').map(str::trim);
        let mut bits = bits.filter_map(|bit| bit.parse::<u32>().ok());
        bits.any(|bit| 1u64.checked_shl(bit).is_some_and(|bit| bit < page_bytes))
    }
}

/// All functions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Channels {
    /// Neighbours, which read.
    pub neighbours: usize,
    /// ns of an access alone.
    pub alone_ns: f64,
    /// By function.
    pub sides: Vec<Side>,
    /// Functions that choose the channel, by what all processors read at once.
    #[serde(default)]
    pub by_throughput: Vec<String>,
    /// Why nobody knows whether there are any; `None`: that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_why: Option<String>,
}

impl Channels {
    /// What was seen, in a sentence or two.
    #[must_use]
    pub fn verdict(&self) -> String {
        let costs = self.costs();
        if let Some(why) = &self.throughput_why {
            return format!("{costs} Which function chooses the channel is not known: {why}.");
        }
        match self.by_throughput.as_slice() {
            [] => format!(
                "{costs} No function is seen to halve what all CPUs read at once: there is one channel, or \
                 too few CPUs or banks to fill half of the channels."
            ),
            functions => format!(
                "The channel is chosen by {}: half of the lines take twice as long when all CPUs read at \
                 once. {costs}",
                functions.join(", ")
            ),
        }
    }

    /// What neighbours on the other side cost less or more.
    fn costs(&self) -> String {
        let seen = |is_seen: &dyn Fn(&Difference) -> bool| -> Option<String> {
            let sides = self.sides.iter().filter(|side| is_seen(&side.saved));
            let percent = |side: &Side| 100.0 * side.saved.ns.median.abs() / self.alone_ns;
            let sides = sides.map(|side| format!("{} ({:.1} %)", side.function, percent(side)));
            let sides: Vec<String> = sides.collect();
            (!sides.is_empty()).then(|| sides.join(", "))
        };
        let less = seen(&|saved| saved.shown).map(|sides| format!("{sides} cost less"));
        let more = seen(&|saved| saved.shown_less).map(|sides| format!("{sides} cost more"));
        let who = Attack::Read.neighbours(self.neighbours);
        let seen: Vec<String> = less.into_iter().chain(more).collect();
        if !seen.is_empty() {
            return format!(
                "Another channel: beside {who} in private banks, co-runners on the other side of {} \
                 (share of an access alone).",
                seen.join(", of ")
            );
        }
        let most = self.sides.iter().map(|side| side.saved.ns.high);
        format!(
            "Another channel: beside {who} no function is shown to save anything; beyond private banks it \
             would be {} of an access alone (99 %).",
            at_most(most.fold(0.0, f64::max) / self.alone_ns)
        )
    }
}

/// Tries them all; `None`: there are no functions, or neighbours hardly ran.
pub fn measure(
    cores: &mut dyn Cores,
    banks: &Banks,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Option<Channels> {
    let How::Functions(functions) = &banks.how else {
        return None;
    };
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let neighbours = cores.most_neighbours();
    let begun = Instant::now();
    let sums = match of_channel(functions, &banks.channel) {
        none if none.is_empty() => sums(functions.len()),
        of_channel => of_channel,
    };
    let mut saved: Vec<Vec<f64>> = vec![Vec::new(); sums.len()];
    let mut alone: Vec<f64> = Vec::new();
    for turn in 0..PATIENCE as usize * plan.blocks {
        let least = saved.iter().map(Vec::len).min()?;
        let late = begun.elapsed();
        let enough = least >= plan.blocks || (late > plan.time && least >= LEAST_BLOCKS);
        if enough || late > PATIENCE * plan.time {
            break;
        }
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.shuffle(&mut rng);
        for of in order {
            if let Some([ns, near, far]) = block(cores, banks, sums[of], neighbours, &mut rng) {
                saved[of].push(near - far);
                alone.push(ns);
            }
        }
        progress((turn + 1) as f64 / plan.blocks as f64);
    }
    if saved.iter().any(|one| one.len() < LEAST_BLOCKS) {
        return None;
    }
    let sides = sums.iter().zip(&saved).map(|(&sum, saved)| Side {
        function: gf2::show(mask(functions, sum)),
        saved: Difference::of(saved),
    });
    let mut sides: Vec<Side> = sides.collect();
    let all = sides.iter_mut().map(|side| &mut side.saved);
    judge(all.collect(), Vec::new(), CHANCE);
    Some(Channels {
        neighbours,
        alone_ns: median(&mut alone),
        sides,
        by_throughput: banks.channel.iter().map(|&f| gf2::show(f)).collect(),
        throughput_why: banks.channel_why.clone(),
    })
}

/// The sums of `functions` that choose the channel: those that `channel` spans.
fn of_channel(functions: &[u64], channel: &[u64]) -> Vec<u64> {
    let known = Basis::of(channel.iter().copied());
    let chooses = |&sum: &u64| known.reduce(mask(functions, sum)) == 0;
    (1..1 << functions.len()).filter(chooses).collect()
}

/// The function that a sum of functions is, a bit of `sum` each.
fn mask(functions: &[u64], sum: u64) -> u64 {
    gf2::bits(sum).fold(0, |mask, i| mask ^ functions[i as usize])
}

/// Sums of functions that are tried, a bit a function: all where they are few, else each
/// function and each sum of two.
fn sums(functions: usize) -> Vec<u64> {
    if functions <= FEW_FUNCTIONS {
        return (1..1 << functions).collect();
    }
    let single = (0..functions).map(|i| 1 << i);
    let two = (0..functions).flat_map(|i| (0..i).map(move |j| 1 << i | 1 << j));
    single.chain(two).collect()
}

/// The victim alone, beside neighbours on its side, on the other.
fn block(
    cores: &mut dyn Cores,
    banks: &Banks,
    sum: u64,
    neighbours: usize,
    rng: &mut ChaCha8Rng,
) -> Option<[f64; 3]> {
    let mut sides = banks.apart(sum);
    if rng.gen() {
        sides.swap(0, 1);
    }
    let [mut here, mut there] = sides;
    here.shuffle(rng);
    there.shuffle(rng);
    let few = FEW.min(here.len() / 2);
    let (own, near, far) = (&here[..few], &here[few..2 * few], &there[..few]);
    let mut order = [0, 1, 2];
    order.shuffle(rng);
    let mut taken = [0.0; 3];
    let owners = neighbours + 1;
    for i in order {
        let lines = banks.draw(own, Owner { number: 0, owners }, VICTIM_LINES, rng);
        let theirs = [None, Some(near), Some(far)][i];
        let round = match theirs {
            None => cores.round(&lines, None)?,
            Some(theirs) => {
                let lines_of =
                    |number| banks.draw(theirs, Owner { number, owners }, NEIGHBOUR_LINES, rng);
                let theirs: Vec<Vec<u64>> = (1..owners).map(lines_of).collect();
                let company = Company {
                    attack: Attack::Read,
                    lines: &theirs,
                    pause_ns: 0,
                };
                cores.round(&lines, Some(&company))?
            }
        };
        taken[i] = round.ns;
    }
    Some(taken)
}
