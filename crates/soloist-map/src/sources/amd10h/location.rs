//! Where an address lies, as the registers say: range, hole, swapped region, interleave,
//! chip select, bank, row, column.

use soloist_host::machine::pci::Registers;
use soloist_machine::gf2;

use super::AmdError;

pub(super) const FOUR_GIB: u64 = 1 << 32;
/// Address bits of DRAM base and limit.
const LOW_24: u64 = (1 << 24) - 1;

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
pub(super) struct DramRange {
    pub base: u64,
    pub limit: u64,
    pub node: u8,
    pub interleave: u64,
    select: u64,
}

fn field(value: u32, high: u32, low: u32) -> u64 {
    u64::from(value >> low) & ((1 << (high - low + 1)) - 1)
}

/// The ranges that are enabled.
pub(super) fn dram_ranges(registers: &Registers) -> Result<Vec<DramRange>, AmdError> {
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
pub(super) fn hole(registers: &Registers, node: u8) -> Option<(u64, u64)> {
    let register = registers.get_or_zero(node, 1, 0xf0);
    (register & 1 == 1).then(|| (field(register, 31, 24) << 24, field(register, 15, 7) << 23))
}

/// Where the high range of a node's controllers begins, when it has one.
pub(super) fn high_base(registers: &Registers, node: u8) -> Option<u64> {
    let control = registers.get_or_zero(node, 2, 0x110);
    (control & 1 == 1).then(|| field(control, 31, 11) << 27)
}

/// Where `address` lies; `None`: in no range, in the hole, or on no chip.
///
/// # Errors
/// When a register is missing or a mode unknown.
pub fn locate(registers: &Registers, address: u64) -> Result<Option<Location>, AmdError> {
    let ranges = dram_ranges(registers)?;
    locate_in(registers, &ranges, address)
}

/// As [`locate`], of ranges that were read before.
pub(super) fn locate_in(
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
    let high = high_base(registers, node).filter(|&base| address >= base);
    let ganged = control >> 4 & 1 == 1;
    let interleaved = !ganged && high.is_none() && control >> 2 & 1 == 1;
    let mode = field(control, 7, 6);
    let node_bits = range.interleave.count_ones();
    let hash = gf2::parity(gf2::span(16, 20), address);
    let channel = match (ganged, high.is_some(), interleaved) {
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

/// The amount to subtract from an address of the range: a hole that was hoisted
/// over, the start of the high range, or the range's base.
fn start_of(
    registers: &Registers,
    range: &DramRange,
    hole: Option<(u64, u64)>,
    high: Option<u64>,
    address: u64,
) -> u64 {
    let hoisted = hole.filter(|_| address >= FOUR_GIB);
    let start = if let Some(base) = high {
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
pub(super) fn unswap(register: u32, address: u64) -> u64 {
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
        let timing = registers.get(node, 2, dct + 0x94)?;
        if timing >> 8 & 1 == 0 {
            return Err(AmdError::Ddr2 { node, channel });
        }
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
