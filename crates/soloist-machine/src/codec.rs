//! Many addresses at a time.
//!
//! The truth is core's map. Its functions are linear over GF(2) within a layout, so they
//! compile into a table per byte of the offset, and so does their inverse. A place is
//! packed into one word, a *key*: bank, rank, channel and node from bit 0 on, which
//! together are the bank colour, then column and row. Decoding is one pass over the tables
//! to the keys and one pass for each field that is asked for. Encoding is one pass for each
//! field to the keys and one over the tables of the inverse to the offsets. The inverse
//! gives more than the offset: a *syndrome*, the functions of a key that are 0 for each key
//! that some offset has. Where it is not 0, the place does not exist.
//!
//! Offsets that are dealt out over a number of ways are divided by it: by multiplication
//! with its reciprocal ([`Turns`]). Addresses of chance lie in any range, so a range is found
//! without a branch ([`Sorted`]).
//!
//! Maps whose keys take more than 63 bits, and layouts that the inverse does not
//! determine, go through core's own functions. A test compares both ways on every machine.

use soloist_core::{AddrMap, Dram, EncodeError, Interleave, Layout, FRAME_SHIFT};

use crate::gf2::{fit, parity, Basis};

/// Bytes of an offset or a key that tables cover.
const BYTES: usize = 8;
/// Bits of an offset; in the tables of an inverse the syndrome stands above them.
const OFFSET_BITS: u32 = 48;
/// Addresses that are worked on together; they stay in the first-level cache.
const CHUNK: usize = 1024;
/// The turn of a way that is none.
const NO_TURN: u8 = u8::MAX;
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
    #[inline]
    fn get(self, key: u64) -> u32 {
        (key >> self.at & ((1 << self.bits) - 1)) as u32
    }

    fn mask(self) -> u64 {
        ((1 << self.bits) - 1) << self.at
    }
}

/// A range of memory.
#[derive(Clone, Copy, Default)]
struct Range {
    /// First address.
    start: u64,
    /// Offset of the first address within its node.
    base: u64,
    /// Bytes; 0 of the range that stands for none.
    size: u64,
    node: u64,
    layout: usize,
}

impl Range {
    /// Node and offset of the first address.
    fn home(&self) -> u64 {
        self.node << OFFSET_BITS | self.base
    }
}

/// Ranges in the order of a number that each begins at. Before them stands one that holds
/// nothing.
struct Sorted {
    /// Compared four at a time, the last ones with `u64::MAX` in their place.
    firsts: Vec<[u64; 4]>,
    ranges: Vec<Range>,
}

impl Sorted {
    fn new(mut ranges: Vec<Range>, first: fn(&Range) -> u64) -> Self {
        ranges.sort_by_key(first);
        let four = |of: &[Range]| std::array::from_fn(|i| of.get(i).map_or(u64::MAX, first));
        let firsts = ranges.chunks(4).map(four).collect();
        ranges.insert(0, Range::default());
        Self { firsts, ranges }
    }

    /// The last range that begins at `number` or before it.
    #[inline]
    fn before(&self, number: u64) -> &Range {
        let behind = number.saturating_add(1);
        let mut begun = 0;
        for four in &self.firsts {
            for &first in four {
                begun += usize::from(first < behind);
            }
        }
        &self.ranges[begun]
    }
}

/// How a layout deals out offsets over ways, without a division.
struct Turns {
    ways: u64,
    /// 2^63 / ways, rounded up: of a number below 2^57 the product's upper part is the
    /// exact quotient, since ways are below 64.
    reciprocal: u64,
    /// Bits of an offset in a granule.
    granule: u32,
    /// Way of each turn.
    way_of: [u32; 64],
    /// Turn of each way.
    turn_of: [u8; 64],
}

