//! Free frames per cell: TintMalloc's `color_list[bank][LLC]`.
//!
//! The C code trusts its caller (the kernel's own page states); here every
//! frame and cell is checked first.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use crate::ffi;
use crate::map::AddrMap;

/// Whose a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameState {
    /// The system's.
    Foreign,
    /// Free, in its cell's list.
    Listed,
    /// Handed out.
    Used,
}

impl fmt::Display for FrameState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "foreign",
            Self::Listed => "listed",
            Self::Used => "used",
        })
    }
}

/// A frame list operation that C would not have survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Beyond the frame array or in a hole of the map.
    #[error("frame {0:#x} is outside the machine's memory")]
    OutOfRange(u32),
    /// Not in the state that the operation needs.
    #[error("frame {pfn:#x} is {is}, not {needed}")]
    WrongState {
        /// The frame.
        pfn: u32,
        /// Its state.
        is: FrameState,
        /// The state that was needed.
        needed: FrameState,
    },
    /// A cell number that the map does not have.
    #[error("the map has no cell {0}")]
    NoCell(u32),
    /// A source returned a block that is misaligned, too large or not free.
    #[error("the source returned a block at frame {pfn:#x}, order {order}, that is misaligned, too large, in a hole or not foreign")]
    BadBlock {
        /// First frame of the block.
        pfn: u64,
        /// Its order.
        order: u32,
    },
}

/// A naturally aligned block of 2^order free frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First frame.
    pub pfn: u64,
    /// log2 of its frames.
    pub order: u32,
    /// Known to be all zero.
    pub zero: bool,
}

/// A source of frames: a model of the buddy allocator.
pub trait Source {
    /// Gives a free block on `node` of order at most `max_order` away.
    fn block(&mut self, node: u32, max_order: u32) -> Option<Block>;
}

/// Bounds of one fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillLimits {
    /// Largest block to split.
    pub max_order: u32,
    /// Frames that one fill may take.
    pub max_frames: u32,
}

impl Default for FillLimits {
    fn default() -> Self {
        Self {
            max_order: 10,
            max_frames: u32::MAX,
        }
    }
}

/// The result of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Frames added to the lists, of any colour.
    pub added: u32,
    /// Index of a cell among those asked for that has a listed frame now;
    /// `None`: exhausted, or the limit was reached.
    pub hit: Option<usize>,
}

// C sees an `ffi::Frame` in each pair of words.
const _: () = assert!(
    size_of::<ffi::Frame>() == size_of::<[u32; 2]>()
        && align_of::<ffi::Frame>() == align_of::<[u32; 2]>()
);

/// The frames of a machine and their lists.
pub struct FrameLists {
    map: AddrMap,
    /// By frame number, `swap_bit` being 0 here: an [`ffi::Frame`] each, tag and link. Plain
    /// zeros, which take no memory before a frame near them has been listed.
    frames: Box<[[u32; 2]]>,
    owned: Box<[u8]>,
    cells: Box<[ffi::Cell]>,
}

impl FrameLists {
    /// All frames foreign, all lists empty.
    ///
    /// # Panics
    /// If the map's highest frame number does not fit 32 bits (16 TiB).
    pub fn new(map: &AddrMap) -> Self {
        let n = u32::try_from(map.end_pfn()).expect("memory ends below 16 TiB");
        let mut lists = Self {
            map: map.clone(),
            frames: vec![[0; 2]; n as usize].into_boxed_slice(),
            owned: vec![0; n as usize].into_boxed_slice(),
            cells: vec![ffi::Cell::default(); map.n_cells() as usize].into_boxed_slice(),
        };
        let mut raw = lists.raw();
        // SAFETY: arrays of n_frames and n_cells, zeroed.
        unsafe { ffi::sol_frames_init(&mut raw, map.as_ptr(), raw.frame, raw.owned, n, raw.cell) };
        lists
    }

    /// The map it is over.
    pub fn map(&self) -> &AddrMap {
        &self.map
    }

    /// State of a frame; frames beyond the machine are foreign.
    pub fn state(&self, pfn: u32) -> FrameState {
        let tag = self.frames.get(pfn as usize).map_or(0, |f| f[0]);
        state_of(tag)
    }

    /// Owner of a used frame.
    pub fn owner(&self, pfn: u32) -> Option<u32> {
        let used = self.state(pfn) == FrameState::Used;
        used.then(|| self.frames[pfn as usize][1])
    }

    /// Listed frames of `cell`.
    pub fn listed(&self, cell: u32) -> u32 {
        self.cells
            .get(cell as usize)
            .map_or(0, |c| c.listed[0] + c.listed[1])
    }

    /// Frames of `cell` handed out and not yet freed.
    pub fn used(&self, cell: u32) -> u32 {
        self.cells.get(cell as usize).map_or(0, |c| c.used)
    }

    /// Puts a foreign frame on its cell's list.
    pub fn add(&mut self, pfn: u32, zero: bool) -> Result<(), FrameError> {
        self.need(pfn, FrameState::Foreign)?;
        let cell = self.cell_of(pfn)?;
        // SAFETY: a foreign frame of the array and its own cell.
        unsafe { ffi::sol_frames_add(&mut self.raw(), cell, pfn, zero) };
        Ok(())
    }

    /// Hands out a frame of `cell` to `owner`, a known-zero one first if
    /// `zero`, last if not. The frame, and whether it is zero.
    pub fn get(&mut self, cell: u32, owner: u32, zero: bool) -> Option<(u32, bool)> {
        if cell as usize >= self.cells.len() {
            return None;
        }
        let mut is_zero = false;
        // SAFETY: a cell of the array.
        let pfn = unsafe { ffi::sol_frames_get(&mut self.raw(), cell, owner, zero, &mut is_zero) };
        (pfn != ffi::NO_FRAME).then_some((pfn, is_zero))
    }

