//! Finds a map from known decodes: rows of physical address, node, channel,
//! rank, bank, row, column.
//!
//! Inside a range every bit of every field is a sum of offset bits, so the
//! rows are linear equations over GF(2) and are solved as such, all bits at
//! once. What makes them linear is the right offset: subtracting a node's base
//! or a hole carries. Every multiple of 16 MiB is tried, and the rows
//! contradict the wrong ones. What the rows leave open is said, and filled in
//! with the plainest choice.

use std::collections::BTreeMap;

use crate::function::Term;
use crate::gf2::{self, Basis};
use crate::spec::{Layout, MapRange, MapSpec};

/// Granularity of node bases and holes.
const STEP: u64 = 16 << 20;
/// Addresses that a file may hold.
const MAX_ADDRESS: u64 = 1 << 46;
/// Where the hole below 4 GiB ends.
const FOUR_GIB: u64 = 1 << 32;
/// Fields in the order of [`Row::values`].
const FIELDS: [&str; 5] = ["channel", "rank", "bank", "row", "column"];
/// Bits that a field may have: channel, rank, bank, row, column.
const MAX_BITS: [u32; 5] = [10, 10, 12, 32, 20];

/// What is wrong with a file of decodes, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SolveError {
    /// Line from 1; 0: all of it.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

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

/// A solved map and what the rows don't say.
#[derive(Debug, Clone)]
pub struct Solved {
    /// The map.
    pub map: MapSpec,
    /// Rows that it was solved from.
    pub rows: usize,
    /// Offset bits and sums of them that the rows leave open.
    pub open: Vec<u64>,
    /// What was assumed, in words.
    pub notes: Vec<String>,
}

/// Reads CSV: a header that names its columns (`address`, `node`, `channel`,
/// `rank`, `bank`, `row`, `column`, in any order; others are passed over),
/// then one decode a line, numbers decimal or 0x. Lines that begin with `#`
/// are comments. Fields that the file lacks are 0 everywhere.
///
/// # Errors
/// With the line.
pub fn parse_rows(text: &str) -> Result<Vec<Row>, SolveError> {
    let mut header: Option<Vec<Option<usize>>> = None;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_number = i + 1;
        let wrong = |message: String| SolveError {
            line: line_number,
            message,
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
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
        rows.push(parse_row(line_number, &cells, columns).map_err(wrong)?);
    }
    if rows.is_empty() {
        return Err(SolveError {
            line: 0,
            message: "no rows; expected a header such as `address,node,channel,rank,bank,row,column` and decodes".into(),
        });
    }
    Ok(rows)
}

/// For each cell: 0 address, 1 node, 2.. a field; `None`: passed over.
fn parse_header(cells: &[&str]) -> Result<Vec<Option<usize>>, String> {
    let columns: Vec<Option<usize>> = cells
        .iter()
        .map(|cell| match cell.to_ascii_lowercase().as_str() {
            "address" | "addr" | "physical" | "physaddr" | "physicaladdr" | "pa" => Some(0),
            "node" | "nodeid" | "controller" => Some(1),
            "channel" | "ch" => Some(2),
            "rank" | "cs" | "chip_select" => Some(3),
            "bank" => Some(4),
            "row" => Some(5),
            "column" | "col" => Some(6),
            _ => None,
        })
        .collect();
    if !columns.contains(&Some(0)) {
        return Err("expected a header line with a column named `address`".into());
    }
    for i in 0..7 {
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

fn parse_row(line: usize, cells: &[&str], columns: &[Option<usize>]) -> Result<Row, String> {
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
            0 => MAX_ADDRESS,
            1 => 16,
            field => 1 << MAX_BITS[field - 2],
        };
        if value >= limit {
            return Err(format!("`{cell}`: expected less than {limit:#x}"));
        }
        match column {
            0 => row.address = value,
            1 => row.node = value as u8,
            field => row.values[field - 2] = value as u32,
        }
    }
    Ok(row)
}

/// One bit of a field, as an unknown function.
#[derive(Debug, Clone, Copy)]
struct Unknown {
    field: usize,
    at: u32,
}

/// Rows that share a base: those of a node, below 4 GiB or above.
struct Group<'a> {
    node: u8,
    low: bool,
    rows: Vec<&'a Row>,
    /// Address less offset.
    shift: u64,
}