impl Turns {
    /// Without interleaving there is one way, and each offset is the normalised one.
    fn new(interleave: Option<Interleave>, ways: &[u32]) -> Self {
        let interleave = interleave.unwrap_or(Interleave {
            ways: 1,
            granule: 1 << FRAME_SHIFT,
        });
        let mut turns = Self {
            ways: interleave.ways.into(),
            reciprocal: (1 << 63) / u64::from(interleave.ways) + 1,
            granule: interleave.granule.trailing_zeros(),
            way_of: [0; 64],
            turn_of: [NO_TURN; 64],
        };
        for (turn, &way) in ways.iter().enumerate().rev() {
            turns.way_of[turn] = way;
            if let Some(known) = turns.turn_of.get_mut(way as usize) {
                *known = turn as u8;
            }
        }
        turns
    }

    /// As [`Interleave::split`], with the way's number.
    #[inline]
    fn split(&self, offset: u64) -> (u32, u64) {
        let granule = offset >> self.granule;
        let quotient = (u128::from(granule) * u128::from(self.reciprocal) >> 63) as u64;
        let turn = granule - quotient * self.ways;
        let within = offset & ((1 << self.granule) - 1);
        (
            self.way_of[turn as usize & 63],
            quotient << self.granule | within,
        )
    }

    /// As [`Interleave::join`], of the way's number; false: there is no such way.
    #[inline]
    fn join(&self, way: u32, normal: u64) -> (bool, u64) {
        let turn = self.turn_of[way as usize & 63];
        let granule = (normal >> self.granule) * self.ways + u64::from(turn);
        let within = normal & ((1 << self.granule) - 1);
        (turn != NO_TURN, granule << self.granule | within)
    }
}

struct Compiled {
    keys: Tables,
    /// From key to normalised offset and syndrome; `None`: core answers.
    inverse: Option<Tables>,
    turns: Turns,
    /// Those that are of this layout, by node and offset.
    ranges: Sorted,
}

/// A map compiled for many addresses at a time.
pub struct Codec {
    map: AddrMap,
    /// By address.
    ranges: Sorted,
    layouts: Vec<Compiled>,
    /// Layouts of each node's ranges, in their order.
    layouts_of: Vec<Vec<usize>>,
    slots: [Slot; 7],
    way_at: u32,
    /// Some layout has several ways.
    divides: bool,
    /// Bytes that offsets and keys take.
    offset_bytes: usize,
    key_bytes: usize,
    /// Keys and offsets fit into a word of the tables.
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
        let range = |r: soloist_core::Range| Range {
            start: r.start,
            base: r.base,
            size: r.end - r.start,
            node: r.node.into(),
            layout: r.layout as usize,
        };
        let ranges: Vec<Range> = map.ranges().map(range).collect();
        let mut layouts_of = vec![Vec::new(); map.n_nodes() as usize];
        for range in map.ranges() {
            let of: &mut Vec<usize> = &mut layouts_of[range.node as usize];
            if !of.contains(&(range.layout as usize)) {
                of.push(range.layout as usize);
            }
        }
        let last = ranges.iter().map(|r| r.base + r.size - 1).max();
        let last = last.unwrap_or(0);
        let way_at = slots[1].at + bits(map.channels_per_way());
        let packs = at < 64 && slots[6].bits <= 32 && last >> OFFSET_BITS == 0;
        let compile = |(n, layout): (usize, &Layout)| {
            let of = ranges.iter().filter(|range| range.layout == n).copied();
            compiled(layout, &slots, way_at, of.collect())
        };
        Self {
            packs,
            layouts: match packs {
                true => layouts.iter().enumerate().map(compile).collect(),
                false => Vec::new(),
            },
            ranges: Sorted::new(ranges, |range| range.start),
            layouts_of,
            way_at,
            divides: layouts.iter().any(|l| l.interleave.is_some()),
            offset_bytes: (u64::BITS - last.leading_zeros()).div_ceil(8) as usize,
            key_bytes: at.div_ceil(8) as usize,
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
        match (self.divides, self.offset_bytes) {
            (false, 0..=4) => self.keys_by::<4, false>(addresses, keys),
            (false, 5) => self.keys_by::<5, false>(addresses, keys),
            (false, _) => self.keys_by::<6, false>(addresses, keys),
            (true, _) => self.keys_by::<6, true>(addresses, keys),
        }
    }

