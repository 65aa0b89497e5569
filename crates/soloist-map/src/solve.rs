//! Finds a map from known decodes: rows of physical address, node, channel,
//! rank, bank, row, column.
//!
//! Inside a range every bit of every field is a sum of offset bits, so the
//! rows are linear equations over GF(2) and are solved as such, all bits at
//! once ([`equations`]). What makes them linear is the right offset:
//! subtracting a node's base or a hole carries. Every multiple of 16 MiB that
//! can be a base is tried, and the rows contradict the wrong ones; rows that
//! contradict all others are left out and named ([`base`]). Channels whose
//! number is no power of two come from a division; what it leaves of an offset
//! is linear again ([`division`]).
//!
//! A map is called complete only when the rows show what every offset bit
//! does, and show it twice: a row that no other confirms may be wrong, and
//! nobody would know. What the rows leave open is said, and filled in with the
//! plainest choice.

mod base;
mod division;
mod equations;
mod group;
mod ranges;
mod rows;

pub use rows::{parse_rows, passed_over, Row};

use std::collections::BTreeMap;

use base::Table;
use division::Division;
use group::Group;
use ranges::{borders, range_notes, ranges};
use soloist_core::AddrMap;

use crate::compare;
use soloist_machine::function::Term;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::spec::{Layout, MapSpec};
use soloist_machine::FileError;

/// Fields in the order of [`Row::values`].
const FIELDS: [&str; 5] = ["channel", "rank", "bank", "row", "column"];
/// What core takes of rows and of columns.
const MOST_ROW_BITS: usize = 32;
const MOST_COLUMN_BITS: usize = 20;
/// Lowest bit above a line.
const LINE_BIT: u32 = 6;

/// A solved map and what the rows show of it.
#[derive(Debug, Clone)]
pub struct Solved {
    /// The map.
    pub map: MapSpec,
    /// Rows that it was solved from.
    pub rows: usize,
    /// Lines of the rows that contradict the others, ascending: they were left
    /// out.
    pub left_out: Vec<usize>,
    /// For each offset bit above a line: from how many disjoint sets of rows
    /// follows what it does. 0: open; 1: nothing confirms it.
    pub told: Vec<(u32, u32)>,
    /// Offset bits and sums of them that the rows leave open.
    pub open: Vec<u64>,
    /// The rows show all of the map: nothing is open, nothing assumed, and no
    /// row had to be believed alone.
    pub complete: bool,
    /// What was assumed, in words.
    pub notes: Vec<String>,
    /// Which channel of the map each channel of the rows is, where a division
    /// deals them out.
    pub channels: BTreeMap<u32, u32>,
}

impl Solved {
    /// Returns in sentences which parts of `text` the map does not stand on.
    #[must_use]
    pub fn unused(&self, text: &str) -> Vec<String> {
        let lines: Vec<String> = self.left_out.iter().map(ToString::to_string).collect();
        let said = |what: &str, which: &[String]| {
            (!which.is_empty()).then(|| format!("{what} {}.", which.join(", ")))
        };
        let lines = said("Left out, since they contradict all others: lines", &lines);
        let columns = said("Columns that were passed over:", &rows::passed_over(text));
        lines.into_iter().chain(columns).collect()
    }

    /// What was shown, in words: `bits 6-19 by 3 sets of rows, 20-33 by 2`.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut parts: Vec<(u32, u32, u32)> = Vec::new();
        for &(bit, sets) in &self.told {
            match parts.last_mut() {
                Some((_, last, same)) if *same == sets && *last + 1 == bit => *last = bit,
                _ => parts.push((bit, bit, sets)),
            }
        }
        let part = |&(first, last, sets): &(u32, u32, u32)| {
            let bits = match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            };
            match sets {
                0 => format!("{bits} not at all"),
                1 => format!("{bits} by one set of rows that nothing confirms"),
                sets => format!("{bits} by {sets} separate sets of rows"),
            }
        };
        let parts: Vec<String> = parts.iter().map(part).collect();
        format!("Offset bits are shown: {}.", parts.join("; "))
    }
}

