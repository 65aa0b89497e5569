//! Mapping strings of memory simulators: the fields of an address in order,
//! highest first, as two letters each.
//!
//! gem5 knows `RoRaBaChCo`, `RoRaBaCoCh` and `RoCoRaBaCh`; Ramulator 2 has
//! `RoBaRaCoCh` and `ChRaBaRoCo`; DRAMsim3 takes any order of `ro`, `ra`, `bg`,
//! `ba`, `co`, `ch`, such as `rochrababgco`. Ramulator 2's MOP4CLXOR is no order: four
//! lines, then channel, rank, group and bank, the rest of the columns and the row,
//! and each bit above the four lines but the columns' XORed with a column bit, from
//! the lowest on. How wide a field is the simulator knows from its device, and here
//! from the geometry; the row takes what is left of the memory.

use soloist_machine::function::{terms_of, Term};
use soloist_machine::gf2::bits;
use soloist_machine::Layout;

/// Bits of each field but the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Geometry {
    /// Channels, log2.
    pub channel: u32,
    /// Ranks, log2.
    pub rank: u32,
    /// Bank groups, log2.
    pub group: u32,
    /// Banks of a group (of a rank, where there are no groups), log2.
    pub bank: u32,
    /// Lines of a row, log2.
    pub lines: u32,
}

impl std::str::FromStr for Geometry {
    type Err = String;

    /// `channels=2,ranks=1,groups=4,banks=4,lines=128`; what is left out is 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut geometry = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let field = match name.trim() {
                "channels" => &mut geometry.channel,
                "ranks" => &mut geometry.rank,
                "groups" => &mut geometry.group,
                "banks" => &mut geometry.bank,
                "lines" => &mut geometry.lines,
                other => {
                    return Err(format!(
                        "`{other}`: expected channels, ranks, groups, banks or lines"
                    ))
                }
            };
            let number: u32 = value.trim().parse().unwrap_or(0);
            if !number.is_power_of_two() || number > 1 << 12 {
                return Err(format!("`{part}`: expected a power of two up to 4096"));
            }
            *field = number.trailing_zeros();
        }
        Ok(geometry)
    }
}

const MOP: &str = "MOP4CLXOR";

const FIELDS: [&str; 6] = ["ch", "ra", "bg", "ba", "ro", "co"];

/// The layout that a mapping string makes of `memory` bits of address; lines
/// are of 64 bytes.
///
/// # Errors
/// In words.
pub fn read(text: &str, geometry: Geometry, memory: u32) -> Result<Layout, String> {
    let lower = text.trim().to_ascii_lowercase();
    if lower == MOP.to_ascii_lowercase() {
        return minimalist_open_page(geometry, memory);
    }
    if !lower.is_ascii() || lower.len() % 2 != 0 {
        return Err(format!(
            "`{text}`: expected fields of two letters, such as RoRaBaCoCh"
        ));
    }
    let fields: Vec<&str> = (0..lower.len())
        .step_by(2)
        .map(|i| &lower[i..i + 2])
        .collect();
    for (i, field) in fields.iter().enumerate() {
        if !FIELDS.contains(field) {
            return Err(format!("`{field}`: expected Ro, Ra, Bg, Ba, Co or Ch"));
        }
        if fields[..i].contains(field) {
            return Err(format!("`{field}` occurs twice"));
        }
    }
    let has = |field: &str| fields.contains(&field);
    let width = |field: &str| match field {
        "ch" => geometry.channel,
        "ra" => geometry.rank,
        "bg" => geometry.group,
        // An order without groups names both by the bank.
        "ba" if !has("bg") => geometry.bank + geometry.group,
        "ba" => geometry.bank,
        _ => geometry.lines,
    };
    for field in ["ch", "ra", "ba", "co"] {
        if width(field) > 0 && !has(field) {
            return Err(format!(
                "the geometry has bits for `{field}`, the order has not"
            ));
        }
    }
    let others: u32 = fields
        .iter()
        .filter(|f| **f != "ro")
        .map(|f| width(f))
        .sum();
    let rows = rows_left(memory, others).filter(|_| has("ro"));
    let rows = rows.ok_or_else(|| no_rows(memory))?;
    let mut layout = Layout::default();
    let mut group = Vec::new();
    let mut at = 6;
    for &field in fields.iter().rev() {
        let width = if field == "ro" { rows } else { width(field) };
        let masks: Vec<u64> = (at..at + width).map(|bit| 1 << bit).collect();
        at += width;
        match field {
            "ch" => layout.channel = masks,
            "ra" => layout.rank = masks,
            "bg" => group = masks,
            "ba" => layout.bank = masks,
            "ro" => layout.row = terms_of(&masks),
            _ => layout.column = lines_of(&masks),
        }
    }
    layout.bank_group = (0..group.len() as u8).collect();
    layout.bank = [group, layout.bank].concat();
    Ok(layout)
}

