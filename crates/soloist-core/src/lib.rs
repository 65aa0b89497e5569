//! Safe Rust over core/: the address map, the palette, the frame lists
//! and the regulator that the kernel module runs, from the same C sources.
//!
//! Every pointer that C keeps points into memory that the Rust value beside
//! it owns and never moves (a boxed or shared allocation); every index is
//! checked here, because the C code trusts its caller.

mod colors;
mod cpulist;
#[allow(clippy::all, dead_code, missing_docs, reason = "made by bindgen")]
#[rustfmt::skip]
mod ffi;
mod frames;
mod left;
mod list;
mod map;
mod page;
mod palette;
mod regulator;
mod size;
pub mod statistics;
mod text;
pub mod time;

pub use colors::ColorSet;
pub use cpulist::{cpu_list, MAX_CPUS};
pub use frames::{Block, Fill, FillLimits, FrameError, FrameLists, FrameState, Source};
pub use left::{Left, Part};
pub use list::{show_list, NumList};
pub use map::{AddrMap, Dram, EncodeError, FrameColor, Hole, Interleave, Layout, MapBit, Range};
pub use page::PageSize;
pub use palette::{OwnerId, Palette, Usage, Want};
pub use regulator::{
    pools, Answer, CoreCounts, Order, Regulation, Regulator, Reservation, Sharing, NO_LIMIT,
    TRAFFICS,
};
pub use size::{format_size, parse_size, parse_whole, SizeError};
pub use text::Refusal;

/// Bytes of a frame of the model, and of most kernels: [`PageSize::K4`].
pub const FRAME_SIZE: u64 = 4096;
/// log2 of [`FRAME_SIZE`].
pub const FRAME_SHIFT: u32 = 12;