/// One bit of a field, as an unknown function.
#[derive(Debug, Clone, Copy)]
struct Unknown {
    field: usize,
    /// Bit of the row's value.
    from: u32,
    /// Bit of the map's field.
    at: u32,
}

/// Solves the rows.
///
/// # Errors
/// When they contradict each other whatever the bases, or say nothing.
pub fn solve(given: &[Row]) -> Result<Solved, FileError> {
    let divisions = Division::candidates(given, &group::groups(given));
    let solved = divisions.iter().map(|division| match division.out.len() {
        0 => solve_over(given, Some(division)),
        // Without them the division is found again.
        _ => solve_without(given, &division.out),
    });
    let mut solved = solved.filter_map(Result::ok);
    let Some(mut first) = solved.next() else {
        return solve_over(given, None).map_err(|error| undivided(given, error));
    };
    // Another granule may be the same division, told otherwise.
    if solved.any(|other| !compare::differences(&first.map, &other.map).is_empty()) {
        first.complete = false;
        let note = "the rows agree with another granule of the division as well";
        first.notes.push(note.to_owned());
    }
    Ok(first)
}

/// Says of rows that can't be solved that no division was found either, where
/// there should be one.
fn undivided(rows: &[Row], error: FileError) -> FileError {
    let channels: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.values[0]).collect();
    match channels.len().is_power_of_two() {
        true => error,
        false => FileError {
            message: format!(
                "{} channels, and no (offset / granule) mod n deals them out; else: {}",
                channels.len(),
                error.message
            ),
            ..error
        },
    }
}

/// Solves the rows by XOR functions over the offset, or over what a division
/// leaves of it.
fn solve_over(given: &[Row], division: Option<&Division>) -> Result<Solved, FileError> {
    let whole = |message: String| FileError::whole("", message);
    let chip_select = given.iter().map(|row| row.values[1]).min().unwrap_or(0);
    let rows: Vec<Row> = given
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row.values[1] -= chip_select;
            if let Some(division) = division {
                row.values[0] = division.number(row.values[0]);
            }
            row
        })
        .collect();
    let (unknowns, mut notes) = unknowns(&rows);
    if unknowns.iter().all(|unknown| unknown.field > 2) && division.is_none() {
        return Err(whole(format!(
            "channel, rank and bank are the same in all {} rows: there is nothing to solve",
            rows.len()
        )));
    }
    let table = Table {
        rows: &rows,
        values: rows.iter().map(|row| pack(row, &unknowns)).collect(),
        width: unknowns.len() as u32,
        has_rows: unknowns.iter().any(|unknown| unknown.field == 3),
        division,
    };
    let mut groups = group::groups(&rows);
    let out = base::settle(&table, &mut groups)?;
    if !out.is_empty() {
        return solve_without(given, &out);
    }
    let mut solved = finish(&table, &groups, &unknowns, chip_select as u16)?;
    notes.append(&mut solved.notes);
    solved.notes = notes;
    solved.complete &= solved.told.iter().all(|&(_, sets)| sets >= 2);
    if let (Some(division), Some(group)) = (division, groups.first()) {
        let phase = table.phase(group, group.shift);
        let bits = solved.map.layouts[0].channel.len();
        let of_map = |channel: u32| {
            let number = pack_channel(division.number(channel), &unknowns);
            Some((channel, division.way(channel, phase)? << bits | number))
        };
        solved.channels = division.channels().filter_map(of_map).collect();
        solved.notes.push(format!(
            "channels are dealt out by (offset / {}) mod {}",
            division.interleave.granule, division.interleave.ways
        ));
    }
    if division.is_none() {
        let of_map = |row: &Row| (row.values[0], pack_channel(row.values[0], &unknowns));
        solved.channels = rows.iter().map(of_map).collect();
    }
    check(&solved, given, &rows, &unknowns, &groups)?;
    Ok(solved)
}

