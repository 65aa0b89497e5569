//! What is claimed of a part of memory, and pairs of lines that test it.
//!
//! A map is linear over the *offset* of an address, which is the address less
//! a shift that a section of memory has (a node's base, a hole that was
//! hoisted). A [`Model`] is functions over offsets and the sections that they
//! hold in. Where channels come from a division it is linear over what that
//! leaves, way by way: lines of two ways are never of one bank, so that only
//! lines of one way have a difference.

use rand::Rng;
use soloist_core::Interleave;
use soloist_machine::function::Term;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

use crate::meter::Meter;
use crate::timing::pool::{differences_of_memory, Lines};
use crate::timing::Addresses;

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

    /// Whether an offset of it is one of `other` too.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends = |s: &Self| (s.offset(s.range.start), s.offset(s.range.end - 1));
        let ((first, last), (other_first, other_last)) = (ends(self), ends(other));
        first <= other_last && other_first <= last
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let address = offset.wrapping_add(self.shift);
        (self.range.start..self.range.end)
            .contains(&address)
            .then_some(address)
    }
}

/// Way of a line, and its offset (normalised where there is a division) or its bank.
pub type InWay = (u32, u64);

/// Functions, and where they hold.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Where: all of one node.
    pub sections: Vec<Section>,
    /// The division that gives the channel, where no function of the offset does: all
    /// functions are over what it leaves.
    pub division: Option<Interleave>,
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
    pub fn of(meter: &Meter<'_>, sections: Vec<Section>, division: Option<Interleave>) -> Self {
        let line = meter.source().line_shift();
        let normal = |offset: u64| division.map_or(offset, |by| by.split(offset).1);
        let any = sections
            .first()
            .map_or(0, |s| normal(s.offset(s.range.start)));
        let differ = sections.iter().fold(0, |all, s| {
            let (first, last) = (s.offset(s.range.start), s.offset(s.range.end - 1));
            all | (normal(first) ^ any) | (normal(last) ^ any)
        });
        let top = 64 - differ.leading_zeros();
        let top = match meter.source().addresses() {
            Addresses::Physical => top,
            Addresses::InsidePages { page_shift } => top.min(page_shift),
        };
        Self {
            sections,
            division,
            visible: if top <= line {
                0
            } else {
                gf2::span(line, top - 1)
            },
            ..Self::default()
        }
    }

    /// Leaves memory out of the sections.
    pub fn cut(&mut self, out: &RamRange) {
        let cut = |section: &Section| {
            let range = section.range;
            let parts = [
                (range.start, range.end.min(out.start)),
                (range.start.max(out.end), range.end),
            ];
            let apart = out.end <= range.start || range.end <= out.start;
            let parts = if apart {
                vec![(range.start, range.end)]
            } else {
                parts.to_vec()
            };
            let part = |(start, end)| Section {
                range: RamRange {
                    start,
                    end,
                    ..range
                },
                ..*section
            };
            parts
                .into_iter()
                .filter(|(start, end)| start < end)
                .map(part)
                .collect::<Vec<_>>()
        };
        self.sections = self.sections.iter().flat_map(cut).collect();
    }

    /// The parts of `ranges` that lie in its sections, ascending.
    #[must_use]
    pub fn memory(&self, ranges: &[RamRange]) -> Vec<RamRange> {
        let common = |section: &Section, range: &RamRange| RamRange {
            start: range.start.max(section.range.start),
            end: range.end.min(section.range.end),
            node: range.node,
        };
        let all = self.sections.iter();
        let all = all.flat_map(|section| ranges.iter().map(|range| common(section, range)));
        let mut memory: Vec<RamRange> = all.filter(|range| range.start < range.end).collect();
        memory.sort_by_key(|range| range.start);
        memory
    }

    /// The offset of an address of one of the sections in its node, before any
    /// division.
    #[must_use]
    pub fn base(&self, address: u64) -> Option<u64> {
        let section = self
            .sections
            .iter()
            .find(|s| (s.range.start..s.range.end).contains(&address))?;
        Some(section.offset(address))
    }

    fn split(&self, base: u64) -> InWay {
        self.division.map_or((0, base), |by| by.split(base))
    }

    fn join(&self, (way, offset): InWay) -> u64 {
        self.division.map_or(offset, |by| by.join(way, offset))
    }

    /// Ways of the division.
    #[must_use]
    pub fn ways(&self) -> u32 {
        self.division.map_or(1, |by| by.ways)
    }

    /// Way and offset of an address of one of the sections.
    #[must_use]
    pub fn place(&self, address: u64) -> Option<InWay> {
        Some(self.split(self.base(address)?))
    }

    /// The way of an address of one of the sections and its bank there, a bit a
    /// function.
    #[must_use]
    pub fn bank(&self, address: u64) -> Option<InWay> {
        Some(self.bank_at(self.base(address)?))
    }

    /// As [`Model::bank`], by the offset before any division.
    #[must_use]
    pub fn bank_at(&self, base: u64) -> InWay {
        let (way, offset) = self.split(base);
        let bits = self.functions.iter().enumerate();
        (
            way,
            bits.fold(0, |bank, (i, &f)| bank | gf2::parity(f, offset) << i),
        )
    }

    /// The difference of the offsets of a pair; `None`: of two ways.
    #[must_use]
    pub fn difference(&self, (a, b): Pair) -> Option<u64> {
        let (a, b) = (self.place(a)?, self.place(b)?);
        (a.0 == b.0).then_some((a.1 ^ b.1) & self.visible)
    }

    fn address(&self, place: InWay) -> Option<u64> {
        let base = self.join(place);
        self.sections.iter().find_map(|s| s.address(base))
    }

    /// The lines of one way of a section.
    fn lines(&self, section: &Section, way: u32) -> Lines {
        Lines {
            shift: section.shift,
            way: self.division.map(|by| (by, way)),
        }
    }

    /// Differences that occur in the pool.
    #[must_use]
    pub fn differences(&self, meter: &Meter<'_>) -> Basis {
        let pool = meter.source().pool();
        let parts = |section: &Section, lines| pool.differences(&section.range, lines);
        self.differences_by(meter, parts)
    }

    /// Differences that occur in `ranges`, in the pool or not.
    #[must_use]
    pub fn differences_of_memory(&self, meter: &Meter<'_>, ranges: &[RamRange]) -> Basis {
        self.differences_by(meter, |section, lines| {
            let inside = ranges.iter().filter(|range| {
                section.range.start <= range.start && range.end <= section.range.end
            });
            differences_of_memory(inside, lines)
        })
    }

    /// Differences among the lines of each way, by what `parts` says of those
    /// of a section: an offset of theirs, and their differences.
    fn differences_by(
        &self,
        meter: &Meter<'_>,
        parts: impl Fn(&Section, Lines) -> Option<(u64, Basis)>,
    ) -> Basis {
        let line = meter.source().line_shift();
        let visible = self.visible >> line << line;
        let mut all = Basis::new();
        for way in 0..self.ways() {
            let mut origin = None;
            for section in &self.sections {
                let Some((any, inside)) = parts(section, self.lines(section, way)) else {
                    continue;
                };
                all.extend(inside.rows().iter().map(|row| row & visible));
                let origin = *origin.get_or_insert(any);
                all.insert((any ^ origin) & visible);
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
            let (way, at) = self.split(section.offset(at));
            let edge = at >> bit << bit;
            let offset = match meter.rng.gen() {
                true => edge.wrapping_add(off),
                false => edge.wrapping_sub(off + 1),
            } >> line
                << line;
            let address = section.address(self.join((way, offset)));
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
        self.in_way(meter, a, 0, difference)
    }

    /// As [`Model::at`], so many ways further.
    fn in_way(&self, meter: &Meter<'_>, a: u64, further: u32, difference: u64) -> Option<u64> {
        let (way, offset) = self.place(a)?;
        let b = self.address(((way + further) % self.ways(), offset ^ difference))?;
        (b != a && meter.source().has(b) && meter.source().is_fair(a, b)).then_some(b)
    }

    /// Lines of two ways that are of one bank but for that.
    pub fn strangers(&self, meter: &mut Meter<'_>) -> Option<Pair> {
        let (_, free) = gf2::fit(&self.same_bank(), self.visible)?;
        for _ in 0..SEEK_LINES {
            let a = self.line(meter)?;
            let further = meter.rng.gen_range(1..self.ways().max(2));
            let difference = random_sum(meter, &free);
            if let Some(b) = self.in_way(meter, a, further, difference) {
                return Some((a, b));
            }
        }
        None
    }

    /// A random line that differs from `a` as `wanted`; `None`: the pool has
    /// none that was found.
    pub fn partner(&self, meter: &mut Meter<'_>, a: u64, wanted: &Wanted) -> Option<u64> {
        let (_, offset) = self.place(a)?;
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
            let (_, other) = self.place(b)?;
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
        let bits = match self.division {
            // About as long a piece of each way lies in a page, wherever it begins.
            Some(by) => page - by.ways.next_power_of_two().trailing_zeros().min(page),
            None => page.min(section.shift.trailing_zeros()),
        };
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
                let (way, offset) = self.split(section.offset(address));
                here && self.address((way, offset ^ difference)).is_some()
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