    #[inline]
    fn keys_by<const N: usize, const DIVIDES: bool>(
        &self,
        addresses: &[u64],
        keys: &mut [u64],
    ) -> usize {
        let mut holes = 0;
        for (key, &addr) in keys.iter_mut().zip(addresses) {
            let range = self.ranges.before(addr);
            let within = addr.wrapping_sub(range.start);
            let layout = &self.layouts[range.layout];
            let mut offset = within.wrapping_add(range.base);
            let mut place = range.node << self.slots[0].at;
            if DIVIDES {
                let (way, normal) = layout.turns.split(offset);
                place |= u64::from(way) << self.way_at;
                offset = normal;
            }
            place ^= look_up::<N>(&layout.keys, offset);
            let lost = within >= range.size;
            holes += usize::from(lost);
            *key = if lost { HOLE } else { place };
        }
        holes
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
        let mut keys = [0; CHUNK];
        for (n, chunk) in out.chunks_mut(CHUNK).enumerate() {
            let from = n * CHUNK;
            let keys = &mut keys[..chunk.len()];
            let fields = places.0.map(|field| &field[from..from + keys.len()]);
            let packed = self.packs && self.pack(fields, keys);
            let known = match packed {
                true => self.addresses(keys, chunk),
                false => false,
            };
            if known {
                continue;
            }
            for (i, addr) in chunk.iter_mut().enumerate() {
                let place = places.at(from + i);
                *addr = self.map.encode(&place).map_err(|e| (from + i, e))?;
            }
        }
        Ok(())
    }

    /// Keys of places; false where a field is too large for one.
    fn pack(&self, places: [&[u32]; 6], keys: &mut [u64]) -> bool {
        let n = keys.len();
        let [node, channel, rank, bank, row, column] = places.map(|field| &field[..n]);
        let limits = self.slots.map(|slot| (slot.mask() >> slot.at) as u32);
        let at = self.slots.map(|slot| slot.at);
        let mut beyond = 0;
        for i in 0..n {
            let place = [node[i], channel[i], rank[i], bank[i], row[i], column[i]];
            for (value, limit) in place.iter().zip(limits) {
                beyond |= value & !limit;
            }
            let color = place[0].wrapping_shl(at[0])
                | place[1].wrapping_shl(at[1])
                | place[2].wrapping_shl(at[2])
                | place[3];
            keys[i] =
                u64::from(color) | u64::from(place[4]) << at[4] | u64::from(place[5]) << at[5];
        }
        beyond == 0
    }

    /// Addresses of keys; false where core must be asked for some.
    fn addresses(&self, keys: &[u64], out: &mut [u64]) -> bool {
        match (self.divides, self.key_bytes) {
            (false, 0..=4) => self.addresses_by::<4, false>(keys, out),
            (false, 5) => self.addresses_by::<5, false>(keys, out),
            (false, _) => self.addresses_by::<8, false>(keys, out),
            (true, 0..=5) => self.addresses_by::<5, true>(keys, out),
            (true, _) => self.addresses_by::<8, true>(keys, out),
        }
    }

    #[inline]
    fn addresses_by<const N: usize, const DIVIDES: bool>(
        &self,
        keys: &[u64],
        out: &mut [u64],
    ) -> bool {
        let mut known = true;
        for (addr, &key) in out.iter_mut().zip(keys) {
            let node = self.slots[0].get(key);
            let mut found = None;
            for &layout in self
                .layouts_of
                .get(node as usize)
                .map_or(&[][..], Vec::as_slice)
            {
                found = found.or(self.address::<N, DIVIDES>(key, layout));
            }
            known &= found.is_some();
            *addr = found.unwrap_or(0);
        }
        known
    }