/// The channel bits of the map from those of a row.
fn pack_channel(value: u32, unknowns: &[Unknown]) -> u32 {
    let channel = unknowns.iter().filter(|u| u.field == 0);
    channel.map(|u| (value >> u.from & 1) << u.at).sum()
}

/// Solves the rows but for `out`, by index. What contradicts nobody may stand
/// on one confirmation, what was contradicted wants two.
fn solve_without(rows: &[Row], out: &[usize]) -> Result<Solved, FileError> {
    let rest = |(i, row): (usize, &Row)| (!out.contains(&i)).then(|| row.clone());
    let rest: Vec<Row> = rows.iter().enumerate().filter_map(rest).collect();
    let mut solved = solve(&rest)?;
    solved.complete &= solved.told.iter().all(|&(_, sets)| sets >= 3);
    if let Some((first, last)) = together(rows, out) {
        solved.complete = false;
        solved.notes.push(format!(
            "the rows left out lie one behind the other, from {first:#x} to {last:#x}: what is \
             there may lie elsewhere"
        ));
    }
    solved
        .left_out
        .extend(out.iter().map(|&row| rows[row].line));
    solved.left_out.sort_unstable();
    Ok(solved)
}

/// The first address and the last of the rows that are left `out`, where there are
/// several and no other row lies between them: those are hardly wrong each by itself.
fn together(rows: &[Row], out: &[usize]) -> Option<(u64, u64)> {
    let at = |row: &usize| rows[*row].address;
    let (first, last) = (out.iter().map(at).min()?, out.iter().map(at).max()?);
    let between = (0..rows.len()).filter(|row| (first..=last).contains(&at(row)));
    (out.len() > 1 && between.count() == out.len()).then_some((first, last))
}

/// Bits that vary; rows and columns: bits that are set somewhere. Channel, rank
/// and bank are numbered without the bits that never vary, which is noted.
fn unknowns(rows: &[Row]) -> (Vec<Unknown>, Vec<String>) {
    let mut unknowns = Vec::new();
    let mut notes = Vec::new();
    for (field, name) in FIELDS.iter().enumerate() {
        let any = rows.iter().fold(0, |any, row| any | row.values[field]);
        let all = rows.iter().fold(!0, |all, row| all & row.values[field]);
        let mut next = 0;
        for from in 0..32 - any.leading_zeros() {
            let varies = any >> from & 1 != all >> from & 1;
            if field < 3 && !varies {
                notes.push(format!(
                    "{name} bit {from} is {} in every row: left out, the bits above it are counted one lower",
                    all >> from & 1
                ));
            } else if any >> from & 1 == 1 {
                let at = if field < 3 { next } else { from };
                unknowns.push(Unknown { field, from, at });
                next += 1;
            }
        }
    }
    (unknowns, notes)
}

fn pack(row: &Row, unknowns: &[Unknown]) -> u128 {
    let bits = unknowns.iter().enumerate();
    bits.map(|(i, u)| u128::from(row.values[u.field] >> u.from & 1) << i)
        .fold(0, |all, bit| all | bit)
}

