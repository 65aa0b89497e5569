//! The address map: physical address <-> DRAM coordinate, colours of a frame.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use serde::Serialize;

use crate::ffi;
use crate::list::NumList;
use crate::page::PageSize;
use crate::text::{print, string, Refusal};

/// An address map, parsed and checked. Cheap to clone, shared between threads.
///
/// Holds a `struct sol_map`, which has no pointers and never changes.
#[derive(Clone)]
pub struct AddrMap(Arc<ffi::Map>);

/// No range of the map holds this address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0:#x} lies in no range of the map (a hole, or beyond the memory)")]
pub struct Hole(
    /// The physical address.
    pub u64,
);

/// The reason why a DRAM coordinate has no physical address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Outside the machine.
    #[error(
        "the machine has no such place: a field is too large, or no memory of the node lies there"
    )]
    NoSuchPlace,
    /// The map's functions do not determine an address.
    #[error("the map is not invertible: its functions leave address bits undetermined")]
    NotInvertible,
}

/// The place in DRAM of a physical address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Dram {
    /// Memory node.
    pub node: u32,
    /// Channel of the node.
    pub channel: u32,
    /// Rank of the channel, from 0.
    pub rank: u32,
    /// The rank as the machine numbers it (its chip select).
    pub chip_select: u32,
    /// Bank of the rank.
    pub bank: u32,
    /// Row of the bank.
    pub row: u32,
    /// Column, in units of the device.
    pub column: u32,
    /// Bank colour bc of this very address.
    pub color: u32,
}

/// The colours of a frame: what is constant over its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct FrameColor {
    /// Memory node.
    pub node: u32,
    /// Bank colour bc of the frame's first line.
    pub color: u32,
    /// Bank set: all banks that the frame's lines touch.
    pub bank_set: u32,
    /// LLC colour.
    pub llc: u32,
    /// `bank_set * n_llc + llc`.
    pub cell: u32,
}

/// A range of physical memory of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Offset of the first byte within its node.
    pub base: u64,
    /// The node.
    pub node: u32,
    /// Index of the layout that decodes it.
    pub layout: u32,
}

/// One bit of a printed row or column number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MapBit {
    /// Parity of `offset & mask` is the bit.
    pub mask: u64,
    /// Number of the bit in the printed number.
    pub at: u32,
}

/// Offsets dealt out over a number of ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Interleave {
    /// Number of ways, 1 to 63; no power of two, unless they are named.
    pub ways: u32,
    /// Bytes in a row of one way, a power of two.
    pub granule: u64,
}

impl Interleave {
    /// Way and normalised offset of an offset: what the functions of the
    /// layout are over.
    #[must_use]
    pub fn split(self, offset: u64) -> (u32, u64) {
        let (granule, within) = (offset / self.granule, offset % self.granule);
        let ways = u64::from(self.ways);
        let way = (granule % ways) as u32;
        (way, granule / ways * self.granule + within)
    }

    /// The offset of a way's normalised offset: the inverse of
    /// [`Interleave::split`].
    #[must_use]
    pub fn join(self, way: u32, normal: u64) -> u64 {
        let (granule, within) = (normal / self.granule, normal % self.granule);
        let all = granule.wrapping_mul(self.ways.into());
        all.wrapping_add(way.into())
            .wrapping_mul(self.granule)
            .wrapping_add(within)
    }
}

/// The XOR functions of one DIMM population, low bit of each field first: bit
/// i is the parity of the offset within the node (normalised, where it is
/// interleaved) and mask i.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Channel functions.
    pub channel: Vec<u64>,
    /// Rank functions.
    pub rank: Vec<u64>,
    /// Bank functions.
    pub bank: Vec<u64>,
    /// Row functions.
    pub row: Vec<MapBit>,
    /// Column functions.
    pub col: Vec<MapBit>,
    /// Printed rank = rank + this.
    pub chip_select: u32,
    /// Bit mask of the bank bits that are the bank group.
    pub bank_group: u32,
    /// Bit mask of the channel bits that are the sub-channel.
    pub sub_channel: u32,
    /// The rule that gives the way, the high part of the channel.
    pub interleave: Option<Interleave>,
    /// Numbers of the ways, in turn; 0 alone where it is not interleaved.
    pub ways: Vec<u32>,
}

