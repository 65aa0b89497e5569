//! Many addresses at a time.
//!
//! The truth is core's map. Its functions are linear over GF(2) within a layout, so they
//! compile into a table per byte of the offset, and so does their inverse. A place is
//! packed into one word, a *key*: bank, rank, channel and node from bit 0 on, which
//! together are the bank colour, then column and row. Decoding is one pass over the tables
//! to the keys and one pass for each field that is asked for. Encoding is one to the
//! offsets, and one back: an address is given only where decoding it gives the same key.
//!
//! Maps whose keys take more than 63 bits, and layouts that the inverse does not
//! determine, go through core's own functions. A test compares both ways on every machine.

use soloist_core::{AddrMap, Dram, EncodeError, Interleave, Layout};

use crate::gf2::{fit, parity};

/// Bytes of an offset or a key that tables cover.
const BYTES: usize = 8;
/// Addresses that are worked on together; they stay in the first-level cache.
const CHUNK: usize = 1024;
/// The key of an address in a hole.
const HOLE: u64 = u64::MAX;
/// The value of a field where an address lies in a hole.
pub const NO_PLACE: u32 = u32::MAX;

type Tables = Box<[[u64; 256]; BYTES]>;

/// A field of a place in DRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Memory node.
    Node,
    /// Channel of the node.
    Channel,
    /// Rank of the channel.
    Rank,
    /// Bank of the rank.
    Bank,
    /// Row of the bank.
    Row,
    /// Column, in units of the device.
    Column,
    /// Bank colour.
    Color,
}

impl Field {
    /// All, as [`Places`] has them; the colour is last.
    pub const ALL: [Self; 7] = [
        Self::Node,
        Self::Channel,
        Self::Rank,
        Self::Bank,
        Self::Row,
        Self::Column,
        Self::Color,
    ];

    fn of(self, place: &Dram) -> u32 {
        match self {
            Self::Node => place.node,
            Self::Channel => place.channel,
            Self::Rank => place.rank,
            Self::Bank => place.bank,
            Self::Row => place.row,
            Self::Column => place.column,
            Self::Color => place.color,
        }
    }
}

/// Places by field: node, channel, rank, bank, row and column, all of one length.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a>(pub [&'a [u32]; 6]);

impl Places<'_> {
    fn at(&self, i: usize) -> Dram {
        let [node, channel, rank, bank, row, column] = self.0.map(|field| field[i]);
        Dram {
            node,
            channel,
            rank,
            chip_select: 0,
            bank,
            row,
            column,
            color: 0,
        }
    }
}

/// Where a field lies in a key.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    at: u32,
    bits: u32,
}

impl Slot {
    fn get(self, key: u64) -> u32 {
        (key >> self.at & ((1 << self.bits) - 1)) as u32
    }
}

struct Range {
    start: u64,
    end: u64,
    base: u64,
    node: u32,
    layout: usize,
}

impl Range {
    fn holds(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.start) < self.end - self.start
    }
}

struct Compiled {
    keys: Tables,
    /// From key to normalised offset; `None`: core answers.
    offsets: Option<Tables>,
    interleave: Option<(Interleave, Vec<u32>)>,
    /// Row or column functions are not known: no place has an address.
    open: bool,
}

/// A map compiled for many addresses at a time.
pub struct Codec {
    map: AddrMap,
    ranges: Vec<Range>,
    layouts: Vec<Compiled>,
    slots: [Slot; 7],
    way_at: u32,
    /// Keys fit into a word.
    packs: bool,
}

