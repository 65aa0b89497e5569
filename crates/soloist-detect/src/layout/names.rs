//! Which bank function is which: channel, rank, bank group.
//!
//! Pairs of lines are slow together for less than a row conflict too: in one
//! bank group, or in two ranks of one channel, which share a bus that must turn.
//! And a channel carries a line at a time. Differences of two lines, by the
//! values of the bank functions, are a space V over GF(2), and those that keep the
//! channel, the rank as well, the group as well are spaces in it: V > C > R > G.
//!
//! 1. *Channel.* Lines for which a function is 0 lie in half of the channels
//!    exactly if channel functions make it up, and several streams of them
//!    take twice as long; both where rows stay open (else it may be the rank, whose
//!    activates are limited) and where each line opens one (else it may be a group,
//!    whose reads are).
//! 2. *Rank and group.* Pairs of every difference in C are timed in turn. G is
//!    slower than the rest of R, and the rest of C is too.
//!
//! What was seen must be such spaces, exactly: noise never makes one. What has
//! no effect is not seen, and gets no name; and where ranks are not seen, a group
//! can't be told from a rank, so it gets none either.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand::Rng;
use serde::Serialize;
use soloist_core::statistics::mean;
use soloist_machine::gf2::{self, Basis};

use crate::meter::{Meter, Stop};
use crate::model::{Model, Wanted};

/// Functions at most: all their sums are tried.
const MOST_FUNCTIONS: usize = 10;
/// Lines of one row of each bank in a stream, and of any rows in all.
const IN_ROW: usize = 16;
const ANYWHERE: usize = 3072;
/// Choices of lines, and streams of the closer look.
const SETS: usize = 3;
const REPEATS: usize = 9;
/// Other functions that must not take so long.
const CONTROLS: usize = 24;
/// Half of the channels take twice as long: what may be taken for it.
const TWICE: std::ops::Range<f64> = 1.7..2.4;
/// The ratio from which on a first look is repeated.
const NOTABLE: f64 = 1.3;
/// Rounds over all differences, first and at most.
const ROUNDS: (usize, usize) = (32, 1024);
/// Samples that naming may take.
const SAMPLES: usize = 120_000;
/// Samples around one that say where the level is.
const NEAR: usize = 12;
/// Standard errors between two levels.
const APART: f64 = 5.0;
/// The greatest confidence that is told.
const MOST: f64 = 0.99;
/// Names that are less sure than this are not given.
pub const SURE: f64 = 0.95;

/// The bank functions that have one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Name {
    /// The functions, lightest first.
    #[serde(serialize_with = "show")]
    pub functions: Vec<u64>,
    /// Probability that they, and no others, are this.
    pub confidence: f64,
}

fn show<S: serde::Serializer>(functions: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(functions.iter().map(|&f| gf2::show(f)))
}

/// Names of bank functions; what is in none of them may be anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Names {
    /// Channel, sub-channels included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Name>,
    /// Rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<Name>,
    /// Bank group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Name>,
}

impl Names {
    /// Functions of a name that is sure.
    #[must_use]
    pub fn sure(name: &Option<Name>) -> &[u64] {
        let sure = name.as_ref().filter(|name| name.confidence >= SURE);
        sure.map_or(&[], |name| &name.functions)
    }

    /// A sentence for each, of those that are sure.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        let all = [
            ("channel", &self.channel),
            ("rank", &self.rank),
            ("bank group", &self.group),
        ];
        let say = |(kind, name): (&str, &Option<Name>)| {
            let name = name.as_ref().filter(|name| name.confidence >= SURE)?;
            let list: Vec<String> = name.functions.iter().map(|&f| gf2::show(f)).collect();
            let list = list.join(", ");
            Some(format!(
                "{kind}: {list} (confidence {:.2})",
                name.confidence
            ))
        };
        all.into_iter().filter_map(say).collect()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Finds the names.
