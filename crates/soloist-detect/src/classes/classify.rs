//! Sorts pages into conflict classes where functions hold inside a page.

use rand::Rng;
use soloist_machine::classmap::Proof;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

use crate::classes::proof::{prove, Sorted};
use crate::classes::{ClassedPage, Classes};
use crate::meter::{Meter, Stop};
use crate::model::Model;

/// Pairs of lines per candidate that must conflict before it is believed.
const CONFIRM: u32 = 6;

/// Classes of the first `limit` pages relative to the page that `known` was
/// solved in. Stops early, with what it has, at the deadline.
#[must_use]
pub fn classify(
    meter: &mut Meter<'_>,
    known: &Model,
    page_shift: u32,
    limit: usize,
    progress: &mut dyn FnMut(f64),
) -> Classes {
    let pages = meter.source().ranges();
    let count = pages.len().min(limit);
    let mut found = Classes {
        page_shift,
        functions: known.functions.clone(),
        pages: Vec::with_capacity(count),
        classes: 0,
        proof: Proof::default(),
    };
    let mut recent: Vec<u32> = Vec::new();
    for (i, page) in pages.iter().take(count).enumerate() {
        let guest = meter.source().guest_address(page.start);
        let class = if Some(*page) == home(known) {
            Ok(Some(0))
        } else {
            class_of(meter, known, page, &recent)
        };
        let Ok(class) = class else {
            break;
        };
        if let Some(class) = class {
            recent.retain(|&other| other != class);
            recent.insert(0, class);
        }
        found.pages.push(ClassedPage {
            page: page.start,
            guest,
            class,
        });
        progress(i as f64 / count as f64);
    }
    found.classes = recent.len();
    let sorted = Sorted {
        pages: found
            .pages
            .iter()
            .filter_map(|page| Some((page.page, page.class?)))
            .collect(),
        page_shift,
        functions: &known.functions,
    };
    let proof = prove(meter, &sorted);
    found.proof = proof;
    found
}

/// The page that the functions were found in.
fn home(known: &Model) -> Option<RamRange> {
    known.sections.first().map(|section| section.range)
}

/// A difference inside a page that changes just the functions whose bits are
/// set in `wanted`.
fn difference_of(known: &Model, wanted: u32) -> Option<u64> {
    let rows: Vec<(u64, bool)> = known
        .functions
        .iter()
        .enumerate()
        .map(|(i, &f)| (f, wanted >> i & 1 == 1))
        .collect();
    gf2::fit(&rows, known.visible).map(|(x, _)| x)
}

/// Tries the constants, those seen lately first.
fn class_of(
    meter: &mut Meter<'_>,
    known: &Model,
    page: &RamRange,
    recent: &[u32],
) -> Result<Option<u32>, Stop> {
    let all = 1u32 << known.functions.len().min(12);
    let others = (0..all).filter(|class| !recent.contains(class));
    for class in recent.iter().copied().chain(others) {
        if agrees(meter, known, page, class)? {
            return Ok(Some(class));
        }
    }
    Ok(None)
}

/// Whether lines that are in one bank if the page's constant is `class` do
/// conflict.
fn agrees(meter: &mut Meter<'_>, known: &Model, page: &RamRange, class: u32) -> Result<bool, Stop> {
    let same_bank = Basis::of(known.functions.iter().copied()).nullspace(known.visible);
    let Some(fixed) = difference_of(known, class) else {
        return Ok(false);
    };
    let Some(first) = home(known) else {
        return Ok(false);
    };
    let (mut hits, mut misses) = (0, 0);
    while hits < CONFIRM {
        let a = meter.random(&first)?;
        let mut difference = fixed;
        for &row in same_bank.rows() {
            if meter.rng.gen() {
                difference ^= row;
            }
        }
        let b = page.start + ((a - first.start) ^ difference);
        if !meter.source().is_fair(a, b) {
            continue;
        }
        if meter.is_conflict(a, b, 30.0)? {
            hits += 1;
        } else {
            misses += 1;
            // Rows of two pages coincide now and then.
            if misses > hits.max(1) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
