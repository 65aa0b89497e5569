//! Another channel: what it adds to private banks.
//!
//! Which functions choose the channel is known where all processors at once read half of the
//! lines half as fast ([`Banks::channel`]). Those are tried beside readers and beside writers.
//! Where there are none, each bank function is, and sums of them (functions are known up to
//! sums), beside readers alone: they are many. The victim has a few banks on one side of the
//! function; neighbours have as many other banks on the same side, or on the other. Banks are
//! private both times. Where the function chooses the channel, neighbours on the other side
//! share no bus and no queue with the victim, and cost less.

use std::time::Instant;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;
use soloist_machine::gf2::{self, Basis};

use crate::banks::{Banks, How, Owner};
use crate::cores::{Attack, Company, Cores, Round};
use crate::slices::{
    figures, Figures, Plan, LEAST_BLOCKS, NEIGHBOUR_LINES, PATIENCE, VICTIM_LINES,
};
use crate::statistics::difference::{at_most, judge, Difference, Loss};
use crate::two_banks::CHANCE;

/// Functions of which all sums are tried.
const FEW_FUNCTIONS: usize = 5;
/// Banks of the victim, and of the neighbours.
const FEW: usize = 4;

/// What neighbours on the other side of one function save.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Side {
    /// The function, as bits of the address.
    pub function: String,
    /// What the neighbours do.
    #[serde(default = "read")]
    pub attack: Attack,
    /// The victim beside neighbours on its side.
    #[serde(default)]
    pub near: Figures,
    /// Beside those on the other side.
    #[serde(default)]
    pub far: Figures,
    /// What an access takes less.
    pub saved: Difference,
    /// By which share neighbours on the other side are slower.
    #[serde(default)]
    pub neighbours_lose: Loss,
}

/// Of a file that says nothing of attacks.
fn read() -> Attack {
    Attack::Read
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
    /// Neighbours.
    pub neighbours: usize,
    /// ns of an access alone.
    pub alone_ns: f64,
    /// By function and attack.
    pub sides: Vec<Side>,
    /// Functions that choose the channel, by what all processors read at once.
    #[serde(default)]
    pub by_throughput: Vec<String>,
    /// Why nobody knows whether there are any; `None`: that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_why: Option<String>,
}

impl Channels {
    /// What a table shows: all of the functions that choose the channel; where they are not known,
    /// what is shown.
    pub fn told(&self) -> impl Iterator<Item = &Side> {
        let are_known = self.are_known();
        let is_told = move |side: &&Side| are_known || side.saved.shown || side.saved.shown_less;
        self.sides.iter().filter(is_told)
    }

    /// Whether it is known which functions choose the channel. If not, sides are of functions that
    /// may choose a rank or a group of banks as well.
    #[must_use]
    pub fn are_known(&self) -> bool {
        !self.by_throughput.is_empty()
    }

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

    /// What neighbours on the other side cost less or more, a sentence for each attack.
    fn costs(&self) -> String {
        let of = |attack| {
            let sides = self.sides.iter().filter(|side| side.attack == attack);
            let sides: Vec<&Side> = sides.collect();
            (!sides.is_empty()).then(|| self.costs_of(attack, &sides))
        };
        let all: Vec<String> = [Attack::Read, Attack::Write]
            .into_iter()
            .filter_map(of)
            .collect();
        all.join(" ")
    }

    /// What neighbours that do `attack` cost less or more on these other sides.
    fn costs_of(&self, attack: Attack, sides: &[&Side]) -> String {
        let what = match self.are_known() {
            true => "Another channel",
            false => "Another channel, rank or group of banks",
        };
        let seen = |is_seen: &dyn Fn(&Difference) -> bool| -> Option<String> {
            let sides = sides.iter().filter(|side| is_seen(&side.saved));
            let percent = |side: &Side| 100.0 * side.saved.ns.median.abs() / self.alone_ns;
            let says = |side: &&Side| {
                let lose = side.neighbours_lose.says();
                format!("{} ({:.1} %{lose})", side.function, percent(side))
            };
            let sides: Vec<String> = sides.map(says).collect();
            (!sides.is_empty()).then(|| sides.join(", "))
        };
        let less = seen(&|saved| saved.shown).map(|sides| format!("{sides} cost less"));
        let more = seen(&|saved| saved.shown_less).map(|sides| format!("{sides} cost more"));
        let who = attack.neighbours(self.neighbours);
        let seen: Vec<String> = less.into_iter().chain(more).collect();
        if !seen.is_empty() {
            return format!(
                "{what}, {who} in private banks: those on the other side of {} (share of an access alone).",
                seen.join(", of ")
            );
        }
        let most = sides.iter().map(|side| side.saved.ns.high);
        format!(
            "{what}, {who}: no function is shown to save anything; beyond private banks it would be {} of \
             an access alone (99 %).",
            at_most(most.fold(0.0, f64::max) / self.alone_ns)
        )
    }
}

