//! A map as functions and ranges, before core's parser has seen it: what
//! machine files, importers, the solver and the detector produce.

use serde::Serialize;
use soloist_core::Interleave;

use crate::function::{self, Term};
use crate::gf2::Basis;

/// Functions of one DIMM population, low bit of each field first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Name in the machine file; empty when there is only one.
    pub name: String,
    /// Channel functions.
    pub channel: Vec<u64>,
    /// Rank functions.
    pub rank: Vec<u64>,
    /// Bank functions.
    pub bank: Vec<u64>,
    /// Row bits.
    pub row: Vec<Term>,
    /// Column bits.
    pub column: Vec<Term>,
    /// Printed rank = rank + this.
    pub chip_select: u16,
    /// Which bits of the bank field are the bank group.
    pub bank_group: Vec<u8>,
    /// Which bits of the channel field are the sub-channel.
    pub sub_channel: Vec<u8>,
    /// Offsets are dealt out over ways by division; the functions are over
    /// what is left of them.
    pub interleave: Option<Interleave>,
    /// Numbers of the ways, in turn; empty: 0, 1 and so on.
    pub ways: Vec<u8>,
}

impl Layout {
    /// Channel, rank and bank functions together: what tells banks apart.
    #[must_use]
    pub fn bank_functions(&self) -> Vec<u64> {
        [&self.channel, &self.rank, &self.bank]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    /// Masks of the row bits.
    #[must_use]
    pub fn row_masks(&self) -> Vec<u64> {
        self.row.iter().map(|term| term.mask).collect()
    }
}

/// A range of physical addresses on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MapRange {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Node.
    pub node: u8,
    /// Offset of the first byte within its node.
    pub base: u64,
    /// Index of the layout.
    pub layout: usize,
}

/// A map: line, LLC functions, layouts, ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSpec {
    /// Cache line, bytes.
    pub line: u32,
    /// LLC colour functions over the physical address.
    pub llc: Vec<u64>,
    /// Layouts.
    pub layouts: Vec<Layout>,
    /// Ranges, ascending.
    pub ranges: Vec<MapRange>,
}

impl MapSpec {
    /// A map of one layout over one range from address 0.
    #[must_use]
    pub fn single(layout: Layout, bytes: u64) -> Self {
        Self {
            line: 64,
            llc: Vec::new(),
            layouts: vec![layout],
            ranges: vec![MapRange {
                start: 0,
                end: bytes,
                node: 0,
                base: 0,
                layout: 0,
            }],
        }
    }

    /// The text of docs/reference/map-format.md.
    #[must_use]
    pub fn to_text(&self, name: &str) -> String {
        let mut text = format!("soloist-map 1\nname {name}\nline {}\n", self.line);
        say(&mut text, "llc", &plain(&self.llc));
        for layout in &self.layouts {
            text.push_str("layout\n");
            if let Some(Interleave { ways, granule }) = layout.interleave {
                let on = match layout.ways.is_empty() {
                    true => String::new(),
                    false => format!(" on {}", numbers(&layout.ways)),
                };
                say(&mut text, "interleave", &format!("{ways} {granule}{on}"));
            }
            say(&mut text, "channel", &plain(&layout.channel));
            say(&mut text, "sub", &numbers(&layout.sub_channel));
            say(&mut text, "rank", &plain(&layout.rank));
            say(&mut text, "bank", &plain(&layout.bank));
            say(&mut text, "bg", &numbers(&layout.bank_group));
            if layout.chip_select != 0 {
                say(&mut text, "cs", &layout.chip_select.to_string());
            }
            say(&mut text, "row", &function::show_terms(&layout.row));
            say(&mut text, "col", &function::show_terms(&layout.column));
        }
        for range in &self.ranges {
            let range = format!(
                "{:#x} {:#x} node {} base {:#x} layout {}",
                range.start, range.end, range.node, range.base, range.layout
            );
            say(&mut text, "range", &range);
        }
        text
    }

    /// Bytes of memory in all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start))
            .sum()
    }

    /// Width of a layout's offsets, normalised where they are interleaved: bits
    /// that the largest range of the layout uses.
    #[must_use]
    pub fn offset_bits(&self, layout: usize) -> u32 {
        self.ranges
            .iter()
            .filter(|range| range.layout == layout)
            .map(|range| {
                range
                    .base
                    .saturating_add(range.end.saturating_sub(range.start))
            })
            .map(|end| match self.layouts[layout].interleave {
                // Another way may reach to the end of its granule.
                Some(i) => i.split(end.saturating_sub(1)).1 | (i.granule - 1),
                None => end.saturating_sub(1),
            })
            .map(|last| 64 - last.leading_zeros())
            .max()
            .unwrap_or(0)
    }

    /// Makes every layout determine its offsets, as core demands: bits that no
    /// function determines become column bits, in free places of the printed
    /// number, or row bits where they lie above the lowest row bit and are not
    /// among `no_rows`. Returns the bits.
    pub fn determine(&mut self, no_rows: u64) -> Vec<u32> {
        let line_bits = self.line.trailing_zeros();
        let mut added = Vec::new();
        for i in 0..self.layouts.len() {
            let top = self.offset_bits(i);
            let layout = &mut self.layouts[i];
            let mut known = Basis::of(layout.bank_functions());
            known.extend(layout.row_masks());
            known.extend(layout.column.iter().map(|term| term.mask));
            let lowest_row = layout
                .row_masks()
                .iter()
                .map(|mask| mask.trailing_zeros())
                .min();
            for bit in line_bits..top {
                if !known.insert(1 << bit) {
                    continue;
                }
                added.push(bit);
                let row = no_rows >> bit & 1 == 0 && lowest_row.is_some_and(|lowest| bit > lowest);
                let field = if row {
                    &mut layout.row
                } else {
                    &mut layout.column
                };
                let at = (0..)
                    .find(|at| field.iter().all(|term| term.at != *at))
                    .unwrap_or(0);
                field.push(Term { at, mask: 1 << bit });
                field.sort_by_key(|term| term.at);
            }
        }
        added
    }

    /// Fills in rows and columns where only the bank functions are known, so
    /// that decode and encode are inverses: columns take the low bits that the
    /// bank functions leave over, rows the high ones, from `first_row` up.
    pub fn complete(&mut self, first_row: u32) {
        for i in 0..self.layouts.len() {
            let top = self.offset_bits(i);
            let line_bits = self.line.trailing_zeros();
            let layout = &mut self.layouts[i];
            let mut basis = Basis::of(layout.bank_functions());
            if layout.row.is_empty() {
                let rows: Vec<u64> = (first_row..top).map(|bit| 1 << bit).collect();
                let rows: Vec<u64> = rows.into_iter().filter(|&row| basis.insert(row)).collect();
                layout.row = function::terms_of(&rows);
            } else {
                basis.extend(layout.row_masks());
            }
            if layout.column.is_empty() {
                let columns: Vec<u64> = (line_bits..top)
                    .map(|bit| 1 << bit)
                    .filter(|&column| basis.insert(column))
                    .collect();
                layout.column = function::terms_of(&columns)
                    .into_iter()
                    .map(|term| Term {
                        at: term.at + line_bits.saturating_sub(3),
                        ..term
                    })
                    .collect();
            }
        }
    }
}

fn say(text: &mut String, word: &str, value: &str) {
    if !value.is_empty() {
        text.push_str(&format!("{word} {value}\n"));
    }
}

fn plain(masks: &[u64]) -> String {
    function::show_terms(&function::terms_of(masks))
}

fn numbers(list: &[u8]) -> String {
    list.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}
