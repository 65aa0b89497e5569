//! One region of memory with one layout: bank functions, row bits.
//!
//! Two addresses conflict when they lie in different rows of one bank. Every
//! bank function is therefore 0 on the XOR of the two, and random conflicting
//! pairs span everything else: the functions are the nullspace of the XORs,
//! whatever their number and width. A few pairs that only seemed to conflict
//! would hide functions, so the nullspace is taken of many random parts of the
//! pairs and judged by all of them, and then by fresh measurements.

use rand::seq::SliceRandom;
use rand::Rng;

use super::meter::{Levels, Meter, Stop};
use super::source::{Addresses, OsRange};
use crate::function::{terms_of, Term};
use crate::gf2::{self, Basis};

/// Odds against a pair that only seems to conflict, times the banks.
const ODDS: f64 = 2_000.0;
/// Odds at which a pair is measured again later.
const LASTING_ODDS: f64 = 300.0;
/// Pairs more than there are address bits: chance leaves a false function with
/// probability 2^-this.
const SPARE_PAIRS: usize = 28;
/// Granularity of the offsets that are tried for a region's start.
const SHIFT_STEP: u64 = 16 << 20;
/// Offsets tried, at most.
const SHIFTS: u64 = 4096;

/// Two addresses that conflict.
pub type Pair = (u64, u64);

/// What is known of a region.
#[derive(Debug, Clone)]
pub struct Region {
    /// The memory.
    pub range: OsRange,
    /// Offset of its first byte within its node.
    pub base: u64,
    /// Bank functions over the offset, lightest first.
    pub functions: Vec<u64>,
    /// Row bits over the offset, low first.
    pub rows: Vec<Term>,
    /// Offset bits that the measurement could see.
    pub visible: u64,
    /// Banks by how often random pairs conflict.
    pub banks_by_rate: f64,
    /// Conflicting pairs used.
    pub pairs: usize,
    /// Fresh pairs predicted to conflict: how many did, of how many.
    pub hits: (u32, u32),
    /// Fresh pairs predicted not to: how many did not, of how many.
    pub rejections: (u32, u32),
    /// How the levels were told apart.
    pub levels: Levels,
}

impl Region {
    /// Share of fresh predictions that held, 0 to 1.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        let share = |(good, all): (u32, u32)| f64::from(good + 1) / f64::from(all + 2);
        let perfect =
            share((self.hits.1, self.hits.1)) * share((self.rejections.1, self.rejections.1));
        (share(self.hits) * share(self.rejections) / perfect).min(1.0)
    }

    /// Whether functions and rate of conflicts tell the same number of banks,
    /// and fresh measurements agree.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        let by_rate = self.banks_by_rate.max(1.0).log2();
        self.is_sound() && (by_rate - self.functions.len() as f64).abs() < 0.6
    }

    /// Whether fresh measurements bear the functions out.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let most = |(good, all): (u32, u32)| f64::from(good) >= 0.85 * f64::from(all);
        most(self.hits) && most(self.rejections)
    }
}

/// Differences between the start of a region and its offset, to be tried in
/// this order; the first of equals wins.
pub struct Shifts {
    /// By convention: memory of a node without holes.
    pub likely: Vec<u64>,
}

/// Random conflicting pairs, and the banks that their rate speaks for.
pub struct Collected {
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// Random pairs looked at.
    pub tried: u64,
    /// Share of conflicts that is noticed.
    pub noticed: f64,
}

impl Collected {
    /// Banks by rate.
    #[must_use]
    pub fn banks(&self) -> f64 {
        self.tried as f64 * self.noticed / self.pairs.len().max(1) as f64
    }
}

/// Bits of offsets that differ inside `range` and that the source can see.
#[must_use]
pub fn visible_bits(meter: &Meter<'_>, range: &OsRange, base: u64) -> u64 {
    let line = meter.source().line_shift();
    let last = base + (range.end - range.start) - 1;
    let differ = 64 - (base ^ last).leading_zeros();
    let top = match meter.source().addresses() {
        Addresses::Physical => differ,
        Addresses::InsidePages { page_shift } => differ.min(page_shift),
    };
    if top <= line {
        0
    } else {
        gf2::span(line, top - 1)
    }
}

