//! Tables as text.

use std::fmt::{self, Display};
use std::io::IsTerminal;
use std::ops::{Deref, DerefMut};

use comfy_table::{presets, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Width};

/// Columns of blanks between two columns.
const GAP: u16 = 2;
/// A longer word, such as a path, may be broken.
const WORD: u16 = 20;

/// A table that is printed to fit a terminal.
#[derive(Debug)]
pub struct Table {
    rows: comfy_table::Table,
    /// Columns of the terminal; `None`: there is none, or it does not say.
    width: Option<u16>,
}

/// A plain table: columns under their heads, no lines. On a terminal it is no
/// wider than that; elsewhere, and on one of no known width such as a serial line,
/// as wide as its text. The first column, names mostly, is never broken.
pub fn table<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
    let mut rows = comfy_table::Table::new();
    rows.load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heads.into_iter().map(Cell::new));
    for column in rows.column_iter_mut() {
        column
            .set_padding((0, GAP))
            .set_cell_alignment(CellAlignment::Left);
    }
    let is_terminal = std::io::stdout().is_terminal();
    let width = rows.width().filter(|&width| is_terminal && width > 0);
    Table { rows, width }
}

impl Table {
    /// Its text, without blanks at the ends of lines.
    #[must_use]
    pub fn trim_fmt(&self) -> String {
        match self.width {
            Some(width) => self.within(width),
            None => self.rows.trim_fmt(),
        }
    }

    /// Its text on a terminal of `width` columns. No word is broken that is not longer than
    /// [`WORD`], for half a number is another number; where that does not fit, each row is a
    /// list of its own.
    fn within(&self, width: u16) -> String {
        let least = self.least();
        let all: u16 = least.iter().map(|least| least + GAP).sum();
        if all > width + GAP {
            return self.lists();
        }
        let mut rows = self.rows.clone();
        rows.set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width + GAP);
        for (at, (column, least)) in rows.column_iter_mut().zip(least).enumerate() {
            column.set_constraint(match at {
                0 => ColumnConstraint::ContentWidth,
                _ => ColumnConstraint::LowerBoundary(Width::Fixed(least + GAP)),
            });
        }
        rows.trim_fmt()
    }

    /// The columns that each column needs at least.
    fn least(&self) -> Vec<u16> {
        let widths = self.rows.column_max_content_widths();
        let mut least = vec![0; widths.len()];
        for row in self.rows.header().into_iter().chain(self.rows.row_iter()) {
            for (least, text) in least.iter_mut().zip(texts(row)) {
                let words = text.split_whitespace().map(|word| word.chars().count());
                let longest = u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX);
                *least = longest.min(WORD).max(*least);
            }
        }
        if let (Some(first), Some(whole)) = (least.first_mut(), widths.first()) {
            *first = *whole;
        }
        least
    }

    /// Each row as lines of a head and its value.
    fn lists(&self) -> String {
        let heads: Vec<String> = self
            .rows
            .header()
            .map(texts)
            .into_iter()
            .flatten()
            .collect();
        let widest = heads.iter().map(|head| head.chars().count()).max();
        let widest = widest.unwrap_or(0) + usize::from(GAP);
        let list = |row: &Row| -> Vec<String> {
            let lines = heads.iter().zip(texts(row));
            let lines = lines.map(|(head, text)| format!("{head:widest$}{text}"));
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        let lists = self.rows.row_iter().map(|row| list(row).join("\n"));
        lists.collect::<Vec<_>>().join("\n\n")
    }
}

/// The texts of a row's cells.
fn texts(row: &Row) -> impl Iterator<Item = String> + '_ {
    row.cell_iter().map(Cell::content)
}

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.rows
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            Some(width) => f.write_str(&self.within(width)),
            None => self.rows.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are copied from it.
    #[test]
    fn names_stay_whole_on_a_narrow_terminal() {
        let mut table = table(["EXPERIMENT", "WHAT"]);
        let name = "tintmalloc-blackscholes-compact";
        table.add_row([
            name,
            "a parallel loop of four threads on one node, eight on two",
        ]);
        let text = table.within(60);
        assert!(text.contains(name), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
    }

    /// A path may be broken, a number never: the rest of it stands in another line.
    #[test]
    fn numbers_stay_whole_on_a_narrow_terminal() {
        let mut table = table(["RULE", "PATH", "MATCHED", "REFUSED"]);
        let path = "/usr/local/lib/transcoder/bin/x264-encoder-*";
        table.add_row(["video", path, "1234567", "7654321"]);
        for width in [80, 55, 48] {
            let text = table.within(width);
            assert!(text.contains("1234567  7654321"), "{width}: {text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(width)), "{width}: {text}");
        }
        assert_eq!(
            table.within(40),
            format!("RULE     video\nPATH     {path}\nMATCHED  1234567\nREFUSED  7654321")
        );
    }
}
