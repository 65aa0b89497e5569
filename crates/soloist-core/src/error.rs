//! Refusals in words.

use std::ffi::c_char;
use std::fmt;

use crate::ffi;

/// C code refused an input and says why; as the kernel's `last_cmd_status`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Line of the text that was wrong, counted from 1.
    pub line: Option<u32>,
    /// One sentence.
    pub text: String,
    /// The errno, positive (22: EINVAL).
    pub errno: i32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl ffi::Err {
    /// An empty one for C to fill in.
    pub(crate) fn new() -> Self {
        Self {
            line: 0,
            text: [0; ffi::ERR_LEN],
        }
    }

    /// What C wrote when it returned `code` (negative).
    pub(crate) fn refusal(&self, code: i32) -> Refusal {
        Refusal {
            line: (self.line != 0).then_some(self.line),
            text: string(&self.text),
            errno: -code,
        }
    }

    /// `Ok` for 0, the refusal otherwise.
    pub(crate) fn check(&self, code: i32) -> Result<(), Refusal> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.refusal(code))
        }
    }
}

/// A NUL-terminated C array as text.
pub(crate) fn string(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .take_while(|&&c| c != 0)
        .map(|&c| c as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// No range of the map holds this address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0:#x} lies in no range of the map (a hole, or beyond the memory)")]
pub struct Hole(
    /// The physical address.
    pub u64,
);

/// Why a DRAM coordinate has no physical address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Outside the machine.
    #[error("the machine has no such place: some field is too large, or a hole lies there")]
    NoSuchPlace,
    /// The map's functions do not determine an address.
    #[error("the map is not invertible: its functions leave address bits undetermined")]
    NotInvertible,
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
        is: crate::FrameState,
        /// The state that was needed.
        needed: crate::FrameState,
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
