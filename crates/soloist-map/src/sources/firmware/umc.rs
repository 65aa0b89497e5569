//! Ranks, banks and rows of AMD's Zen, from registers of its memory controllers
//! (UMC): what Linux' translation library does not know.
//!
//! A channel's registers say which bits of an address within it are chip select,
//! sub-channel, bank, row and column, and what is XORed to them. They are
//! described in AMD's processor programming references; names, places and what
//! they mean were taken from illumos (`sys/amdzen/umc.h`, `zen_umc`), and so were
//! the decodes of the tests. They lie on the system management network, which
//! Linux reads for modules (amd_smn_read()): ours does so (`firmware/umc`). Nobody
//! of this project has seen such a machine: what comes of them is never called
//! exact.

use std::collections::BTreeMap;

use super::channel::Channel;

/// Where registers are: DDR4's controllers have most of them for each module,
/// DDR5's for each chip select.
struct Places {
    by_select: bool,
    /// Of the first base and of the second.
    masks: [u32; 2],
    config: u32,
    bits: u32,
    columns: u32,
    /// Of the first base and of the second.
    ranks: [u32; 2],
    bank_hash: u32,
    rank_hash: u32,
    select_hash: u32,
    sub_channel_hash: Option<u32>,
}

const DDR4: Places = Places {
    by_select: false,
    masks: [0x20, 0x28],
    config: 0x30,
    bits: 0x40,
    columns: 0x50,
    ranks: [0x70, 0x78],
    bank_hash: 0xc8,
    rank_hash: 0xdc,
    select_hash: 0xe8,
    sub_channel_hash: None,
};

const DDR5: Places = Places {
    by_select: true,
    masks: [0x20, 0x30],
    config: 0x40,
    bits: 0x50,
    columns: 0x60,
    ranks: [0x80, 0x80],
    bank_hash: 0x98,
    rank_hash: 0xb0,
    select_hash: 0xc8,
    sub_channel_hash: Some(0xc0),
};

/// Bases, and which kind of memory there is.
const BASES: [u32; 2] = [0x00, 0x10];
const KIND: u32 = 0x100;

/// Where in its channel a line lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    /// Chip select of the channel's four.
    pub chip_select: u64,
    /// Sub-channel; 0 but with DDR5.
    pub sub_channel: u64,
    /// Which of the ranks stacked in one.
    pub multiplier: u64,
    /// Bank group.
    pub group: u64,
    /// Bank of the group.
    pub bank: u64,
    /// Row.
    pub row: u64,
    /// Column.
    pub column: u64,
}

/// What an address must match, and what its bits then are.
#[derive(Debug, Clone)]
struct Select {
    number: u64,
    base: u64,
    mask: u64,
    row: Vec<u32>,
    row_invert: u64,
    banks: Vec<u32>,
    groups: usize,
    columns: Vec<u32>,
    multiplier: Vec<u32>,
    sub_channel: Option<u32>,
    xor: u64,
}

/// A channel's registers.
#[derive(Debug, Clone)]
pub struct Umc {
    selects: Vec<Select>,
    /// Bits of row and column that are XORed to each bank bit.
    banks: Vec<[u64; 2]>,
    /// Bits of the address that are XORed to each chip select bit.
    selecting: Vec<u64>,
    /// Bits of row and column that are XORed to the sub-channel.
    sub_channel: [u64; 2],
}

fn field(register: u32, high: u32, low: u32) -> u32 {
    register >> low & ((1 << (high - low + 1)) - 1)
}

/// A number of four bits.
fn nibble(register: u32, index: u32) -> u32 {
    field(register, 4 * index + 3, 4 * index)
}

/// The address in a register of bases, masks or hashes, whose lowest bit enables.
fn address(register: u32) -> u64 {
    u64::from(register >> 1) << 9
}

fn gather(from: u64, bits: &[u32]) -> u64 {
    let gathered_bit = |(at, &bit): (usize, &u32)| (from >> bit & 1) << at;
    bits.iter().enumerate().map(gathered_bit).sum()
}

fn parity(bits: u64) -> u64 {
    u64::from(bits.count_ones() & 1)
}

impl Umc {
    /// Reads a channel's registers: `read` has the value at an offset.
    ///
    /// # Errors
    /// In words: what can't be read, or is not known.
    pub fn read(mut read: impl FnMut(u32) -> Result<u32, String>) -> Result<Self, String> {
        let places = match field(read(KIND)?, 2, 0) {
            0 => DDR4,
            1 => DDR5,
            kind => return Err(format!("memory of kind {kind} (LPDDR?) is not known")),
        };
        let mut hash = |at: u32| -> Result<Option<u32>, String> {
            let register = read(at)?;
            Ok((register & 1 == 1).then_some(register))
        };
        let mut rows_and_columns = |at: u32| -> Result<[u64; 2], String> {
            let masks = hash(at)?.map(|r| [field(r, 31, 14).into(), field(r, 13, 1).into()]);
            Ok(masks.unwrap_or_default())
        };
        let banks = (0..5)
            .map(|i| rows_and_columns(places.bank_hash + 4 * i))
            .collect::<Result<_, _>>()?;
        let mut sub_channel = [0; 2];
        if let Some(at) = places.sub_channel_hash {
            sub_channel = rows_and_columns(at)?;
            if sub_channel != [0; 2] && field(read(at + 4)?, 4, 0) != 0 {
                return Err("a sub-channel that banks are XORed to is not known".into());
            }
        }
        let selecting = (0..2)
            .map(|i| {
                let register = read(places.select_hash + 4 * i)?;
                Ok(if register & 1 == 1 {
                    address(register)
                } else {
                    0
                })
            })
            .collect::<Result<_, String>>()?;
        let mut selects = Vec::new();
        for number in 0..4 {
            for (second, base) in BASES.into_iter().enumerate() {
                let base = read(base + 4 * number)?;
                if base & 1 == 1 {
                    selects.push(Select::read(&places, number, second, base, &mut read)?);
                }
            }
        }
        let stacked = selects.iter().any(|select| !select.multiplier.is_empty());
        for i in 0..3 {
            if stacked && read(places.rank_hash + 4 * i)? & 1 == 1 {
                return Err("stacked ranks that are chosen by a hash are not known".into());
            }
        }
        match selects.is_empty() {
            true => Err("no chip select has memory".into()),
            false => Ok(Self {
                selects,
                banks,
                selecting,
                sub_channel,
            }),
        }
    }