/// One function, and what the neighbours do; what was measured of it.
struct Taken {
    /// A sum of functions, a bit each.
    sum: u64,
    attack: Attack,
    blocks: Vec<[Round; 3]>,
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
    let mut taken = candidates(functions, &banks.channel);
    for turn in 0..PATIENCE as usize * plan.blocks {
        let least = taken.iter().map(|one| one.blocks.len()).min()?;
        let late = begun.elapsed();
        let enough = least >= plan.blocks || (late > plan.time && least >= LEAST_BLOCKS);
        if enough || late > PATIENCE * plan.time {
            break;
        }
        let mut order: Vec<usize> = (0..taken.len()).collect();
        order.shuffle(&mut rng);
        for at in order {
            let one = &mut taken[at];
            let rounds = block(cores, banks, one, neighbours, &mut rng);
            one.blocks.extend(rounds);
        }
        progress((turn + 1) as f64 / plan.blocks as f64);
    }
    if taken.iter().any(|one| one.blocks.len() < LEAST_BLOCKS) {
        return None;
    }
    let alone = taken.iter().flat_map(|one| &one.blocks);
    let mut alone: Vec<f64> = alone.map(|rounds| rounds[0].ns).collect();
    let mut sides: Vec<Side> = taken.iter().map(|one| side(one, functions)).collect();
    let both = sides.iter_mut();
    let both = both.map(|side| (&mut side.saved, &mut side.neighbours_lose));
    let (differences, losses) = both.unzip();
    judge(differences, losses, CHANCE);
    Some(Channels {
        neighbours,
        alone_ns: median(&mut alone),
        sides,
        by_throughput: banks.channel.iter().map(|&f| gf2::show(f)).collect(),
        throughput_why: banks.channel_why.clone(),
    })
}

/// The channel's functions beside readers and writers; where they are not known, all that may be
/// beside readers.
fn candidates(functions: &[u64], channel: &[u64]) -> Vec<Taken> {
    let known = of_channel(functions, channel);
    let (sums, attacks) = match known.is_empty() {
        true => (sums(functions.len()), &[Attack::Read][..]),
        false => (known, &[Attack::Read, Attack::Write][..]),
    };
    let of = |sum| {
        attacks.iter().map(move |&attack| Taken {
            sum,
            attack,
            blocks: Vec::new(),
        })
    };
    sums.into_iter().flat_map(of).collect()
}

fn side(taken: &Taken, functions: &[u64]) -> Side {
    let of = |at: usize| figures(taken.blocks.iter().map(move |rounds| &rounds[at]));
    let blocks = taken.blocks.iter();
    let saved: Vec<f64> = blocks
        .clone()
        .map(|[_, near, far]| near.ns - far.ns)
        .collect();
    Side {
        function: gf2::show(mask(functions, taken.sum)),
        attack: taken.attack,
        near: of(1),
        far: of(2),
        saved: Difference::of(&saved),
        neighbours_lose: Loss::of(blocks.map(|[_, near, far]| (near.rate, far.rate))),
    }
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
    of: &Taken,
    neighbours: usize,
    rng: &mut ChaCha8Rng,
) -> Option<[Round; 3]> {
    let mut sides = banks.apart(of.sum);
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
    let mut rounds = [None, None, None];
    let owners = neighbours + 1;
    for i in order {
        let lines = banks.draw(own, Owner { number: 0, owners }, VICTIM_LINES, rng);
        let theirs = [None, Some(near), Some(far)][i];
        rounds[i] = Some(match theirs {
            None => cores.round(&lines, None)?,
            Some(theirs) => {
                let lines_of =
                    |number| banks.draw(theirs, Owner { number, owners }, NEIGHBOUR_LINES, rng);
                let theirs: Vec<Vec<u64>> = (1..owners).map(lines_of).collect();
                let company = Company {
                    attack: of.attack,
                    lines: &theirs,
                    pause_ns: 0,
                };
                cores.round(&lines, Some(&company))?
            }
        });
    }
    let [alone, near, far] = rounds;
    Some([alone?, near?, far?])
}
