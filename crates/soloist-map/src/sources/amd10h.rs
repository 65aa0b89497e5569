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
//! holes, swapped regions, chip-select interleave, DDR3. Node interleave is decoded by
//! [`locate`]; a map can't express it, since nodes are ranges, and [`map`] says
//! so. Later families (15h and on; Zen's data fabric) have other registers:
//! they go beside this module, behind [`Registers`].

mod location;

pub use location::{locate, Location};

use location::{dram_ranges, high_base, hole, locate_in, unswap, DramRange, FOUR_GIB};
use soloist_host::machine::pci::{PciError, Registers};
use soloist_machine::function::Term;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::spec::{Layout, MapRange, MapSpec};

/// Smallest piece that a range is cut into when it is not linear as a whole.
const SMALLEST: u64 = 64 << 20;
/// F0x0: AMD, HyperTransport configuration of Family 10h.
const DEVICE: u32 = 0x1200_1022;
/// Unit of a swapped region.
const UNIT: u64 = 128 << 20;

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
    /// Another processor's registers.
    #[error(
        "{register} of node 0 is {found:#010x}, which is not AMD Family 10h: other families have \
         other registers; `soloist map detect --from timing` measures the map"
    )]
    Family {
        /// F0x0 (vendor and device) or F3xFC (CPUID).
        register: &'static str,
        /// Its value.
        found: u32,
    },
    /// Memory whose banks lie elsewhere.
    #[error(
        "node {node}, channel {channel}: F2x94 says DDR2 (bit 8 is clear), whose bank bits are not \
         decoded; `soloist map detect --from timing` measures the map"
    )]
    Ddr2 {
        /// Node.
        node: u8,
        /// Channel.
        channel: u8,
    },
    /// Memory above a hole that does not continue what lies below it.
    #[error(
        "F1xF0 of node {node}: {offset:#x} is subtracted above 4 GiB, and a hole from {hole:#x} on \
         in memory from {base:#x} on takes {expected:#x}: the registers were read wrongly or the \
         dump is damaged; read them again"
    )]
    Hole {
        /// Node.
        node: u8,
        /// DramHoleOffset, which is subtracted from addresses above it, bytes.
        offset: u64,
        /// The hole's first byte.
        hole: u64,
        /// The range's first byte.
        base: u64,
        /// The hole's size and what lies before the range, bytes.
        expected: u64,
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

/// The map that the registers make.
///
/// # Errors
/// When a register is missing or names another family, or the map can't be expressed.
pub fn map(registers: &Registers) -> Result<MapSpec, AmdError> {
    is_named(registers)?;
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
    let mut all = Vec::new();
    for range in &ranges {
        all.push(pieces(registers, range)?);
    }
    let bytes = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.end - piece.start).sum();
    all.sort_by_key(|pieces| std::cmp::Reverse::<u64>(bytes(pieces)));
    for pieces in &all {
        cover(registers, &ranges, pieces, first, &mut spec)?;
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

/// Whether the registers name their family, 10h: by the device of F0x0 or the CPUID of F3xFC.
///
/// # Errors
/// When either names another.
pub fn is_named(registers: &Registers) -> Result<bool, AmdError> {
    // F3xFC: extended family 1 and base family 0Fh make 10h.
    let names = [
        ("F0x0", 0, 0, !0, DEVICE),
        ("F3xFC", 3, 0xfc, 0x0ff0_0f00, 0x0010_0f00),
    ];
    let mut named = false;
    for (register, function, offset, within, wanted) in names {
        match registers.get(0, function, offset) {
            Ok(found) if found & within != wanted => {
                return Err(AmdError::Family { register, found })
            }
            found => named |= found.is_ok(),
        }
    }
    Ok(named)
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

/// Part of a node's range: addresses from `start` to `end`, offsets from `base`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    node: u8,
    start: u64,
    end: u64,
    base: u64,
}

/// A range without its hole, and with each unit of a swapped region apart.
fn pieces(registers: &Registers, range: &DramRange) -> Result<Vec<Piece>, AmdError> {
    let end = range.limit + 1;
    let piece = |start, end, base| Piece {
        node: range.node,
        start,
        end,
        base,
    };
    let whole = match hole(registers, range.node) {
        Some((base, offset)) if range.base < base && end > FOUR_GIB => {
            check_hole(registers, range, base, offset)?;
            vec![
                piece(range.base, base, 0),
                piece(FOUR_GIB, end, base - range.base),
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
                    ..
                }) if plain && *end == at && *b + (at - *start) == base => {
                    *end = next;
                }
                _ => cut.push(Piece {
                    start: at,
                    end: next,
                    base,
                    ..piece
                }),
            }
            at = next;
        }
    }
    Ok(cut)
}