    /// The address of a key, if a range of `layout` has it.
    #[inline]
    fn address<const N: usize, const DIVIDES: bool>(&self, key: u64, layout: usize) -> Option<u64> {
        let of = &self.layouts[layout];
        let found = look_up::<N>(of.inverse.as_ref()?, key);
        let exists = found >> OFFSET_BITS == 0;
        let (there, offset) = match DIVIDES {
            true => of.turns.join(self.way(key), found),
            false => (true, found),
        };
        let node = u64::from(self.slots[0].get(key));
        let range = of.ranges.before(node << OFFSET_BITS | offset);
        let within = offset.wrapping_sub(range.base);
        let holds = within < range.size && range.node == node;
        (exists & there & holds).then_some(range.start.wrapping_add(within))
    }

    /// The way's number in a key.
    #[inline]
    fn way(&self, key: u64) -> u32 {
        self.slots[1].get(key) >> (self.way_at - self.slots[1].at)
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

fn compiled(layout: &Layout, slots: &[Slot; 7], way_at: u32, ranges: Vec<Range>) -> Compiled {
    let mut functions: Vec<(u64, u32)> = Vec::new();
    for (field, masks) in [(3, &layout.bank), (2, &layout.rank), (1, &layout.channel)] {
        functions.extend(masks.iter().zip(slots[field].at..).map(|(&m, at)| (m, at)));
    }
    for (field, printed) in [(5, &layout.col), (4, &layout.row)] {
        functions.extend(printed.iter().map(|b| (b.mask, slots[field].at + b.at)));
    }
    // Node and way are no functions of the normalised offset.
    let mut linear = slots[6].mask() | slots[5].mask() | slots[4].mask();
    linear &= !slots[0].mask();
    if layout.interleave.is_some() {
        linear &= !(slots[1].mask() & !((1 << way_at) - 1));
    }
    // Without row or column functions no place has an address.
    let open = layout.row.is_empty() || layout.col.is_empty();
    Compiled {
        keys: tables(&functions),
        inverse: inverse(&functions, linear)
            .filter(|_| !open)
            .map(|f| tables(&f)),
        turns: Turns::new(layout.interleave, &layout.ways),
        ranges: Sorted::new(ranges, Range::home),
    }
}

/// Each offset bit that a key shows, and the syndrome's bits above them, as functions of
/// the key; `None` where keys do not determine an offset. `linear` are the bits of a key
/// that functions give.
fn inverse(functions: &[(u64, u32)], linear: u64) -> Option<Vec<(u64, u32)>> {
    let key_of = |bit: u32| {
        let of = functions.iter();
        of.fold(0, |key, &(mask, at)| key | (mask >> bit & 1) << at)
    };
    let units: Vec<(u32, u64)> = (0..OFFSET_BITS).map(|bit| (bit, key_of(bit))).collect();
    let shown = units.iter().filter(|(_, key)| *key != 0).map(|&(bit, _)| {
        let samples: Vec<(u64, bool)> = units.iter().map(|&(b, k)| (k, b == bit)).collect();
        fit(&samples, u64::MAX).map(|(function, _)| (function, bit))
    });
    let mut all = shown.collect::<Option<Vec<_>>>()?;
    let syndrome = Basis::of(units.iter().map(|unit| unit.1)).nullspace(linear);
    if syndrome.rank() > (u64::BITS - OFFSET_BITS) as usize {
        return None;
    }
    all.extend(syndrome.rows().iter().copied().zip(OFFSET_BITS..));
    Some(all)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_divide_as_interleave_does() {
        for ways in 1..=63 {
            for granule in [64, 4096] {
                let interleave = Interleave { ways, granule };
                let names: Vec<u32> = (0..ways).rev().collect();
                let turns = Turns::new(Some(interleave), &names);
                for offset in [0, 1, granule, granule * u64::from(ways), (1 << 48) - 1] {
                    for offset in offset.saturating_sub(9)..=offset {
                        let (turn, normal) = interleave.split(offset);
                        let way = names[turn as usize];
                        assert_eq!(turns.split(offset), (way, normal));
                        assert_eq!(turns.join(way, normal), (true, offset));
                    }
                }
                assert!(ways == 63 || !turns.join(ways, 0).0);
            }
        }
    }
}