/// Collects `count` random conflicting pairs inside `range`.
///
/// # Errors
/// When the deadline has passed.
pub fn collect(
    meter: &mut Meter<'_>,
    range: &OsRange,
    count: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<Collected, Stop> {
    let levels = meter.levels().ok_or(Stop::NoConflicts)?;
    let mut found = Collected {
        pairs: Vec::with_capacity(count),
        tried: 0,
        noticed: levels.true_slow,
    };
    let give_up = 40_000 * count as u64;
    while found.pairs.len() < count && found.tried < give_up {
        let (a, b) = spread_pair(meter, range)?;
        found.tried += 1;
        let banks = found.banks().clamp(4.0, 4096.0);
        if meter.is_conflict_among_many(a, b, ODDS * banks)? {
            found.pairs.push((a, b));
            progress(found.pairs.len() as f64 / count as f64);
        }
    }
    // What only seemed to conflict for a while does so no longer.
    let mut lasting = Vec::with_capacity(found.pairs.len());
    for (a, b) in found.pairs {
        if meter.is_conflict(a, b, LASTING_ODDS)? {
            lasting.push((a, b));
        }
    }
    found.pairs = lasting;
    if found.pairs.len() < 8 {
        return Err(Stop::NoConflicts);
    }
    Ok(found)
}

/// A random pair in which every offset bit differs often: one address from
/// either edge of the range, at any scale, the other from anywhere. (In a range
/// that reaches a little over a power of two, the top bit of uniform pairs
/// hardly ever differs, and would pass for a function.)
fn spread_pair(meter: &mut Meter<'_>, range: &OsRange) -> Result<Pair, Stop> {
    let (a, b) = meter.random_pair(range)?;
    let scales = 64 - (range.end - range.start).leading_zeros();
    if scales <= 22 || meter.rng.gen() {
        return Ok((a, b));
    }
    let size = 1 << meter.rng.gen_range(21..scales);
    let edge = if meter.rng.gen() {
        OsRange {
            end: range.end.min(range.start + size),
            ..*range
        }
    } else {
        OsRange {
            start: range.start.max(range.end.saturating_sub(size)),
            ..*range
        }
    };
    match meter.random(&edge) {
        Ok(near) if near != b => Ok((near, b)),
        _ => Ok((a, b)),
    }
}

/// Functions that are constant over all memory of `range`: no measurement can
/// say whether they are part of the map.
fn trivial(meter: &mut Meter<'_>, range: &OsRange, base: u64) -> Basis {
    let mut seen = Basis::new();
    for _ in 0..512 {
        if let Ok((a, b)) = spread_pair(meter, range) {
            seen.insert(offset(a, range, base) ^ offset(b, range, base));
        }
    }
    seen.nullspace(visible_bits(meter, range, base))
}

/// Solves `range`: levels, functions, checks, rows.
///
/// # Errors
/// When the deadline has passed or nothing can be seen.
pub fn solve(
    meter: &mut Meter<'_>,
    range: &OsRange,
    shifts: &Shifts,
    progress: &mut dyn FnMut(f64),
) -> Result<Region, Stop> {
    let levels = meter.calibrate(range)?;
    let bits = visible_bits(meter, range, range.start).count_ones() as usize + 1;
    let mut found = collect(meter, range, bits + SPARE_PAIRS, progress)?;
    let mut region = None;
    for round in 0..3 {
        let (base, functions) = best_base(meter, range, &found, shifts, round > 0);
        let mut attempt = Region {
            range: *range,
            base,
            visible: visible_bits(meter, range, base),
            functions,
            rows: Vec::new(),
            banks_by_rate: found.banks(),
            pairs: found.pairs.len(),
            hits: (0, 0),
            rejections: (0, 0),
            levels,
        };
        validate(meter, &mut attempt)?;
        let explained = attempt.is_explained();
        // More pairs can't bring out functions where there are none at all.
        let hopeless = attempt.functions.is_empty() && round > 0;
        region = Some(attempt);
        if explained || hopeless || round == 2 {
            break;
        }
        let more = collect(meter, range, bits + SPARE_PAIRS, progress)?;
        found.pairs.extend(more.pairs);
        found.tried += more.tried;
    }
    let mut region = region.ok_or(Stop::NoConflicts)?;
    if region.is_sound() {
        region.rows = find_rows(meter, &region)?;
    }
    Ok(region)
}

/// The base under which the pairs have the most functions, and these.
fn best_base(
    meter: &mut Meter<'_>,
    range: &OsRange,
    found: &Collected,
    shifts: &Shifts,
    search: bool,
) -> (u64, Vec<u64>) {
    let expected = found.banks().log2().round().max(0.0) as usize;
    let mut best: Option<(u64, Vec<u64>)> = None;
    let rank = |best: &Option<(u64, Vec<u64>)>| best.as_ref().map_or(0, |(_, f)| f.len());
    for &base in &shifts.likely {
        let functions = robust_functions(meter, range, &found.pairs, base);
        if best.is_none() || functions.len() > rank(&best) {
            best = Some((base, functions));
        }
    }
    let physical = meter.source().addresses() == Addresses::Physical;
    if search && physical && rank(&best) < expected {
        // A hole or a base that nobody told of: a wrong one makes the sums
        // carry, which hides functions. Search by plain counting, which is
        // quick, and look closer where that finds more.
        let any: Vec<Pair> = (0..128)
            .filter_map(|_| spread_pair(meter, range).ok())
            .collect();
        for base in (0..SHIFTS).map(|step| step * SHIFT_STEP) {
            let within = visible_bits(meter, range, base);
            let count = |pairs| differences(pairs, range, base).nullspace(within).rank();
            let (found_rank, known) = (count(&found.pairs), rank(&best));
            if found_rank > known && found_rank > known + count(&any) {
                let functions = robust_functions(meter, range, &found.pairs, base);
                if functions.len() > rank(&best) {
                    best = Some((base, functions));
                }
            }
        }
    }
    best.unwrap_or_default()
}

fn offset(address: u64, range: &OsRange, base: u64) -> u64 {
    address - range.start + base
}

fn differences(pairs: &[Pair], range: &OsRange, base: u64) -> Basis {
    Basis::of(
        pairs
            .iter()
            .map(|&(a, b)| offset(a, range, base) ^ offset(b, range, base)),
    )
}

/// The functions that nearly all pairs agree on, but not all memory does.
fn robust_functions(meter: &mut Meter<'_>, range: &OsRange, pairs: &[Pair], base: u64) -> Vec<u64> {
    let within = visible_bits(meter, range, base);
    let mut vectors: Vec<u64> = pairs
        .iter()
        .map(|&(a, b)| (offset(a, range, base) ^ offset(b, range, base)) & within)
        .collect();
    let agrees = |function: u64, vectors: &[u64]| {
        let odd = vectors.iter().filter(|&&v| gf2::parity(function, v) == 1);
        odd.count() * 12 <= vectors.len()
    };
    let mut best = Basis::of(vectors.iter().copied()).nullspace(within);
    for _ in 0..24 {
        let part = vectors.len() * 3 / 4;
        vectors.partial_shuffle(&mut meter.rng, part);
        let candidate = Basis::of(vectors[..part].iter().copied()).nullspace(within);
        if candidate.rank() > best.rank() && candidate.rows().iter().all(|&f| agrees(f, &vectors)) {
            best = candidate;
        }
    }
    let functions = best.lightest_beside(&trivial(meter, range, base));
    without_rare(meter, range, base, functions)
}

/// Drops functions that are nearly constant over the memory of `range`: that
/// the pairs agree on them says nothing.
fn without_rare(
    meter: &mut Meter<'_>,
    range: &OsRange,
    base: u64,
    mut functions: Vec<u64>,
) -> Vec<u64> {
    let seen: Vec<u64> = (0..256)
        .filter_map(|_| spread_pair(meter, range).ok())
        .map(|(a, b)| offset(a, range, base) ^ offset(b, range, base))
        .collect();
    functions.retain(|&f| {
        let odd = seen.iter().filter(|&&v| gf2::parity(f, v) == 1).count();
        odd * 5 >= seen.len()
    });
    functions
}

/// Measures fresh pairs: some that must conflict, and for every function some
/// that differ in it alone and must not.
///
/// # Errors
/// When the deadline has passed.
pub fn validate(meter: &mut Meter<'_>, region: &mut Region) -> Result<(), Stop> {
    let functions = Basis::of(region.functions.iter().copied());
    let same_bank = functions.nullspace(region.visible);
    // The highest bit is a row bit: with it, the row differs for certain.
    let mut others = same_bank.clone();
    let row = others.take_highest();
    for _ in 0..24 {
        if let Some((a, b)) = partner(meter, region, &others, row)? {
            region.hits.1 += 1;
            region.hits.0 += u32::from(meter.is_conflict(a, b, 100.0)?);
        }
    }
    for (i, _) in region.functions.clone().iter().enumerate() {
        let Some(flip) = flip_only(&region.functions, i, region.visible) else {
            continue;
        };
        for _ in 0..4 {
            if let Some((a, b)) = partner(meter, region, &same_bank, flip)? {
                region.rejections.1 += 1;
                region.rejections.0 += u32::from(!meter.is_conflict(a, b, 100.0)?);
            }
        }
    }
    Ok(())
}

/// A difference that changes function `i` and no other.
#[must_use]
pub fn flip_only(functions: &[u64], i: usize, visible: u64) -> Option<u64> {
    // Solve f_j(x) = (j == i) for x: the functions are the samples.
    let rows: Vec<(u64, bool)> = functions
        .iter()
        .enumerate()
        .map(|(j, &f)| (f, j == i))
        .collect();
    gf2::fit(&rows, visible).map(|(x, _)| x)
}

/// A pair inside the region that differs by `fixed` plus a random vector of
/// `space`; `None` when the pool has none.
///
/// # Errors
/// When the pool is empty there.
pub fn partner(
    meter: &mut Meter<'_>,
    region: &Region,
    space: &Basis,
    fixed: u64,
) -> Result<Option<Pair>, Stop> {
    for _ in 0..400 {
        let a = meter.random(&region.range)?;
        let mut difference = fixed;
        for &row in space.rows() {
            if meter.rng.gen() {
                difference ^= row;
            }
        }
        if let Some(b) = apply(meter, region, a, difference) {
            return Ok(Some((a, b)));
        }
    }
    Ok(None)
}

/// The address whose offset differs from that of `a` by `difference`, if the
/// region and the pool hold it.
fn apply(meter: &Meter<'_>, region: &Region, a: u64, difference: u64) -> Option<u64> {
    if difference == 0 {
        return None;
    }
    let other = offset(a, &region.range, region.base) ^ difference;
    let b = other
        .checked_sub(region.base)?
        .checked_add(region.range.start)?;
    let source = meter.source();
    (b < region.range.end && source.has(b) && source.is_fair(a, b)).then_some(b)
}

/// A pair that differs by exactly `difference`.
///
/// # Errors
/// When the pool is empty there.
fn pair_at(meter: &mut Meter<'_>, region: &Region, difference: u64) -> Result<Option<Pair>, Stop> {
    for _ in 0..2_000 {
        let a = meter.random(&region.range)?;
        if let Some(b) = apply(meter, region, a, difference) {
            return Ok(Some((a, b)));
        }
    }
    Ok(None)
}

/// Row bits: of the differences that keep the bank, those that don't conflict
/// keep the row too; the rows are what is constant on these and is no bank
/// function.
///
/// # Errors
/// When the deadline has passed.
fn find_rows(meter: &mut Meter<'_>, region: &Region) -> Result<Vec<Term>, Stop> {
    let banks = Basis::of(region.functions.iter().copied());
    let same_bank = banks.nullspace(region.visible);
    let mut in_row = Basis::new();
    let mut across: Vec<u64> = Vec::new();
    // Ascending: columns lie low, so few sums must be tried for what is left.
    let mut vectors: Vec<u64> = same_bank.rows().to_vec();
    vectors.reverse();
    for vector in vectors {
        let sums = std::iter::once(vector)
            .chain(across.iter().map(|row| vector ^ row))
            .chain(pairs_of(&across).map(|two| vector ^ two));
        let mut kept = None;
        for sum in sums {
            if keeps_row(meter, region, sum)? == Some(true) {
                kept = Some(sum);
                break;
            }
        }
        match kept {
            Some(sum) => {
                in_row.insert(sum);
            }
            None => across.push(vector),
        }
    }
    let mut known = trivial(meter, &region.range, region.base);
    known.extend(banks.rows().iter().copied());
    Ok(terms_of(&row_functions(&known, &in_row, region.visible)))
}

fn pairs_of(list: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let few = list.len().min(8);
    (0..few).flat_map(move |i| (i + 1..few).map(move |j| list[i] ^ list[j]))
}

/// Whether addresses that differ so lie in one row; `None`: not measurable.
///
/// Hundreds of sums are asked about and few keep the row, so a yes must hold
/// for several pairs, a no for one or two.
fn keeps_row(
    meter: &mut Meter<'_>,
    region: &Region,
    difference: u64,
) -> Result<Option<bool>, Stop> {
    let mut votes = 0i32;
    while (-2..6).contains(&votes) {
        let Some((a, b)) = pair_at(meter, region, difference)? else {
            return Ok(None);
        };
        let conflict = meter.is_conflict(a, b, 300.0)?;
        votes += if conflict { -2 } else { 1 };
    }
    Ok(Some(votes > 0))
}

/// Functions that are constant over a row and no sums of `known` ones, single
/// high bits first, as rows are; returned low first.
fn row_functions(known: &Basis, in_row: &Basis, visible: u64) -> Vec<u64> {
    let constant = in_row.nullspace(visible);
    let mut candidates: Vec<u64> = constant.lightest();
    candidates.extend(
        gf2::bits(visible)
            .map(|bit| 1 << bit)
            .filter(|&v| constant.contains(v)),
    );
    candidates.sort_by_key(|&v| (v.count_ones(), u64::MAX - v));
    let mut taken = known.clone();
    let mut rows: Vec<u64> = candidates
        .into_iter()
        .filter(|&v| taken.insert(v))
        .collect();
    rows.sort_unstable();
    rows
}