impl AddrMap {
    /// Reads the map text (docs/reference/map-format.md), for pages of 4 KiB.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Self::parse_for(text, PageSize::K4)
    }

    /// Reads the map text for a kernel with such pages. The text is the same for all, but its
    /// ranges must consist of whole pages.
    pub fn parse_for(text: &str, pages: PageSize) -> Result<Self, Refusal> {
        let mut map = Arc::<ffi::Map>::default();
        let mut err = ffi::Err::default();
        let raw = ptr::from_mut(Arc::make_mut(&mut map));
        let (at, len) = (text.as_ptr().cast(), text.len());
        // SAFETY: nobody else has the map yet; `text` is valid for its length.
        let code = unsafe { ffi::sol_map_parse(raw, at, len, pages.shift(), &mut err) };
        err.check(code).map(|()| Self(map))
    }

    /// This map for a kernel with such pages.
    pub fn for_pages(&self, pages: PageSize) -> Result<Self, Refusal> {
        match pages == self.page_size() {
            true => Ok(self.clone()),
            false => Self::parse_for(&self.to_string(), pages),
        }
    }

    /// The pages whose colours it tells.
    pub fn page_size(&self) -> PageSize {
        PageSize::of(&self.0)
    }

    /// The map's name.
    pub fn name(&self) -> String {
        string(&self.0.name)
    }

    /// Bytes of a cache line.
    pub fn line_size(&self) -> u32 {
        self.0.line
    }

    /// Nodes: the highest node number + 1.
    pub fn n_nodes(&self) -> u32 {
        self.0.n_nodes
    }

    /// Channels of a node (NC), as colours count them: where offsets are
    /// interleaved over ways, room is left up to the next power of two.
    pub fn n_channels(&self) -> u32 {
        self.0.n_channels
    }

    /// First channel number of a way: channels that XOR functions tell apart.
    pub fn channels_per_way(&self) -> u32 {
        self.0.n_channels >> self.0.way_bits
    }

    /// Channels of a node that are there, at most [`Self::n_channels`].
    pub fn channels(&self) -> u32 {
        let ways: BTreeSet<u32> = self.layouts().flat_map(|l| l.ways).collect();
        self.channels_per_way() * ways.len() as u32
    }

    /// Ranks of a channel (NR).
    pub fn n_ranks(&self) -> u32 {
        self.0.n_ranks
    }

    /// Banks of a rank (NB).
    pub fn n_banks(&self) -> u32 {
        self.0.n_banks
    }

    /// Bank colours, all nodes.
    pub fn n_colors(&self) -> u32 {
        self.0.n_colors
    }

    /// Bank sets, all nodes.
    pub fn n_bank_sets(&self) -> u32 {
        self.0.n_bank_sets
    }

    /// LLC colours, at least 1.
    pub fn n_llc(&self) -> u32 {
        self.0.n_llc
    }

    /// Cells: bank sets times LLC colours.
    pub fn n_cells(&self) -> u32 {
        self.0.n_cells
    }

    /// The memory ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.0.range[..self.0.n_ranges as usize]
            .iter()
            .map(|r| Range {
                start: r.start,
                end: r.end,
                base: r.base,
                node: r.node.into(),
                layout: r.layout.into(),
            })
    }

    /// The layouts.
    pub fn layouts(&self) -> impl Iterator<Item = Layout> + '_ {
        self.0.layout[..self.0.n_layouts as usize]
            .iter()
            .map(Layout::from)
    }

    /// LLC functions over the physical address, as the text gives them: the LLC colour's
    /// bits where no page is larger than 4 KiB.
    pub fn llc_masks(&self) -> &[u64] {
        &self.0.llc[..self.0.n_llc_functions as usize]
    }

    /// Bytes of memory in all ranges.
    pub fn bytes(&self) -> u64 {
        self.ranges().map(|r| r.end - r.start).sum()
    }

    /// First frame number beyond all ranges.
    pub fn end_pfn(&self) -> u64 {
        self.ranges()
            .map(|r| r.end >> self.page_size().shift())
            .max()
            .unwrap_or(0)
    }

    /// Returns the place in DRAM of the physical address `addr`.
    pub fn decode(&self, addr: u64) -> Result<Dram, Hole> {
        let mut d = ffi::Dram::default();
        // SAFETY: a parsed map and a place for the answer.
        match unsafe { ffi::sol_map_decode(self.as_ptr(), addr, &mut d) } {
            0 => Ok(Dram {
                node: d.node,
                channel: d.channel,
                rank: d.rank,
                chip_select: d.chip_select,
                bank: d.bank,
                row: d.row,
                column: d.column,
                color: d.color,
            }),
            _ => Err(Hole(addr)),
        }
    }

    /// The physical address of `dram`, the inverse of [`Self::decode`] but for
    /// the bits below a column. `chip_select` and `color` are not read.
    pub fn encode(&self, dram: &Dram) -> Result<u64, EncodeError> {
        const EDOM: i32 = 33;
        let d = ffi::Dram {
            node: dram.node,
            channel: dram.channel,
            rank: dram.rank,
            chip_select: dram.chip_select,
            bank: dram.bank,
            row: dram.row,
            column: dram.column,
            color: dram.color,
        };
        let mut addr = 0;
        // SAFETY: a parsed map, valid in and out.
        match unsafe { ffi::sol_map_encode(self.as_ptr(), &d, &mut addr) } {
            0 => Ok(addr),
            code if code == -EDOM => Err(EncodeError::NotInvertible),
            _ => Err(EncodeError::NoSuchPlace),
        }
    }

    /// Pages go round over the ascending `cells` of one node, bank set by bank
    /// set: the position `turns` turns after position `at` (below their number).
    ///
    /// # Panics
    /// If there are none.
    pub fn cells_turn(&self, cells: &[u32], at: usize, turns: usize) -> usize {
        let n = cells.len() as u32;
        assert!(n > 0, "no cells to go round over");
        let (at, turns) = (at as u32 % n, turns as u32 % n);
        // SAFETY: a parsed map, `n` cells.
        unsafe { ffi::sol_rust_cells_advance(self.as_ptr(), cells.as_ptr(), n, at, turns) as usize }
    }

    /// Colours of the frame `pfn` (address / page size); `None` in a hole.
    pub fn color_of_frame(&self, pfn: u64) -> Option<FrameColor> {
        let mut c = ffi::FrameColor::default();
        // SAFETY: a parsed map and a place for the answer.
        let code = unsafe { ffi::sol_map_color(self.as_ptr(), pfn, &mut c) };
        (code == 0).then_some(FrameColor {
            node: c.node,
            color: c.color,
            bank_set: c.bank_set,
            llc: c.llc,
            cell: c.cell,
        })
    }

    /// Cell of the frame `pfn`; `None` in a hole. The fast path.
    #[inline]
    pub fn cell_of_frame(&self, pfn: u64) -> Option<u32> {
        // SAFETY: a parsed map.
        let cell = unsafe { ffi::sol_map_cell(self.as_ptr(), pfn) };
        (cell != ffi::NO_CELL).then_some(cell)
    }

    /// Node of a bank set.
    pub fn node_of_set(&self, bank_set: u32) -> u32 {
        // SAFETY: a parsed map; the function only shifts.
        unsafe { ffi::sol_rust_set_node(self.as_ptr(), bank_set) }
    }

    /// The nodes that have memory, ascending: others may be numbered below them.
    pub fn memory_nodes(&self) -> Vec<u32> {
        let nodes: BTreeSet<u32> = self.ranges().map(|range| range.node).collect();
        nodes.into_iter().collect()
    }

    /// The `index`th node with memory behind `home`, in turn.
    pub fn node_in_turn(&self, home: u32, index: usize) -> u32 {
        let nodes = self.memory_nodes();
        let first = nodes.iter().position(|&node| node == home).unwrap_or(0);
        nodes[(first + index) % nodes.len()]
    }

    /// Bank sets of a node, ascending.
    pub fn sets_of_node(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.n_bank_sets()).filter(move |&s| self.node_of_set(s) == node)
    }

    /// Bank sets with memory, by controller, node by node: no page of one touches a
    /// channel of another.
    pub fn controllers(&self) -> Vec<Vec<u32>> {
        let of_channel = self.n_ranks() * self.n_banks();
        let mut found: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for set in (0..self.n_bank_sets()).filter(|&set| self.set_frames(set) > 0) {
            let lowest = self.colors_of_set(set).first().copied().unwrap_or(0);
            let channel = lowest / of_channel % self.n_channels();
            let controller = (self.node_of_set(set), channel);
            found.entry(controller).or_default().push(set);
        }
        found.into_values().collect()
    }

    /// Bank set that the bank colour `bc` belongs to; `None` where the
    /// machine has no such colour.
    pub fn set_of_color(&self, bc: u32) -> Option<u32> {
        if bc >= self.n_colors() {
            return None;
        }
        // SAFETY: a parsed map, `bc` below n_colors.
        let set = unsafe { ffi::sol_map_color_set(self.as_ptr(), bc) };
        (set < self.n_bank_sets()).then_some(set)
    }

    /// Bank colours of `bank_set`, ascending.
    pub fn colors_of_set(&self, bank_set: u32) -> Vec<u32> {
        if bank_set >= self.n_bank_sets() {
            return Vec::new();
        }
        let call = |bc: &mut [u32]| {
            let max = u32::try_from(bc.len()).unwrap_or(u32::MAX);
            // SAFETY: a parsed map, a known bank set, `bc` takes `max`.
            unsafe { ffi::sol_map_set_colors(self.as_ptr(), bank_set, bc.as_mut_ptr(), max) }
        };
        let mut colors = vec![0; self.n_colors() as usize];
        let n = call(&mut colors) as usize;
        colors.truncate(n);
        colors
    }

    /// Frames of the machine in this cell; 0: the pair can never hold a page.
    pub fn cell_frames(&self, bank_set: u32, llc: u32) -> u64 {
        if bank_set >= self.n_bank_sets() || llc >= self.n_llc() {
            return 0;
        }
        // SAFETY: a parsed map, both indices checked.
        unsafe { ffi::sol_map_cell_frames(self.as_ptr(), bank_set, llc) }
    }

    /// Frames of the machine in this bank set.
    pub fn set_frames(&self, bank_set: u32) -> u64 {
        (0..self.n_llc())
            .map(|llc| self.cell_frames(bank_set, llc))
            .sum()
    }

    /// Largest order (up to that of a huge page) such that every aligned block of that order that
    /// touches a bank set in `sets` lies wholly in `sets`.
    ///
    /// # Panics
    /// If `sets` is not of this map's bank sets.
    pub fn block_order(&self, sets: &NumList) -> u32 {
        assert_eq!(sets.limit(), self.n_bank_sets(), "bank sets of another map");
        // SAFETY: a parsed map, a bitmap of n_bank_sets bits.
        unsafe { ffi::sol_map_block_order(self.as_ptr(), sets.as_ptr()) }
    }

    pub(crate) fn as_ptr(&self) -> *const ffi::Map {
        Arc::as_ptr(&self.0)
    }
}