fn rows_left(memory: u32, others: u32) -> Option<u32> {
    let rows = memory.checked_sub(6 + others)?;
    (1..=32).contains(&rows).then_some(rows)
}

fn no_rows(memory: u32) -> String {
    format!("a memory of 2^{memory} bytes leaves no rows, or more than 2^32")
}

/// The layout of Ramulator 2's `MOP4CLXOR`.
fn minimalist_open_page(geometry: Geometry, memory: u32) -> Result<Layout, String> {
    let Geometry { lines, .. } = geometry;
    if lines < 2 {
        return Err(format!("{MOP}: expected a geometry of at least lines=4"));
    }
    let widths = [
        geometry.channel,
        geometry.rank,
        geometry.group,
        geometry.bank,
    ];
    let others: u32 = widths.iter().sum();
    let rows = rows_left(memory, others + lines).ok_or_else(|| no_rows(memory))?;
    let mut at = 8;
    let mut take = |width: u32| -> Vec<u64> {
        at += width;
        (at - width..at).map(|bit| 1 << bit).collect()
    };
    let mut fields = widths.map(&mut take);
    let columns = [vec![1 << 6, 1 << 7], take(lines - 2)].concat();
    let mut row = take(rows);
    let crossed = fields.iter_mut().chain([&mut row]).flatten();
    for (bit, column) in crossed.zip(&columns) {
        *bit |= column;
    }
    let [channel, rank, group, bank] = fields;
    Ok(Layout {
        channel,
        rank,
        bank_group: (0..group.len() as u8).collect(),
        bank: [group, bank].concat(),
        row: terms_of(&row),
        column: lines_of(&columns),
        ..Layout::default()
    })
}

/// Whether Ramulator 2's `MOP4CLXOR` makes this layout.
fn is_minimalist_open_page(layout: &Layout) -> bool {
    let group = layout.bank_group.len() as u32;
    let geometry = Geometry {
        channel: layout.channel.len() as u32,
        rank: layout.rank.len() as u32,
        group,
        bank: layout.bank.len() as u32 - group,
        lines: layout.column.len() as u32,
    };
    let fields = [&layout.channel, &layout.rank, &layout.bank];
    let bits = fields.iter().map(|field| field.len()).sum::<usize>();
    let memory = 6 + bits + layout.row.len() + layout.column.len();
    minimalist_open_page(geometry, memory as u32).is_ok_and(|made| made == *layout)
}

/// Column bits above the eight transfers of a burst.
fn lines_of(masks: &[u64]) -> Vec<Term> {
    let terms = terms_of(masks).into_iter();
    terms
        .map(|term| Term {
            at: term.at + 3,
            ..term
        })
        .collect()
}

/// The mapping string of a layout whose fields are plain bits side by side.
///
/// # Errors
/// In words: which field no order of fields can express.
pub fn write(layout: &Layout) -> Result<String, String> {
    if is_minimalist_open_page(layout) {
        return Ok(MOP.to_owned());
    }
    let in_group = |i: usize| layout.bank_group.contains(&(i as u8));
    let (group, bank): (Vec<_>, Vec<_>) = layout
        .bank
        .iter()
        .enumerate()
        .partition(|(i, _)| in_group(*i));
    let plain = |list: Vec<(usize, &u64)>| list.into_iter().map(|(_, &mask)| mask).collect();
    let masks_of = |terms: &[Term]| -> Vec<u64> { terms.iter().map(|term| term.mask).collect() };
    let masks: [Vec<u64>; 6] = [
        layout.channel.clone(),
        layout.rank.clone(),
        plain(group),
        plain(bank),
        masks_of(&layout.row),
        masks_of(&layout.column)
            .into_iter()
            .filter(|mask| mask >> 6 != 0)
            .collect(),
    ];
    let mut placed: Vec<(u32, &str)> = Vec::new();
    for (field, masks) in FIELDS.into_iter().zip(&masks) {
        let Some(first) = masks.first() else {
            continue;
        };
        let low = first.trailing_zeros();
        let together = masks
            .iter()
            .zip(low..)
            .all(|(mask, bit)| bits(*mask).eq([bit]));
        if !together {
            return Err(format!(
                "`{field}`: an order of fields holds plain bits side by side, from the lowest on"
            ));
        }
        placed.push((low, field));
    }
    placed.sort_unstable();
    side_by_side(&placed, &masks)?;
    Ok(placed.iter().rev().map(|(_, field)| *field).collect())
}

