//! Where the pages of a process are, as a picture: a column for each bank set,
//! node by node, a row for each LLC colour, and in each the pages that were
//! found there. What a group may use is pale where it is empty, so one sees at
//! once what was kept to itself, and what lies elsewhere.

use maud::{html, Markup};
use soloist_core::{AddrMap, ColorSet};

use crate::observe::verify::{Cell, Report};
use crate::words::counted;

/// In colour, and elsewhere: told apart by the colour-blind, and in print.
const HELD: &str = "#1f5fa8";
const ELSEWHERE: &str = "#d55e00";
/// Of no group: nothing says what its colours are.
const UNJUDGED: &str = "#57606a";
/// Cells that a group may use, that no group of the process may, that no frame
/// has.
const OPEN: &str = "#c9dcf2";
const CLOSED: &str = "#eef0f2";
const NONE: &str = "#ffffff";

const LEFT: f64 = 72.0;
const TOP: f64 = 74.0;
/// What all bank sets get, and all LLC colours, in pixels.
const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 300.0;
/// Between nodes.
const GAP: f64 = 10.0;

/// The pages that `report` found, as SVG; cells say what they are when pointed at.
#[must_use]
pub fn svg(report: &Report, map: &AddrMap) -> String {
    let grid = Grid::new(map);
    let (width, height) = (LEFT + grid.width() + 16.0, TOP + grid.height() + 44.0);
    let sets: Vec<&ColorSet> = report
        .groups
        .iter()
        .filter_map(|g| g.set.as_ref())
        .collect();
    let background = |set, llc| match map.cell_frames(set, llc) {
        0 => NONE,
        _ if sets.iter().any(|colors| colors.holds(set, llc)) => OPEN,
        _ => CLOSED,
    };
    let most = report.by_cell.values().map(|c| c.pages).max().unwrap_or(1);
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
            font-family="sans-serif" font-size="12" fill="#1b1f24" {
            "\n" rect width=(whole(width)) height=(whole(height)) fill=(NONE) {}
            (text(12.0, 24.0, "start", &title(report)))
            (grid.axes(map))
            @for llc in 0..map.n_llc() {
                (grid.row(map, llc, |set| background(set, llc)))
            }
            @for cell in report.by_cell.values() {
                (grid.cell(map, cell, most, !sets.is_empty()))
            }
            (legend(height - 16.0, !sets.is_empty()))
            "\n"
        }
        "\n"
    };
    picture.into_string()
}

/// What was looked at, and how much of it is in colour.
fn title(report: &Report) -> String {
    let (pid, command, total) = (report.pid, &report.command, &report.total);
    match report.groups.as_slice() {
        [] => format!("{command} ({pid}): {} pages, in no group", total.present),
        groups => {
            let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
            let pages = match report.is_colored() {
                true => format!("{} of {} pages in colour", total.in_color, total.present),
                false => format!("{} pages, no colours yet", total.present),
            };
            format!("{command} ({pid}) in {}: {pages}", names.join(", "))
        }
    }
}

/// Where cells are drawn.
struct Grid {
    /// Pixels of a cell.
    column: f64,
    row: f64,
    sets: u32,
    llc: u32,
    nodes: u32,
}

impl Grid {
    fn new(map: &AddrMap) -> Self {
        let (sets, llc) = (map.n_bank_sets(), map.n_llc());
        Self {
            column: (WIDTH / f64::from(sets)).min(24.0),
            row: (HEIGHT / f64::from(llc)).min(24.0),
            sets,
            llc,
            nodes: map.n_nodes(),
        }
    }

    fn width(&self) -> f64 {
        f64::from(self.sets) * self.column + f64::from(self.nodes.saturating_sub(1)) * GAP
    }

    fn height(&self) -> f64 {
        f64::from(self.llc) * self.row
    }

    fn x(&self, map: &AddrMap, set: u32) -> f64 {
        LEFT + f64::from(set) * self.column + f64::from(map.node_of_set(set)) * GAP
    }

    /// LLC colour 0 is at the bottom.
    fn y(&self, llc: u32) -> f64 {
        TOP + f64::from(self.llc - 1 - llc) * self.row
    }