///
/// # Errors
/// When the deadline has passed.
pub fn find(meter: &mut Meter<'_>, model: &Model) -> Result<Names, Stop> {
    let count = model.functions.len();
    if !(2..=MOST_FUNCTIONS).contains(&count) {
        return Ok(Names::default());
    }
    let (ann, sure) = match channels(meter, model)? {
        Seen::Space(ann, sure) => (ann, sure),
        Seen::NoStreams | Seen::Nothing => (Basis::new(), MOST),
    };
    let within = (1u64 << count) - 1;
    let channel_space = ann.nullspace(within);
    let mut names = Names {
        channel: name(model, &ann, &Basis::new(), sure),
        ..Names::default()
    };
    let Some((rank_space, group_space, apart)) = levels(meter, model, &channel_space)? else {
        return Ok(names);
    };
    let sure = sure.min(apart);
    let in_rank = rank_space.nullspace(within);
    names.rank = name(model, &in_rank, &ann, sure);
    if let Some(group_space) = group_space {
        names.group = name(model, &group_space.nullspace(within), &in_rank, sure);
    }
    Ok(names)
}

/// Why nobody knows which functions choose the channel.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NotLookedAt {
    /// All sums of the functions would be tried.
    #[error("of {0} functions there are too many sums to try")]
    Functions(usize),
    /// One processor, or lines that are not to be had.
    #[error("no streams of lines can be read at once")]
    NoStreams,
    /// It stopped.
    #[error("{0}")]
    Stop(#[from] Stop),
}

/// The functions that choose the channel, by what several streams read at once; `None`: none is
/// seen to.
///
/// # Errors
/// When nobody looked, and why.
pub fn channel(meter: &mut Meter<'_>, model: &Model) -> Result<Option<Name>, NotLookedAt> {
    match model.functions.len() {
        0 => return Ok(None),
        1..=MOST_FUNCTIONS => {}
        many => return Err(NotLookedAt::Functions(many)),
    }
    match channels(meter, model)? {
        Seen::NoStreams => Err(NotLookedAt::NoStreams),
        Seen::Nothing => Ok(None),
        Seen::Space(sums, sure) => Ok(name(model, &sums, &Basis::new(), sure)),
    }
}

/// A name for the sums of functions in `of` that are not in `known`.
fn name(model: &Model, of: &Basis, known: &Basis, confidence: f64) -> Option<Name> {
    let masks = |sums: &Basis| Basis::of(sums.rows().iter().map(|&sum| mask(model, sum)));
    let functions = masks(of).lightest_beside(&masks(known));
    (!functions.is_empty()).then_some(Name {
        functions,
        confidence,
    })
}

/// The function that a sum of bank functions is.
fn mask(model: &Model, sum: u64) -> u64 {
    gf2::bits(sum).fold(0, |mask, i| mask ^ model.functions[i as usize])
}

/// The outcome of a look for channels with streams.
enum Seen {
    /// There are none to be had.
    NoStreams,
    /// Nothing that is a space.
    Nothing,
    /// Sums of functions that choose channels, and how sure that is.
    Space(Basis, f64),
}

/// Looks which sums of functions choose channels.
fn channels(meter: &mut Meter<'_>, model: &Model) -> Result<Seen, Stop> {
    let count = model.functions.len();
    let Some(open) = Streams::new(meter, model, true)? else {
        return Ok(Seen::NoStreams);
    };
    let Some(closed) = Streams::new(meter, model, false)? else {
        return Ok(Seen::NoStreams);
    };
    let (mut chosen, mut others) = (Vec::new(), Vec::new());
    let mut least = f64::INFINITY;
    for sum in 1..1u64 << count {
        let Some((ratio, _)) = open.against(meter, sum, 1)? else {
            return Ok(Seen::NoStreams);
        };
        if ratio < NOTABLE {
            others.push(sum);
            continue;
        }
        let hits = open.against(meter, sum, REPEATS)?;
        let misses = closed.against(meter, sum, REPEATS)?;
        let (Some(hits), Some(misses)) = (hits, misses) else {
            return Ok(Seen::NoStreams);
        };
        if TWICE.contains(&hits.0) && TWICE.contains(&misses.0) {
            chosen.push(sum);
            for (ratio, error) in [hits, misses] {
                least = least.min((ratio / TWICE.start).ln() * ratio / error.max(1e-3));
            }
        }
    }
    if chosen.is_empty() || !is_space(&chosen) {
        return Ok(Seen::Nothing);
    }
    // Where banks are so few that half of them take twice as long to open
    // rows, a group may have passed for a channel.
    others.shuffle(&mut meter.rng);
    others.truncate(CONTROLS);
    let mut ratios = Vec::new();
    for sum in others {
        ratios.extend(closed.against(meter, sum, 1)?.map(|(ratio, _)| ratio));
    }
    ratios.sort_unstable_by(f64::total_cmp);
    if ratios
        .get(ratios.len() / 2)
        .is_some_and(|&ratio| ratio > NOTABLE)
    {
        return Ok(Seen::Nothing);
    }
    Ok(Seen::Space(Basis::of(chosen), certainty(least, 1 << count)))
}

