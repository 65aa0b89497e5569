//! The structs, constants and functions of core/, as `scripts/ffi` makes them from its
//! headers. Values cross only through the safe modules.


pub const NO_FRAME: u32 = 4294967295;
pub const ERR_LEN: u32 = 160;
pub const MAP_NAME: u32 = 32;
pub const MAX_ADDR_BITS: u32 = 52;
pub const MAX_RANGES: u32 = 64;
pub const MAX_LAYOUTS: u32 = 4;
pub const MAX_NODES: u32 = 64;
pub const MAX_FIELD_BITS: u32 = 16;
pub const MAX_ROW_BITS: u32 = 32;
pub const MAX_COL_BITS: u32 = 20;
pub const MAX_LLC_BITS: u32 = 12;
pub const MAX_BANK_BITS: u32 = 16;
pub const MAX_CELLS: u32 = 1048576;
pub const MIN_FRAME_SHIFT: u32 = 12;
pub const MAX_FRAME_SHIFT: u32 = 16;
pub const MAX_WAYS: u32 = 63;
pub const NO_TURN: u32 = 255;
pub const TABLE_PARTS: u32 = 10;
pub const NO_CELL: u32 = 4294967295;
pub const LONG_BITS: u32 = 64;
pub const TAG_CELL: u32 = 1048575;
pub const TAG_LISTED: u32 = 1048576;
pub const TAG_USED: u32 = 2097152;
pub const TAG_HELD: u32 = 8388608;
pub const TAG_ZERO: u32 = 4194304;
pub const SLOT_BITS: u32 = 15;
pub const POOLS: u32 = 64;
pub const NO_LIMIT: u32 = 4294967295;
pub const MAX_WEIGHT: u32 = 1000000;
pub const MAX_RATE: u64 = 10000000000000;
pub const EWMA_ONE: u32 = 256;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Err {
    pub line: u32,
    pub text: [::std::os::raw::c_char; 160usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Err"][::std::mem::size_of::<Err>() - 164usize];
    ["Alignment of Err"][::std::mem::align_of::<Err>() - 4usize];
    ["Offset of field: Err::line"][::std::mem::offset_of!(Err, line) - 0usize];
    ["Offset of field: Err::text"][::std::mem::offset_of!(Err, text) - 4usize];
};
impl Default for Err {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Field {
    pub n: u8,
    pub mask: [u64; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Field"][::std::mem::size_of::<Field>() - 136usize];
    ["Alignment of Field"][::std::mem::align_of::<Field>() - 8usize];
    ["Offset of field: Field::n"][::std::mem::offset_of!(Field, n) - 0usize];
    ["Offset of field: Field::mask"][::std::mem::offset_of!(Field, mask) - 8usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Layout {
    pub channel: Field,
    pub rank: Field,
    pub bank: Field,
    pub n_row: u8,
    pub n_col: u8,
    pub row: [u64; 32usize],
    pub col: [u64; 20usize],
    pub col_at: [u8; 20usize],
    pub row_at: [u8; 32usize],
    pub chip_select: u16,
    pub bg: u16,
    pub sub: u16,
    pub ways: u8,
    pub granule: u8,
    pub way_of: [u8; 63usize],
    pub turn_of: [u8; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Layout"][::std::mem::size_of::<Layout>() - 1024usize];
    ["Alignment of Layout"][::std::mem::align_of::<Layout>() - 8usize];
    [
        "Offset of field: Layout::channel",
    ][::std::mem::offset_of!(Layout, channel) - 0usize];
    ["Offset of field: Layout::rank"][::std::mem::offset_of!(Layout, rank) - 136usize];
    ["Offset of field: Layout::bank"][::std::mem::offset_of!(Layout, bank) - 272usize];
    ["Offset of field: Layout::n_row"][::std::mem::offset_of!(Layout, n_row) - 408usize];
    ["Offset of field: Layout::n_col"][::std::mem::offset_of!(Layout, n_col) - 409usize];
    ["Offset of field: Layout::row"][::std::mem::offset_of!(Layout, row) - 416usize];
    ["Offset of field: Layout::col"][::std::mem::offset_of!(Layout, col) - 672usize];
    [
        "Offset of field: Layout::col_at",
    ][::std::mem::offset_of!(Layout, col_at) - 832usize];
    [
        "Offset of field: Layout::row_at",
    ][::std::mem::offset_of!(Layout, row_at) - 852usize];
    [
        "Offset of field: Layout::chip_select",
    ][::std::mem::offset_of!(Layout, chip_select) - 884usize];
    ["Offset of field: Layout::bg"][::std::mem::offset_of!(Layout, bg) - 886usize];
    ["Offset of field: Layout::sub"][::std::mem::offset_of!(Layout, sub) - 888usize];
    ["Offset of field: Layout::ways"][::std::mem::offset_of!(Layout, ways) - 890usize];
    [
        "Offset of field: Layout::granule",
    ][::std::mem::offset_of!(Layout, granule) - 891usize];
    [
        "Offset of field: Layout::way_of",
    ][::std::mem::offset_of!(Layout, way_of) - 892usize];
    [
        "Offset of field: Layout::turn_of",
    ][::std::mem::offset_of!(Layout, turn_of) - 955usize];
};
impl Default for Layout {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    pub base: u64,
    pub node: u8,
    pub layout: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Range"][::std::mem::size_of::<Range>() - 32usize];
    ["Alignment of Range"][::std::mem::align_of::<Range>() - 8usize];
    ["Offset of field: Range::start"][::std::mem::offset_of!(Range, start) - 0usize];
    ["Offset of field: Range::end"][::std::mem::offset_of!(Range, end) - 8usize];
    ["Offset of field: Range::base"][::std::mem::offset_of!(Range, base) - 16usize];
    ["Offset of field: Range::node"][::std::mem::offset_of!(Range, node) - 24usize];
    ["Offset of field: Range::layout"][::std::mem::offset_of!(Range, layout) - 25usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Table {
    pub shift: u8,
    pub n: u8,
    pub part: [[u16; 16usize]; 10usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Table"][::std::mem::size_of::<Table>() - 322usize];
    ["Alignment of Table"][::std::mem::align_of::<Table>() - 2usize];
    ["Offset of field: Table::shift"][::std::mem::offset_of!(Table, shift) - 0usize];
    ["Offset of field: Table::n"][::std::mem::offset_of!(Table, n) - 1usize];
    ["Offset of field: Table::part"][::std::mem::offset_of!(Table, part) - 2usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Ties {
    pub n: u8,
    pub order: u8,
    pub set: [u16; 28usize],
    pub llc: [u16; 28usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Ties"][::std::mem::size_of::<Ties>() - 114usize];
    ["Alignment of Ties"][::std::mem::align_of::<Ties>() - 2usize];
    ["Offset of field: Ties::n"][::std::mem::offset_of!(Ties, n) - 0usize];
    ["Offset of field: Ties::order"][::std::mem::offset_of!(Ties, order) - 1usize];
    ["Offset of field: Ties::set"][::std::mem::offset_of!(Ties, set) - 2usize];
    ["Offset of field: Ties::llc"][::std::mem::offset_of!(Ties, llc) - 58usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Map {
    pub name: [::std::os::raw::c_char; 32usize],
    pub line: u32,
    pub n_ranges: u32,
    pub n_layouts: u32,
    pub n_nodes: u32,
    pub n_channels: u32,
    pub n_ranks: u32,
    pub n_banks: u32,
    pub n_colors: u32,
    pub n_bank_sets: u32,
    pub n_llc: u32,
    pub n_cells: u32,
    pub bank_bits: u8,
    pub set_bits: u8,
    pub n_llc_bits: u8,
    pub way_bits: u8,
    pub frame_shift: u8,
    pub n_llc_functions: u8,
    pub llc: [u64; 12usize],
    pub range: [Range; 64usize],
    pub layout: [Layout; 4usize],
    pub llc_color: [u64; 12usize],
    pub set_mask: [[u64; 16usize]; 4usize],
    pub span: [u32; 16usize],
    pub n_span: u32,
    pub set_of: [Table; 4usize],
    pub color_of: [Table; 4usize],
    pub llc_of: Table,
    pub ties: [Ties; 4usize],
    pub large: u64,
    pub per_ways: [u64; 4usize],
    pub set_way_at: u8,
    pub set_channel_at: u8,
    pub spread: [u8; 16usize],
    pub ways_joined: bool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Map"][::std::mem::size_of::<Map>() - 10424usize];
    ["Alignment of Map"][::std::mem::align_of::<Map>() - 8usize];
    ["Offset of field: Map::name"][::std::mem::offset_of!(Map, name) - 0usize];
    ["Offset of field: Map::line"][::std::mem::offset_of!(Map, line) - 32usize];
    ["Offset of field: Map::n_ranges"][::std::mem::offset_of!(Map, n_ranges) - 36usize];
    [
        "Offset of field: Map::n_layouts",
    ][::std::mem::offset_of!(Map, n_layouts) - 40usize];
    ["Offset of field: Map::n_nodes"][::std::mem::offset_of!(Map, n_nodes) - 44usize];
    [
        "Offset of field: Map::n_channels",
    ][::std::mem::offset_of!(Map, n_channels) - 48usize];
    ["Offset of field: Map::n_ranks"][::std::mem::offset_of!(Map, n_ranks) - 52usize];
    ["Offset of field: Map::n_banks"][::std::mem::offset_of!(Map, n_banks) - 56usize];
    ["Offset of field: Map::n_colors"][::std::mem::offset_of!(Map, n_colors) - 60usize];
    [
        "Offset of field: Map::n_bank_sets",
    ][::std::mem::offset_of!(Map, n_bank_sets) - 64usize];
    ["Offset of field: Map::n_llc"][::std::mem::offset_of!(Map, n_llc) - 68usize];
    ["Offset of field: Map::n_cells"][::std::mem::offset_of!(Map, n_cells) - 72usize];
    [
        "Offset of field: Map::bank_bits",
    ][::std::mem::offset_of!(Map, bank_bits) - 76usize];
    ["Offset of field: Map::set_bits"][::std::mem::offset_of!(Map, set_bits) - 77usize];
    [
        "Offset of field: Map::n_llc_bits",
    ][::std::mem::offset_of!(Map, n_llc_bits) - 78usize];
    ["Offset of field: Map::way_bits"][::std::mem::offset_of!(Map, way_bits) - 79usize];
    [
        "Offset of field: Map::frame_shift",
    ][::std::mem::offset_of!(Map, frame_shift) - 80usize];
    [
        "Offset of field: Map::n_llc_functions",
    ][::std::mem::offset_of!(Map, n_llc_functions) - 81usize];
    ["Offset of field: Map::llc"][::std::mem::offset_of!(Map, llc) - 88usize];
    ["Offset of field: Map::range"][::std::mem::offset_of!(Map, range) - 184usize];
    ["Offset of field: Map::layout"][::std::mem::offset_of!(Map, layout) - 2232usize];
    [
        "Offset of field: Map::llc_color",
    ][::std::mem::offset_of!(Map, llc_color) - 6328usize];
    [
        "Offset of field: Map::set_mask",
    ][::std::mem::offset_of!(Map, set_mask) - 6424usize];
    ["Offset of field: Map::span"][::std::mem::offset_of!(Map, span) - 6936usize];
    ["Offset of field: Map::n_span"][::std::mem::offset_of!(Map, n_span) - 7000usize];
    ["Offset of field: Map::set_of"][::std::mem::offset_of!(Map, set_of) - 7004usize];
    [
        "Offset of field: Map::color_of",
    ][::std::mem::offset_of!(Map, color_of) - 8292usize];
    ["Offset of field: Map::llc_of"][::std::mem::offset_of!(Map, llc_of) - 9580usize];
    ["Offset of field: Map::ties"][::std::mem::offset_of!(Map, ties) - 9902usize];
    ["Offset of field: Map::large"][::std::mem::offset_of!(Map, large) - 10360usize];
    [
        "Offset of field: Map::per_ways",
    ][::std::mem::offset_of!(Map, per_ways) - 10368usize];
    [
        "Offset of field: Map::set_way_at",
    ][::std::mem::offset_of!(Map, set_way_at) - 10400usize];
    [
        "Offset of field: Map::set_channel_at",
    ][::std::mem::offset_of!(Map, set_channel_at) - 10401usize];
    ["Offset of field: Map::spread"][::std::mem::offset_of!(Map, spread) - 10402usize];
    [
        "Offset of field: Map::ways_joined",
    ][::std::mem::offset_of!(Map, ways_joined) - 10418usize];
};
impl Default for Map {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct FrameColor {
    pub node: u32,
    pub color: u32,
    pub bank_set: u32,
    pub llc: u32,
    pub cell: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of FrameColor"][::std::mem::size_of::<FrameColor>() - 20usize];
    ["Alignment of FrameColor"][::std::mem::align_of::<FrameColor>() - 4usize];
    [
        "Offset of field: FrameColor::node",
    ][::std::mem::offset_of!(FrameColor, node) - 0usize];
    [
        "Offset of field: FrameColor::color",
    ][::std::mem::offset_of!(FrameColor, color) - 4usize];
    [
        "Offset of field: FrameColor::bank_set",
    ][::std::mem::offset_of!(FrameColor, bank_set) - 8usize];
    [
        "Offset of field: FrameColor::llc",
    ][::std::mem::offset_of!(FrameColor, llc) - 12usize];
    [
        "Offset of field: FrameColor::cell",
    ][::std::mem::offset_of!(FrameColor, cell) - 16usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Colors {
    pub sets: *mut ::std::os::raw::c_ulong,
    pub llc: *mut ::std::os::raw::c_ulong,
    pub by_bank: bool,
    pub by_llc: bool,
    pub exclusive: bool,
    pub realtime: bool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Colors"][::std::mem::size_of::<Colors>() - 24usize];
    ["Alignment of Colors"][::std::mem::align_of::<Colors>() - 8usize];
    ["Offset of field: Colors::sets"][::std::mem::offset_of!(Colors, sets) - 0usize];
    ["Offset of field: Colors::llc"][::std::mem::offset_of!(Colors, llc) - 8usize];
    [
        "Offset of field: Colors::by_bank",
    ][::std::mem::offset_of!(Colors, by_bank) - 16usize];
    [
        "Offset of field: Colors::by_llc",
    ][::std::mem::offset_of!(Colors, by_llc) - 17usize];
    [
        "Offset of field: Colors::exclusive",
    ][::std::mem::offset_of!(Colors, exclusive) - 18usize];
    [
        "Offset of field: Colors::realtime",
    ][::std::mem::offset_of!(Colors, realtime) - 19usize];
};
impl Default for Colors {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Use {
    pub owners: u32,
    pub exclusive: u32,
    pub realtime: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Use"][::std::mem::size_of::<Use>() - 12usize];
    ["Alignment of Use"][::std::mem::align_of::<Use>() - 4usize];
    ["Offset of field: Use::owners"][::std::mem::offset_of!(Use, owners) - 0usize];
    ["Offset of field: Use::exclusive"][::std::mem::offset_of!(Use, exclusive) - 4usize];
    ["Offset of field: Use::realtime"][::std::mem::offset_of!(Use, realtime) - 8usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Palette {
    pub map: *const Map,
    pub set: *mut Use,
    pub llc: *mut Use,
    pub in_use: ::std::option::Option<
        unsafe extern "C" fn(ctx: *const ::std::os::raw::c_void, bank_set: u32) -> u64,
    >,
    pub ctx: *const ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Palette"][::std::mem::size_of::<Palette>() - 40usize];
    ["Alignment of Palette"][::std::mem::align_of::<Palette>() - 8usize];
    ["Offset of field: Palette::map"][::std::mem::offset_of!(Palette, map) - 0usize];
    ["Offset of field: Palette::set"][::std::mem::offset_of!(Palette, set) - 8usize];
    ["Offset of field: Palette::llc"][::std::mem::offset_of!(Palette, llc) - 16usize];
    [
        "Offset of field: Palette::in_use",
    ][::std::mem::offset_of!(Palette, in_use) - 24usize];
    ["Offset of field: Palette::ctx"][::std::mem::offset_of!(Palette, ctx) - 32usize];
};
impl Default for Palette {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Want {
    pub n_sets: u32,
    pub n_llc: u32,
    pub near: u64,
    pub allowed: u64,
    pub strict: bool,
    pub realtime: bool,
    pub llc: *const ::std::os::raw::c_ulong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Want"][::std::mem::size_of::<Want>() - 40usize];
    ["Alignment of Want"][::std::mem::align_of::<Want>() - 8usize];
    ["Offset of field: Want::n_sets"][::std::mem::offset_of!(Want, n_sets) - 0usize];
    ["Offset of field: Want::n_llc"][::std::mem::offset_of!(Want, n_llc) - 4usize];
    ["Offset of field: Want::near"][::std::mem::offset_of!(Want, near) - 8usize];
    ["Offset of field: Want::allowed"][::std::mem::offset_of!(Want, allowed) - 16usize];
    ["Offset of field: Want::strict"][::std::mem::offset_of!(Want, strict) - 24usize];
    [
        "Offset of field: Want::realtime",
    ][::std::mem::offset_of!(Want, realtime) - 25usize];
    ["Offset of field: Want::llc"][::std::mem::offset_of!(Want, llc) - 32usize];
};
impl Default for Want {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Frame {
    pub tag: u32,
    pub link: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Frame"][::std::mem::size_of::<Frame>() - 8usize];
    ["Alignment of Frame"][::std::mem::align_of::<Frame>() - 4usize];
    ["Offset of field: Frame::tag"][::std::mem::offset_of!(Frame, tag) - 0usize];
    ["Offset of field: Frame::link"][::std::mem::offset_of!(Frame, link) - 4usize];
};
#[repr(C)]
#[repr(align(64))]
#[derive(Copy, Clone)]
pub struct Cell {
    pub head: [u32; 2usize],
    pub listed: [u32; 2usize],
    pub used: u32,
    pub mark: u32,
    pub mark_list: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Cell"][::std::mem::size_of::<Cell>() - 64usize];
    ["Alignment of Cell"][::std::mem::align_of::<Cell>() - 64usize];
    ["Offset of field: Cell::head"][::std::mem::offset_of!(Cell, head) - 0usize];
    ["Offset of field: Cell::listed"][::std::mem::offset_of!(Cell, listed) - 8usize];
    ["Offset of field: Cell::used"][::std::mem::offset_of!(Cell, used) - 16usize];
    ["Offset of field: Cell::mark"][::std::mem::offset_of!(Cell, mark) - 20usize];
    [
        "Offset of field: Cell::mark_list",
    ][::std::mem::offset_of!(Cell, mark_list) - 24usize];
};
impl Default for Cell {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Frames {
    pub map: *const Map,
    pub frame: *mut Frame,
    pub owned: *mut u8,
    pub cell: *mut Cell,
    pub n_frames: u32,
    pub swap_bit: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Frames"][::std::mem::size_of::<Frames>() - 40usize];
    ["Alignment of Frames"][::std::mem::align_of::<Frames>() - 8usize];
    ["Offset of field: Frames::map"][::std::mem::offset_of!(Frames, map) - 0usize];
    ["Offset of field: Frames::frame"][::std::mem::offset_of!(Frames, frame) - 8usize];
    ["Offset of field: Frames::owned"][::std::mem::offset_of!(Frames, owned) - 16usize];
    ["Offset of field: Frames::cell"][::std::mem::offset_of!(Frames, cell) - 24usize];
    [
        "Offset of field: Frames::n_frames",
    ][::std::mem::offset_of!(Frames, n_frames) - 32usize];
    [
        "Offset of field: Frames::swap_bit",
    ][::std::mem::offset_of!(Frames, swap_bit) - 36usize];
};
impl Default for Frames {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Dram {
    pub node: u32,
    pub channel: u32,
    pub rank: u32,
    pub chip_select: u32,
    pub bank: u32,
    pub row: u32,
    pub column: u32,
    pub color: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Dram"][::std::mem::size_of::<Dram>() - 32usize];
    ["Alignment of Dram"][::std::mem::align_of::<Dram>() - 4usize];
    ["Offset of field: Dram::node"][::std::mem::offset_of!(Dram, node) - 0usize];
    ["Offset of field: Dram::channel"][::std::mem::offset_of!(Dram, channel) - 4usize];
    ["Offset of field: Dram::rank"][::std::mem::offset_of!(Dram, rank) - 8usize];
    [
        "Offset of field: Dram::chip_select",
    ][::std::mem::offset_of!(Dram, chip_select) - 12usize];
    ["Offset of field: Dram::bank"][::std::mem::offset_of!(Dram, bank) - 16usize];
    ["Offset of field: Dram::row"][::std::mem::offset_of!(Dram, row) - 20usize];
    ["Offset of field: Dram::column"][::std::mem::offset_of!(Dram, column) - 24usize];
    ["Offset of field: Dram::color"][::std::mem::offset_of!(Dram, color) - 28usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Source {
    pub block: ::std::option::Option<
        unsafe extern "C" fn(
            ctx: *mut ::std::os::raw::c_void,
            node: u32,
            max: u32,
            order: *mut u32,
            zero: *mut bool,
        ) -> i64,
    >,
    pub lock: ::std::option::Option<
        unsafe extern "C" fn(ctx: *mut ::std::os::raw::c_void, cell: u32),
    >,
    pub unlock: ::std::option::Option<
        unsafe extern "C" fn(ctx: *mut ::std::os::raw::c_void, cell: u32),
    >,
    pub ctx: *mut ::std::os::raw::c_void,
    pub max_order: u32,
    pub max_frames: u32,
    pub back: ::std::option::Option<
        unsafe extern "C" fn(ctx: *mut ::std::os::raw::c_void, pfn: u32),
    >,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Source"][::std::mem::size_of::<Source>() - 48usize];
    ["Alignment of Source"][::std::mem::align_of::<Source>() - 8usize];
    ["Offset of field: Source::block"][::std::mem::offset_of!(Source, block) - 0usize];
    ["Offset of field: Source::lock"][::std::mem::offset_of!(Source, lock) - 8usize];
    [
        "Offset of field: Source::unlock",
    ][::std::mem::offset_of!(Source, unlock) - 16usize];
    ["Offset of field: Source::ctx"][::std::mem::offset_of!(Source, ctx) - 24usize];
    [
        "Offset of field: Source::max_order",
    ][::std::mem::offset_of!(Source, max_order) - 32usize];
    [
        "Offset of field: Source::max_frames",
    ][::std::mem::offset_of!(Source, max_frames) - 36usize];
    ["Offset of field: Source::back"][::std::mem::offset_of!(Source, back) - 40usize];
};
impl Default for Source {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const READS: Traffic = 0;
pub const WRITES: Traffic = 1;
pub const TRAFFICS: Traffic = 2;
pub type Traffic = ::std::os::raw::c_uint;
pub const SHARE_NONE: Sharing = 0;
pub const SHARE_SPARE: Sharing = 1;
pub const SHARE_PROPORTIONAL: Sharing = 2;
pub type Sharing = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Regulation {
    pub period: u32,
    pub line: u32,
    pub r_min: [u64; 2usize],
    pub peak: u64,
    pub q_min: u32,
    pub ewma: u16,
    pub sharing: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Regulation"][::std::mem::size_of::<Regulation>() - 40usize];
    ["Alignment of Regulation"][::std::mem::align_of::<Regulation>() - 8usize];
    [
        "Offset of field: Regulation::period",
    ][::std::mem::offset_of!(Regulation, period) - 0usize];
    [
        "Offset of field: Regulation::line",
    ][::std::mem::offset_of!(Regulation, line) - 4usize];
    [
        "Offset of field: Regulation::r_min",
    ][::std::mem::offset_of!(Regulation, r_min) - 8usize];
    [
        "Offset of field: Regulation::peak",
    ][::std::mem::offset_of!(Regulation, peak) - 24usize];
    [
        "Offset of field: Regulation::q_min",
    ][::std::mem::offset_of!(Regulation, q_min) - 32usize];
    [
        "Offset of field: Regulation::ewma",
    ][::std::mem::offset_of!(Regulation, ewma) - 36usize];
    [
        "Offset of field: Regulation::sharing",
    ][::std::mem::offset_of!(Regulation, sharing) - 38usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Reservation {
    pub rate: [u64; 2usize],
    pub weight: u32,
    pub reclaim: bool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Reservation"][::std::mem::size_of::<Reservation>() - 24usize];
    ["Alignment of Reservation"][::std::mem::align_of::<Reservation>() - 8usize];
    [
        "Offset of field: Reservation::rate",
    ][::std::mem::offset_of!(Reservation, rate) - 0usize];
    [
        "Offset of field: Reservation::weight",
    ][::std::mem::offset_of!(Reservation, weight) - 16usize];
    [
        "Offset of field: Reservation::reclaim",
    ][::std::mem::offset_of!(Reservation, reclaim) - 20usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct CoreStats {
    pub used: [u64; 2usize],
    pub donated: [u64; 2usize],
    pub reclaimed: [u64; 2usize],
    pub beyond: [u64; 2usize],
    pub periods: u64,
    pub stops: u64,
    pub underruns: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CoreStats"][::std::mem::size_of::<CoreStats>() - 88usize];
    ["Alignment of CoreStats"][::std::mem::align_of::<CoreStats>() - 8usize];
    [
        "Offset of field: CoreStats::used",
    ][::std::mem::offset_of!(CoreStats, used) - 0usize];
    [
        "Offset of field: CoreStats::donated",
    ][::std::mem::offset_of!(CoreStats, donated) - 16usize];
    [
        "Offset of field: CoreStats::reclaimed",
    ][::std::mem::offset_of!(CoreStats, reclaimed) - 32usize];
    [
        "Offset of field: CoreStats::beyond",
    ][::std::mem::offset_of!(CoreStats, beyond) - 48usize];
    [
        "Offset of field: CoreStats::periods",
    ][::std::mem::offset_of!(CoreStats, periods) - 64usize];
    [
        "Offset of field: CoreStats::stops",
    ][::std::mem::offset_of!(CoreStats, stops) - 72usize];
    [
        "Offset of field: CoreStats::underruns",
    ][::std::mem::offset_of!(CoreStats, underruns) - 80usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Meter {
    pub reserved: u32,
    pub budget: u32,
    pub limit: u32,
    pub used: u32,
    pub predicted: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Meter"][::std::mem::size_of::<Meter>() - 24usize];
    ["Alignment of Meter"][::std::mem::align_of::<Meter>() - 8usize];
    [
        "Offset of field: Meter::reserved",
    ][::std::mem::offset_of!(Meter, reserved) - 0usize];
    ["Offset of field: Meter::budget"][::std::mem::offset_of!(Meter, budget) - 4usize];
    ["Offset of field: Meter::limit"][::std::mem::offset_of!(Meter, limit) - 8usize];
    ["Offset of field: Meter::used"][::std::mem::offset_of!(Meter, used) - 12usize];
    [
        "Offset of field: Meter::predicted",
    ][::std::mem::offset_of!(Meter, predicted) - 16usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Core {
    pub want: Reservation,
    pub now: Reservation,
    pub meter: [Meter; 2usize],
    pub stats: CoreStats,
    pub pools: u64,
    pub next_pools: u64,
    pub task_weight: u32,
    pub domain: u8,
    pub regulated: bool,
    pub active: bool,
    pub online: bool,
    pub taking_part: bool,
    pub weighs: bool,
    pub begun: bool,
    pub finish: bool,
    pub missed: bool,
    pub known: bool,
    pub stopped: bool,
    pub done: bool,
    pub ran_on: [bool; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Core"][::std::mem::size_of::<Core>() - 224usize];
    ["Alignment of Core"][::std::mem::align_of::<Core>() - 8usize];
    ["Offset of field: Core::want"][::std::mem::offset_of!(Core, want) - 0usize];
    ["Offset of field: Core::now"][::std::mem::offset_of!(Core, now) - 24usize];
    ["Offset of field: Core::meter"][::std::mem::offset_of!(Core, meter) - 48usize];
    ["Offset of field: Core::stats"][::std::mem::offset_of!(Core, stats) - 96usize];
    ["Offset of field: Core::pools"][::std::mem::offset_of!(Core, pools) - 184usize];
    [
        "Offset of field: Core::next_pools",
    ][::std::mem::offset_of!(Core, next_pools) - 192usize];
    [
        "Offset of field: Core::task_weight",
    ][::std::mem::offset_of!(Core, task_weight) - 200usize];
    ["Offset of field: Core::domain"][::std::mem::offset_of!(Core, domain) - 204usize];
    [
        "Offset of field: Core::regulated",
    ][::std::mem::offset_of!(Core, regulated) - 205usize];
    ["Offset of field: Core::active"][::std::mem::offset_of!(Core, active) - 206usize];
    ["Offset of field: Core::online"][::std::mem::offset_of!(Core, online) - 207usize];
    [
        "Offset of field: Core::taking_part",
    ][::std::mem::offset_of!(Core, taking_part) - 208usize];
    ["Offset of field: Core::weighs"][::std::mem::offset_of!(Core, weighs) - 209usize];
    ["Offset of field: Core::begun"][::std::mem::offset_of!(Core, begun) - 210usize];
    ["Offset of field: Core::finish"][::std::mem::offset_of!(Core, finish) - 211usize];
    ["Offset of field: Core::missed"][::std::mem::offset_of!(Core, missed) - 212usize];
    ["Offset of field: Core::known"][::std::mem::offset_of!(Core, known) - 213usize];
    ["Offset of field: Core::stopped"][::std::mem::offset_of!(Core, stopped) - 214usize];
    ["Offset of field: Core::done"][::std::mem::offset_of!(Core, done) - 215usize];
    ["Offset of field: Core::ran_on"][::std::mem::offset_of!(Core, ran_on) - 216usize];
};
#[repr(C)]
#[derive(Default, Copy, Clone)]
pub struct Domain {
    pub not_done: u32,
    pub stopped: u32,
    pub weights: u64,
    pub fixed: [u32; 2usize],
    pub best_effort: bool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Domain"][::std::mem::size_of::<Domain>() - 32usize];
    ["Alignment of Domain"][::std::mem::align_of::<Domain>() - 8usize];
    [
        "Offset of field: Domain::not_done",
    ][::std::mem::offset_of!(Domain, not_done) - 0usize];
    [
        "Offset of field: Domain::stopped",
    ][::std::mem::offset_of!(Domain, stopped) - 4usize];
    [
        "Offset of field: Domain::weights",
    ][::std::mem::offset_of!(Domain, weights) - 8usize];
    ["Offset of field: Domain::fixed"][::std::mem::offset_of!(Domain, fixed) - 16usize];
    [
        "Offset of field: Domain::best_effort",
    ][::std::mem::offset_of!(Domain, best_effort) - 24usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Regulator {
    pub set: Regulation,
    pub r_min: [u32; 2usize],
    pub q_min: u32,
    pub n_cores: u32,
    pub core: *mut Core,
    pub domain: [Domain; 64usize],
    pub global: [[u32; 2usize]; 64usize],
    pub pools: u64,
    pub pools_changed: bool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Regulator"][::std::mem::size_of::<Regulator>() - 2640usize];
    ["Alignment of Regulator"][::std::mem::align_of::<Regulator>() - 8usize];
    ["Offset of field: Regulator::set"][::std::mem::offset_of!(Regulator, set) - 0usize];
    [
        "Offset of field: Regulator::r_min",
    ][::std::mem::offset_of!(Regulator, r_min) - 40usize];
    [
        "Offset of field: Regulator::q_min",
    ][::std::mem::offset_of!(Regulator, q_min) - 48usize];
    [
        "Offset of field: Regulator::n_cores",
    ][::std::mem::offset_of!(Regulator, n_cores) - 52usize];
    [
        "Offset of field: Regulator::core",
    ][::std::mem::offset_of!(Regulator, core) - 56usize];
    [
        "Offset of field: Regulator::domain",
    ][::std::mem::offset_of!(Regulator, domain) - 64usize];
    [
        "Offset of field: Regulator::global",
    ][::std::mem::offset_of!(Regulator, global) - 2112usize];
    [
        "Offset of field: Regulator::pools",
    ][::std::mem::offset_of!(Regulator, pools) - 2624usize];
    [
        "Offset of field: Regulator::pools_changed",
    ][::std::mem::offset_of!(Regulator, pools_changed) - 2632usize];
};
impl Default for Regulator {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const RUN: Order = 0;
pub const STOP: Order = 1;
pub const FREE: Order = 2;
pub const RESTART: Order = 3;
pub type Order = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Answer {
    pub order: Order,
    pub domain: u32,
    pub limit: [u32; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Answer"][::std::mem::size_of::<Answer>() - 16usize];
    ["Alignment of Answer"][::std::mem::align_of::<Answer>() - 4usize];
    ["Offset of field: Answer::order"][::std::mem::offset_of!(Answer, order) - 0usize];
    ["Offset of field: Answer::domain"][::std::mem::offset_of!(Answer, domain) - 4usize];
    ["Offset of field: Answer::limit"][::std::mem::offset_of!(Answer, limit) - 8usize];
};
impl Default for Answer {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn sol_map_parse(
        map: *mut Map,
        text: *const ::std::os::raw::c_char,
        len: usize,
        frame_shift: u32,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_map_print(
        map: *const Map,
        buf: *mut ::std::os::raw::c_char,
        size: usize,
    ) -> usize;
    pub fn sol_map_range(map: *const Map, addr: u64) -> *const Range;
    pub fn sol_map_color(
        map: *const Map,
        pfn: u64,
        color: *mut FrameColor,
    ) -> ::std::os::raw::c_int;
    pub fn sol_map_cell(map: *const Map, pfn: u64) -> u32;
    pub fn sol_map_next(map: *const Map, cell: u32, pfn: u64, end: u64) -> u64;
    pub fn sol_map_color_set(map: *const Map, bc: u32) -> u32;
    pub fn sol_map_set_colors(
        map: *const Map,
        bank_set: u32,
        bc: *mut u32,
        max: u32,
    ) -> u32;
    pub fn sol_map_cell_frames(map: *const Map, bank_set: u32, llc: u32) -> u64;
    pub fn sol_map_cell_exists(map: *const Map, bank_set: u32, llc: u32) -> bool;
    pub fn sol_map_set_frames(map: *const Map, bank_set: u32) -> u64;
    pub fn sol_map_set_exists(map: *const Map, bank_set: u32) -> bool;
    pub fn sol_map_block_order(
        map: *const Map,
        sets: *const ::std::os::raw::c_ulong,
    ) -> u32;
    pub fn sol_list_parse(
        text: *const ::std::os::raw::c_char,
        len: usize,
        n: u32,
        bits: *mut ::std::os::raw::c_ulong,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_list_print(
        bits: *const ::std::os::raw::c_ulong,
        n: u32,
        buf: *mut ::std::os::raw::c_char,
        size: usize,
    ) -> usize;
    pub fn sol_palette_bytes(map: *const Map) -> usize;
    pub fn sol_palette_init(
        p: *mut Palette,
        map: *const Map,
        mem: *mut ::std::os::raw::c_void,
    );
    pub fn sol_palette_change(
        p: *mut Palette,
        old: *const Colors,
        new: *const Colors,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_palette_assign(
        p: *const Palette,
        want: *const Want,
        out: *mut Colors,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_colors_cells(
        map: *const Map,
        colors: *const Colors,
        cell: *mut u32,
        max: u32,
    ) -> u32;
    pub fn sol_cells_per_set(map: *const Map, cell: *const u32, n: u32) -> u32;
    pub fn sol_colors_any(map: *const Map, colors: *const Colors) -> bool;
    pub fn sol_colors_bytes(map: *const Map, colors: *const Colors) -> u64;
    pub fn sol_frames_init(
        fs: *mut Frames,
        map: *const Map,
        frame: *mut Frame,
        owned: *mut u8,
        n_frames: u32,
        cell: *mut Cell,
    );
    pub fn sol_frames_swap_bit(map: *const Map) -> u32;
    pub fn sol_frames_add(fs: *mut Frames, cell: u32, pfn: u32, zero: bool);
    pub fn sol_frames_adopt(fs: *mut Frames, cell: u32, pfn: u32);
    pub fn sol_frames_get(
        fs: *mut Frames,
        cell: u32,
        owner: u32,
        zero: bool,
        is_zero: *mut bool,
    ) -> u32;
    pub fn sol_frames_hold(
        fs: *mut Frames,
        cell: u32,
        zero: bool,
        pfn: *mut u32,
        n: u32,
        is_zero: *mut bool,
    ) -> u32;
    pub fn sol_frames_put(fs: *mut Frames, pfn: u32, zero: bool) -> u32;
    pub fn sol_frames_forget(fs: *mut Frames, pfn: u32) -> u32;
    pub fn sol_frames_drain(fs: *mut Frames, cell: u32) -> u32;
    pub fn sol_frames_evict(
        fs: *mut Frames,
        cell: u32,
        start: u32,
        end: u32,
        budget: u32,
        gone: ::std::option::Option<
            unsafe extern "C" fn(ctx: *mut ::std::os::raw::c_void, pfn: u32),
        >,
        ctx: *mut ::std::os::raw::c_void,
    ) -> u32;
    pub fn sol_map_decode(
        map: *const Map,
        addr: u64,
        dram: *mut Dram,
    ) -> ::std::os::raw::c_int;
    pub fn sol_map_encode(
        map: *const Map,
        dram: *const Dram,
        addr: *mut u64,
    ) -> ::std::os::raw::c_int;
    pub fn sol_frames_fill(
        fs: *mut Frames,
        src: *const Source,
        cells: *const u32,
        n: u32,
        hit: *mut u32,
    ) -> u32;
    pub fn sol_regulation_lines(set: *const Regulation, rate: u64) -> u32;
    pub fn sol_regulation_check(
        set: *const Regulation,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_regulator_init(
        reg: *mut Regulator,
        set: *const Regulation,
        core: *mut Core,
        n_cores: u32,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_regulator_reserve(
        reg: *mut Regulator,
        core: u32,
        want: *const Reservation,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_regulator_weight(reg: *mut Regulator, core: u32, weight: u32);
    pub fn sol_regulator_active(reg: *mut Regulator, core: u32, active: bool);
    pub fn sol_regulator_online(reg: *mut Regulator, core: u32, online: bool) -> Answer;
    pub fn sol_regulator_pools(
        reg: *mut Regulator,
        pools: *const u64,
        err: *mut Err,
    ) -> ::std::os::raw::c_int;
    pub fn sol_regulator_put(
        reg: *mut Regulator,
        core: u32,
        want: *const Reservation,
        pools: u64,
    );
    pub fn sol_pools(
        n_bank_sets: u32,
        colors: *const *const Colors,
        n_cores: u32,
        pools: *mut u64,
    );
    pub fn sol_regulator_begin(reg: *mut Regulator);
    pub fn sol_regulator_restart(reg: *mut Regulator, domain: u32);
    pub fn sol_regulator_core(
        reg: *mut Regulator,
        core: u32,
        used: *const u32,
    ) -> Answer;
    pub fn sol_regulator_used(
        reg: *mut Regulator,
        core: u32,
        used: *const u32,
    ) -> Answer;
    pub fn sol_rust_set_node(map: *const Map, bank_set: u32) -> u32;
    pub fn sol_rust_cells_advance(
        map: *const Map,
        cell: *const u32,
        n: u32,
        i: u32,
        steps: u32,
    ) -> u32;
    pub fn sol_rust_stopped(reg: *const Regulator, core: u32) -> bool;
}