    /// A used frame was freed: back on its list. The owner it had.
    pub fn put(&mut self, pfn: u32, zero: bool) -> Result<u32, FrameError> {
        self.need(pfn, FrameState::Used)?;
        // SAFETY: a used frame.
        Ok(unsafe { ffi::sol_frames_put(&mut self.raw(), pfn, zero) })
    }

    /// Forgets a used frame (it goes back to the system). The owner it had.
    pub fn forget(&mut self, pfn: u32) -> Result<u32, FrameError> {
        self.need(pfn, FrameState::Used)?;
        // SAFETY: a used frame.
        Ok(unsafe { ffi::sol_frames_forget(&mut self.raw(), pfn) })
    }

    /// Takes any listed frame of `cell` off and makes it foreign.
    pub fn drain(&mut self, cell: u32) -> Option<u32> {
        if cell as usize >= self.cells.len() {
            return None;
        }
        // SAFETY: a cell of the array.
        let pfn = unsafe { ffi::sol_frames_drain(&mut self.raw(), cell) };
        (pfn != ffi::NO_FRAME).then_some(pfn)
    }

    /// Fills the lists from `source` until one of `cells` has a listed frame,
    /// or the source has nothing more, or the limits are reached.
    pub fn fill<S: Source>(
        &mut self,
        source: &mut S,
        cells: &[u32],
        limits: FillLimits,
    ) -> Result<Fill, FrameError> {
        let n_cells = self.map.n_cells();
        if let Some(&cell) = cells.iter().find(|&&c| c >= n_cells) {
            return Err(FrameError::NoCell(cell));
        }
        let n = u32::try_from(cells.len()).unwrap_or(u32::MAX);
        let mut raw = self.raw();
        let mut call = Call {
            source,
            map: self.map.clone(),
            frame: raw.frame,
            n_frames: raw.n_frames,
            error: None,
        };
        let src = ffi::Source {
            block: Some(block_of::<S>),
            lock: None,
            unlock: None,
            ctx: ptr::from_mut(&mut call).cast(),
            max_order: limits.max_order,
            max_frames: limits.max_frames,
            back: None, // `block_of` lets no block with a hole through
        };
        let mut hit = n;
        // SAFETY: checked cells; `block_of` only lets good blocks through.
        let added = unsafe { ffi::sol_frames_fill(&mut raw, &src, cells.as_ptr(), n, &mut hit) };
        match call.error {
            Some(error) => Err(error),
            None => Ok(Fill {
                added,
                hit: (hit < n).then_some(hit as usize),
            }),
        }
    }

    fn cell_of(&self, pfn: u32) -> Result<u32, FrameError> {
        self.map
            .cell_of_frame(pfn.into())
            .ok_or(FrameError::OutOfRange(pfn))
    }

    fn need(&self, pfn: u32, needed: FrameState) -> Result<(), FrameError> {
        if pfn as usize >= self.frames.len() {
            return Err(FrameError::OutOfRange(pfn));
        }
        let is = self.state(pfn);
        if is == needed {
            Ok(())
        } else {
            Err(FrameError::WrongState { pfn, is, needed })
        }
    }

    /// For C, over this value's arrays; valid until they are next touched.
    fn raw(&mut self) -> ffi::Frames {
        ffi::Frames {
            map: self.map.as_ptr(),
            frame: self.frames.as_mut_ptr().cast(),
            owned: self.owned.as_mut_ptr(),
            cell: self.cells.as_mut_ptr(),
            n_frames: u32::try_from(self.frames.len()).unwrap_or(u32::MAX),
            swap_bit: 0,
        }
    }
}

fn state_of(tag: u32) -> FrameState {
    if tag & ffi::TAG_LISTED != 0 {
        FrameState::Listed
    } else if tag & ffi::TAG_USED != 0 {
        FrameState::Used
    } else {
        FrameState::Foreign
    }
}

/// What C's callback works on.
struct Call<'a, S> {
    source: &'a mut S,
    map: AddrMap,
    frame: *const ffi::Frame,
    n_frames: u32,
    error: Option<FrameError>,
}

impl<S> Call<'_, S> {
    /// May C split this block: aligned, small enough, in the machine, free?
    fn is_good(&self, block: &Block, max: u32) -> bool {
        if block.order > max || block.order > 20 {
            return false;
        }
        let n = 1u64 << block.order;
        let fits = block
            .pfn
            .checked_add(n)
            .is_some_and(|end| end <= self.n_frames.into());
        fits && block.pfn % n == 0
            && (block.pfn..block.pfn + n).all(|pfn| {
                // SAFETY: below n_frames; C does not write while it calls.
                let tag = unsafe { (*self.frame.add(pfn as usize)).tag };
                state_of(tag) == FrameState::Foreign && self.map.cell_of_frame(pfn).is_some()
            })
    }
}

unsafe extern "C" fn block_of<S: Source>(
    ctx: *mut c_void,
    node: u32,
    max: u32,
    order: *mut u32,
    zero: *mut bool,
) -> i64 {
    // SAFETY: `ctx` is the `Call` of `fill`, which nothing else touches now.
    let call = unsafe { &mut *ctx.cast::<Call<S>>() };
    if call.error.is_some() {
        return -1;
    }
    let Some(block) = call.source.block(node, max) else {
        return -1;
    };
    if !call.is_good(&block, max) {
        let Block { pfn, order, .. } = block;
        call.error = Some(FrameError::BadBlock { pfn, order });
        return -1;
    }
    // SAFETY: C passes places for both.
    unsafe {
        *order = block.order;
        *zero = block.zero;
    }
    block.pfn as i64
}
