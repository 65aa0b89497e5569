//! Sizes of pages.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ffi;
use crate::size::{format_size, parse_size};

/// The size of a kernel's pages, which are the frames that have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

impl PageSize {
    /// 4 KiB: x86, and most kernels of arm64.
    pub const K4: Self = Self(12);
    /// 16 KiB: kernels of arm64 whose name ends in -16k.
    pub const K16: Self = Self(14);
    /// 64 KiB.
    pub const K64: Self = Self(16);

    /// Pages of so many bytes; `None`: no kernel has them.
    #[must_use]
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        let all = [Self::K4, Self::K16, Self::K64];
        all.into_iter().find(|size| size.bytes() == bytes)
    }

    /// log2 of its bytes.
    #[must_use]
    pub const fn shift(self) -> u32 {
        self.0
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    pub(crate) fn of(map: &ffi::Map) -> Self {
        Self(map.frame_shift.into())
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_size(self.bytes()))
    }
}

impl FromStr for PageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = parse_size(text).map_err(|error| error.to_string())?;
        Self::from_bytes(bytes)
            .ok_or_else(|| format!("`{text}`: pages of kernels have 4K, 16K or 64K"))
    }
}

impl Serialize for PageSize {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.bytes())
    }
}
