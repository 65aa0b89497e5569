//! What is claimed of a part of memory, and pairs of lines that test it.
//!
//! A map is linear over the *offset* of an address, which is the address less
//! a shift that a section of memory has (a node's base, a hole that was
//! hoisted). A [`Model`] is functions over offsets and the sections that they
//! hold in.

use rand::Rng;
use soloist_machine::function::Term;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

use super::meter::Meter;
use super::source::Addresses;

/// With more address bits random lines hardly ever share a row.
const FEW_BITS: u32 = 26;

/// Two addresses that are measured together.
pub type Pair = (u64, u64);

/// Differences that are tried as they come.
const TRIES: usize = 48;
/// Lines from which a rare difference is sought, and how often from each.
const SEEK_LINES: usize = 4_000;
const SEEK_TRIES: usize = 4;
/// Pairs of pages in which a difference is sought.
const PAGE_TRIES: usize = 160;

/// Memory whose offsets are its addresses less one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// From the first to the last byte; what the operating system leaves out
    /// between them is in no pool.
    pub range: RamRange,
    /// Offset = address - shift, modulo 2^64.
    pub shift: u64,
}

impl Section {
    /// The offset of an address.
    #[must_use]
    pub fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.shift)
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let address = offset.wrapping_add(self.shift);
        (self.range.start..self.range.end)
            .contains(&address)
            .then_some(address)
    }
}

/// Functions, and where they hold.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Where: all of one node.
    pub sections: Vec<Section>,
    /// Bank functions over the offset.
    pub functions: Vec<u64>,
    /// Row functions over the offset.
    pub rows: Vec<Term>,
    /// Offset bits that differ anywhere.
    pub visible: u64,
}

/// Constraints on a difference: functions and their values on it.
pub type Wanted = Vec<(u64, bool)>;

impl Model {
    /// A model of `sections` without functions.
    #[must_use]
    pub fn of(meter: &Meter<'_>, sections: Vec<Section>) -> Self {
        let line = meter.source().line_shift();
        let any = sections.first().map_or(0, |s| s.offset(s.range.start));
        let differ = sections.iter().fold(0, |all, s| {
            all | (s.offset(s.range.start) ^ any) | (s.offset(s.range.end - 1) ^ any)
        });
        let top = 64 - differ.leading_zeros();
        let top = match meter.source().addresses() {
            Addresses::Physical => top,
            Addresses::InsidePages { page_shift } => top.min(page_shift),
        };
        Self {
            sections,
            visible: if top <= line {
                0
            } else {
                gf2::span(line, top - 1)
            },
            ..Self::default()
        }
    }

