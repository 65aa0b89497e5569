//! Where the pages of a process are, as a picture: a column for each bank set,
//! node by node, a row for each LLC colour, and in each the pages that were
//! found there. What a group may use is pale where it is empty, so one sees at
//! once what was kept to itself, and what lies elsewhere.

use std::fmt::Write as _;

use soloist_core::{AddrMap, ColorSet};

use crate::observe::verify::Report;
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
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#1b1f24\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"{NONE}\"/>\n"
    );
    text(&mut svg, 12.0, 24.0, "start", &title(report));
    grid.axes(&mut svg, map);
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
    for llc in 0..map.n_llc() {
        grid.row(&mut svg, map, llc, |set| background(set, llc));
    }
    let most = report.by_cell.values().map(|c| c.pages).max().unwrap_or(1);
    for cell in report.by_cell.values() {
        let (fill, what) = match (sets.is_empty(), cell.in_color) {
            (true, _) => (UNJUDGED, ""),
            (_, true) => (HELD, ", in colour"),
            (_, false) => (ELSEWHERE, ", not in colour"),
        };
        // A page alone is seen, too.
        let shade = 0.35 + 0.65 * (1.0 + cell.pages as f64).ln() / (1.0 + most as f64).ln();
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" fill-opacity=\"{shade:.2}\">\
             <title>bank set {}, LLC colour {}: {}{what}</title></rect>",
            grid.x(map, cell.bank_set),
            grid.y(cell.llc),
            grid.column,
            grid.row,
            cell.bank_set,
            cell.llc,
            counted(cell.pages, "page")
        );
    }
    legend(&mut svg, height - 16.0, !sets.is_empty());
    svg.push_str("</svg>\n");
    svg
}

/// What was looked at, and how much of it is in colour.
fn title(report: &Report) -> String {
    let (pid, command, total) = (report.pid, &report.command, &report.total);
    match report.groups.as_slice() {
        [] => format!("{command} ({pid}): {} pages, in no group", total.present),
        groups => {
            let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
            format!(
                "{command} ({pid}) in {}: {} of {} pages in colour",
                names.join(", "),
                total.in_color,
                total.present
            )
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
    fn row(&self, svg: &mut String, map: &AddrMap, llc: u32, fill: impl Fn(u32) -> &'static str) {
        let mut first = 0;
        for set in 1..=self.sets {
            let same = set < self.sets
                && fill(set) == fill(first)
                && map.node_of_set(set) == map.node_of_set(first);
            if same {
                continue;
            }
            if fill(first) != NONE {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                    self.x(map, first),
                    self.y(llc),
                    f64::from(set - first) * self.column,
                    self.row,
                    fill(first)
                );
            }
            first = set;
        }
    }

    /// Nodes with their bank sets above, LLC colours on the left.
    fn axes(&self, svg: &mut String, map: &AddrMap) {
        for node in 0..self.nodes {
            let mut of = map.sets_of_node(node);
            let Some(first) = of.next() else { continue };
            let last = of.last().unwrap_or(first);
            let (left, right) = (self.x(map, first), self.x(map, last) + self.column);
            text(svg, left, TOP - 24.0, "start", &format!("node {node}"));
            text(svg, left, TOP - 8.0, "start", &first.to_string());
            if last > first {
                text(svg, right, TOP - 8.0, "end", &last.to_string());
            }
        }
        text(svg, LEFT - 8.0, TOP - 8.0, "end", "bank set");
        if self.llc > 1 {
            let top = self.llc - 1;
            text(
                svg,
                LEFT - 8.0,
                self.y(top) + 11.0,
                "end",
                &format!("LLC {top}"),
            );
            text(svg, LEFT - 8.0, self.y(0) + self.row, "end", "0");
        }
    }
}

fn legend(svg: &mut String, y: f64, judged: bool) {
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
    let mut x = LEFT;
    for (fill, words) in keys {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{fill}\"/>",
            y - 10.0
        );
        text(svg, x + 18.0, y, "start", words);
        x += 40.0 + words.len() as f64 * 6.6;
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}