/// The map from rows whose shifts are settled.
fn finish(
    table: &Table<'_>,
    groups: &[Group],
    unknowns: &[Unknown],
    chip_select: u16,
) -> Result<Solved, FileError> {
    let rows = table.rows;
    let samples: Vec<(u64, &Row)> = groups
        .iter()
        .flat_map(|group| group.rows.iter().map(|&row| (row, group.shift)))
        .map(|(row, shift)| (table.offset(row, shift), &rows[row]))
        .collect();
    let ways = table.division.map_or(1, |d| u64::from(d.interleave.ways));
    let highest = samples.iter().map(|sample| sample.0).max().unwrap_or(0);
    let top = 63 - (highest | 0xfff).leading_zeros();
    let (lines, bytes) = (gf2::span(LINE_BIT, top), gf2::span(0, top));
    let mut functions = Vec::with_capacity(unknowns.len());
    let mut free = Basis::new();
    for u in unknowns {
        let equations: Vec<(u64, bool)> = samples
            .iter()
            .map(|(offset, row)| (*offset, row.values[u.field] >> u.from & 1 == 1))
            .collect();
        let within = if u.field == 4 { bytes } else { lines };
        let Some((function, open)) = gf2::fit(&equations, within) else {
            return Err(FileError::whole(
                "",
                format!(
                    "{} bit {} is no sum of address bits above a line of 64 bytes",
                    FIELDS[u.field], u.from
                ),
            ));
        };
        functions.push((*u, gf2::lightest_of_coset(function, &open)));
        if u.field < 4 {
            free = open;
        }
    }
    let shown =
        equations::disjoint_proofs(samples.iter().map(|&(offset, _)| offset & lines), lines);
    let mut notes = separate(&mut functions, &free);
    let mut complete = notes.is_empty();
    let banks = functions.iter().filter(|(u, _)| u.field < 3);
    let highest_bank_bit = banks
        .map(|(_, mask)| 64 - mask.leading_zeros())
        .max()
        .unwrap_or(0);
    for group in groups {
        complete &= rivals(group, highest_bank_bit, ways, &mut notes);
    }
    let mut map = MapSpec {
        line: 64,
        llc: Vec::new(),
        layouts: vec![Layout {
            interleave: table.division.map(|division| division.interleave),
            ways: Vec::new(),
            ..layout(&functions, chip_select)
        }],
        ranges: ranges(groups, rows, ((lines | 63) + 1) * ways),
    };
    range_notes(groups, &map.ranges, &mut notes);
    complete &= borders(groups, rows, &mut notes);
    // A bit that is set in some row can be no bit of its row number.
    let set = samples.iter().fold(0, |all, sample| all | sample.0);
    complete &= fill_in(&mut map, set, varying(table, groups), &mut notes);
    Ok(Solved {
        map,
        rows: samples.len(),
        left_out: Vec::new(),
        told: shown,
        open: free.lightest(),
        complete,
        notes,
        channels: BTreeMap::new(),
    })
}

fn layout(functions: &[(Unknown, u64)], chip_select: u16) -> Layout {
    let mut layout = Layout {
        chip_select,
        ..Layout::default()
    };
    for &(u, mask) in functions {
        let term = Term { at: u.at, mask };
        match u.field {
            0 => layout.channel.push(mask),
            1 => layout.rank.push(mask),
            2 => layout.bank.push(mask),
            3 => layout.row.push(term),
            _ => layout.column.push(term),
        }
    }
    layout
}

/// Offset bits that vary among the rows of one group. A bit that is constant over each is
/// one that a node's base may have.
fn varying(table: &Table<'_>, groups: &[Group]) -> u64 {
    groups.iter().fold(0, |varying, group| {
        let offsets = || group.rows.iter().map(|&row| table.offset(row, group.shift));
        let (any, all) = (
            offsets().fold(0, |a, b| a | b),
            offsets().fold(!0, |a, b| a & b),
        );
        varying | any & !all
    })
}

