//! Registers of Zen's memory controllers, against decodes that illumos published
//! (`zen_umc_test_chans.c`), and a whole map from them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use soloist_core::AddrMap;
use soloist_host::control::ChannelAddress;
use soloist_machine::ram::RamRange;
use soloist_map::sources::firmware::channel::Channel;
use soloist_map::sources::firmware::find;
use soloist_map::sources::firmware::umc::{of_channels, Spot, Umc};
use soloist_map::sources::firmware::zen::{Locator, Zen};

/// A channel whose chip selects are all alike, as the registers have it.
struct Chips<'a> {
    ddr5: bool,
    bases: &'a [u64],
    mask: u64,
    rows: u32,
    row_low: u32,
    banks: &'a [u32],
    groups: u32,
    columns: &'a [u32],
}

const COLUMNS: [u32; 10] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const IN_TURN: Chips<'_> = Chips {
    ddr5: false,
    bases: &[0, 0x8_0000_0000, 0x10_0000_0000, 0x18_0000_0000],
    mask: 0x7_ffff_ffff,
    rows: 18,
    row_low: 17,
    banks: &[15, 16, 13, 14],
    groups: 2,
    columns: &COLUMNS,
};
const BY_TURNS: Chips<'_> = Chips {
    bases: &[0, 0x2_0000, 0x4_0000, 0x6_0000],
    mask: 0x1f_fff9_ffff,
    row_low: 19,
    banks: &[13, 14, 15, 16],
    ..IN_TURN
};

type Registers = BTreeMap<u32, u32>;

impl Chips<'_> {
    fn registers(&self) -> Registers {
        let list = |bits: &[u32], base: u32| -> u32 {
            let one = |(i, bit): (usize, &u32)| (bit - base) << (4 * i);
            bits.iter().enumerate().map(one).sum()
        };
        let mut all = Registers::from([(0x100, u32::from(self.ddr5))]);
        let (mask, config, bits, columns) = match self.ddr5 {
            true => (0x20, 0x40, 0x50, 0x60),
            false => (0x20, 0x30, 0x40, 0x50),
        };
        for (i, base) in (0..).zip(self.bases) {
            let own = if self.ddr5 { i } else { i / 2 };
            all.insert(4 * i, (base >> 9 << 1) as u32 | 1);
            all.insert(mask + 4 * own, (self.mask >> 9 << 1) as u32);
            let counts = (self.banks.len() as u32 - 3) << 20
                | (self.columns.len() as u32 - 5) << 16
                | (self.rows - 10) << 8
                | self.groups << 2;
            all.insert(config + 4 * own, counts);
            let rows = (self.row_low - 12) << 24;
            all.insert(bits + 4 * own, rows | list(self.banks, 5));
            all.insert(columns + 8 * own, list(&self.columns[..8], 2));
            all.insert(columns + 8 * own + 4, list(&self.columns[8..], 8));
            if self.ddr5 {
                all.insert(0x80 + 4 * own, (6 - 5) << 16);
            }
        }
        all
    }
}

fn umc(registers: &Registers) -> Result<Umc, String> {
    Umc::read(|at| Ok(registers.get(&at).copied().unwrap_or(0)))
}

/// Address; chip select, group, bank, row, column.
type Told = (u64, [u64; 5]);

fn agree(registers: &Registers, told: &[Told]) {
    let umc = umc(registers).unwrap();
    for &(at, [chip_select, group, bank, row, column]) in told {
        let spot = Spot {
            chip_select,
            group,
            bank,
            row,
            column,
            ..Spot::default()
        };
        assert_eq!(umc.decode(at), Some(spot), "{at:#x}");
    }
}

