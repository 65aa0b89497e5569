//! Row functions, once the bank functions are known.
//!
//! Differences that keep the bank and do not conflict keep the row too; the
//! rows are what is constant on these and is no bank function.

use soloist_machine::function::{terms_of, Term};
use soloist_machine::gf2::{self, Basis};

use crate::meter::{Meter, Stop};
use crate::model::{Model, Pair};

/// Lines that a difference is tried from.
const TRIES: usize = 2_000;
/// The row functions of `model`; `None` when lines of one row conflict as those
/// of two do: the controller closes rows after every access.
///
/// # Errors
/// When the deadline has passed.
pub fn rows(meter: &mut Meter<'_>, model: &Model) -> Result<Option<Vec<Term>>, Stop> {
    let banks = Basis::of(model.functions.iter().copied());
    let same_bank = banks.nullspace(model.visible);
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
            if keeps_row(meter, model, sum)? == Some(true) {
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
    if in_row.rank() == 0 {
        return Ok(None);
    }
    let mut known = model.differences(meter).nullspace(model.visible);
    known.extend(banks.rows().iter().copied());
    Ok(Some(terms_of(&row_functions(
        &known,
        &in_row,
        model.visible,
    ))))
}

fn pairs_of(list: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let few = list.len().min(8);
    (0..few).flat_map(move |i| (i + 1..few).map(move |j| list[i] ^ list[j]))
}

/// Whether addresses that differ so lie in one row; `None`: not measurable.
///
/// Hundreds of sums are asked about and few keep the row, so a yes must hold
/// for several pairs, a no for one or two.
fn keeps_row(meter: &mut Meter<'_>, model: &Model, difference: u64) -> Result<Option<bool>, Stop> {
    let mut votes = 0i32;
    while (-2..6).contains(&votes) {
        let Some((a, b)) = pair_at(meter, model, difference) else {
            return Ok(None);
        };
        let Some(kept) = meter.rejects(a, b, 300.0)? else {
            return Ok(None);
        };
        votes += if kept { 1 } else { -2 };
    }
    Ok(Some(votes > 0))
}

/// A pair that differs by exactly `difference`.
fn pair_at(meter: &mut Meter<'_>, model: &Model, difference: u64) -> Option<Pair> {
    for _ in 0..TRIES {
        let a = model.line(meter)?;
        if let Some(b) = model.at(meter, a, difference) {
            return Some((a, b));
        }
    }
    None
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