/// Gives bits that no field uses to columns or rows, so that the map encodes;
/// or drops both where they were not given, or are too few. False when they
/// were given and don't suffice: for there are too many such bits, or some of them
/// are `varying` in the rows and yet change no field, so that one must be missing.
fn fill_in(map: &mut MapSpec, set: u64, varying: u64, notes: &mut Vec<String>) -> bool {
    let given = |layout: &Layout| !layout.row.is_empty() && !layout.column.is_empty();
    let drop = |layout: &mut Layout| {
        layout.row.clear();
        layout.column.clear();
    };
    if !given(&map.layouts[0]) {
        drop(&mut map.layouts[0]);
        notes.push("rows and columns are not both given: the map colours and decodes banks, but does not encode".into());
        return true;
    }
    let mut filled = map.clone();
    let added = filled.determine(set);
    let layout = &filled.layouts[0];
    if layout.row.len() > MOST_ROW_BITS || layout.column.len() > MOST_COLUMN_BITS {
        drop(&mut map.layouts[0]);
        notes.push(format!(
            "{} offset bits are used by no field, too many to be columns or rows: neither is in the map, which does not encode",
            added.len()
        ));
        return false;
    }
    if !added.is_empty() {
        let list: Vec<String> = added.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "no field is known to use offset bits {}; they are taken for columns or rows",
            list.join(", ")
        ));
    }
    *map = filled;
    let idle: Vec<String> = added
        .iter()
        .filter(|&&bit| varying >> bit & 1 == 1)
        .map(ToString::to_string)
        .collect();
    if !idle.is_empty() {
        notes.push(format!(
            "offset bits {} vary and change no field by themselves: the rows lack a field, such as \
             the bank group, and banks may be missing",
            idle.join(", ")
        ));
    }
    idle.is_empty()
}

/// Two places never share an address, so no function is a sum of others. Where
/// the rows make it look so, a bit that they leave open must take part: the
/// lowest above a line, and in the channel rather than elsewhere (interleaving
/// by lines is what short tables of page addresses hide).
fn separate(functions: &mut [(Unknown, u64)], free: &Basis) -> Vec<String> {
    let mut notes = Vec::new();
    let mut known = Basis::new();
    let mut open: Vec<u32> = (LINE_BIT..52)
        .filter(|&bit| free.contains(1 << bit))
        .collect();
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

/// Says which other bases the rows allow; false when banks depend on it.
fn rivals(group: &Group, highest_bank_bit: u32, ways: u64, notes: &mut Vec<String>) -> bool {
    let matters = |other: &&u64| {
        let apart = other.abs_diff(group.shift);
        apart % ways != 0 || (apart / ways).trailing_zeros() < highest_bank_bit
    };
    let (Some(one), many) = (
        group.rivals.iter().find(matters),
        group.rivals.iter().filter(matters).count(),
    ) else {
        return true;
    };
    notes.push(format!(
        "node {}: address less offset is taken to be {:#x}; {many} other values fit the rows as well, such as {one:#x}",
        group.node, group.shift
    ));
    false
}

/// Core takes the map, and decodes by it every row that was used.
fn check(
    solved: &Solved,
    given: &[Row],
    rows: &[Row],
    unknowns: &[Unknown],
    groups: &[Group],
) -> Result<(), FileError> {
    let map = &solved.map;
    let (has_row, has_column) = (
        !map.layouts[0].row.is_empty(),
        !map.layouts[0].column.is_empty(),
    );
    let map = AddrMap::parse(&map.to_text("solved")).map_err(|refusal| {
        FileError::whole("", format!("too few rows to make a map: {}", refusal.text))
    })?;
    let used = groups.iter().flat_map(|group| &group.rows);
    for (row, given) in used.map(|&row| (&rows[row], &given[row])) {
        let wrong =
            |what: &str| FileError::in_line("", row.line, format!("{:#x} {what}", row.address));
        let Ok(d) = map.decode(row.address) else {
            return Err(wrong(
                "lies in no range of what was solved: the nodes' addresses overlap",
            ));
        };
        let found = [d.channel, d.rank, d.bank, d.row, d.column];
        let agrees = unknowns
            .iter()
            .filter(|u| u.field < 3 || (u.field == 3 && has_row) || (u.field == 4 && has_column))
            .all(|u| row.values[u.field] >> u.from & 1 == found[u.field] >> u.at & 1);
        let channel = solved.channels.get(&given.values[0]);
        let way = solved.channels.is_empty() || channel == Some(&d.channel);
        if !agrees || !way || d.node != u32::from(row.node) {
            return Err(wrong(
                "does not decode as its row says by what was solved: the nodes' addresses overlap",
            ));
        }
    }
    Ok(())
}
