//! Conflict classes: colours without functions, for virtual machines.
//!
//! In a guest without root on the host only the bits inside a page are known,
//! so no function can reach above it. But whether two pages share banks can
//! be measured: inside every page the same functions F choose a bank, plus a
//! constant of that page, c. Two lines conflict when F(x) ^ c = F(y) ^ d, so
//! pages with the same constant are one class. A class is a colour that holds
//! as long as the host does not move the page.

use serde::Serialize;

use super::meter::{Meter, Stop};
use super::region::{flip_only, Region};
use super::source::OsRange;
use crate::gf2::{self, Basis};

/// Pairs of lines per candidate that must conflict before it is believed.
const CONFIRM: u32 = 6;

/// The class of every page that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Classes {
    /// log2 of the page size.
    pub page_shift: u32,
    /// Functions inside a page.
    pub functions: Vec<String>,
    /// Per page: its number in the source's pool and its class; `None` where
    /// no class fitted.
    pub pages: Vec<(usize, Option<u32>)>,
    /// Different classes seen.
    pub classes: usize,
}

/// Classes of the first `limit` pages relative to the page that `known` was
/// solved in. Stops early, with what it has, at the deadline.
#[must_use]
pub fn classify(
    meter: &mut Meter<'_>,
    known: &Region,
    page_shift: u32,
    limit: usize,
    progress: &mut dyn FnMut(f64),
) -> Classes {
    let pages = meter.source().ranges();
    let count = pages.len().min(limit);
    let mut found = Classes {
        page_shift,
        functions: known.functions.iter().map(|&f| gf2::show(f)).collect(),
        pages: Vec::with_capacity(count),
        classes: 0,
    };
    let mut recent: Vec<u32> = Vec::new();
    for (i, page) in pages.iter().take(count).enumerate() {
        let class = if *page == known.range {
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
        found.pages.push((i, class));
        progress(i as f64 / count as f64);
    }
    found.classes = recent.len();
    found
}

/// Tries the constants, those seen lately first.
fn class_of(
    meter: &mut Meter<'_>,
    known: &Region,
    page: &OsRange,
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
fn agrees(meter: &mut Meter<'_>, known: &Region, page: &OsRange, class: u32) -> Result<bool, Stop> {
    let same_bank = Basis::of(known.functions.iter().copied()).nullspace(known.visible);
    let mut fixed = 0;
    for bit in gf2::bits(u64::from(class)) {
        match flip_only(&known.functions, bit as usize, known.visible) {
            Some(flip) => fixed ^= flip,
            None => return Ok(false),
        }
    }
    let (mut hits, mut misses) = (0, 0);
    while hits < CONFIRM {
        let a = meter.random(&known.range)?;
        let mut difference = fixed;
        for &row in same_bank.rows() {
            if rand::Rng::gen(&mut meter.rng) {
                difference ^= row;
            }
        }
        let b = page.start + ((a - known.range.start) ^ difference);
        if meter.is_conflict(a, b, &known.range, 30.0)? {
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