/// Whether these, and 0, are closed under sums.
fn is_space(sums: &[u64]) -> bool {
    let basis = Basis::of(sums.iter().copied());
    sums.len() + 1 == 1 << basis.rank()
}

/// Probability that none of so many judgements is wrong that lie at least so
/// many standard errors from where they would be.
fn certainty(errors: f64, judgements: usize) -> f64 {
    let tail = 0.5 * (-errors * errors / 2.0).exp();
    (1.0 - tail * judgements as f64).clamp(0.0, MOST)
}

/// Lines of every bank, of one row each or from anywhere.
type Lines = Vec<(u64, Vec<u64>)>;

/// Streams of lines, and what they take where no function chooses them.
struct Streams {
    /// Some choices of lines, and the time of a line of each.
    sets: Vec<(Lines, f64)>,
}

impl Streams {
    /// `None`: not to be had.
    fn new(meter: &mut Meter<'_>, model: &Model, open: bool) -> Result<Option<Self>, Stop> {
        let mut sets = Vec::new();
        for _ in 0..SETS {
            let lines = lines(meter, model, open);
            let mut times = Vec::new();
            for _ in 0..REPEATS {
                match time(meter, &lines, 0)? {
                    Some(time) => times.push(time),
                    None => return Ok(None),
                }
            }
            times.sort_unstable_by(f64::total_cmp);
            sets.push((lines, times[REPEATS / 2]));
        }
        Ok(Some(Self { sets }))
    }