impl Codec {
    /// Compiles `map`.
    #[must_use]
    pub fn new(map: &AddrMap) -> Self {
        let layouts: Vec<Layout> = map.layouts().collect();
        let bits = |n: u32| n.next_power_of_two().trailing_zeros();
        let printed = |of: fn(&Layout) -> &Vec<soloist_core::MapBit>| {
            let all = layouts.iter().flat_map(|l| of(l).iter().map(|b| b.at + 1));
            all.max().unwrap_or(0)
        };
        let widths = [
            (3, bits(map.n_banks())),
            (2, bits(map.n_ranks())),
            (1, bits(map.n_channels())),
            (0, bits(map.n_nodes())),
            (5, printed(|l| &l.col)),
            (4, printed(|l| &l.row)),
        ];
        let mut slots = [Slot::default(); 7];
        let mut at = 0;
        for (field, bits) in widths {
            slots[field] = Slot { at, bits };
            at += bits;
        }
        slots[6].bits = slots[5].at;
        let compile = |layout: &Layout| compiled(layout, &slots);
        Self {
            ranges: map
                .ranges()
                .map(|r| Range {
                    start: r.start,
                    end: r.end,
                    base: r.base,
                    node: r.node,
                    layout: r.layout as usize,
                })
                .collect(),
            packs: at < 64,
            layouts: match at < 64 {
                true => layouts.iter().map(compile).collect(),
                false => Vec::new(),
            },
            way_at: slots[1].at + bits(map.channels_per_way()),
            slots,
            map: map.clone(),
        }
    }

    /// Decodes physical addresses; `out` takes the fields that are asked for, each as long
    /// as `addresses`. Returns how many lie in holes, whose fields are [`NO_PLACE`].
    ///
    /// # Panics
    /// When lengths differ.
    pub fn decode(&self, addresses: &[u64], out: &mut [(Field, &mut [u32])]) -> usize {
        let mut holes = 0;
        let mut keys = [0; CHUNK];
        for (n, chunk) in addresses.chunks(CHUNK).enumerate() {
            let from = n * CHUNK;
            if !self.packs {
                holes += self.decode_slowly(chunk, out, from);
                continue;
            }
            let keys = &mut keys[..chunk.len()];
            let lost = self.keys(chunk, keys);
            for (field, values) in out.iter_mut() {
                let slot = self.slots[*field as usize];
                let values = &mut values[from..from + keys.len()];
                for (value, &key) in values.iter_mut().zip(&*keys) {
                    *value = slot.get(key);
                }
                if lost > 0 {
                    let some = values.iter_mut().zip(&*keys);
                    some.filter(|(_, &key)| key == HOLE)
                        .for_each(|(value, _)| *value = NO_PLACE);
                }
            }
            holes += lost;
        }
        holes
    }

    /// Keys of addresses; returns how many lie in holes.
    fn keys(&self, addresses: &[u64], keys: &mut [u64]) -> usize {
        let Some(mut range) = self.ranges.first() else {
            keys.fill(HOLE);
            return keys.len();
        };
        let mut holes = 0;
        for (key, &addr) in keys.iter_mut().zip(addresses) {
            if !range.holds(addr) {
                match self.ranges.iter().find(|range| range.holds(addr)) {
                    Some(found) => range = found,
                    None => {
                        *key = HOLE;
                        holes += 1;
                        continue;
                    }
                }
            }
            *key = self.key(range, addr);
        }
        holes
    }

    #[inline]
    fn key(&self, range: &Range, addr: u64) -> u64 {
        let layout = &self.layouts[range.layout];
        let mut offset = addr - range.start + range.base;
        let mut key = u64::from(range.node) << self.slots[0].at;
        if let Some((interleave, ways)) = &layout.interleave {
            let (turn, normal) = interleave.split(offset);
            key |= u64::from(ways[turn as usize]) << self.way_at;
            offset = normal;
        }
        key ^ look_up::<6>(&layout.keys, offset)
    }

    fn decode_slowly(
        &self,
        addresses: &[u64],
        out: &mut [(Field, &mut [u32])],
        from: usize,
    ) -> usize {
        let mut holes = 0;
        for (i, &addr) in addresses.iter().enumerate() {
            let place = self.map.decode(addr);
            holes += usize::from(place.is_err());
            for (field, values) in out.iter_mut() {
                let value = |place: &Dram| field.of(place);
                values[from + i] = place.as_ref().map_or(NO_PLACE, value);
            }
        }
        holes
    }

