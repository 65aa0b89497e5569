//! The bit ruler: which address bits make which field, as text and as SVG.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{html, Markup};
use soloist_core::PageSize;

use soloist_machine::gf2;
use soloist_machine::spec::MapSpec;

/// What a line of the ruler stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Byte within a cache line, page offset: the offsets' own lines.
    Offset,
    /// A channel function.
    Channel,
    /// A rank function.
    Rank,
    /// A bank function.
    Bank,
    /// All row bits.
    Row,
    /// All column bits.
    Column,
    /// All LLC colour bits.
    Llc,
}

/// One line of the ruler.
#[derive(Debug, Clone)]
pub struct Line {
    /// What stands before it.
    pub label: String,
    /// What it is.
    pub kind: Kind,
    /// Address bits that take part.
    pub mask: u64,
}

/// The ruler of one layout.
#[derive(Debug, Clone)]
pub struct Ruler {
    /// Highest bit shown.
    pub top: u32,
    /// First bit above the cache line.
    pub line_shift: u32,
    /// First bit above the page.
    pub page_shift: u32,
    /// Lines from top to bottom.
    pub lines: Vec<Line>,
}

impl Ruler {
    /// The ruler of layout `index` of `map`, with such pages.
    ///
    /// # Panics
    /// When there is no such layout.
    #[must_use]
    pub fn new(map: &MapSpec, index: usize, pages: PageSize) -> Self {
        let layout = &map.layouts[index];
        let line_shift = map.line.trailing_zeros();
        let mut lines = vec![
            Line {
                label: "line".into(),
                kind: Kind::Offset,
                mask: (1 << line_shift) - 1,
            },
            Line {
                label: "page".into(),
                kind: Kind::Offset,
                mask: pages.bytes() - 1,
            },
        ];
        let fields = [
            ("channel", Kind::Channel, &layout.channel),
            ("rank", Kind::Rank, &layout.rank),
            ("bank", Kind::Bank, &layout.bank),
        ];
        for (name, kind, functions) in fields {
            for (i, &mask) in functions.iter().enumerate() {
                lines.push(Line {
                    label: format!("{name} {i}"),
                    kind,
                    mask,
                });
            }
        }
        let union = |masks: &[u64]| masks.iter().fold(0, |all, mask| all | mask);
        let columns: Vec<u64> = layout.column.iter().map(|term| term.mask).collect();
        for (label, kind, mask) in [
            ("row", Kind::Row, union(&layout.row_masks())),
            ("column", Kind::Column, union(&columns)),
            ("LLC", Kind::Llc, union(&map.llc)),
        ] {
            if mask != 0 {
                lines.push(Line {
                    label: label.into(),
                    kind,
                    mask,
                });
            }
        }
        let used = lines.iter().fold(0, |all, line| all | line.mask);
        Self {
            top: map
                .offset_bits(index)
                .max(64 - used.leading_zeros())
                .max(pages.shift() + 1)
                - 1,
            line_shift,
            page_shift: pages.shift(),
            lines,
        }
    }

    /// The ruler in characters, two a bit and a blank; `█` takes part, `│` ends the page
    /// offset. Where `columns` of a terminal are too few, in parts below each other, from the
    /// highest bits on.
    #[must_use]
    pub fn text(&self, columns: Option<usize>) -> String {
        let labels = self.lines.iter().map(|line| line.label.len());
        let width = labels.max().unwrap_or(0);
        let most = columns.map_or(64, |columns| columns.saturating_sub(width + 1) / 3);
        let parts = self.parts(u32::try_from(most).unwrap_or(64).max(1));
        let parts = parts.into_iter().map(|bits| self.part(width, bits));
        parts.collect::<Vec<_>>().join("\n")
    }

    /// All bits at once, or those above the page offset and those of it, in parts of `most` bits.
    fn parts(&self, most: u32) -> Vec<Range<u32>> {
        let end = self.top + 1;
        let page = if end <= most { end } else { self.page_shift };
        let cut = |low: u32, high: u32| {
            let ends = (low + 1..=high).rev().step_by(most as usize);
            ends.map(move |end| low.max(end.saturating_sub(most))..end)
        };
        cut(page, end).chain(cut(0, page)).collect()
    }

    fn part(&self, width: usize, bits: Range<u32>) -> String {
        let mut out = format!("{:width$} ", "bit");
        for bit in bits.clone().rev() {
            let _ = write!(out, "{bit:>2}{}", self.gap(bit));
        }
        out.push('\n');
        for line in &self.lines {
            let _ = write!(out, "{:width$} ", line.label);
            let mark = match line.kind {
                Kind::Offset => "──",
                _ => " █",
            };
            for bit in bits.clone().rev() {
                let cell = if line.mask >> bit & 1 == 1 {
                    mark
                } else {
                    " ·"
                };
                let _ = write!(out, "{cell}{}", self.gap(bit));
            }
            while out.ends_with([' ']) {
                out.pop();
            }
            out.push('\n');
        }
        out
    }

