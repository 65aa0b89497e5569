//! What a file of another tool names of a map, and what it does not.
//!
//! Few tools name everything. What is left over is filled in so that an address and
//! its place in DRAM determine each other, and said: such a map is incomplete. A
//! function that is doubtful is left out, since one too few makes colours coarser,
//! while one too many lets two of them share a bank.

use soloist_core::show_list;
use soloist_machine::function::{terms_of, Term};
use soloist_machine::gf2::{self, Basis};
use soloist_machine::{Layout, MapRange, MapSpec, Trust};

use soloist_machine::FileError;

/// A cache line's bits, which choose nothing.
pub(crate) const LINE_BITS: u32 = 6;
/// Memory that is taken where neither the file nor the user says more.
pub const USUAL_MEMORY: u64 = 8 << 30;

/// Functions that a file names, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Channel, rank and bank functions.
    pub banks: Vec<u64>,
    /// Row bits.
    pub rows: Vec<u64>,
    /// Column bits, those within a line too where the tool lists them.
    pub columns: Vec<u64>,
    /// What of it is doubtful, a sentence each.
    pub doubts: Vec<String>,
}

impl Found {
    /// Bank functions alone.
    pub(crate) fn functions(banks: Vec<u64>) -> Self {
        Self {
            banks,
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.banks.is_empty()
            && self.rows.is_empty()
            && self.columns.is_empty()
            && self.doubts.is_empty()
    }

    fn agrees(&self, other: &Self) -> bool {
        let union = |masks: &[u64]| masks.iter().fold(0, |all, mask| all | mask);
        gf2::same_span(&self.banks, &other.banks)
            && union(&self.rows) == union(&other.rows)
            && union(&self.columns) == union(&other.columns)
    }

    /// The layout that the file names, and what is doubtful. Columns that bank
    /// functions and rows make up already (tools list every bit of a column) are dropped.
    ///
    /// # Errors
    /// When it names no function, or one that follows from those before it.
    pub fn layout(mut self) -> Result<(Layout, Vec<String>), FileError> {
        let wrong = |message: String| FileError::whole("", message);
        if self.banks.is_empty() {
            let doubts = self.doubts.join("; ");
            return Err(wrong(match doubts.is_empty() {
                true => "no bank functions in it".to_owned(),
                false => format!("no bank functions in it that are sure: {doubts}"),
            }));
        }
        let mut known = Basis::new();
        if let Some(double) = self.banks.iter().find(|&&bank| !known.insert(bank)) {
            let shown = gf2::show(*double);
            return Err(wrong(format!(
                "{shown} follows from the functions before it"
            )));
        }
        for field in [&mut self.rows, &mut self.columns] {
            field.sort_unstable();
            field.dedup();
            field.retain(|&mask| mask >> LINE_BITS != 0);
        }
        let (rows, lost): (Vec<u64>, _) = self.rows.iter().partition(|&&row| known.insert(row));
        self.columns.retain(|&column| known.insert(column));
        if !lost.is_empty() {
            let lost: Vec<u32> = lost.into_iter().map(u64::trailing_zeros).collect();
            self.doubts.push(format!(
                "Row bits {} are left out: they follow from the functions and the other rows.",
                show_list(&lost)
            ));
        }
        let layout = Layout {
            bank: self.banks,
            row: terms_of(&rows),
            column: terms_of(&self.columns),
            ..Layout::default()
        };
        Ok((layout, self.doubts))
    }
}

/// The runs of a tool whose output stands in one log.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    before: Vec<(usize, Found)>,
    line: usize,
    /// The run that is being read.
    pub(crate) now: Found,
    /// How many functions its heading says there are.
    pub(crate) announced: Option<u32>,
}

impl Runs {
    /// A run begins, or one ended, at this line.
    pub(crate) fn next(&mut self, line: usize) {
        let mut run = std::mem::take(&mut self.now);
        let there = run.banks.len();
        if let Some(announced) = self.announced.take().filter(|&n| n as usize != there) {
            let torn = format!("The log announces {announced} functions, {there} are there.");
            run.doubts.push(torn);
        }
        if !run.is_empty() {
            self.before.push((self.line, run));
        }
        self.line = line;
    }

    /// What they found, where they agree.
    pub(crate) fn finish(mut self) -> Result<Found, FileError> {
        self.next(0);
        let mut runs = self.before.into_iter();
        let Some((first_line, first)) = runs.next() else {
            return Ok(Found::default());
        };
        for (line, run) in runs {
            if !first.agrees(&run) {
                let from = match first_line {
                    0 | 1 => String::new(),
                    line => format!(" from line {line} on"),
                };
                let message = format!(
                    "another run of the tool, which contradicts the one{from}; keep the run \
                     that is right, and `soloist map check` its map"
                );
                return Err(FileError::in_line("", line, message));
            }
        }
        Ok(first)
    }
}