    /// The physical addresses of `places`; the inverse of [`Self::decode`] but for the bits
    /// below a column.
    ///
    /// # Errors
    /// The first place that has none, with its index.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn encode(&self, places: Places, out: &mut [u64]) -> Result<(), (usize, EncodeError)> {
        for (i, addr) in out.iter_mut().enumerate() {
            let fast = match self.packs {
                true => self.address(places.0.map(|field| field[i])),
                false => None,
            };
            *addr = match fast {
                Some(addr) => addr,
                None => self.map.encode(&places.at(i)).map_err(|e| (i, e))?,
            };
        }
        Ok(())
    }

    /// The address of a place; `None`: core answers.
    #[inline]
    fn address(&self, place: [u32; 6]) -> Option<u64> {
        let mut key = 0;
        let mut beyond = 0;
        for (slot, value) in self.slots.iter().zip(place) {
            let value = u64::from(value);
            beyond |= value >> slot.bits;
            key |= value << slot.at;
        }
        if beyond != 0 {
            return None;
        }
        for range in self.ranges.iter().filter(|range| range.node == place[0]) {
            let layout = &self.layouts[range.layout];
            let mut offset = look_up::<BYTES>(layout.offsets.as_ref()?, key);
            if let Some((interleave, ways)) = &layout.interleave {
                let way = place[1] >> (self.way_at - self.slots[1].at);
                let turn = ways.iter().position(|&known| known == way)?;
                offset = interleave.join(turn as u32, offset);
            }
            let addr = offset.wrapping_sub(range.base).wrapping_add(range.start);
            if !layout.open && range.holds(addr) && self.key(range, addr) == key {
                return Some(addr);
            }
        }
        None
    }
}

#[inline]
fn look_up<const N: usize>(tables: &Tables, word: u64) -> u64 {
    let bytes = word.to_le_bytes();
    let mut sum = 0;
    for i in 0..N {
        sum ^= tables[i][usize::from(bytes[i])];
    }
    sum
}

fn compiled(layout: &Layout, slots: &[Slot; 7]) -> Compiled {
    let mut functions: Vec<(u64, u32)> = Vec::new();
    for (field, masks) in [(3, &layout.bank), (2, &layout.rank), (1, &layout.channel)] {
        functions.extend(masks.iter().zip(slots[field].at..).map(|(&m, at)| (m, at)));
    }
    for (field, printed) in [(5, &layout.col), (4, &layout.row)] {
        functions.extend(printed.iter().map(|b| (b.mask, slots[field].at + b.at)));
    }
    let key_of = |bit: u32| {
        let of = functions.iter();
        of.fold(0, |key, &(mask, at)| key | (mask >> bit & 1) << at)
    };
    // Each offset bit that a key shows, as a function of the key.
    let units: Vec<(u32, u64)> = (0..48).map(|bit| (bit, key_of(bit))).collect();
    let inverse = units.iter().filter(|(_, key)| *key != 0).map(|&(bit, _)| {
        let samples: Vec<(u64, bool)> = units.iter().map(|&(b, k)| (k, b == bit)).collect();
        fit(&samples, u64::MAX).map(|(function, _)| (function, bit))
    });
    Compiled {
        keys: tables(&functions),
        offsets: inverse.collect::<Option<Vec<_>>>().map(|f| tables(&f)),
        interleave: layout.interleave.map(|i| (i, layout.ways.clone())),
        open: layout.row.is_empty() || layout.col.is_empty(),
    }
}

/// Tables such that XORing the entries of a word's bytes gives every function's parity at
/// its position.
fn tables(functions: &[(u64, u32)]) -> Tables {
    let mut tables = Box::new([[0; 256]; BYTES]);
    for (byte, table) in tables.iter_mut().enumerate() {
        for (value, entry) in table.iter_mut().enumerate() {
            let bits = (value as u64) << (8 * byte);
            let all = functions.iter();
            *entry = all.fold(0, |sum, &(mask, at)| sum ^ parity(mask, bits) << at);
        }
    }
    tables
}