    /// How much longer a line takes where a sum of functions is 0, and the
    /// standard error of that.
    fn against(
        &self,
        meter: &mut Meter<'_>,
        sum: u64,
        repeats: usize,
    ) -> Result<Option<(f64, f64)>, Stop> {
        let mut ratios = Vec::with_capacity(repeats);
        for (lines, all) in self.sets.iter().cycle().take(repeats) {
            match time(meter, lines, sum)? {
                Some(time) => ratios.push(time / all),
                None => return Ok(None),
            }
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let spread = (ratios[repeats * 3 / 4] - ratios[repeats / 4]) / 1.35;
        let error = 1.25 * spread / (repeats as f64).sqrt();
        Ok(Some((ratios[repeats / 2], error)))
    }
}

/// Time of a line where a sum of functions is 0, banks in turn.
fn time(meter: &mut Meter<'_>, lines: &Lines, sum: u64) -> Result<Option<f64>, Stop> {
    let chosen: Vec<&Vec<u64>> = lines
        .iter()
        .filter(|(bank, _)| gf2::parity(sum, *bank) == 0)
        .map(|(_, lines)| lines)
        .collect();
    let most = chosen.iter().map(|lines| lines.len()).max().unwrap_or(0);
    let all: Vec<u64> = (0..most)
        .flat_map(|i| chosen.iter().filter_map(move |lines| lines.get(i).copied()))
        .collect();
    let time = meter.stream(&all)?;
    Ok(time.map(|time| time / all.len() as f64))
}

/// As many lines of each bank of the model.
fn lines(meter: &mut Meter<'_>, model: &Model, open: bool) -> Lines {
    let banks = (model.ways() as usize) << model.functions.len();
    let each = if open {
        IN_ROW
    } else {
        ANYWHERE.div_ceil(banks).max(4)
    };
    let own = if open { 1 } else { each };
    let mut of_bank: BTreeMap<(u64, u32), Vec<u64>> = BTreeMap::new();
    let mut full = 0;
    for _ in 0..32 * banks * own {
        let Some((line, bank)) = any_line(meter, model) else {
            break;
        };
        let lines = of_bank.entry(bank).or_default();
        if lines.len() < own {
            lines.push(line);
            full += usize::from(lines.len() == own);
        }
        if full == banks {
            break;
        }
    }
    of_bank.retain(|_, lines| lines.len() == own);
    let mut lines: Lines = of_bank
        .into_iter()
        .map(|((bank, _), lines)| (bank, lines))
        .collect();
    if open {
        fill_rows(meter, model, &mut lines);
    }
    lines
}

/// A random line, its bank and way.
fn any_line(meter: &mut Meter<'_>, model: &Model) -> Option<(u64, (u64, u32))> {
    let line = model.line(meter)?;
    let (way, bank) = model.bank(line)?;
    Some((line, (bank, way)))
}

/// More lines of the row of each bank's first.
fn fill_rows(meter: &mut Meter<'_>, model: &Model, banks: &mut Lines) {
    let mut in_row: Wanted = model.same_bank();
    in_row.extend(model.rows.iter().map(|row| (row.mask, false)));
    let Some((_, free)) = gf2::fit(&in_row, model.visible) else {
        return;
    };
    for (_, lines) in banks {
        for _ in 0..2 * IN_ROW {
            let difference = crate::model::random_sum(meter, &free);
            if lines.len() < IN_ROW {
                lines.extend(model.at(meter, lines[0], difference));
            }
        }
    }
}

/// The spaces of one rank and of one group, and how sure they are.
type Spaces = (Basis, Option<Basis>, f64);

/// Finds the spaces in that of one channel; `None`: nothing is seen that is one.
fn levels(meter: &mut Meter<'_>, model: &Model, channel: &Basis) -> Result<Option<Spaces>, Stop> {
    let differences: Vec<u64> = sums(channel).into_iter().filter(|&d| d != 0).collect();
    if differences.len() < 3 {
        return Ok(None);
    }
    let mut excess: Vec<Vec<f64>> = vec![Vec::new(); differences.len()];
    let mut rounds = ROUNDS.0;
    loop {
        measure(meter, model, &differences, rounds, &mut excess)?;
        let taken = excess[0].len();
        if excess.iter().any(|one| one.len() < taken / 2 + 1) {
            return Ok(None);
        }
        let estimates: Vec<(f64, u64)> = excess
            .iter()
            .zip(&differences)
            .map(|(one, &d)| (middle(one).0, d))
            .collect();
        let mut errors: Vec<f64> = excess.iter().map(|one| middle(one).1).collect();
        errors.sort_unstable_by(f64::total_cmp);
        // The clock's step and the like make some look better than they are.
        let error = errors[errors.len() * 9 / 10].max(0.05);
        let found = spaces(estimates, error, channel);
        if let Some(found) = found.filter(|found| found.2 >= SURE) {
            return Ok(Some(found));
        }
        rounds = taken;
        if 2 * taken > ROUNDS.1 || 2 * taken * differences.len() > SAMPLES {
            return Ok(None);
        }
    }
}

/// All sums of a basis.
fn sums(basis: &Basis) -> Vec<u64> {
    basis.rows().iter().fold(vec![0], |all, &row| {
        all.iter().flat_map(|&sum| [sum, sum ^ row]).collect()
    })
}

/// Times a fresh pair of every difference, in an order of its own each round,
/// less what those before and after it took.
fn measure(
    meter: &mut Meter<'_>,
    model: &Model,
    differences: &[u64],
    rounds: usize,
    excess: &mut [Vec<f64>],
) -> Result<(), Stop> {
    let mut order: Vec<usize> = (0..differences.len()).collect();
    let mut times: Vec<(usize, f64)> = Vec::with_capacity(rounds * order.len());
    for _ in 0..rounds {
        order.shuffle(&mut meter.rng);
        for &i in &order {
            let wanted: Wanted = model
                .functions
                .iter()
                .enumerate()
                .map(|(bit, &f)| (f, differences[i] >> bit & 1 == 1))
                .collect();
            if let Some((a, b)) = model.pair(meter, &wanted, false) {
                // Either may be read first.
                let (a, b) = if meter.rng.gen() { (a, b) } else { (b, a) };
                times.push((i, meter.time(a, b)?));
            }
        }
    }
    for at in 0..times.len() {
        let first = at.saturating_sub(NEAR);
        let mut around: Vec<f64> = times[first..(at + NEAR + 1).min(times.len())]
            .iter()
            .map(|time| time.1)
            .collect();
        around.sort_unstable_by(f64::total_cmp);
        // Low, as levels are few above and noise is.
        excess[times[at].0].push(times[at].1 - around[around.len() / 3]);
    }
    Ok(())
}

/// Mean of the middle half, and its standard error.
fn middle(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let (low, high) = (n / 4, n - n / 4);
    let part = &sorted[low..high];
    let mean = mean(part);
    let spread = (sorted[n * 3 / 4] - sorted[n / 4]) / 1.35;
    (mean, 1.1 * spread / (n as f64).sqrt())
}

/// Divides the differences into levels; the spaces that these are, or `None`.
fn spaces(mut estimates: Vec<(f64, u64)>, error: f64, channel: &Basis) -> Option<Spaces> {
    estimates.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels: Vec<Vec<u64>> = vec![Vec::new()];
    let mut least = f64::INFINITY;
    for (i, &(value, difference)) in estimates.iter().enumerate() {
        if i > 0 {
            let gap = (value - estimates[i - 1].0) / error;
            if gap >= APART {
                levels.push(Vec::new());
                least = least.min(gap);
            }
        }
        if let Some(level) = levels.last_mut() {
            level.push(difference);
        }
    }
    // Each lies half of the gap from the other level.
    let sure = certainty(least / 2.0 + APART / 2.0, estimates.len());
    match levels.as_slice() {
        [fast, _] if is_space(fast) => Some((Basis::of(fast.iter().copied()), None, sure)),
        [fast, one, other] => [(one, other), (other, one)]
            .iter()
            .find_map(|(group, rank)| {
                let in_rank: Vec<u64> = fast.iter().chain(*group).copied().collect();
                let split = in_rank.len() + rank.len() + 1 == 1 << channel.rank();
                (is_space(group) && is_space(&in_rank) && split).then(|| {
                    let group = Basis::of(group.iter().copied());
                    (Basis::of(in_rank.iter().copied()), Some(group), sure)
                })
            }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_are_names() {
        let whole = Basis::of([1, 2, 4, 8]);
        let spaces_of = |level: &dyn Fn(u64) -> f64| {
            let estimates = (1..16).map(|d| (level(d), d)).collect();
            spaces(estimates, 1.0, &whole)
        };
        // Two low bits choose in a group, bit 3 the rank.
        let three = |d: u64| match (d >> 3, d & 4) {
            (1, _) => 20.0,
            (_, 0) => 40.0,
            _ => 0.0,
        };
        let (rank, group, _) = spaces_of(&three).expect("three levels");
        assert_eq!(rank, Basis::of([1, 2, 4]));
        assert_eq!(group, Some(Basis::of([1, 2])));
        let ranks = |d: u64| if d >> 3 == 1 { 20.0 } else { 0.0 };
        let (rank, group, _) = spaces_of(&ranks).expect("two levels");
        assert_eq!((rank, group), (Basis::of([1, 2, 4]), None));
        // A group without a rank might be either; and one difference is off.
        assert_eq!(spaces_of(&|d| if d < 4 { 20.0 } else { 0.0 }), None);
        assert_eq!(spaces_of(&|d| if d > 8 { 20.0 } else { 0.0 }), None);
        assert_eq!(spaces_of(&|_| 0.0), None);
    }
}
