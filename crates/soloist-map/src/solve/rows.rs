//! Tables of known decodes, as CSV.

use std::collections::HashSet;

use soloist_machine::FileError;

/// Addresses that a file may hold: what core takes.
const MAX_ADDRESS: u64 = 1 << 52;
/// Bits that a field may have: channel, rank, bank, row, column.
const MAX_BITS: [u32; 5] = [10, 10, 12, 32, 20];

/// A known decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Line of the file.
    pub line: usize,
    /// Physical address.
    pub address: u64,
    /// Node.
    pub node: u8,
    /// Channel, rank, bank, row, column.
    pub values: [u32; 5],
}

/// The kinds of columns: the address, the node, a field from 2 on, or the bank group.
const ADDRESS: usize = 0;
const NODE: usize = 1;
const BANK: usize = 4;
const BANK_GROUP: usize = 7;
/// Bank groups that a file may number.
const MAX_BANK_GROUPS: u64 = 16;

/// Reads CSV: a header that names its columns (`address`, `node`, `channel`,
/// `rank`, `bankgroup`, `bank`, `row`, `column`, in any order; others are
/// [passed over](passed_over)), then one decode a line, numbers decimal or 0x.
/// Cells are apart by commas, semicolons or tabs, whichever the header has, and
/// may stand in quotation marks. Lines that begin with `#` are comments. Fields
/// that the file lacks are 0 everywhere. Bank groups are the low bits of the
/// bank. A row that comes again is passed over: it confirms nothing.
///
/// # Errors
/// With the line.
pub fn parse_rows(text: &str) -> Result<Vec<Row>, FileError> {
    let mut header: Option<Vec<Option<usize>>> = None;
    let mut all: Vec<(Row, u32)> = Vec::new();
    for record in reader(text).records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, |at| at.line() as usize);
            FileError::in_line("", line, error.to_string())
        })?;
        // A position is where the reader stood: before the empty lines.
        let at = record.position().map_or(0, |at| at.byte() as usize);
        let line = 1 + text[..skip_empty(text, at)].matches('\n').count();
        let wrong = |message: String| FileError::in_line("", line, message);
        let cells: Vec<&str> = record.iter().collect();
        if cells.iter().all(|cell| cell.is_empty()) {
            continue;
        }
        let Some(columns) = &header else {
            header = Some(parse_header(&cells).map_err(wrong)?);
            continue;
        };
        if cells.len() != columns.len() {
            return Err(wrong(format!(
                "expected {} cells as in the header, found {}",
                columns.len(),
                cells.len()
            )));
        }
        all.push(parse_row(line, &cells, columns).map_err(wrong)?);
    }
    let rows = with_groups(all)?;
    if rows.is_empty() {
        return Err(FileError::whole("", "no rows; expected a header such as `address,node,channel,rank,bank,row,column` and decodes"));
    }
    Ok(rows)
}

/// Names of the columns that [`parse_rows`] passes over, in the file's order.
#[must_use]
pub fn passed_over(text: &str) -> Vec<String> {
    let mut records = reader(text).into_records().filter_map(Result::ok);
    let header = records.find(|record| record.iter().any(|cell| !cell.is_empty()));
    let cells = header.iter().flat_map(csv::StringRecord::iter);
    cells
        .filter(|cell| !cell.is_empty() && column(cell).is_none())
        .map(str::to_owned)
        .collect()
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .delimiter(delimiter(text))
        .from_reader(text.as_bytes())
}

/// Rows with their bank groups as the low bits of their banks, each once.
fn with_groups(all: Vec<(Row, u32)>) -> Result<Vec<Row>, FileError> {
    let groups = all.iter().fold(0, |any, (_, group)| any | group);
    let width = 32 - groups.leading_zeros();
    let (mut rows, mut seen) = (Vec::new(), HashSet::new());
    for (mut row, group) in all {
        let bank = &mut row.values[BANK - 2];
        *bank = *bank << width | group;
        if *bank >> MAX_BITS[BANK - 2] != 0 {
            let message = format!(
                "bank and bank group have more than {} bits",
                MAX_BITS[BANK - 2]
            );
            return Err(FileError::in_line("", row.line, message));
        }
        if seen.insert((row.address, row.node, row.values)) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// What the first line that is no comment has most of.
fn delimiter(text: &str) -> u8 {
    let header = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .unwrap_or_default();
    [b',', b';', b'\t']
        .into_iter()
        .max_by_key(|&d| (header.bytes().filter(|&b| b == d).count(), d == b','))
        .unwrap_or(b',')
}

/// The start of the first line from byte `at` on that is not empty and no
/// comment.
fn skip_empty(text: &str, mut at: usize) -> usize {
    while let Some(rest) = text.get(at..) {
        let line = rest.split('\n').next().unwrap_or_default();
        let passed = line.trim().is_empty() || line.starts_with('#');
        if !passed || line.len() == rest.len() {
            break;
        }
        at += line.len() + 1;
    }
    at.min(text.len())
}

/// Returns the kind of a column by its name; `None`: it is passed over.
fn column(name: &str) -> Option<usize> {
    match name.to_ascii_lowercase().as_str() {
        "address" | "addr" | "physical" | "physaddr" | "physicaladdr" | "pa" => Some(ADDRESS),
        "node" | "nodeid" | "controller" => Some(NODE),
        "channel" | "ch" => Some(2),
        "rank" | "cs" | "chip_select" => Some(3),
        "bank" => Some(BANK),
        "row" => Some(5),
        "column" | "col" => Some(6),
        "bankgroup" | "bank_group" | "bg" => Some(BANK_GROUP),
        _ => None,
    }
}

/// Returns the kind of each cell of a row.
fn parse_header(cells: &[&str]) -> Result<Vec<Option<usize>>, String> {
    let columns: Vec<Option<usize>> = cells.iter().map(|cell| column(cell)).collect();
    if !columns.contains(&Some(ADDRESS)) {
        return Err("expected a header line with a column named `address`".into());
    }
    for i in 0..=BANK_GROUP {
        if columns.iter().filter(|column| **column == Some(i)).count() > 1 {
            return Err("a column occurs twice in the header".into());
        }
    }
    if !columns.iter().any(|column| column.is_some_and(|c| c >= 1)) {
        return Err(
            "expected a column besides the address: node, channel, rank, bank, row or column"
                .into(),
        );
    }
    Ok(columns)
}

/// A row without its bank group, and that.
fn parse_row(line: usize, cells: &[&str], columns: &[Option<usize>]) -> Result<(Row, u32), String> {
    let mut group = 0;
    let mut row = Row {
        line,
        address: 0,
        node: 0,
        values: [0; 5],
    };
    for (cell, column) in cells.iter().zip(columns) {
        let Some(column) = *column else {
            continue;
        };
        let digits = cell.trim_end_matches(['L', 'l', 'U', 'u']);
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let value = value.map_err(|_| format!("`{cell}`: expected a number, decimal or 0x"))?;
        let limit = match column {
            ADDRESS => MAX_ADDRESS,
            NODE => 16,
            BANK_GROUP => MAX_BANK_GROUPS,
            field => 1 << MAX_BITS[field - 2],
        };
        if value >= limit {
            return Err(format!("`{cell}`: expected less than {limit:#x}"));
        }
        match column {
            ADDRESS => row.address = value,
            NODE => row.node = value as u8,
            BANK_GROUP => group = value as u32,
            field => row.values[field - 2] = value as u32,
        }
    }
    Ok((row, group))
}
