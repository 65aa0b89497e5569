//! AMD Family 10h: the map from the memory controllers' registers, by CAMC's
//! Algorithm 1.
//!
//! [`locate`] walks the registers for one address, step by step as the
//! algorithm does: range, hole, swapped region, node interleave, channel,
//! normalised address, chip select, bank, row, column. [`map`] asks it about
//! many addresses and solves each range over GF(2), so that what comes out is a
//! map like any other, decoded by core.
//!
//! Where documents disagree:
//! - Chip-select interleave: the vendor's code swaps the interleave bits with
//!   the high bits of the bank; CAMC (line 23) removes them and closes the gap.
//!   The rows printed for the Opteron 6128 follow CAMC, and so does this.
//! - The row and column order of CAMC's Fig. 5 is that of bank address mode 8;
//!   for other modes the bank bits are documented, and the order of the two row
//!   bits between the bank bits and bit 18 is read by analogy. No colour
//!   depends on it.
//! - Bank swizzle (F2x94 bit 22) takes each bank bit X as X ^ X+3 ^ X+6. It is
//!   off in every row that is known, hence documented but not confirmed.
//!
//! Supported: family 10h, ganged or not, all four channel interleave modes,
//! holes, swapped regions, chip-select interleave. Node interleave is decoded by
//! [`locate`]; a map can't express it, since nodes are ranges, and [`map`] says
//! so. Later families (15h and on; Zen's data fabric) have other registers:
//! they go beside this module, behind [`Registers`].

use soloist_host::machine::pci::{PciError, Registers};
use soloist_machine::function::Term;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::spec::{Layout, MapRange, MapSpec};

const FOUR_GIB: u64 = 1 << 32;
/// Smallest piece that a range is cut into when it is not linear as a whole.
const SMALLEST: u64 = 64 << 20;
/// Unit of a swapped region.
const UNIT: u64 = 128 << 20;
/// Address bits of DRAM base and limit.
const LOW_24: u64 = (1 << 24) - 1;

/// Why registers make no map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmdError {
    /// A register is missing.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// No memory at all.
    #[error("no DRAM range is enabled in F1x40 to F1x7C")]
    NoRanges,
    /// A range that ends before it begins.
    #[error(
        "F1x{register:X}: a DRAM range from {base:#x} to {limit:#x}, which is before it: the \
         registers were read wrongly or the dump is damaged; read them again"
    )]
    Backwards {
        /// Offset of the range's base.
        register: u16,
        /// Its first byte.
        base: u64,
        /// Its last.
        limit: u64,
    },
    /// A hole that more memory was moved out of than there is.
    #[error(
        "F1xF0 of node {node}: a hole of {offset:#x} bytes below 4 GiB, in memory from {base:#x} on: \
         the registers were read wrongly or the dump is damaged; read them again"
    )]
    Hole {
        /// Node.
        node: u8,
        /// Bytes moved.
        offset: u64,
        /// The range's first byte.
        base: u64,
    },
    /// Node interleave.
    #[error("nodes are interleaved by address bits (IntlvEn): there is no node by range to colour by; turn node interleave off in the firmware")]
    NodeInterleave,
    /// A chip select has a bank address mode that is not documented.
    #[error("node {node}, channel {channel}: bank address mode {mode} (F2x80) is not known")]
    Mode {
        /// Node.
        node: u8,
        /// Channel.
        channel: u8,
        /// The nibble.
        mode: u32,
    },
    /// A range is not linear even in small pieces.
    #[error("memory at {0:#x} does not follow XOR functions")]
    NotLinear(u64),
    /// More pieces than a map can hold.
    #[error("the registers give more than {0} ranges or layouts")]
    TooMany(usize),
}

/// Where an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Location {
    /// Node.
    pub node: u8,
    /// DRAM controller of the node.
    pub channel: u8,
    /// Chip select.
    pub chip_select: u8,
    /// Bank.
    pub bank: u32,
    /// Row.
    pub row: u32,
    /// Column; the burst bits are 0, as the papers print it.
    pub column: u32,
}

/// A DRAM range, F1x40 + 8i and F1x44 + 8i.
#[derive(Debug, Clone, Copy)]
struct DramRange {
    base: u64,
    limit: u64,
    node: u8,
    interleave: u64,
    select: u64,
}

fn field(value: u32, high: u32, low: u32) -> u64 {
    u64::from(value >> low) & ((1 << (high - low + 1)) - 1)
}