    fn gap(&self, bit: u32) -> &'static str {
        if bit == self.page_shift {
            "│"
        } else {
            " "
        }
    }

    /// The ruler as an SVG picture titled `title`; `notes` stand below.
    #[must_use]
    pub fn svg(&self, title: &str, notes: &[String]) -> String {
        let columns = self.top + 1;
        let width = LEFT + columns * CELL + 16;
        let bottom = TOP + self.lines.len() as u32 * CELL;
        let height = bottom + 28 + notes.len() as u32 * 18;
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
                viewBox={"0 0 " (width) " " (height)} font-family="sans-serif" font-size="12" {
                "\n" rect width=(width) height=(height) fill="#ffffff" {}
                "\n" text x="12" y="24" font-size="15" font-weight="bold" fill=(INK) { (title) }
                @for bit in 0..=self.top {
                    "\n" text x=(self.x(bit) + CELL / 2) y=(TOP - 8) text-anchor="middle"
                        font-size="11" fill="#57606a" { (bit) }
                }
                @for (y, line) in (TOP..).step_by(CELL as usize).zip(&self.lines) {
                    (self.svg_line(line, y))
                }
                @for (at, label) in [(self.page_shift, "page"), (self.line_shift, "line")] {
                    @let edge = self.x(at) + CELL;
                    "\n" line x1=(edge) y1=(TOP - 34) x2=(edge) y2=(bottom) stroke=(INK)
                        stroke-dasharray="4 3" {}
                    "\n" text x=(edge + 4) y=(TOP - 24) font-size="11" fill=(INK) {
                        (label) " offset"
                    }
                }
                @for (y, note) in (bottom + 26..).step_by(18).zip(notes) {
                    "\n" text x="12" y=(y) fill=(INK) { (note) }
                }
                "\n"
            }
            "\n"
        };
        picture.into_string()
    }

    /// Left edge of a bit's column.
    fn x(&self, bit: u32) -> u32 {
        LEFT + (self.top - bit) * CELL
    }

    fn svg_line(&self, line: &Line, y: u32) -> Markup {
        let fill = match line.kind {
            Kind::Offset => "#d0d7de",
            Kind::Channel => "#bf3989",
            Kind::Rank => "#8250df",
            Kind::Bank => "#0969da",
            Kind::Row => "#9a6700",
            Kind::Column => "#1a7f37",
            Kind::Llc => "#cf222e",
        };
        html! {
            "\n" text x="12" y=(y + CELL - 8) fill=(INK) { (line.label) }
            @for bit in 0..=self.top {
                @let on = line.mask >> bit & 1 == 1;
                "\n" rect x=(self.x(bit) + 1) y=(y + 1) width=(CELL - 2) height=(CELL - 2) rx="3"
                    fill=(if on { fill } else { "#f6f8fa" }) {}
            }
        }
    }
}

/// Of the picture, in pixels: a bit's cell, and what lies left of the bits and above.
const CELL: u32 = 24;
const LEFT: u32 = 92;
const TOP: u32 = 66;
const INK: &str = "#1b1f24";

/// The functions of every field in words, for `map show`.
#[must_use]
pub fn field_list(map: &MapSpec, index: usize) -> Vec<(&'static str, String)> {
    let layout = &map.layouts[index];
    let plain = |masks: &[u64]| {
        masks
            .iter()
            .map(|&mask| gf2::show(mask))
            .collect::<Vec<_>>()
            .join(", ")
    };
    [
        ("channel", plain(&layout.channel)),
        ("rank", plain(&layout.rank)),
        ("bank", plain(&layout.bank)),
        ("row", soloist_machine::function::show_terms(&layout.row)),
        (
            "column",
            soloist_machine::function::show_terms(&layout.column),
        ),
        ("LLC", plain(&map.llc)),
    ]
    .into_iter()
    .filter(|(_, functions)| !functions.is_empty())
    .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{PageSize, Ruler};
    use soloist_machine::known;

    #[test]
    fn a_ruler_fits_a_narrow_terminal() {
        let machine = known::find("zen2").unwrap();
        let ruler = Ruler::new(&machine.map, 0, PageSize::from_bytes(4096).unwrap());
        let whole = ruler.text(None);
        assert_eq!(ruler.text(Some(200)), whole);
        for (columns, parts) in [(80, 2), (40, 4), (10, 34)] {
            let text = ruler.text(Some(columns));
            let heads = text.lines().filter(|line| line.starts_with("bit"));
            let heads: Vec<&str> = heads.collect();
            assert_eq!(heads.len(), parts, "{text}");
            let bits = |head: &str| {
                head.replace(['│', ' '], ",")
                    .split(',')
                    .map(str::to_owned)
                    .filter(|bit| bit.parse::<u32>().is_ok())
                    .collect::<Vec<_>>()
            };
            let seen: Vec<String> = heads.iter().flat_map(|head| bits(head)).collect();
            assert_eq!(seen, bits(whole.lines().next().unwrap()), "{text}");
            let widest = text
                .lines()
                .map(|line| line.trim_end().chars().count())
                .max();
            assert!(widest <= Some(columns), "{text}");
        }
    }
}