/// The memory that a map is for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Its bytes; `None`: what the rows reach to, 8 GiB at least.
    pub bytes: Option<u64>,
    /// Address of the first byte: 2 GiB on a Jetson.
    pub start: u64,
    /// Offset of the first byte within what the functions see.
    pub base: u64,
    /// Where the hole below 4 GiB begins.
    pub hole: Option<u64>,
}

/// A map of all of the memory.
#[derive(Debug)]
pub struct Filled {
    /// The map.
    pub map: MapSpec,
    /// Published where the file names all of it.
    pub trust: Trust,
    /// What was filled in, and what is doubtful.
    pub notes: Vec<String>,
}

const FOUR_GIB: u64 = 1 << 32;

/// Why there is no map.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// The memory does not begin with a page, or ends above all addresses.
    #[error("--start {0:#x}: expected an address that is a multiple of 4096, below 2^52")]
    Start(u64),
    /// The hole does not lie below 4 GiB.
    #[error("--hole {0:#x}: expected an address below 4 GiB")]
    Hole(u64),
    /// The memory ends below a function's bits.
    #[error("{0}: no address of the memory has that bit; --memory SIZE says how much there is")]
    Above(String),
    /// The memory ends where rows would begin.
    #[error(
        "no address bit is left for rows: they would begin at bit {first}, the memory ends below \
         bit {top}; --memory SIZE says how much there is"
    )]
    NoRows {
        /// First row bit.
        first: u32,
        /// Address bits of the memory.
        top: u32,
    },
}

/// Makes a map of a layout and what is doubtful in it, and fills in what no function
/// of it determines.
///
/// # Errors
/// Functions above the memory, no bit left for rows, a hole that is none.
pub fn fill(layout: Layout, doubts: Vec<String>, memory: &Memory) -> Result<Filled, FillError> {
    let start = memory.start;
    if start % 4096 != 0 || start >= 1 << 52 {
        return Err(FillError::Start(start));
    }
    let bytes = memory.bytes.unwrap_or_else(|| reach(&layout, memory.base));
    let mut map = MapSpec::single(layout, bytes);
    map.ranges[0] = MapRange {
        start,
        end: start.saturating_add(bytes),
        base: memory.base,
        ..map.ranges[0]
    };
    if let Some(hole) = memory.hole.filter(|&hole| hole < bytes) {
        if hole == 0 || hole >= FOUR_GIB {
            return Err(FillError::Hole(hole));
        }
        map.ranges[0].end = hole;
        map.ranges.push(MapRange {
            start: FOUR_GIB,
            end: FOUR_GIB + (bytes - hole),
            base: hole,
            ..map.ranges[0]
        });
    }
    let top = map.offset_bits(0);
    let mut notes = doubts;
    notes.extend(complete(&mut map.layouts[0], top)?);
    let trust = match notes.is_empty() {
        true => Trust::Published,
        false => Trust::Incomplete,
    };
    Ok(Filled { map, trust, notes })
}

/// The memory from offset `base` on whose top bit is the highest row bit.
fn reach(layout: &Layout, base: u64) -> u64 {
    let rows = layout.row_masks().into_iter().fold(0, |all, row| all | row);
    let end = match rows {
        0 => 0,
        rows => 1u64 << (64 - rows.leading_zeros()),
    };
    USUAL_MEMORY.max(end.saturating_sub(base))
}

/// Gives each bit below `top` that no function determines to rows or columns, and
/// says which.
fn complete(layout: &mut Layout, top: u32) -> Result<Vec<String>, FillError> {
    let functions = layout.bank_functions();
    let within = (1u64 << top.min(63)) - 1;
    if let Some(above) = functions.iter().find(|&&function| function & within == 0) {
        return Err(FillError::Above(gf2::show(*above)));
    }
    let mut known = Basis::of(functions.iter().copied());
    known.extend(layout.row_masks());
    known.extend(layout.column.iter().map(|term| term.mask));
    let named = layout.row_masks();
    let lowest = named.iter().map(|row| row.trailing_zeros()).min();
    let first_row = lowest.unwrap_or_else(|| likely_first_row(&functions));
    let mut open = |bits: std::ops::Range<u32>| -> Vec<u32> {
        bits.filter(|&bit| known.insert(1 << bit)).collect()
    };
    let rows = open(first_row..top);
    let columns = open(LINE_BITS..first_row.min(top));
    if named.is_empty() && rows.is_empty() {
        let first = first_row;
        return Err(FillError::NoRows { first, top });
    }
    let mut notes = Vec::new();
    let mut say = |what: &str, bits: &[u32], why: &str| {
        if !bits.is_empty() {
            notes.push(format!(
                "{what} bits {} are filled in: {why}.",
                show_list(bits)
            ));
        }
    };
    say(
        "Row",
        &rows,
        match named.is_empty() {
            true => "the file names no rows",
            false => "the file's rows and functions leave them over",
        },
    );
    say(
        "Column",
        &columns,
        match layout.column.is_empty() {
            true => "the file names no columns",
            false => "the file's columns and functions leave them over",
        },
    );
    append(&mut layout.row, &rows, 0);
    append(&mut layout.column, &columns, LINE_BITS - 3);
    Ok(notes)
}

