//! Tables as text.

use std::io::IsTerminal;

use comfy_table::{presets, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table};

/// A plain table: columns under their heads, no lines. On a terminal it is no
/// wider than that; elsewhere, and on one of no known width such as a serial line,
/// as wide as its text. The first column, names mostly, is never broken.
pub fn table<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heads.into_iter().map(Cell::new));
    if std::io::stdout().is_terminal() && table.width() != Some(0) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for column in table.column_iter_mut() {
        column
            .set_padding((0, 2))
            .set_cell_alignment(CellAlignment::Left);
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
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
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(60);
        let text = table.trim_fmt();
        assert!(text.contains(name), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
    }
}
