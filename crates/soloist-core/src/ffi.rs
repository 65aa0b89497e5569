//! core/*.h by hand. The test at the end compares every size and offset with
//! what the C compiler says; values cross only through the safe modules.

use std::ffi::{c_char, c_int, c_ulong, c_void};

pub const MAP_NAME: usize = 32;
pub const MAX_RANGES: usize = 64;
pub const MAX_LAYOUTS: usize = 4;
pub const MAX_FIELD_BITS: usize = 16;
pub const MAX_ROW_BITS: usize = 32;
pub const MAX_COL_BITS: usize = 20;
pub const MAX_LLC_BITS: usize = 12;
pub const MAX_WAYS: usize = 63;
pub const ERR_LEN: usize = 160;

pub const NO_CELL: u32 = u32::MAX;
pub const NO_FRAME: u32 = u32::MAX;

pub const TAG_LISTED: u32 = 0x0010_0000;
pub const TAG_USED: u32 = 0x0020_0000;

#[repr(C)]
pub struct Err {
    pub line: u32,
    pub text: [c_char; ERR_LEN],
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub n: u8,
    pub mask: [u64; MAX_FIELD_BITS],
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub channel: Field,
    pub rank: Field,
    pub bank: Field,
    pub n_row: u8,
    pub n_col: u8,
    pub row: [u64; MAX_ROW_BITS],
    pub col: [u64; MAX_COL_BITS],
    pub col_at: [u8; MAX_COL_BITS],
    pub row_at: [u8; MAX_ROW_BITS],
    pub chip_select: u16,
    pub bg: u16,
    pub sub: u16,
    pub ways: u8,
    pub granule: u8,
    pub way_of: [u8; MAX_WAYS],
    pub turn_of: [u8; MAX_WAYS + 1],
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    pub base: u64,
    pub node: u8,
    pub layout: u8,
}

