//! Where a section lies in its node: the shift from address to offset.
//!
//! A wrong shift carries: it hides functions whose bits lie above the carry,
//! or moves the edge of a high bit by a little, which changes few lines. So a
//! shift is never taken for the number of functions it gives. It must stand up
//! in fresh pairs, the simplest first, and then against every other: lines are
//! sought for which the two tell different banks, and those are measured.

use rand::Rng;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

use crate::meter::{Meter, Stop};
use crate::model::{Model, Pair, Section};

/// Bases and holes are multiples of one of these (log2), roundest first: controllers have
/// registers of 16 MiB (AMD's DRAM base and hole), of one (Intel's clients), or coarser
/// ones for them.
const ALIGNS: [u32; 11] = [30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20];
/// The finest of them.
const FINEST: u32 = 20;
/// Below it x86 hides memory behind devices.
pub const HOLE_END: u64 = 4 << 30;
/// Pairs that decide between two shifts.
const DECIDING: usize = 6;
/// Lines that are looked through for some between two shifts, and how much around them
/// is asked for.
const FETCH_TRIES: usize = 256;
const FETCHED: u64 = 16 << 20;
/// Pairs looked through for those.
const LOOKED_THROUGH: usize = 400;

/// Shifts that memory has by convention, likeliest first: that of a neighbour,
/// none, directly behind what the node has below it, its own start; but none by
/// which two addresses would be one place. `below` are
/// the node's other spans, `known` those of its sections that are solved.
#[must_use]
pub fn likely_shifts(range: &RamRange, below: &[RamRange], known: &[Section]) -> Vec<u64> {
    let mut likely: Vec<u64> = known.iter().map(|section| section.shift).collect();
    likely.push(0);
    // Firmware keeps something at the ends, so a node begins at a rounder
    // number than its first byte that is memory, and ends at one.
    let start = |align: u32| range.start >> align << align;
    if range.start >= HOLE_END {
        // What devices hide below 4 GiB lies behind all other memory, up to the end.
        likely.push(range.end.next_multiple_of(1 << FINEST) - HOLE_END);
    }
    let unsolved = below.iter().map(|span| Section {
        range: *span,
        shift: 0,
    });
    for section in known.iter().copied().chain(unsolved) {
        if section.range.start >= range.start {
            continue;
        }
        let end = section.offset(section.range.end);
        for align in ALIGNS {
            let behind = end.wrapping_add((1 << align) - 1) >> align << align;
            likely.push(start(align.min(24)).wrapping_sub(behind));
        }
    }
    for align in ALIGNS {
        likely.push(start(align));
    }
    let mut seen = std::collections::BTreeSet::new();
    likely.retain(|&shift| {
        let section = Section {
            range: *range,
            shift,
        };
        is_offset(section.offset(range.start))
            && !known.iter().any(|other| section.overlaps(other))
            && seen.insert(shift)
    });
    likely
}

/// Shifts that nothing speaks for: multiples of 16 MiB, within 32 GiB.
pub fn any_shifts(range: &RamRange) -> impl Iterator<Item = u64> + '_ {
    (0..2048u64).map(|step| range.start.wrapping_sub(step << 24))
}

/// Whether it is an offset at all, not one below 0.
fn is_offset(offset: u64) -> bool {
    offset < 1 << 50
}

/// Shifts that are a little off: what one that nothing speaks for must stand
/// up against.
pub fn near_shifts(section: Section) -> impl Iterator<Item = u64> {
    let shift = section.shift;
    let near = (FINEST..31)
        .flat_map(move |bit| [shift.wrapping_add(1 << bit), shift.wrapping_sub(1 << bit)]);
    near.filter(move |&shift| is_offset(section.range.start.wrapping_sub(shift)))
}

/// The one of two shifts of a section that the pool speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// The first.
    First,
    /// The second.
    Second,
    /// No line of all memory is in another bank.
    Same,
    /// Lines are, but the pool holds none of them.
    Open,
}

/// Decides between `model` and `other`, whose last section has another shift,
/// and which may have functions of its own.
///
/// # Errors
/// When the deadline has passed.
pub fn decide(meter: &mut Meter<'_>, model: &Model, other: &Model) -> Result<Between, Stop> {
    if !differ_anywhere(meter, model, other) {
        return Ok(Between::Same);
    }
    let both = |meter: &mut Meter<'_>| {
        let here = deciding(meter, model, other);
        (here, deciding(meter, other, model))
    };
    let (mut here, mut there) = both(meter);
    if here.is_empty() && there.is_empty() && fetch_between(meter, model, other) {
        (here, there) = both(meter);
    }
    if here.is_empty() && there.is_empty() {
        return Ok(Between::Open);
    }
    let mut votes = 0i32;
    for (pairs, vote) in [(here, 1), (there, -1)] {
        for (a, b) in pairs {
            votes += if meter.is_conflict(a, b, 300.0)? {
                vote
            } else {
                -vote
            };
        }
    }
    Ok(match votes {
        1.. => Between::First,
        0 => Between::Open,
        _ => Between::Second,
    })
}