    /// Where an address within the channel lies; `None`: in no chip select.
    #[must_use]
    pub fn decode(&self, at: u64) -> Option<Spot> {
        let matches = |s: &&Select| (at ^ s.base) & !s.mask == 0;
        let select = self.selects.iter().find(matches)?;
        let row = gather(at, &select.row) ^ select.row_invert;
        let column = gather(at, &select.columns);
        let mixed = |[rows, columns]: [u64; 2]| parity(row & rows) ^ parity(column & columns);
        let hashes = self.banks.iter().take(select.banks.len()).enumerate();
        let bank = hashes.fold(gather(at, &select.banks), |bank, (i, &hash)| {
            bank ^ mixed(hash) << i
        });
        let selecting = self.selecting.iter().enumerate();
        let number = selecting.fold(select.number, |number, (i, bits)| {
            number ^ parity(at & bits) << i
        });
        Some(Spot {
            chip_select: (number ^ select.xor) & 3,
            sub_channel: select
                .sub_channel
                .map_or(0, |bit| at >> bit & 1 ^ mixed(self.sub_channel)),
            multiplier: gather(at, &select.multiplier),
            group: bank & ((1 << select.groups) - 1),
            bank: bank >> select.groups,
            row,
            column,
        })
    }
}

impl Select {
    /// Reads what a chip select's registers say, of its first or second base.
    fn read(
        places: &Places,
        number: u32,
        second: usize,
        base: u32,
        read: &mut impl FnMut(u32) -> Result<u32, String>,
    ) -> Result<Self, String> {
        let own = if places.by_select { number } else { number / 2 };
        let config = read(places.config + 4 * own)?;
        let bits = read(places.bits + 4 * own)?;
        let [low, high] = [
            read(places.columns + 8 * own)?,
            read(places.columns + 8 * own + 4)?,
        ];
        let ranks = read(places.ranks[second] + 4 * own)?;
        let mask = address(read(places.masks[second] + 4 * own)?) | 0x1ff;
        let first = 12 + nibble(bits, 6);
        let mut row: Vec<u32> = (first..first + 10 + nibble(config, 2)).collect();
        if !places.by_select {
            let first = 24 + nibble(bits, 7);
            row.extend(first..first + nibble(config, 3));
        }
        let invert = match (places.by_select, second, number % 2) {
            (false, _, 0) => field(ranks, 17, 16),
            (false, _, _) => field(ranks, 19, 18),
            (true, 0, _) => field(ranks, 29, 28),
            (true, _, _) => field(ranks, 31, 30),
        };
        let stacked = field(config, if places.by_select { 6 } else { 5 }, 4);
        let column = |i: u32| match i {
            0..8 => 2 + nibble(low, i),
            _ => 8 + nibble(high, i - 8),
        };
        let groups = field(config, 3, 2);
        let banks = 3 + field(config, 21, 20);
        let columns = 5 + field(config, 19, 16);
        if groups > banks || banks > 5 || columns > 16 || stacked > 4 {
            return Err(format!(
                "AddrCfg is {config:#x}: {banks} bank bits, {groups} of them groups, {columns} column bits"
            ));
        }
        Ok(Self {
            number: number.into(),
            base: address(base),
            mask,
            row_invert: u64::from(invert) << (row.len() - 2),
            row,
            banks: (0..banks).map(|i| 5 + nibble(bits, i)).collect(),
            groups: groups as usize,
            columns: (0..columns).map(column).collect(),
            multiplier: (0..stacked).map(|i| 12 + nibble(ranks, i)).collect(),
            sub_channel: places.by_select.then(|| 5 + nibble(ranks, 4)),
            xor: match places.by_select {
                true => field(config, 31, 30).into(),
                false => 0,
            },
        })
    }
}

/// Registers of all these channels, by node and number: `read` has the value of a
/// channel's at an offset.
///
/// # Errors
/// In words: why one is not known.
pub fn of_channels(
    channels: &[Channel],
    mut read: impl FnMut(&Channel, u32) -> Result<u32, String>,
) -> Result<BTreeMap<(u32, u32), Umc>, String> {
    let read_channel = |channel: &Channel| {
        let (node, number) = (channel.node, channel.number);
        let umc = Umc::read(|offset| read(channel, offset));
        let named = |why| format!("node {node} channel {number}: {why}");
        Ok(((node, number), umc.map_err(named)?))
    };
    channels.iter().map(read_channel).collect()
}