/// Whether the fields, by their lowest bits, are all of an address above a line.
fn side_by_side(placed: &[(u32, &str)], masks: &[Vec<u64>; 6]) -> Result<(), String> {
    if !placed.iter().any(|(_, field)| *field == "ro") {
        return Err("an order of fields has rows (`ro`), and this map has none".to_owned());
    }
    let mut next = 6;
    for &(low, field) in placed {
        if low != next {
            return Err(format!(
                "bits {next} to {} are in no field, and an order of fields leaves out none: \
                 give them to columns or rows",
                low - 1
            ));
        }
        let width = FIELDS.iter().zip(masks).find(|(name, _)| **name == field);
        next += width.map_or(0, |(_, masks)| masks.len() as u32);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const DDR4: &str = "channels=2,ranks=2,groups=4,banks=4,lines=128";

    #[test]
    fn orders_go_both_ways() {
        let geometry: Geometry = DDR4.parse().unwrap();
        // DRAMsim3's default: columns lowest, then groups.
        let layout = read("rochrababgco", geometry, 34).unwrap();
        assert_eq!(layout.column.len(), 7);
        assert_eq!(layout.column[0].mask, 1 << 6);
        assert_eq!(layout.bank, [1 << 13, 1 << 14, 1 << 15, 1 << 16]);
        assert_eq!(layout.rank, [1 << 17]);
        assert_eq!(layout.channel, [1 << 18]);
        assert_eq!(layout.row[0].mask, 1 << 19);
        assert_eq!(layout.row.len(), 15);
        for order in [
            "rochrababgco",
            "rorababgcoch",
            "chrabarocobg",
            "robabgracoch",
        ] {
            let layout = read(order, geometry, 34).unwrap();
            assert_eq!(write(&layout).unwrap(), order);
        }
        // gem5's and Ramulator's name groups by the bank.
        let layout = read("RoRaBaCoCh", geometry, 34).unwrap();
        assert_eq!(layout.channel, [1 << 6]);
        assert_eq!(layout.bank.len(), 4);
        assert_eq!(write(&layout).unwrap(), "rorabacoch");
    }

    #[test]
    fn mop4clxor_goes_both_ways() {
        let geometry: Geometry = DDR4.parse().unwrap();
        let layout = read("MOP4CLXOR", geometry, 34).unwrap();
        // Four lines, channel, rank, two of group, two of bank, five of column, row.
        assert_eq!(layout.channel, [1 << 8 | 1 << 6]);
        assert_eq!(layout.rank, [1 << 9 | 1 << 7]);
        assert_eq!(layout.bank[0], 1 << 10 | 1 << 14);
        assert_eq!(layout.bank[3], 1 << 13 | 1 << 17);
        assert_eq!(layout.row[0].mask, 1 << 19 | 1 << 18);
        assert_eq!(layout.row[1].mask, 1 << 20);
        assert_eq!(layout.column.len(), 7);
        assert_eq!(write(&layout).unwrap(), "MOP4CLXOR");
        assert!(read("MOP4CLXOR", "lines=2".parse().unwrap(), 34).is_err());
    }

    #[test]
    fn refuses_in_words() {
        let geometry: Geometry = DDR4.parse().unwrap();
        for (text, says) in [
            ("RoRaBaCo", "bits for `ch`"),
            ("RoRaBaCoC", "two letters"),
            ("RoRaBaCoXx", "expected Ro"),
            ("RoRoBaCoCh", "twice"),
            ("RaBaCoCh", "no rows"),
        ] {
            let error = read(text, geometry, 34).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(read("RoRaBaCoCh", geometry, 19).is_err());
        for (text, says) in [
            ("chanels=2", "expected channels"),
            ("banks=3", "power of two"),
        ] {
            assert!(
                text.parse::<Geometry>().unwrap_err().contains(says),
                "{text}"
            );
        }
        let skylake = soloist_machine::known::find("skylake").unwrap();
        assert!(write(&skylake.map.layouts[0]).is_err());
    }

    #[test]
    fn an_order_that_is_not_the_map_is_not_written() {
        let geometry: Geometry = DDR4.parse().unwrap();
        let whole = read("robarachbgco", geometry, 34).unwrap();
        assert!(write(&whole).is_ok());
        let gap = Layout {
            column: Vec::new(),
            ..whole.clone()
        };
        let error = write(&gap).unwrap_err();
        assert!(error.starts_with("bits 6 to 12 are in no field"), "{error}");
        let no_rows = Layout {
            row: Vec::new(),
            ..whole
        };
        let error = write(&no_rows).unwrap_err();
        assert!(error.contains("has rows"), "{error}");
    }
}