#[test]
fn ranks_one_behind_the_other_are_decoded_as_published() {
    let told = [
        (0, [0; 5]),
        (0x8_0000_0000, [1, 0, 0, 0, 0]),
        (0x10_0000_0000, [2, 0, 0, 0, 0]),
        (0x18_0000_0000, [3, 0, 0, 0, 0]),
        (0x0_ff1f_f120, [0, 3, 3, 0x7f8f, 0x224]),
        (0x8_ff4f_f500, [1, 3, 3, 0x7fa7, 0x2a0]),
        (0x10_ff6f_f700, [2, 3, 3, 0x7fb7, 0x2e0]),
        (0x18_ff8f_f102, [3, 3, 3, 0x7fc7, 0x220]),
    ];
    agree(&IN_TURN.registers(), &told);
    assert_eq!(umc(&IN_TURN.registers()).unwrap().decode(1 << 38), None);
}

#[test]
fn ranks_by_turns_and_their_hash_are_decoded_as_published() {
    let mut registers = BY_TURNS.registers();
    let told = [
        (0x2_0000, [1, 0, 0, 0, 0]),
        (0x6_0000, [3, 0, 0, 0, 0]),
        (0xe_1be1_2e00, [0, 1, 2, 0x1_c37c, 0x1c0]),
        (0x1f_ffff_ffff, [3, 3, 3, 0x3_ffff, 0x3ff]),
    ];
    agree(&registers, &told);
    registers.insert(0xe8, (0xa_aaa8_0000u64 >> 9 << 1) as u32 | 1);
    registers.insert(0xec, (0x15_5550_0000u64 >> 9 << 1) as u32 | 1);
    let told = [
        (0x6_0000, [3, 0, 0, 0, 0]),
        (0x8_0000, [1, 0, 0, 1, 0]),
        (0x18_0000, [3, 0, 0, 3, 0]),
        (0x10_0000, [2, 0, 0, 2, 0]),
        (0x1818_0000, [0, 0, 0, 0x303, 0]),
        (0x181a_0000, [1, 0, 0, 0x303, 0]),
        (0x181c_0000, [2, 0, 0, 0x303, 0]),
        (0x181e_0000, [3, 0, 0, 0x303, 0]),
    ];
    agree(&registers, &told);
}

/// Bits of rows that are XORed to the four bank bits.
const HASHES: [u32; 4] = [0x1_1111, 0x2_2222, 0x4444, 0x8888];

fn with_bank_hash(mut registers: Registers) -> Registers {
    for (i, rows) in (0..).zip(HASHES) {
        registers.insert(0xc8 + 4 * i, rows << 14 | 1);
    }
    registers
}

#[test]
fn hashed_banks_are_decoded_as_published() {
    let told = [
        (0x8000, [0, 0, 1, 0, 0]),
        (0x1_2000, [0, 1, 2, 0, 0]),
        (0x1_e000, [0, 3, 3, 0, 0]),
        (0x79_c000, [0, 1, 0, 0xf, 0]),
        (0x7f9_c000, [0, 2, 3, 0xff, 0]),
        (0x7ff9_c000, [0, 1, 0, 0xfff, 0]),
        (0x71_c000, [0, 0, 0, 0xe, 0]),
        (0x71_c118, [0, 0, 0, 0xe, 0x23]),
    ];
    agree(&with_bank_hash(BY_TURNS.registers()), &told);
    let swapped = Chips {
        banks: &[9, 10, 6, 11],
        columns: &[3, 4, 5, 7, 8, 12, 13, 14, 15, 16],
        ..BY_TURNS
    };
    let told = [
        (0x4247, [0, 1, 1, 0, 0x80]),
        (0xf_f621_4247, [0, 1, 1, 0x1_fec4, 0x280]),
    ];
    agree(&swapped.registers(), &told);
}

#[test]
fn ddr5_has_sub_channels() {
    let chips = Chips {
        ddr5: true,
        bases: &[0],
        mask: 0x3_ffff_ffff,
        rows: 16,
        row_low: 18,
        banks: &[15, 16, 17, 13, 14],
        groups: 3,
        columns: &[2, 3, 4, 5, 7, 8, 9, 10, 11, 12],
    };
    let mut registers = chips.registers();
    let decoded = umc(&registers).unwrap();
    for (at, sub_channel) in [(0x9999, 0), (0x99d9, 1)] {
        let spot = Spot {
            sub_channel,
            group: 1,
            column: 0x336,
            ..Spot::default()
        };
        assert_eq!(decoded.decode(at), Some(spot), "{at:#x}");
    }
    registers.insert(0xc0, 1 << 14 | 1);
    assert_eq!(
        umc(&registers)
            .unwrap()
            .decode(1 << 18)
            .unwrap()
            .sub_channel,
        1
    );
    registers.insert(0xc4, 1);
    assert!(umc(&registers).unwrap_err().contains("banks are XORed"));
}

