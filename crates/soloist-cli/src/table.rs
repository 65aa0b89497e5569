//! Tables as text.

use std::fmt::{self, Display};
use std::io::IsTerminal;
use std::ops::{Deref, DerefMut};

use comfy_table::{presets, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Width};

/// Columns of blanks between two columns.
const GAP: u16 = 2;
/// A longer word, such as a path, may be broken.
const WORD: u16 = 20;
/// The least that is left for the first column where the last one stands below it.
const FIRST: usize = 12;
/// Blanks before a last column that stands below its row.
const INDENT: usize = 4;

/// A table that is printed to fit a terminal.
#[derive(Debug)]
pub struct Table {
    rows: comfy_table::Table,
    /// Columns of the terminal; `None`: there is none, or it does not say.
    width: Option<u16>,
}

/// A plain table: columns under their heads, no lines. On a terminal it is no
/// wider than that; elsewhere, and on one of no known width such as a serial line,
/// as wide as its text. No word of the first column, names mostly, is ever broken.
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
    let width = terminal_width().and_then(|width| width.try_into().ok());
    Table { rows, width }
}

/// Columns of the terminal that is standard output; `None`: it is none, or does not say.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    let is_terminal = std::io::stdout().is_terminal();
    let width = comfy_table::Table::new().width();
    let width = width.filter(|&width| is_terminal && width > 0);
    width.map(usize::from)
}

/// `text` behind `head`; on a terminal in lines that it has room for, each under the
/// beginning of the text.
#[must_use]
pub fn behind(head: &str, text: &str) -> String {
    match terminal_width() {
        Some(width) => behind_within(head, text, width),
        None => format!("{head}{text}"),
    }
}

fn behind_within(head: &str, text: &str, width: usize) -> String {
    let indent = wide(head);
    let room = width.saturating_sub(indent);
    if room < usize::from(WORD) {
        return format!("{head}{text}");
    }
    let next = format!("\n{}", " ".repeat(indent));
    format!("{head}{}", folded(text, room).join(&next))
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
    /// [`WORD`], for half a number is another number. Where that does not fit, rows are columns,
    /// or the last column stands below each row, or each row is a list of its own.
    fn within(&self, width: u16) -> String {
        let least = self.least();
        let all: u16 = least.iter().map(|least| least + GAP).sum();
        if all > width + GAP {
            let turned = self.turned(usize::from(width));
            let below = || self.with_last_below(usize::from(width));
            return turned.or_else(below).unwrap_or_else(|| self.lists());
        }
        let mut rows = self.rows.clone();
        rows.set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width + GAP);
        for (column, least) in rows.column_iter_mut().zip(least) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least + GAP)));
        }
        rows.trim_fmt()
    }

    /// The columns that each column needs at least.
    fn least(&self) -> Vec<u16> {
        let rows = self.texts();
        let mut least = vec![0; rows[0].len()];
        for row in rows {
            for (at, (least, text)) in least.iter_mut().zip(row).enumerate() {
                let words = text.split_whitespace().map(|word| word.chars().count());
                let longest = u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX);
                let kept = if at == 0 { longest } else { longest.min(WORD) };
                *least = kept.max(*least);
            }
        }
        least
    }

    /// The texts of all rows, of the heads first, each with as many as there are columns.
    fn texts(&self) -> Vec<Vec<String>> {
        let rows = self.rows.header().into_iter().chain(self.rows.row_iter());
        let mut rows: Vec<Vec<String>> = rows.map(|row| texts(row).collect()).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        rows.iter_mut()
            .for_each(|row| row.resize(columns, String::new()));
        rows
    }

    /// Heads down the first column, and a column for each row; `None`: that is wider, or
    /// nothing else than a list.
    fn turned(&self, width: usize) -> Option<String> {
        let rows = self.texts();
        let widths: Vec<usize> = rows.iter().map(|row| widest(row)).collect();
        let all: usize = widths.iter().sum::<usize>() + usize::from(GAP) * (rows.len() - 1);
        let line = |at: usize| line(rows.iter().map(|row| row[at].as_str()).zip(widths.clone()));
        let lines = (0..rows[0].len()).map(line);
        (rows.len() > 2 && all <= width).then(|| lines.collect::<Vec<_>>().join("\n"))
    }

    /// The last column in lines of its own below each row, and what is too long for the first
    /// one in a line above it; `None`: those between are wider.
    fn with_last_below(&self, width: usize) -> Option<String> {
        let rows = self.texts();
        let last = rows[0].len().checked_sub(1)?;
        let widest_of = |at: usize| rows.iter().map(|row| wide(&row[at])).max().unwrap_or(0);
        let between: Vec<usize> = (1..last).map(widest_of).collect();
        let taken: usize = between.iter().map(|width| width + usize::from(GAP)).sum();
        let room = width.checked_sub(taken).filter(|room| *room >= FIRST)?;
        let first = widest_of(0).min(room);
        let mut lines = Vec::new();
        for row in &rows {
            let mut name = row[0].as_str();
            if wide(name) > first {
                lines.push(name.to_owned());
                name = "";
            }
            let widths = std::iter::once(first).chain(between.iter().copied());
            let texts = row[1..last].iter().map(String::as_str);
            lines.push(line(std::iter::once(name).chain(texts).zip(widths)));
            let below = folded(&row[last], width.saturating_sub(INDENT));
            lines.extend(below.iter().map(|text| " ".repeat(INDENT) + text));
        }
        Some(lines.join("\n"))
    }

    /// Each row as lines of a head and its value.
    fn lists(&self) -> String {
        let rows = self.texts();
        let Some((heads, rows)) = rows.split_first() else {
            return String::new();
        };
        let width = widest(heads);
        let list = |row: &Vec<String>| {
            let lines = heads
                .iter()
                .zip(row)
                .map(|(head, text)| line([(head.as_str(), width), (text.as_str(), 0)].into_iter()));
            lines.collect::<Vec<_>>().join("\n")
        };
        rows.iter().map(list).collect::<Vec<_>>().join("\n\n")
    }
}