/// The offset subtracted above 4 GiB is the hole's size and what lies before the range, or
/// before the high range, where the firmware gives its base instead: then memory goes on
/// above where it stopped at `hole`.
fn check_hole(
    registers: &Registers,
    range: &DramRange,
    hole: u64,
    offset: u64,
) -> Result<(), AmdError> {
    let expected = FOUR_GIB - hole + range.base;
    let goes_on = |base: u64| offset == FOUR_GIB - hole + base;
    if goes_on(range.base) || high_base(registers, range.node).is_some_and(goes_on) {
        return Ok(());
    }
    Err(AmdError::Hole {
        node: range.node,
        offset,
        hole,
        base: range.base,
        expected,
    })
}

/// Solves pieces of a range together, since each alone may leave bits open; else one by one;
/// else each one's halves.
fn cover(
    registers: &Registers,
    ranges: &[DramRange],
    pieces: &[Piece],
    first: u8,
    spec: &mut MapSpec,
) -> Result<(), AmdError> {
    let mut all = Vec::new();
    for &piece in pieces {
        match samples(registers, ranges, piece)? {
            some if some.is_empty() => return split(registers, ranges, pieces, first, spec),
            some => all.extend(some),
        }
    }
    let known = spec
        .layouts
        .iter()
        .position(|layout| explains(layout, &all));
    let layout = match known {
        Some(known) => known,
        None => match linear(&all, pieces, first) {
            Some(layout) => {
                spec.layouts.push(layout);
                spec.layouts.len() - 1
            }
            None => return split(registers, ranges, pieces, first, spec),
        },
    };
    spec.ranges.extend(pieces.iter().map(|piece| MapRange {
        start: piece.start,
        end: piece.end,
        node: piece.node,
        base: piece.base,
        layout,
    }));
    Ok(())
}

/// Solves pieces one by one, or the halves of one.
fn split(
    registers: &Registers,
    ranges: &[DramRange],
    pieces: &[Piece],
    first: u8,
    spec: &mut MapSpec,
) -> Result<(), AmdError> {
    let &[piece] = pieces else {
        return pieces
            .iter()
            .try_for_each(|piece| cover(registers, ranges, &[*piece], first, spec));
    };
    let Piece { start, end, .. } = piece;
    if locate_in(registers, ranges, start)?.is_none() {
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
        base: piece.base + (middle - start),
        ..piece
    };
    cover(registers, ranges, &[low], first, spec)?;
    cover(registers, ranges, &[high], first, spec)
}

/// Offsets spread over a piece and where they lie; empty when some lie
/// nowhere.
fn samples(
    registers: &Registers,
    ranges: &[DramRange],
    piece: Piece,
) -> Result<Vec<(u64, Location)>, AmdError> {
    let Piece {
        start, end, base, ..
    } = piece;
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

/// The functions of pieces, when they are linear: 600 equations for some thirty
/// unknowns, so that chance plays no part.
fn linear(samples: &[(u64, Location)], pieces: &[Piece], first: u8) -> Option<Layout> {
    let last = |piece: &Piece| piece.end - 1 - piece.start + piece.base;
    let top = 64 - pieces.iter().map(last).max()?.leading_zeros();
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