/// The head of `struct sol_map`; what C derives behind it is C's alone, so its
/// size is asked for (`sol_rust_map_size`) and no value of this type is made.
#[repr(C)]
pub struct Map {
    pub name: [c_char; MAP_NAME],
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
    pub llc: [u64; MAX_LLC_BITS],
    pub range: [Range; MAX_RANGES],
    pub layout: [Layout; MAX_LAYOUTS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
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

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct FrameColor {
    pub node: u32,
    pub color: u32,
    pub bank_set: u32,
    pub llc: u32,
    pub cell: u32,
}

#[repr(C)]
pub struct Colors {
    pub sets: *mut c_ulong,
    pub llc: *mut c_ulong,
    pub by_bank: bool,
    pub by_llc: bool,
    pub exclusive: bool,
    pub realtime: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Use {
    pub owners: u32,
    pub exclusive: u32,
    pub realtime: u32,
}

pub type InUse = unsafe extern "C" fn(ctx: *const c_void, bank_set: u32) -> u64;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Palette {
    pub map: *const Map,
    pub set: *mut Use,
    pub llc: *mut Use,
    pub in_use: Option<InUse>,
    pub ctx: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Want {
    pub n_sets: u32,
    pub n_llc: u32,
    pub near: u64,
    pub allowed: u64,
    pub strict: bool,
    pub realtime: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Frame {
    pub tag: u32,
    pub link: u32,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Cell {
    pub head: [u32; 2],
    pub listed: [u32; 2],
    pub used: u32,
    pub mark: u32,
    pub mark_list: u32,
}

#[repr(C)]
pub struct Frames {
    pub map: *const Map,
    pub frame: *mut Frame,
    pub owned: *mut u8,
    pub cell: *mut Cell,
    pub n_frames: u32,
    pub far: u32,
}

pub type Block = unsafe extern "C" fn(
    ctx: *mut c_void,
    node: u32,
    max: u32,
    order: *mut u32,
    zero: *mut bool,
) -> i64;

#[repr(C)]
pub struct Source {
    pub block: Block,
    pub lock: Option<unsafe extern "C" fn(ctx: *mut c_void, cell: u32)>,
    pub unlock: Option<unsafe extern "C" fn(ctx: *mut c_void, cell: u32)>,
    pub ctx: *mut c_void,
    pub max_order: u32,
    pub max_frames: u32,
    pub back: Option<unsafe extern "C" fn(ctx: *mut c_void, pfn: u32)>,
}

pub const TRAFFICS: usize = 2;
pub const NO_LIMIT: u32 = u32::MAX;

#[repr(C)]
pub struct Regulation {
    pub period: u32,
    pub line: u32,
    pub r_min: [u64; TRAFFICS],
    pub peak: u64,
    pub q_min: u32,
    pub ewma: u16,
    pub sharing: u8,
}

#[repr(C)]
pub struct Reservation {
    pub rate: [u64; TRAFFICS],
    pub weight: u32,
    pub reclaim: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CoreStats {
    pub used: [u64; TRAFFICS],
    pub donated: [u64; TRAFFICS],
    pub reclaimed: [u64; TRAFFICS],
    pub beyond: [u64; TRAFFICS],
    pub periods: u64,
    pub stops: u64,
    pub underruns: u64,
}

/// `order` is a C enum: an unsigned int.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Answer {
    pub order: u32,
    pub domain: u32,
    pub limit: [u32; TRAFFICS],
}

/// C's alone: its size is asked for (`sol_rust_regulator_size`).
#[repr(C)]
pub struct Regulator {
    _private: [u64; 0],
}

/// C's alone: its size is asked for (`sol_rust_core_size`).
#[repr(C)]
pub struct Core {
    _private: [u64; 0],
}

extern "C" {
    pub fn sol_map_parse(map: *mut Map, text: *const c_char, len: usize, err: *mut Err) -> c_int;
    pub fn sol_map_print(map: *const Map, buf: *mut c_char, size: usize) -> usize;
    pub fn sol_map_decode(map: *const Map, addr: u64, dram: *mut Dram) -> c_int;
    pub fn sol_map_encode(map: *const Map, dram: *const Dram, addr: *mut u64) -> c_int;
    pub fn sol_map_color(map: *const Map, pfn: u64, color: *mut FrameColor) -> c_int;
    pub fn sol_map_cell(map: *const Map, pfn: u64) -> u32;
    pub fn sol_map_color_set(map: *const Map, bc: u32) -> u32;
    pub fn sol_map_set_colors(map: *const Map, bank_set: u32, bc: *mut u32, max: u32) -> u32;
    pub fn sol_map_cell_frames(map: *const Map, bank_set: u32, llc: u32) -> u64;
    pub fn sol_map_block_order(map: *const Map, sets: *const c_ulong) -> u32;
    pub fn sol_rust_map_size() -> usize;
    pub fn sol_rust_cells_turn(
        map: *const Map,
        cell: *const u32,
        n: u32,
        i: u32,
        turns: u32,
    ) -> u32;
    pub fn sol_rust_set_node(map: *const Map, bank_set: u32) -> u32;

    pub fn sol_palette_bytes(map: *const Map) -> usize;
    pub fn sol_palette_init(p: *mut Palette, map: *const Map, mem: *mut c_void);
    pub fn sol_palette_change(
        p: *mut Palette,
        old: *const Colors,
        new: *const Colors,
        err: *mut Err,
    ) -> c_int;
    pub fn sol_palette_assign(
        p: *const Palette,
        want: *const Want,
        out: *mut Colors,
        err: *mut Err,
    ) -> c_int;
    pub fn sol_colors_cells(
        map: *const Map,
        colors: *const Colors,
        cell: *mut u32,
        max: u32,
    ) -> u32;
    pub fn sol_colors_bytes(map: *const Map, colors: *const Colors) -> u64;
    pub fn sol_list_parse(
        text: *const c_char,
        len: usize,
        n: u32,
        bits: *mut c_ulong,
        err: *mut Err,
    ) -> c_int;
    pub fn sol_list_print(bits: *const c_ulong, n: u32, buf: *mut c_char, size: usize) -> usize;

    pub fn sol_frames_init(
        fs: *mut Frames,
        map: *const Map,
        frame: *mut Frame,
        owned: *mut u8,
        n_frames: u32,
        cell: *mut Cell,
    );
    pub fn sol_frames_add(fs: *mut Frames, cell: u32, pfn: u32, zero: bool);
    pub fn sol_frames_get(
        fs: *mut Frames,
        cell: u32,
        owner: u32,
        zero: bool,
        is_zero: *mut bool,
    ) -> u32;
    pub fn sol_frames_put(fs: *mut Frames, pfn: u32, zero: bool) -> u32;
    pub fn sol_frames_forget(fs: *mut Frames, pfn: u32) -> u32;
    pub fn sol_frames_drain(fs: *mut Frames, cell: u32) -> u32;
    pub fn sol_frames_fill(
        fs: *mut Frames,
        src: *const Source,
        cells: *const u32,
        n: u32,
        hit: *mut u32,
    ) -> u32;

    pub fn sol_regulator_init(
        reg: *mut Regulator,
        set: *const Regulation,
        core: *mut Core,
        n_cores: u32,
        err: *mut Err,
    ) -> c_int;
    pub fn sol_regulator_reserve(
        reg: *mut Regulator,
        core: u32,
        want: *const Reservation,
        err: *mut Err,
    ) -> c_int;
    pub fn sol_regulator_weight(reg: *mut Regulator, core: u32, weight: u32);
    pub fn sol_regulator_active(reg: *mut Regulator, core: u32, active: bool);
    pub fn sol_regulator_online(reg: *mut Regulator, core: u32, online: bool) -> Answer;
    pub fn sol_regulator_pools(reg: *mut Regulator, pools: *const u64, err: *mut Err) -> c_int;
    pub fn sol_pools(n_bank_sets: u32, colors: *const *const Colors, n_cores: u32, pools: *mut u64);
    pub fn sol_regulator_begin(reg: *mut Regulator);
    pub fn sol_regulator_restart(reg: *mut Regulator, domain: u32);
    pub fn sol_regulator_core(reg: *mut Regulator, core: u32, used: *const u32) -> Answer;
    pub fn sol_regulator_used(reg: *mut Regulator, core: u32, used: *const u32) -> Answer;
    pub fn sol_rust_regulator_size() -> usize;
    pub fn sol_rust_core_size() -> usize;
    pub fn sol_rust_core(reg: *const Regulator, core: u32) -> *const Core;
    pub fn sol_rust_core_stats(core: *const Core) -> *const CoreStats;
    pub fn sol_rust_core_domain(core: *const Core) -> u32;
    pub fn sol_rust_stopped(reg: *const Regulator, core: u32) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    extern "C" {
        static sol_layout_count: usize;
        static sol_layout_facts: c_void;
    }

    macro_rules! facts {
        ($($t:ident { $($m:ident),* })*) => {
            vec![$((stringify!($t), "size", size_of::<$t>()),
                   $((stringify!($t), stringify!($m), offset_of!($t, $m)),)*)*]
        };
    }

    /// Same order as `sol_layout_facts` in src/layout.c.
    fn layout() -> Vec<(&'static str, &'static str, usize)> {
        facts! {
            Err { line, text }
            Field { n, mask }
            Layout { channel, rank, bank, n_row, n_col, row, col, col_at, row_at, chip_select, bg, sub, ways, granule, way_of, turn_of }
            Range { start, end, base, node, layout }
            Map { name, line, n_ranges, n_layouts, n_nodes, n_channels, n_ranks, n_banks, n_colors,
                  n_bank_sets, n_llc, n_cells, bank_bits, set_bits, n_llc_bits, way_bits, llc, range, layout }
            Dram { node, channel, rank, chip_select, bank, row, column, color }
            FrameColor { node, color, bank_set, llc, cell }
            Colors { sets, llc, by_bank, by_llc, exclusive, realtime }
            Use { owners, exclusive, realtime }
            Palette { map, set, llc, in_use, ctx }
            Want { n_sets, n_llc, near, allowed, strict, realtime }
            Frame { tag, link }
            Cell { head, listed, used, mark, mark_list }
            Frames { map, frame, cell, n_frames }
            Source { block, lock, unlock, ctx, max_order, max_frames, back }
            Regulation { period, line, r_min, peak, q_min, ewma, sharing }
            Reservation { rate, weight, reclaim }
            CoreStats { used, donated, reclaimed, beyond, periods, stops, underruns }
            Answer { order, domain, limit }
        }
    }

    #[test]
    fn structs_are_laid_out_as_in_c() {
        let ours = layout();
        // SAFETY: the C file defines an array of that many size_t.
        let theirs = unsafe {
            assert_eq!(sol_layout_count, ours.len());
            std::slice::from_raw_parts((&raw const sol_layout_facts).cast::<usize>(), ours.len())
        };
        for ((kind, member, value), &fact) in ours.iter().zip(theirs) {
            if (*kind, *member) == ("Map", "size") {
                assert!(*value <= fact, "Map is a head");
                continue;
            }
            assert_eq!(*value, fact, "{kind}.{member}");
        }
    }
}