/// Solves the rows.
///
/// # Errors
/// When they contradict each other whatever the bases.
pub fn solve(rows: &[Row]) -> Result<Solved, SolveError> {
    let chip_select = rows.iter().map(|row| row.values[1]).min().unwrap_or(0);
    let rows: Vec<Row> = rows
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row.values[1] -= chip_select;
            row
        })
        .collect();
    let unknowns = unknowns(&rows);
    let mut groups = group(&rows);
    let mut system = System::default();
    for group in &mut groups {
        group.shift = best_shift(group, &system, &unknowns).ok_or_else(|| SolveError {
            line: group.rows.first().map_or(0, |row| row.line),
            message: format!(
                "the decodes of node {} {} 4 GiB contradict each other or other nodes, whatever the base: not linear, or a wrong row",
                group.node,
                if group.low { "below" } else { "above" }
            ),
        })?;
        for row in &group.rows {
            system.add(row.address - group.shift, pack(row, &unknowns));
        }
    }
    let solved = finish(&rows, &groups, &unknowns, chip_select as u16);
    match solved.map.layouts[0].bank_functions().contains(&0) {
        false => Ok(solved),
        true => Err(SolveError {
            line: 0,
            message:
                "a bit of channel, rank or bank is never set, and no address bit is left for it"
                    .into(),
        }),
    }
}

/// Bits that vary or are set somewhere.
fn unknowns(rows: &[Row]) -> Vec<Unknown> {
    let mut unknowns = Vec::new();
    for field in 0..FIELDS.len() {
        let used = rows.iter().fold(0, |all, row| all | row.values[field]);
        // Channel, rank and bank are counted from bit 0 without gaps.
        let top = 32 - used.leading_zeros();
        for at in 0..top {
            if field < 3 || used >> at & 1 == 1 {
                unknowns.push(Unknown { field, at });
            }
        }
    }
    unknowns
}

fn pack(row: &Row, unknowns: &[Unknown]) -> u128 {
    unknowns
        .iter()
        .enumerate()
        .map(|(i, u)| u128::from(row.values[u.field] >> u.at & 1) << i)
        .fold(0, |all, bit| all | bit)
}

fn group(rows: &[Row]) -> Vec<Group<'_>> {
    let mut by_place: BTreeMap<(u8, bool), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let place = (row.node, row.address < FOUR_GIB);
        by_place.entry(place).or_default().push(row);
    }
    let mut groups: Vec<Group<'_>> = by_place
        .into_iter()
        .map(|((node, low), rows)| Group {
            node,
            low,
            rows,
            shift: 0,
        })
        .collect();
    // Those that say most come first and fix what the others must agree with.
    groups.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
    groups
}

/// Linear equations offset -> packed field bits, in echelon form.
#[derive(Debug, Clone, Default)]
struct System {
    rows: Vec<(u64, u128)>,
}

impl System {
    /// Adds an equation; false when it contradicts the others.
    fn add(&mut self, offset: u64, value: u128) -> bool {
        let (mut x, mut y) = (offset, value);
        for &(row, row_value) in &self.rows {
            if x >> (63 - row.leading_zeros()) & 1 == 1 {
                x ^= row;
                y ^= row_value;
            }
        }
        if x == 0 {
            return y == 0;
        }
        let lead = 63 - x.leading_zeros();
        for (row, row_value) in &mut self.rows {
            if *row >> lead & 1 == 1 {
                *row ^= x;
                *row_value ^= y;
            }
        }
        self.rows.push((x, y));
        true
    }
}

/// The shift under which the group's rows agree with the system, with most
/// fields plain address bits; of equals the largest: the shortest offsets.
fn best_shift(group: &Group<'_>, system: &System, unknowns: &[Unknown]) -> Option<u64> {
    let lowest = group.rows.iter().map(|row| row.address).min()?;
    let last = if group.low { 0 } else { lowest / STEP };
    let mut best: Option<(usize, u64)> = None;
    for step in 0..=last {
        let shift = step * STEP;
        let mut trial = system.clone();
        let agrees = group
            .rows
            .iter()
            .all(|row| trial.add(row.address - shift, pack(row, unknowns)));
        if agrees {
            let score = plain_bits(group, shift, unknowns);
            if best.is_none_or(|(known, _)| score >= known) {
                best = Some((score, shift));
            }
        }
    }
    best.map(|(_, shift)| shift)
}

/// How many unknown bits equal some single offset bit on all rows.
fn plain_bits(group: &Group<'_>, shift: u64, unknowns: &[Unknown]) -> usize {
    let candidates = |u: &Unknown| {
        group.rows.iter().fold(!0u64, |fit, row| {
            let offset = row.address - shift;
            let value = row.values[u.field] >> u.at & 1 == 1;
            fit & if value { offset } else { !offset }
        })
    };
    unknowns.iter().filter(|u| candidates(u) != 0).count()
}