/// Appends bits to a field, in free places of it from `first` on.
fn append(field: &mut Vec<Term>, bits: &[u32], first: u32) {
    for &bit in bits {
        let is_free = |at: &u32| field.iter().all(|term| term.at != *at);
        let at = (first..).find(is_free).unwrap_or(first);
        field.push(Term { at, mask: 1 << bit });
    }
    field.sort_by_key(|term| term.at);
}

/// First row bit to assume where only bank functions are known: above the lowest
/// bits of all functions of several bits, whose higher bits are rows. Of functions of
/// one bit only those count that lie side by side from the lowest one on: higher ones
/// (a rank, or banks above the rows) say nothing of where rows begin.
#[must_use]
pub fn likely_first_row(functions: &[u64]) -> u32 {
    let lowest = |several: bool| {
        let is_wanted = move |f: &&u64| (f.count_ones() > 1) == several;
        functions
            .iter()
            .filter(is_wanted)
            .map(|f| f.trailing_zeros())
    };
    let single: Vec<u32> = lowest(false).collect();
    let side_by_side = single.iter().min().map(|&first| {
        let next = (first..).find(|bit| !single.contains(bit));
        next.unwrap_or(first)
    });
    let several = lowest(true).max().map(|bit| bit + 1);
    several.max(side_by_side).unwrap_or(12)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn where_rows_begin() {
        let first_row = |lists: &[&[u32]]| {
            let mask = |bits: &&[u32]| bits.iter().fold(0, |all, bit| all | 1 << bit);
            likely_first_row(&lists.iter().map(mask).collect::<Vec<u64>>())
        };
        assert_eq!(
            first_row(&[&[7, 14], &[15, 19], &[18, 22], &[8, 9, 12, 13, 18, 19]]),
            19
        );
        assert_eq!(first_row(&[&[12], &[13], &[14]]), 15);
        assert_eq!(first_row(&[&[12], &[30], &[31], &[32]]), 13);
        assert_eq!(first_row(&[&[13], &[14], &[16], &[20], &[21]]), 15);
        assert_eq!(first_row(&[&[6], &[13, 17], &[14, 18]]), 15);
        assert_eq!(first_row(&[]), 12);
    }

    /// Both published maps of the Raspberry Pi 5, at every size it is sold with.
    #[test]
    fn bank_bits_at_the_top_leave_rows_above_and_below() {
        let (low, top) = ([12u32, 13, 14, 31], [12u32, 30, 31, 32]);
        for (bits, gib, last_row) in [
            (low, 4, 30),
            (low, 8, 32),
            (low, 16, 33),
            (top, 8, 29),
            (top, 16, 33),
        ] {
            let functions = bits.iter().map(|bit| 1 << bit).collect();
            let (layout, doubts) = Found::functions(functions).layout().unwrap();
            let memory = Memory {
                bytes: Some(gib << 30),
                ..Memory::default()
            };
            let filled = fill(layout, doubts, &memory).unwrap();
            let layout = &filled.map.layouts[0];
            assert_eq!(layout.column.len(), 6, "{bits:?}");
            assert_eq!(layout.row.last().unwrap().mask, 1 << last_row, "{bits:?}");
            assert!(soloist_core::AddrMap::parse(&filled.map.to_text("pi")).is_ok());
        }
    }

    #[test]
    fn memory_may_begin_above_address_0() {
        let all = |start, base| {
            let (layout, doubts) = Found::functions(vec![1 << 13 | 1 << 17, 1 << 14])
                .layout()
                .unwrap();
            let memory = Memory {
                bytes: Some(4 << 30),
                start,
                base,
                ..Memory::default()
            };
            fill(layout, doubts, &memory)
        };
        // A Jetson Nano: the functions are of the address.
        let jetson = all(2 << 30, 2 << 30).unwrap().map;
        let range = jetson.ranges[0];
        assert_eq!((range.start, range.end), (2 << 30, 6 << 30));
        let map = soloist_core::AddrMap::parse(&jetson.to_text("nano")).unwrap();
        assert!(map.decode((2 << 30) - 64).is_err());
        let at = |address| map.decode(address).unwrap().color;
        assert_eq!(at(2 << 30 | 1 << 17), at(2 << 30 | 1 << 13));
        // Or of what the controller sees.
        assert_eq!(all(1 << 30, 0).unwrap().map.ranges[0].base, 0);
        assert_eq!(
            all(1 << 30 | 64, 0).unwrap_err(),
            FillError::Start(1 << 30 | 64)
        );
    }

    #[test]
    fn every_bit_is_determined() {
        for functions in [vec![0x4080, 0x88000], vec![1 << 12, 1 << 30], vec![0xe000]] {
            let (layout, doubts) = Found::functions(functions).layout().unwrap();
            let mut filled = fill(layout, doubts, &Memory::default()).unwrap();
            assert_eq!(filled.map.determine(0), [0; 0]);
            assert_eq!(filled.trust, Trust::Incomplete);
        }
    }
}