fn channel(number: u32) -> Channel {
    Channel {
        node: 0,
        number,
        cpu: 0,
        bytes: 1 << 29,
    }
}

#[test]
fn what_is_not_known_is_refused_in_words() {
    let lpddr = Registers::from([(0x100, 6)]);
    assert!(umc(&lpddr).unwrap_err().contains("kind 6"));
    assert!(umc(&Registers::new())
        .unwrap_err()
        .contains("no chip select"));
    let mut stacked = IN_TURN.registers();
    *stacked.get_mut(&0x30).unwrap() |= 1 << 4;
    assert!(umc(&stacked).is_ok());
    stacked.insert(0xdc, 1);
    assert!(umc(&stacked).unwrap_err().contains("by a hash"));
    let unread = |_: &Channel, at| Err(format!("register {at:#x} can't be read"));
    let error = of_channels(&[channel(3)], unread).unwrap_err();
    assert_eq!(error, "node 0 channel 3: register 0x100 can't be read");
}

/// Two channels by the XOR of three bits.
struct Two;

impl Locator for Two {
    fn locate(&mut self, places: &[ChannelAddress]) -> Result<Vec<Option<u64>>, String> {
        let one = |place: &ChannelAddress| {
            let (channel, at) = (place.channel, place.address);
            let offset = (at >> 8) << 9 | at & 0xff;
            let bit = u64::from(channel) ^ offset >> 14 & 1 ^ offset >> 20 & 1;
            Some(offset | bit << 8)
        };
        Ok(places.iter().map(one).collect())
    }
}

#[test]
fn with_channels_they_make_a_whole_map_that_is_not_called_exact() {
    // Two ranks by turns, 11 bits of row from bit 18 on.
    let chips = Chips {
        bases: &[0, 1 << 17],
        mask: (1 << 29) - 1 - (1 << 17),
        rows: 11,
        row_low: 18,
        banks: &[13, 14, 15, 16],
        ..BY_TURNS
    };
    let registers = with_bank_hash(chips.registers());
    let banks = umc(&registers).unwrap();
    let channels: Vec<Channel> = (0..2).map(channel).collect();
    let read = |_: &Channel, at| Ok(registers.get(&at).copied().unwrap_or(0));
    let all = of_channels(&channels, read).unwrap();
    let memory = [RamRange {
        start: 0,
        end: 1 << 30,
        node: 0,
    }];
    let mut zen = Zen::new(Two, channels).with_banks(all);
    let found = find(&mut zen, &memory, 1).unwrap();
    assert_eq!(zen.untranslated.0, 0);
    assert!(!found.exact, "no such machine was seen");
    let [node] = found.nodes.as_slice() else {
        panic!("{:?}", found.nodes)
    };
    assert_eq!((node.held.0, &node.unsolved), (node.held.1, &None));
    let map = AddrMap::parse(&found.map.to_text("zen")).unwrap();
    let mut offset = 1u64;
    for _ in 0..2000 {
        offset = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset >> 29;
        let (number, at) = (offset as u32 & 1, offset >> 35 & !63);
        let address = Two
            .locate(&[ChannelAddress {
                cpu: 0,
                channel: number,
                address: at,
            }])
            .unwrap()[0]
            .unwrap();
        let (spot, says) = (banks.decode(at).unwrap(), map.decode(address).unwrap());
        let told = [says.channel, says.rank, says.bank, says.row];
        let bank = spot.bank << 2 | spot.group;
        let truth = [u64::from(number), spot.chip_select, bank, spot.row];
        assert_eq!(told.map(u64::from), truth, "{address:#x}");
    }
}