/// Asks for pages of memory that the two put into different banks, which is near where
/// a high bit changes if their shifts are nearly the same; false: for none.
fn fetch_between(meter: &mut Meter<'_>, model: &Model, other: &Model) -> bool {
    let (Some(last), true) = (model.sections.last(), model.functions == other.functions) else {
        return false;
    };
    let range = last.range;
    let moved = |line: u64| {
        let (Some((_, a)), Some((_, b))) = (model.bank(line), other.bank(line)) else {
            return None;
        };
        Some(a ^ b)
    };
    let Some(usual) = model.line(meter).and_then(moved) else {
        return false;
    };
    let mut fetched = false;
    for i in 0..FETCH_TRIES {
        let line = line_at_any_scale(meter, model, other, 2 * i + 1);
        let Some(line) = line.filter(|&line| moved(line).is_some_and(|by| by != usual)) else {
            continue;
        };
        fetched |= meter.fetch(&RamRange {
            start: line.saturating_sub(FETCHED).max(range.start),
            end: (line + FETCHED).min(range.end),
            ..range
        });
    }
    fetched
}

/// Pairs of one bank by `model` but not by `other`.
fn deciding(meter: &mut Meter<'_>, model: &Model, other: &Model) -> Vec<Pair> {
    let wanted = model.same_bank();
    let mut pairs = Vec::new();
    let Some(last) = model.sections.last().copied() else {
        return pairs;
    };
    let only = Model {
        sections: vec![last],
        ..model.clone()
    };
    for _ in 0..LOOKED_THROUGH {
        // One line from the section in question, near an edge.
        let Some(a) = only.edge_line(meter) else {
            continue;
        };
        if let Some(b) = model.partner(meter, a, &wanted) {
            if is_other_bank(other, (a, b)) {
                pairs.push((a, b));
                if pairs.len() == DECIDING {
                    break;
                }
            }
        }
    }
    pairs
}

fn is_other_bank(model: &Model, pair: Pair) -> bool {
    // Of two ways.
    let Some(difference) = model.difference(pair) else {
        return true;
    };
    let mut functions = model.functions.iter();
    functions.any(|&f| gf2::parity(f, difference) == 1)
}

/// Whether the two models put any pair of all memory into different banks, by
/// lines at all scales from where bits change.
fn differ_anywhere(meter: &mut Meter<'_>, model: &Model, other: &Model) -> bool {
    let mut origin = None;
    let mut way = None;
    // Banks are the same but for their names where each follows from the other.
    let (mut one, mut two, mut both) = (Basis::new(), Basis::new(), Basis::new());
    for i in 0..4096 {
        let Some(at) = line_at_any_scale(meter, model, other, i) else {
            continue;
        };
        // Ways have names that another base changes: one of them is looked at.
        let here = model.place(at).map(|place| place.0);
        if *way.get_or_insert(here) != here {
            continue;
        }
        let (Some((_, a)), Some((_, b))) = (model.bank(at), other.bank(at)) else {
            continue;
        };
        let (first_a, first_b) = *origin.get_or_insert((a, b));
        let (a, b) = (a ^ first_a, b ^ first_b);
        one.insert(a);
        two.insert(b);
        both.insert(a << 32 | b);
    }
    both.rank() > one.rank() || both.rank() > two.rank()
}

/// A line of all memory, in the pool or not: every second one near an edge of
/// the section in question, every eighth from another section.
fn line_at_any_scale(
    meter: &mut Meter<'_>,
    model: &Model,
    other: &Model,
    turn: usize,
) -> Option<u64> {
    let (one, two) = (model.sections.last()?, other.sections.last()?);
    if turn % 8 == 0 {
        let any = meter.rng.gen_range(0..model.sections.len());
        let range = model.sections[any].range;
        return Some(meter.rng.gen_range(range.start..range.end));
    }
    let range = one.range;
    let at = meter.rng.gen_range(range.start..range.end);
    if turn % 2 == 0 {
        return Some(at);
    }
    let top = 64 - model.visible.leading_zeros();
    let bit = meter.rng.gen_range(12..top.max(13));
    let near = meter.rng.gen_range(6..=bit);
    let section = if turn % 4 == 1 { one } else { two };
    let edge = section.offset(at) >> bit << bit;
    let off = meter.rng.gen_range(0..1u64 << near);
    let offset = if meter.rng.gen() {
        edge.wrapping_add(off)
    } else {
        edge.wrapping_sub(off)
    };
    let at = offset.wrapping_add(section.shift);
    (range.start..range.end).contains(&at).then_some(at)
}
