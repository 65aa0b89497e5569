//! Which components of Intel's address translation (ADXL) are which field.
//!
//! Firmware names what an address translates to: `ProcessorSocketId`,
//! `MemoryControllerId`, `ChannelId`, `DimmSlotId`, `Row` and more (the names
//! that drivers/edac/skx_common.c asks for, and those that servers print).
//! Several tell one thing: a rank by its slot, its number and its chip select.
//! So the bits of all of a field's components are put side by side, and those
//! that are constant, or an XOR of others, are left out: what remains numbers
//! the field without gaps.

use soloist_machine::gf2::Basis;

use super::FirmwareError;

/// Components of channel, rank, bank, row and column; lowest bits first.
const FIELDS: [(&str, &[&str]); 5] = [
    (
        "channel",
        &["ChannelId", "MemoryControllerId", "SubChannelId"],
    ),
    (
        "rank",
        &[
            "ChipSelect",
            "PhysicalRankId",
            "DimmRankId",
            "DimmSlotId",
            "ChipId",
        ],
    ),
    ("bank", &["BankGroup", "Bank"]),
    ("row", &["Row"]),
    ("column", &["Column"]),
];
/// Components that every firmware must give.
pub(super) const NEEDED: [&str; 4] = [
    "ProcessorSocketId",
    "MemoryControllerId",
    "ChannelId",
    "Bank",
];

/// What an address translates to: a value for each component that is defined.
pub type Values = Vec<Option<u64>>;

/// How values become fields.
#[derive(Debug, Clone)]
pub struct Reader {
    socket: usize,
    /// For each field, its components by index.
    parts: Vec<Vec<usize>>,
    /// For each field, the bits that number it. Rows and columns are taken as they
    /// are.
    bits: Vec<Vec<ComponentBit>>,
    /// Bits of rows and columns that were set anywhere.
    seen: [u64; 2],
}

impl Reader {
    /// Finds the components by name.
    ///
    /// # Errors
    /// Where one is missing that no map can do without.
    pub fn new(names: &[String], needed: &[&'static str]) -> Result<Self, FirmwareError> {
        let at = |name: &str| names.iter().position(|n| n == name);
        for needed in needed.iter().copied() {
            if at(needed).is_none() {
                return Err(FirmwareError::Component(needed, names.join(", ")));
            }
        }
        let socket = at("ProcessorSocketId").unwrap_or(0);
        let parts: Vec<Vec<usize>> = FIELDS
            .iter()
            .map(|(_, names)| names.iter().filter_map(|name| at(name)).collect())
            .collect();
        Ok(Self {
            socket,
            parts,
            bits: vec![Vec::new(); FIELDS.len()],
            seen: [0; 2],
        })
    }

    /// The socket that holds the address.
    #[must_use]
    pub fn socket(&self, values: &Values) -> Option<u64> {
        values.get(self.socket).copied().flatten()
    }

    /// Whether banks are told.
    #[must_use]
    pub fn has_banks(&self) -> bool {
        !self.parts[2].is_empty()
    }

    /// Chooses the bits that number channel, rank and bank among these
    /// translations.
    pub fn learn(&mut self, all: &[&Values]) {
        for field in 0..3 {
            self.bits[field] = independent(&self.parts[field], all);
        }
        for (seen, parts) in self.seen.iter_mut().zip(&self.parts[3..]) {
            let values = all.iter().map(|values| number(values, parts));
            *seen = values.fold(0, |seen, value| seen | value);
        }
    }

    /// Bits of rows and of columns that were set anywhere.
    #[must_use]
    pub fn seen(&self) -> [u64; 2] {
        self.seen
    }

    /// Channel, rank, bank, row, column.
    #[must_use]
    pub fn fields(&self, values: &Values) -> [u32; 5] {
        let mut fields = [0; 5];
        for (field, bits) in self.bits.iter().enumerate().take(3) {
            fields[field] = bits
                .iter()
                .enumerate()
                .map(|(at, bit)| (bit.of(values) as u32) << at)
                .sum();
        }
        for (field, parts) in fields[3..].iter_mut().zip(&self.parts[3..]) {
            *field = number(values, parts) as u32;
        }
        fields
    }

    /// Fields as a solved map decodes them, less what was filled in: bits of
    /// rows and columns that the firmware never set.
    #[must_use]
    pub fn shown(&self, decoded: [u32; 5]) -> [u32; 5] {
        let [channel, rank, bank, row, column] = decoded;
        let [rows, columns] = self.seen;
        [
            channel,
            rank,
            bank,
            row & rows as u32,
            column & columns as u32,
        ]
    }
}

fn number(values: &Values, parts: &[usize]) -> u64 {
    let value_of = |&part: &usize| values.get(part).copied().flatten().unwrap_or(0);
    parts.iter().map(value_of).sum()
}

/// A bit of a component.
#[derive(Debug, Clone, Copy)]
struct ComponentBit {
    part: usize,
    bit: u32,
}

impl ComponentBit {
    fn of(self, values: &Values) -> u64 {
        values.get(self.part).copied().flatten().unwrap_or(0) >> self.bit & 1
    }
}

/// Bits of components that vary, none an XOR of the others.
fn independent(parts: &[usize], all: &[&Values]) -> Vec<ComponentBit> {
    let mut chosen: Vec<ComponentBit> = Vec::new();
    for &part in parts {
        for bit in 0..12 {
            let candidate = ComponentBit { part, bit };
            if !depends(&chosen, candidate, all) {
                chosen.push(candidate);
            }
        }
    }
    chosen
}

/// Whether a bit is an XOR of chosen ones and a constant, in all translations:
/// then the rows (chosen bits, 1, the bit) have it in their nullspace.
fn depends(chosen: &[ComponentBit], candidate: ComponentBit, all: &[&Values]) -> bool {
    let width = chosen.len() as u32;
    let (mut with, mut without) = (Basis::new(), Basis::new());
    for values in all {
        let row = chosen
            .iter()
            .enumerate()
            .map(|(at, bit)| bit.of(values) << at)
            .fold(1 << width, |row, bit| row | bit);
        without.insert(row);
        with.insert(row | candidate.of(values) << (width + 1));
    }
    with.rank() == without.rank()
}