fn dram_ranges(registers: &Registers) -> Result<Vec<DramRange>, AmdError> {
    let mut ranges = Vec::new();
    for i in 0..8u16 {
        let base = registers.get(0, 1, 0x40 + 8 * i)?;
        let limit = registers.get(0, 1, 0x44 + 8 * i)?;
        if field(base, 1, 0) == 0 {
            continue;
        }
        let base_high = registers.get_or_zero(0, 1, 0x140 + 8 * i);
        let limit_high = registers.get_or_zero(0, 1, 0x144 + 8 * i);
        let range = DramRange {
            base: field(base_high, 7, 0) << 40 | field(base, 31, 16) << 24,
            limit: field(limit_high, 7, 0) << 40 | field(limit, 31, 16) << 24 | LOW_24,
            node: field(limit, 2, 0) as u8,
            interleave: field(base, 10, 8),
            select: field(limit, 10, 8),
        };
        if range.limit < range.base {
            return Err(AmdError::Backwards {
                register: 0x40 + 8 * i,
                base: range.base,
                limit: range.limit,
            });
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// The hole of a node: base and offset, when it has one.
fn hole(registers: &Registers, node: u8) -> Option<(u64, u64)> {
    let register = registers.get_or_zero(node, 1, 0xf0);
    (register & 1 == 1).then(|| (field(register, 31, 24) << 24, field(register, 15, 7) << 23))
}

/// Where `address` lies; `None`: in no range, in the hole, or on no chip.
///
/// # Errors
/// When a register is missing or a mode unknown.
pub fn locate(registers: &Registers, address: u64) -> Result<Option<Location>, AmdError> {
    let ranges = dram_ranges(registers)?;
    locate_in(registers, &ranges, address)
}

fn locate_in(
    registers: &Registers,
    ranges: &[DramRange],
    address: u64,
) -> Result<Option<Location>, AmdError> {
    let selected = |range: &&DramRange| {
        (range.base..=range.limit).contains(&address)
            && (address >> 12) & range.interleave == range.select & range.interleave
    };
    let Some(range) = ranges.iter().find(selected) else {
        return Ok(None);
    };
    let node = range.node;
    let hole = hole(registers, node);
    if hole.is_some_and(|(base, _)| (base..FOUR_GIB).contains(&address)) {
        return Ok(None);
    }
    let address = unswap(registers.get_or_zero(node, 2, 0x10c), address);
    let control = registers.get(node, 2, 0x110)?;
    let high = control & 1 == 1 && address >> 27 >= field(control, 31, 11);
    let ganged = control >> 4 & 1 == 1;
    let interleaved = !ganged && !high && control >> 2 & 1 == 1;
    let mode = field(control, 7, 6);
    let node_bits = range.interleave.count_ones();
    let hash = gf2::parity(gf2::span(16, 20), address);
    let channel = match (ganged, high, interleaved) {
        (true, ..) => 0,
        (_, true, _) => field(control, 1, 1),
        (_, _, true) => match mode {
            0 => address >> 6 & 1,
            1 => address >> (12 + node_bits) & 1,
            2 => (address >> 6 & 1) ^ hash,
            _ => (address >> 9 & 1) ^ hash,
        },
        // Not interleaved: the other one has the low range.
        _ if control & 1 == 1 => 1 - field(control, 1, 1),
        _ => 0,
    } as u8;
    let mut offset = address - start_of(registers, range, hole, high, address);
    offset = remove(offset, 12, node_bits);
    if interleaved {
        offset = remove(offset, [6, 12, 6, 9][mode as usize], 1);
    }
    on_chip(registers, node, channel, ganged, offset)
}

/// What is subtracted from an address of the range: a hole that was hoisted
/// over, the start of the high range, or the range's base.
fn start_of(
    registers: &Registers,
    range: &DramRange,
    hole: Option<(u64, u64)>,
    high: bool,
    address: u64,
) -> u64 {
    let hoisted = hole.filter(|_| address >= FOUR_GIB);
    let start = if high {
        let control = registers.get_or_zero(range.node, 2, 0x110);
        let base = field(control, 31, 11) << 27;
        match hoisted {
            Some((hole_base, offset)) if base < FOUR_GIB || base < hole_base => offset,
            _ => field(registers.get_or_zero(range.node, 2, 0x114), 31, 10) << 26,
        }
    } else {
        hoisted.map_or(range.base, |(_, offset)| offset)
    };
    start.min(address)
}

/// Exchanges the interleaved region with the one at 0 (F2x10C).
fn unswap(register: u32, address: u64) -> u64 {
    let (base, limit, size) = (
        field(register, 9, 3),
        field(register, 17, 11),
        field(register, 26, 20),
    );
    let unit = address >> 27;
    let inside = address >> 34 == 0 && ((base..=limit).contains(&unit) || unit < size);
    if register & 1 == 1 && inside {
        address ^ base << 27
    } else {
        address
    }
}

/// Takes `count` bits out at `at` and closes the gap.
fn remove(value: u64, at: u32, count: u32) -> u64 {
    value >> (at + count) << at | value & ((1 << at) - 1)
}

/// Chip select, bank, row and column of a normalised address.
fn on_chip(
    registers: &Registers,
    node: u8,
    channel: u8,
    ganged: bool,
    offset: u64,
) -> Result<Option<Location>, AmdError> {
    let dct = u16::from(channel) * 0x100;
    for select in 0..8u16 {
        let base = registers.get(node, 2, dct + 0x40 + 4 * select)?;
        if base & 1 == 0 {
            continue;
        }
        let mask = registers.get(node, 2, dct + 0x60 + 4 * (select / 2))?;
        let ignored = u64::from((mask | 0x0007_c01f) & 0x1fff_ffff) << 8 | 0xff;
        let wanted = u64::from(base & 0x1ff8_3fe0) << 8;
        let width = (1u64 << 37) - 1;
        if (offset ^ wanted) & !ignored & width != 0 {
            continue;
        }
        let inside = compress(offset, !ignored & gf2::span(13, 21)) & compress_ignored(ignored);
        let mode = registers.get(node, 2, dct + 0x80)? >> (4 * (select / 2)) & 15;
        let timing = registers.get_or_zero(node, 2, dct + 0x94);
        let swizzle = timing >> 22 & 1 == 1;
        // Ganged controllers are 128 bits wide: one bit less of offset.
        let inside = if ganged { inside >> 1 } else { inside };
        return bank_row_column(mode, swizzle, inside)
            .map(|(bank, row, column)| {
                Some(Location {
                    node,
                    channel,
                    chip_select: select as u8,
                    bank,
                    row,
                    column,
                })
            })
            .ok_or(AmdError::Mode {
                node,
                channel,
                mode,
            });
    }
    Ok(None)
}

/// Takes out the bits of `removed` and closes the gaps.
fn compress(value: u64, removed: u64) -> u64 {
    let mut out = value;
    for bit in gf2::bits(removed).collect::<Vec<_>>().into_iter().rev() {
        out = remove(out, bit, 1);
    }
    out
}

/// The bits that a chip select holds once its interleave bits are out.
fn compress_ignored(ignored: u64) -> u64 {
    (1 << ignored.count_ones()) - 1
}

/// Rows, columns and lowest bank bit of a bank address mode (F2x80).
const MODES: [Option<(u32, u32, u32)>; 16] = [
    None,
    Some((12, 10, 13)),
    Some((13, 10, 13)),
    None,
    None,
    Some((14, 10, 13)),
    Some((13, 11, 14)),
    Some((15, 10, 13)),
    Some((14, 11, 14)),
    Some((15, 11, 14)),
    Some((16, 10, 13)),
    Some((16, 11, 14)),
    None,
    None,
    None,
    None,
];

fn bank_row_column(mode: u32, swizzle: bool, address: u64) -> Option<(u32, u32, u32)> {
    let (rows, columns, lowest) = MODES[mode as usize]?;
    let bit = |at: u32| (address >> at & 1) as u32;
    let bank = (0..3).fold(0, |bank, i| {
        let x = lowest + i;
        let hashed = if swizzle { bit(x + 3) ^ bit(x + 6) } else { 0 };
        bank | (bit(x) ^ hashed) << i
    });
    // Row bits rise from 18; the last ones lie between bank and 18.
    let between = lowest + 3..18;
    let plain = rows - between.len() as u32;
    let row_bits = (18..18 + plain).chain(between);
    let row = row_bits
        .enumerate()
        .fold(0, |row, (i, at)| row | bit(at) << i);
    // Columns 0 to 2 are the burst; bit 10 is auto-precharge.
    let column = (3..10).fold(0, |column, i| column | bit(i + 3) << i)
        | if columns > 10 { bit(13) << 11 } else { 0 };
    Some((bank, row, column))
}

/// The map that the registers make.
///
/// # Errors
/// When a register is missing, or the map can't be expressed.
pub fn map(registers: &Registers) -> Result<MapSpec, AmdError> {
    let ranges = dram_ranges(registers)?;
    if ranges.is_empty() {
        return Err(AmdError::NoRanges);
    }
    if ranges.iter().any(|range| range.interleave != 0) {
        return Err(AmdError::NodeInterleave);
    }
    let mut spec = MapSpec {
        line: 64,
        llc: Vec::new(),
        layouts: Vec::new(),
        ranges: Vec::new(),
    };
    let first = first_chip_select(registers, &ranges)?;
    // The largest first: they show the most bits, and small ones follow them.
    let mut all: Vec<Piece> = Vec::new();
    for range in &ranges {
        all.extend(pieces(registers, range)?);
    }
    all.sort_by_key(|piece| std::cmp::Reverse(piece.end - piece.start));
    for piece in all {
        cover(registers, &ranges, piece, first, &mut spec)?;
    }
    spec.ranges.sort_by_key(|range| range.start);
    merge(&mut spec);
    for (i, layout) in spec.layouts.iter_mut().enumerate() {
        layout.name = format!("layout{i}");
    }
    if let [only] = spec.layouts.as_mut_slice() {
        only.name.clear();
    }
    if spec.ranges.len() > 64 || spec.layouts.len() > 4 {
        return Err(AmdError::TooMany(spec.ranges.len()));
    }
    spec.determine(0);
    Ok(spec)
}

fn first_chip_select(registers: &Registers, ranges: &[DramRange]) -> Result<u8, AmdError> {
    let mut first = 8;
    for range in ranges {
        for select in 0..8u16 {
            if registers.get(range.node, 2, 0x40 + 4 * select)? & 1 == 1 {
                first = first.min(select as u8);
            }
        }
    }
    Ok(first % 8)
}

/// Part of a range: addresses from `start` to `end`, offsets from `base`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    base: u64,
}

/// A range without its hole, and with each unit of a swapped region apart.
fn pieces(registers: &Registers, range: &DramRange) -> Result<Vec<Piece>, AmdError> {
    let end = range.limit + 1;
    let piece = |start, end, base| Piece { start, end, base };
    let whole = match hole(registers, range.node) {
        Some((base, offset)) if range.base < base && end > FOUR_GIB => {
            let below = (FOUR_GIB - range.base).checked_sub(offset);
            let wrong = AmdError::Hole {
                node: range.node,
                offset,
                base: range.base,
            };
            vec![
                piece(range.base, base, 0),
                piece(FOUR_GIB, end, below.ok_or(wrong)?),
            ]
        }
        _ => vec![piece(range.base, end, 0)],
    };
    let swap = registers.get_or_zero(range.node, 2, 0x10c);
    if swap & 1 == 0 {
        return Ok(whole);
    }
    let mut cut = Vec::new();
    for piece in whole {
        let mut at = piece.start;
        while at < piece.end {
            let moved = unswap(swap, at);
            let unit_end = (at | (UNIT - 1)) + 1;
            let plain = unswap(swap, unit_end - 1) == unit_end - 1 && moved == at;
            let next = unit_end.min(piece.end);
            let base = moved.wrapping_sub(piece.start).wrapping_add(piece.base);
            match cut.last_mut() {
                Some(Piece {
                    end,
                    start,
                    base: b,
                }) if plain && *end == at && *b + (at - *start) == base => {
                    *end = next;
                }
                _ => cut.push(Piece {
                    start: at,
                    end: next,
                    base,
                }),
            }
            at = next;
        }
    }
    Ok(cut)
}

/// Solves a piece, or its halves.
fn cover(
    registers: &Registers,
    ranges: &[DramRange],
    piece: Piece,
    first: u8,
    spec: &mut MapSpec,
) -> Result<(), AmdError> {
    let Piece { start, end, base } = piece;
    let Some(first_place) = locate_in(registers, ranges, start)? else {
        return Ok(());
    };
    let samples = samples(registers, ranges, piece)?;
    let known = spec
        .layouts
        .iter()
        .position(|layout| explains(layout, &samples));
    let layout = match (known, linear(&samples, piece, first)) {
        (Some(known), _) if !samples.is_empty() => Some(known),
        (_, Some(layout)) => {
            spec.layouts.push(layout);
            Some(spec.layouts.len() - 1)
        }
        _ => None,
    };
    if let Some(layout) = layout {
        spec.ranges.push(MapRange {
            start,
            end,
            node: first_place.node,
            base,
            layout,
        });
        return Ok(());
    }
    if end - start <= SMALLEST {
        return Err(AmdError::NotLinear(start));
    }
    // Never its begin, which a range that begins within a unit would give.
    let middle = ((start + (end - start) / 2) / SMALLEST * SMALLEST).max(start + SMALLEST);
    let low = Piece {
        end: middle,
        ..piece
    };
    let high = Piece {
        start: middle,
        end,
        base: base + (middle - start),
    };
    cover(registers, ranges, low, first, spec)?;
    cover(registers, ranges, high, first, spec)
}

/// Offsets spread over a piece and where they lie; empty when some lie
/// nowhere.
fn samples(
    registers: &Registers,
    ranges: &[DramRange],
    Piece { start, end, base }: Piece,
) -> Result<Vec<(u64, Location)>, AmdError> {
    let mut samples = Vec::with_capacity(600);
    for i in 0..600u64 {
        let random = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = (random ^ (random >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let address = start + (((random ^ (random >> 29)) % (end - start)) & !63);
        let Some(place) = locate_in(registers, ranges, address)? else {
            return Ok(Vec::new());
        };
        samples.push((address - start + base, place));
    }
    Ok(samples)
}

/// Whether a layout that is known puts all samples where they lie.
fn explains(layout: &Layout, samples: &[(u64, Location)]) -> bool {
    let number = |masks: &[u64], offset| {
        let bits = masks.iter().enumerate();
        bits.fold(0, |n, (i, &mask)| n | gf2::parity(mask, offset) << i)
    };
    let printed = |terms: &[Term], offset| {
        terms
            .iter()
            .fold(0, |n, term| n | gf2::parity(term.mask, offset) << term.at)
    };
    samples.iter().all(|&(offset, p)| {
        number(&layout.channel, offset) == u64::from(p.channel)
            && number(&layout.rank, offset) + u64::from(layout.chip_select)
                == u64::from(p.chip_select)
            && number(&layout.bank, offset) == u64::from(p.bank)
            && printed(&layout.row, offset) == u64::from(p.row)
            && printed(&layout.column, offset) == u64::from(p.column)
    })
}

/// A field of a place.
type Value = fn(&Location) -> u32;

/// The functions of a piece, when it is linear: 600 equations for some thirty
/// unknowns, so that chance plays no part.
fn linear(samples: &[(u64, Location)], piece: Piece, first: u8) -> Option<Layout> {
    if samples.is_empty() {
        return None;
    }
    let top = 64 - (piece.end - 1 - piece.start + piece.base).leading_zeros();
    let within = gf2::span(6, top.max(7) - 1);
    let fields: [(u32, Value); 5] = [
        (1, |p| p.channel.into()),
        (3, |p| p.chip_select.into()),
        (3, |p| p.bank),
        (16, |p| p.row),
        (12, |p| p.column),
    ];
    let mut solved: [Vec<Term>; 5] = Default::default();
    for (field, (width, value)) in fields.into_iter().enumerate() {
        for at in 0..width {
            let less = if field == 1 { u32::from(first) } else { 0 };
            let equations: Vec<(u64, bool)> = samples
                .iter()
                .map(|(offset, place)| {
                    let number = value(place).wrapping_sub(less);
                    (*offset, number >> at & 1 == 1)
                })
                .collect();
            let (mask, free) = gf2::fit(&equations, within)?;
            let mask = gf2::lightest_of_coset(mask, &free);
            if mask != 0 {
                solved[field].push(Term { at, mask });
            }
        }
    }
    let [channel, rank, bank, row, column] = solved;
    let plain = |terms: Vec<Term>| terms.into_iter().map(|term| term.mask).collect::<Vec<_>>();
    let layout = Layout {
        name: String::new(),
        channel: plain(channel),
        rank: plain(rank),
        bank: plain(bank),
        row,
        column,
        chip_select: first.into(),
        bank_group: Vec::new(),
        sub_channel: Vec::new(),
        interleave: None,
        ways: Vec::new(),
    };
    let banks = layout.bank_functions();
    (Basis::of(banks.iter().copied()).rank() == banks.len()).then_some(layout)
}

/// Joins neighbours that continue each other.
fn merge(spec: &mut MapSpec) {
    let mut merged: Vec<MapRange> = Vec::new();
    for range in spec.ranges.drain(..) {
        match merged.last_mut() {
            Some(last)
                if last.end == range.start
                    && last.node == range.node
                    && last.layout == range.layout
                    && last.base + (last.end - last.start) == range.base =>
            {
                last.end = range.end;
            }
            _ => merged.push(range),
        }
    }
    spec.ranges = merged;
}