    /// The offset of an address of one of the sections.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u64> {
        let section = self
            .sections
            .iter()
            .find(|s| (s.range.start..s.range.end).contains(&address))?;
        Some(section.offset(address))
    }

    /// The bank of an address of one of the sections, a bit a function.
    #[must_use]
    pub fn bank(&self, address: u64) -> Option<u64> {
        let offset = self.offset(address)?;
        let bits = self.functions.iter().enumerate();
        Some(bits.fold(0, |bank, (i, &f)| bank | gf2::parity(f, offset) << i))
    }

    /// The difference of the offsets of a pair.
    #[must_use]
    pub fn difference(&self, (a, b): Pair) -> Option<u64> {
        Some((self.offset(a)? ^ self.offset(b)?) & self.visible)
    }

    fn address(&self, offset: u64) -> Option<u64> {
        self.sections.iter().find_map(|s| s.address(offset))
    }

    /// Differences that occur in the pool.
    #[must_use]
    pub fn differences(&self, meter: &Meter<'_>) -> Basis {
        let source = meter.source();
        let line = source.line_shift();
        let mut all = Basis::new();
        let mut origin = None;
        for section in &self.sections {
            let pool = source.pool();
            let inside = pool.differences(&section.range, section.shift, line);
            all.extend(inside.rows().iter().map(|row| row & self.visible));
            if let Some(&first) = pool.inside(&section.range).first() {
                let offset = section.offset(first.max(section.range.start)) >> line << line;
                let origin = *origin.get_or_insert(offset);
                all.insert((offset ^ origin) & self.visible);
            }
        }
        all
    }

    /// A random line of a random section, by its share of the pool.
    pub fn line(&self, meter: &mut Meter<'_>) -> Option<u64> {
        let counts: Vec<usize> = self
            .sections
            .iter()
            .map(|s| meter.source().pool().inside(&s.range).len())
            .collect();
        let mut at = meter.rng.gen_range(0..counts.iter().sum::<usize>().max(1));
        for (section, count) in self.sections.iter().zip(counts) {
            if at < count {
                return meter.random(&section.range).ok();
            }
            at -= count;
        }
        None
    }

    /// A line near to where a bit of the offset changes, at a random scale:
    /// there a wrong base shows.
    pub fn edge_line(&self, meter: &mut Meter<'_>) -> Option<u64> {
        let line = meter.source().line_shift();
        let top = 64 - self.visible.leading_zeros();
        if self.sections.is_empty() || top <= 21 {
            return self.line(meter);
        }
        for _ in 0..TRIES {
            let section = self.sections[meter.rng.gen_range(0..self.sections.len())];
            let bit = meter.rng.gen_range(20..top);
            let near = meter.rng.gen_range(line..=bit);
            let off = meter.rng.gen_range(0..1u64 << near);
            let at = meter.rng.gen_range(section.range.start..section.range.end);
            let edge = section.offset(at) >> bit << bit;
            let offset = match meter.rng.gen() {
                true => edge.wrapping_add(off),
                false => edge.wrapping_sub(off + 1),
            } >> line
                << line;
            let address = section.address(offset);
            if let Some(address) = address.filter(|&address| meter.source().has(address)) {
                return Some(address);
            }
        }
        self.line(meter)
    }

    /// The functions with the values that lines of one bank have.
    #[must_use]
    pub fn same_bank(&self) -> Wanted {
        self.functions.iter().map(|&f| (f, false)).collect()
    }

    /// As [`Model::same_bank`], with a bit that makes the row another where
    /// only few row bits are seen, as inside a page.
    #[must_use]
    pub fn same_bank_other_row(&self) -> Wanted {
        let mut wanted = self.same_bank();
        if 64 - self.visible.leading_zeros() <= FEW_BITS {
            let space = Basis::of(self.functions.iter().copied()).nullspace(self.visible);
            // The highest bit is a row bit.
            if let Some(top) = space.rows().first().and_then(|row| row.checked_ilog2()) {
                wanted.push((1 << top, true));
            }
        }
        wanted
    }

    /// The line that differs from `a` by exactly `difference`, where the pool
    /// has it.
    #[must_use]
    pub fn at(&self, meter: &Meter<'_>, a: u64, difference: u64) -> Option<u64> {
        let b = self.address(self.offset(a)? ^ difference)?;
        (b != a && meter.source().has(b) && meter.source().is_fair(a, b)).then_some(b)
    }

    /// A random line that differs from `a` as `wanted`; `None`: the pool has
    /// none that was found.
    pub fn partner(&self, meter: &mut Meter<'_>, a: u64, wanted: &Wanted) -> Option<u64> {
        let offset = self.offset(a)?;
        let (start, free) = gf2::fit(wanted, self.visible)?;
        // Where pages are many, a random difference leads to one.
        for _ in 0..TRIES {
            let difference = start ^ random_sum(meter, &free);
            if let Some(b) = self.at(meter, a, difference) {
                return Some(b);
            }
        }
        // Where they are few, choose a page and solve for the bits inside.
        for _ in 0..PAGE_TRIES {
            let b = self.line(meter)?;
            let other = self.offset(b)?;
            let inside = self.inside_page(meter, b)?;
            let high = (offset ^ other) & self.visible & !inside;
            let left: Wanted = wanted
                .iter()
                .map(|&(f, value)| (f & inside, value ^ (gf2::parity(f, high) == 1)))
                .collect();
            let Some((low, free)) = gf2::fit(&left, inside) else {
                continue;
            };
            let low = low ^ random_sum(meter, &free);
            let target = (other & !inside) | ((offset ^ low) & inside);
            if let Some(b) = self.at(meter, a, offset ^ target) {
                return Some(b);
            }
        }
        None
    }

    /// Offset bits that vary freely inside the page of `address`.
    fn inside_page(&self, meter: &Meter<'_>, address: u64) -> Option<u64> {
        let section = self
            .sections
            .iter()
            .find(|s| (s.range.start..s.range.end).contains(&address))?;
        let page = meter.source().pool().page_shift();
        let bits = page.min(section.shift.trailing_zeros());
        Some(self.visible & ((1u64 << bits.min(63)) - 1))
    }

    /// As [`Model::pair`], looking through many lines: two that differ in one
    /// high function alone are rare among scattered pages.
    pub fn sought_pair(&self, meter: &mut Meter<'_>, wanted: &Wanted) -> Option<Pair> {
        if let Some(pair) = self.pair(meter, wanted, false) {
            return Some(pair);
        }
        let (start, free) = gf2::fit(wanted, self.visible)?;
        for _ in 0..SEEK_LINES {
            let a = self.line(meter)?;
            for _ in 0..SEEK_TRIES {
                let difference = start ^ random_sum(meter, &free);
                if let Some(b) = self.at(meter, a, difference) {
                    return Some((a, b));
                }
            }
        }
        None
    }

    /// Whether two lines of all memory, in the pool or not, differ as `wanted`.
    pub fn occurs(&self, meter: &mut Meter<'_>, wanted: &Wanted) -> bool {
        let Some((start, free)) = gf2::fit(wanted, self.visible) else {
            return false;
        };
        let spans = self.sections.iter().map(|s| s.range.end - s.range.start);
        let all: u64 = spans.sum();
        (0..SEEK_LINES).any(|_| {
            let mut at = meter.rng.gen_range(0..all.max(1));
            let difference = start ^ random_sum(meter, &free);
            self.sections.iter().any(|section| {
                let size = section.range.end - section.range.start;
                let here = at < size;
                let address = section.range.start + at.min(size - 1);
                at = at.wrapping_sub(size);
                here && self.address(section.offset(address) ^ difference).is_some()
            })
        })
    }

    /// A random pair that differs as `wanted`, from anywhere or from edges.
    pub fn pair(&self, meter: &mut Meter<'_>, wanted: &Wanted, edge: bool) -> Option<Pair> {
        for _ in 0..8 {
            let a = match edge {
                true => self.edge_line(meter)?,
                false => self.line(meter)?,
            };
            if let Some(b) = self.partner(meter, a, wanted) {
                return Some((a, b));
            }
        }
        None
    }
}

/// A random sum of the rows.
pub fn random_sum(meter: &mut Meter<'_>, space: &Basis) -> u64 {
    let mut sum = 0;
    for &row in space.rows() {
        if meter.rng.gen() {
            sum ^= row;
        }
    }
    sum
}