    /// A row of empty cells; neighbours of one colour are one rectangle.
    fn row(&self, map: &AddrMap, llc: u32, fill: impl Fn(u32) -> &'static str) -> Markup {
        let alike =
            |a: &u32, b: &u32| fill(*a) == fill(*b) && map.node_of_set(*a) == map.node_of_set(*b);
        let sets: Vec<u32> = (0..self.sets).collect();
        html! {
            @for run in sets.chunk_by(alike).filter(|run| fill(run[0]) != NONE) {
                "\n" rect x=(tenths(self.x(map, run[0]))) y=(tenths(self.y(llc)))
                    width=(tenths(run.len() as f64 * self.column)) height=(tenths(self.row))
                    fill=(fill(run[0])) {}
            }
        }
    }

    /// The pages of a cell, the darker the more of `most` they are.
    fn cell(&self, map: &AddrMap, cell: &Cell, most: u64, judged: bool) -> Markup {
        let (fill, what) = match (judged, cell.in_color) {
            (false, _) => (UNJUDGED, ""),
            (true, true) => (HELD, ", in colour"),
            (true, false) => (ELSEWHERE, ", not in colour"),
        };
        // A page alone is seen, too.
        let shade = 0.35 + 0.65 * (1.0 + cell.pages as f64).ln() / (1.0 + most as f64).ln();
        html! {
            "\n" rect x=(tenths(self.x(map, cell.bank_set))) y=(tenths(self.y(cell.llc)))
                width=(tenths(self.column)) height=(tenths(self.row)) fill=(fill)
                fill-opacity=(format!("{shade:.2}")) {
                title {
                    "bank set " (cell.bank_set) ", LLC colour " (cell.llc) ": "
                    (counted(cell.pages, "page")) (what)
                }
            }
        }
    }

    /// Nodes with their bank sets above, LLC colours on the left.
    fn axes(&self, map: &AddrMap) -> Markup {
        html! {
            @for node in 0..self.nodes {
                (self.node_axis(map, node))
            }
            (text(LEFT - 8.0, TOP - 8.0, "end", "bank set"))
            @if self.llc > 1 {
                @let top = self.llc - 1;
                (text(LEFT - 8.0, self.y(top) + 11.0, "end", &format!("LLC {top}")))
                (text(LEFT - 8.0, self.y(0) + self.row, "end", "0"))
            }
        }
    }

    fn node_axis(&self, map: &AddrMap, node: u32) -> Markup {
        let mut sets = map.sets_of_node(node);
        let Some(first) = sets.next() else {
            return html! {};
        };
        let last = sets.last().unwrap_or(first);
        let (left, right) = (self.x(map, first), self.x(map, last) + self.column);
        html! {
            (text(left, TOP - 24.0, "start", &format!("node {node}")))
            (text(left, TOP - 8.0, "start", &first.to_string()))
            @if last > first {
                (text(right, TOP - 8.0, "end", &last.to_string()))
            }
        }
    }
}

fn legend(y: f64, judged: bool) -> Markup {
    let keys: &[(&str, &str)] = if judged {
        &[
            (HELD, "pages in colour (darker: more)"),
            (OPEN, "its colours, no page"),
            (ELSEWHERE, "pages elsewhere"),
            (CLOSED, "not its colours"),
            (NONE, "white: no frame has both"),
        ]
    } else {
        &[(UNJUDGED, "pages (darker: more)"), (CLOSED, "no page")]
    };
    let places = keys.iter().scan(LEFT, |next, (_, words)| {
        let x = *next;
        *next += 40.0 + words.len() as f64 * 6.6;
        Some(x)
    });
    html! {
        @for (x, (fill, words)) in places.zip(keys) {
            "\n" rect x=(whole(x)) y=(whole(y - 10.0)) width="12" height="12" fill=(fill) {}
            (text(x + 18.0, y, "start", words))
        }
    }
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> Markup {
    html! { "\n" text x=(tenths(x)) y=(tenths(y)) text-anchor=(anchor) { (words) } }
}

/// Pixels, to a tenth.
fn tenths(pixels: f64) -> String {
    format!("{pixels:.1}")
}

/// Pixels, whole ones.
fn whole(pixels: f64) -> String {
    format!("{pixels:.0}")
}