/// The text is the same; the pages may differ.
impl PartialEq for AddrMap {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_string() == other.to_string()
    }
}

impl Eq for AddrMap {}

/// The canonical map text.
impl fmt::Display for AddrMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = print(|buf, size| {
            // SAFETY: a parsed map, `buf` takes `size` bytes.
            unsafe { ffi::sol_map_print(self.as_ptr(), buf, size) }
        });
        f.write_str(&text)
    }
}

impl fmt::Debug for AddrMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddrMap({})", self.name())
    }
}

impl From<&ffi::Layout> for Layout {
    fn from(l: &ffi::Layout) -> Self {
        let field = |f: &ffi::Field| f.mask[..f.n as usize].to_vec();
        let bits = |n: u8, masks: &[u64], at: &[u8]| {
            masks
                .iter()
                .zip(at)
                .take(n.into())
                .map(|(&mask, &at)| MapBit {
                    mask,
                    at: at.into(),
                })
                .collect()
        };
        Self {
            channel: field(&l.channel),
            rank: field(&l.rank),
            bank: field(&l.bank),
            row: bits(l.n_row, &l.row, &l.row_at),
            col: bits(l.n_col, &l.col, &l.col_at),
            chip_select: l.chip_select.into(),
            bank_group: l.bg.into(),
            sub_channel: l.sub.into(),
            interleave: (l.ways > 0).then(|| Interleave {
                ways: l.ways.into(),
                granule: 1 << l.granule,
            }),
            ways: l.way_of[..usize::from(l.ways.max(1))]
                .iter()
                .map(|&way| way.into())
                .collect(),
        }
    }
}