fn finish(rows: &[Row], groups: &[Group<'_>], unknowns: &[Unknown], chip_select: u16) -> Solved {
    let samples: Vec<(u64, &Row)> = groups
        .iter()
        .flat_map(|group| {
            group
                .rows
                .iter()
                .map(|row| (row.address - group.shift, *row))
        })
        .collect();
    let highest = samples.iter().map(|sample| sample.0).max().unwrap_or(0);
    let within = gf2::span(0, 63 - (highest | 0xfff).leading_zeros());
    let mut layout = Layout {
        chip_select,
        ..Layout::default()
    };
    let mut free = Basis::new();
    let mut functions = Vec::with_capacity(unknowns.len());
    for u in unknowns {
        let equations: Vec<(u64, bool)> = samples
            .iter()
            .map(|(offset, row)| (*offset, row.values[u.field] >> u.at & 1 == 1))
            .collect();
        // Every shift was checked against all equations before.
        let Some((function, open)) = gf2::fit(&equations, within) else {
            continue;
        };
        functions.push((*u, gf2::lightest_of_coset(function, &open)));
        free = open;
    }
    let assumed = separate(&mut functions, &free);
    for (u, mask) in functions {
        let term = Term { at: u.at, mask };
        match u.field {
            0 => layout.channel.push(mask),
            1 => layout.rank.push(mask),
            2 => layout.bank.push(mask),
            3 => layout.row.push(term),
            _ => layout.column.push(term),
        }
    }
    let mut map = MapSpec {
        line: 64,
        llc: Vec::new(),
        layouts: vec![layout],
        ranges: ranges(groups, within),
    };
    let mut notes = range_notes(groups, &map.ranges);
    notes.extend(assumed);
    // A bit that is set in some row can be no bit of its row number.
    let set = samples.iter().fold(0, |all, sample| all | sample.0);
    let added = map.determine(set);
    if !added.is_empty() {
        let list: Vec<String> = added.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "no field is known to use offset bits {}; they are taken for columns or rows",
            list.join(", ")
        ));
    }
    Solved {
        map,
        rows: rows.len(),
        open: free.lightest(),
        notes,
    }
}

/// Two places never share an address, so no function is a sum of others. Where
/// the rows make it look so, a bit that they leave open must take part: the
/// lowest above a line, and in the channel rather than elsewhere (interleaving
/// by lines is what short tables of page addresses hide).
fn separate(functions: &mut [(Unknown, u64)], free: &Basis) -> Vec<String> {
    let mut notes = Vec::new();
    let mut known = Basis::new();
    let mut open: Vec<u32> = (6..52).filter(|&bit| free.contains(1 << bit)).collect();
    let mut order: Vec<usize> = (0..functions.len()).collect();
    order.sort_by_key(|&i| [4, 0, 1, 2, 3][functions[i].0.field]);
    for i in order {
        let (unknown, mask) = functions[i];
        if known.insert(mask) {
            continue;
        }
        let Some(at) = open.iter().position(|&bit| known.insert(mask ^ 1 << bit)) else {
            continue;
        };
        let bit = open.remove(at);
        functions[i].1 = mask ^ 1 << bit;
        notes.push(format!(
            "{} bit {}: {} is never set in the rows; it must take part, or two places would share an address",
            FIELDS[unknown.field], unknown.at, bit
        ));
    }
    notes
}

/// Ranges: a node begins where its offset is 0, and ends where the next one
/// begins or its offset bits end.
fn ranges(groups: &[Group<'_>], within: u64) -> Vec<MapRange> {
    let mut high: Vec<&Group<'_>> = groups.iter().filter(|group| !group.low).collect();
    high.sort_by_key(|group| group.rows.iter().map(|row| row.address).min());
    let mut ranges: Vec<MapRange> = Vec::new();
    for (i, group) in high.iter().enumerate() {
        let start = group.shift.max(FOUR_GIB);
        let next = high.get(i + 1).map(|next| next.shift.max(FOUR_GIB));
        let full = group.shift + within + 1;
        ranges.push(MapRange {
            start,
            end: next.filter(|&next| next > start).unwrap_or(full).min(full),
            node: group.node,
            base: start - group.shift,
            layout: 0,
        });
    }
    // Memory below the hole: what the node's offsets above 4 GiB leave over.
    let below = high.iter().find(|group| group.shift < FOUR_GIB);
    let low = groups.iter().find(|group| group.low);
    let node = below
        .map(|group| group.node)
        .or(low.map(|group| group.node));
    if let Some(node) = node {
        let end = below.map_or(FOUR_GIB.min(within + 1), |group| FOUR_GIB - group.shift);
        ranges.insert(
            0,
            MapRange {
                start: 0,
                end,
                node,
                base: 0,
                layout: 0,
            },
        );
    }
    ranges
}

fn range_notes(groups: &[Group<'_>], ranges: &[MapRange]) -> Vec<String> {
    let mut notes = Vec::new();
    for group in groups.iter().filter(|group| !group.low && group.shift > 0) {
        notes.push(if group.shift < FOUR_GIB {
            format!(
                "node {}: addresses above 4 GiB lie {:#x} lower in the node: a hole from {:#x} to 0xffffffff",
                group.node,
                group.shift,
                FOUR_GIB - group.shift
            )
        } else {
            format!("node {}: begins at {:#x}", group.node, group.shift)
        });
    }
    if let Some(last) = ranges.last() {
        notes.push(format!(
            "the end of memory, {:#x}, is where the offset bits end; the rows don't say",
            last.end
        ));
    }
    notes
}