/// Columns that a text takes: what sets its colour takes none.
fn wide(text: &str) -> usize {
    let parts = text.split('\x1b').enumerate();
    let seen = parts.map(|(at, part)| match part.split_once('m') {
        Some((_, seen)) if at > 0 => seen,
        _ => part,
    });
    seen.map(|part| part.chars().count()).sum()
}

fn widest(row: &[String]) -> usize {
    row.iter().map(|text| wide(text)).max().unwrap_or(0)
}

/// Texts beside each other, each as wide as told, without blanks at the end.
fn line<'a>(cells: impl Iterator<Item = (&'a str, usize)>) -> String {
    let cells = cells.map(|(text, width)| {
        let blanks = width.saturating_sub(wide(text)) + usize::from(GAP);
        format!("{text}{}", " ".repeat(blanks))
    });
    cells.collect::<String>().trim_end().to_owned()
}

/// The words of a text in lines of at most `width` columns. A command in backticks is one word
/// where a line has room for it, for it is copied.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(open) if open.matches('`').count() % 2 == 1 => *open += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    let parts = |word: String| match wide(&word) <= width {
        true => vec![word],
        false => word.split(' ').map(str::to_owned).collect(),
    };
    let mut lines: Vec<String> = Vec::new();
    for word in words.into_iter().flat_map(parts) {
        match lines.last_mut() {
            Some(line) if wide(line) + 1 + wide(&word) <= width => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
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
            None => f.write_str(&self.rows.trim_fmt()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
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

    /// A claim is a sentence: it takes lines where a name takes columns.
    #[test]
    fn sentences_of_the_first_column_are_folded() {
        let mut table = table(["CLAIM", "KIND", "OURS"]);
        table.add_row(["same_bank more than doubles", "order", "1.276 ± 0.077"]);
        let text = table.within(36);
        let first = text.lines().nth(1).unwrap();
        assert!(
            first.starts_with("same_bank") && first.contains("order"),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 36),
            "{text}"
        );
    }

    /// A row may say nothing in its last columns.
    #[test]
    fn rows_may_be_short() {
        let mut table = table(["CO-RUNNER", "SAME BANK ns", "OTHER BANK ns"]);
        table.add_row(["none", "80.0"]);
        table.add_row(["reads", "90.0", "85.0"]);
        for width in [100, 40, 30, 24, 10] {
            assert!(table.within(width).contains("85.0"), "{width}");
        }
    }

    /// A check of `doctor`: a command of its hint can be copied.
    #[test]
    fn a_text_is_folded_beside_its_head() {
        let said = behind_within(
            "ok  map  ",
            "none: `soloist up` loads it, then look again",
            34,
        );
        let lines = [
            "ok  map  none: `soloist up` loads",
            "         it, then look again",
        ];
        assert_eq!(said, lines.join("\n"));
        let said = behind_within("ok  map  ", "not loaded: run `soloist up`", 34);
        assert_eq!(said, "ok  map  not loaded: run\n         `soloist up`");
        let long = behind_within("ok  map  ", "`soloist map detect --output FILE`", 34);
        assert_eq!(long.lines().count(), 2, "{long}");
        assert_eq!(
            behind_within("ok  map  ", "not loaded", 20),
            "ok  map  not loaded"
        );
    }

    /// Figures of few rows are read beside each other.
    #[test]
    fn few_rows_of_many_columns_are_turned() {
        let mut table = table(["PLACEMENT", "ALONE ms", "BESIDE ms", "SLOWDOWN"]);
        table.add_row(["buddy", "0.026", "0.030", "1.161"]);
        table.add_row(["diff_bank", "0.025", "0.028", "\x1b[31m1.111\x1b[0m"]);
        assert_eq!(
            table.within(27),
            "PLACEMENT  buddy  diff_bank\nALONE ms   0.026  0.025\nBESIDE ms  0.030  0.028\n\
             SLOWDOWN   1.161  \x1b[31m1.111\x1b[0m"
        );
    }

    /// Mappings of a process, each with its reasons.
    #[test]
    fn reasons_stand_below_their_row() {
        let mut table = table(["MAPPING", "PAGES", "NOT", "WHY NOT"]);
        let why = "182 file page mapped before colouring, 198 huge page";
        table.add_row(["/usr/lib/libcalm.so.6", "380", "380", why]);
        table.add_row(["[heap]", "133", "0", ""]);
        table.add_row(["[stack]", "33", "0", ""]);
        assert_eq!(
            table.within(34),
            "MAPPING                PAGES  NOT\n    WHY NOT\n\
             /usr/lib/libcalm.so.6  380    380\n    182 file page mapped before\n    \
             colouring, 198 huge page\n[heap]                 133    0\n[stack]                33     0"
        );
        let narrow = table.within(28);
        assert!(narrow.contains("\n/usr/lib/libcalm.so.6\n"), "{narrow}");
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 28),
            "{narrow}"
        );
    }
}
