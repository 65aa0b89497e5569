//! Whether two maps say the same: functions by span, never by list.

use crate::gf2::{self, Basis};
use crate::spec::{Layout, MapRange, MapSpec};

/// What differs between `known` and `found`, in words; empty when they put the
/// same addresses into the same banks and rows. Names of functions, the order
/// of bits and columns don't count.
#[must_use]
pub fn differences(known: &MapSpec, found: &MapSpec) -> Vec<String> {
    let mut wrong = Vec::new();
    for range in &known.ranges {
        let inside: Vec<&MapRange> = found
            .ranges
            .iter()
            .filter(|other| other.start < range.end && range.start < other.end)
            .collect();
        let covered: u64 = inside
            .iter()
            .map(|other| other.end.min(range.end) - other.start.max(range.start))
            .sum();
        if covered < range.end - range.start {
            wrong.push(format!(
                "{:#x} to {:#x}: {} of {} bytes covered",
                range.start,
                range.end - 1,
                covered,
                range.end - range.start
            ));
        }
        for other in inside {
            wrong.extend(compare_range(known, range, found, other));
        }
    }
    wrong
}

fn compare_range(
    known: &MapSpec,
    range: &MapRange,
    found: &MapSpec,
    other: &MapRange,
) -> Option<String> {
    let start = range.start.max(other.start);
    let end = range.end.min(other.end);
    let offset = |r: &MapRange, address: u64| address - r.start + r.base;
    let (low, high) = (offset(range, start), offset(range, end - 1));
    let bits = 64 - (low ^ high).leading_zeros();
    // Lines, not bytes: what lies below a line can't be timed.
    let within = gf2::span(known.line.trailing_zeros(), bits.max(7) - 1);
    let (k, f) = (&known.layouts[range.layout], &found.layouts[other.layout]);
    let banks = |layout: &Layout| restrict(&layout.bank_functions(), within);
    let rows = |layout: &Layout| {
        let mut all = layout.bank_functions();
        all.extend(layout.row_masks());
        restrict(&all, within)
    };
    let list = |basis: &Basis| {
        let functions: Vec<String> = basis.lightest().into_iter().map(gf2::show).collect();
        functions.join(", ")
    };
    let at = format!("{start:#x} to {:#x}", end - 1);
    if banks(k) != banks(f) {
        return Some(format!(
            "{at}: banks by {}, not {}",
            list(&banks(f)),
            list(&banks(k))
        ));
    }
    if rows(k) != rows(f) {
        return Some(format!(
            "{at}: banks and rows by {}, not {}",
            list(&rows(f)),
            list(&rows(k))
        ));
    }
    // Equal functions of offsets that differ by a carry are other functions.
    let shift = offset(range, start) ^ offset(other, start);
    let delta = offset(range, start).abs_diff(offset(other, start));
    let carries = |basis: &Basis| {
        let lowest = if delta == 0 {
            64
        } else {
            delta.trailing_zeros()
        };
        basis
            .rows()
            .iter()
            .any(|f| f.count_ones() > 1 && 63 - f.leading_zeros() > lowest)
    };
    (shift != 0 && carries(&banks(k))).then(|| {
        format!(
            "{at}: offset {:#x}, not {:#x}",
            offset(other, start),
            offset(range, start)
        )
    })
}

fn restrict(functions: &[u64], within: u64) -> Basis {
    Basis::of(functions.iter().map(|f| f & within))
}
