//! Number lists as the kernel writes them: `0-3,8`.

use std::ffi::c_ulong;
use std::fmt::{self, Write as _};

use crate::ffi;
use crate::text::{print, Refusal};

const BITS: usize = c_ulong::BITS as usize;

/// A set of numbers below a limit, written `0-3,8`.
///
/// ```
/// # fn main() -> Result<(), soloist_core::Refusal> {
/// let list = soloist_core::NumList::parse("0-3,8", 16)?;
/// assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
/// assert_eq!(list.to_string(), "0-3,8");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct NumList {
    words: Vec<c_ulong>,
    limit: u32,
}

impl NumList {
    /// The empty set of numbers below `limit`.
    pub fn new(limit: u32) -> Self {
        Self {
            words: vec![0; (limit as usize).div_ceil(BITS)],
            limit,
        }
    }

    /// Reads `text`; numbers are below `limit`.
    pub fn parse(text: &str, limit: u32) -> Result<Self, Refusal> {
        let mut list = Self::new(limit);
        let mut err = ffi::Err::default();
        // SAFETY: `text` is valid for its length, `words` holds `limit` bits.
        let code = unsafe {
            ffi::sol_list_parse(
                text.as_ptr().cast(),
                text.len(),
                limit,
                list.words.as_mut_ptr(),
                &mut err,
            )
        };
        err.check(code).map(|()| list)
    }

    /// Numbers are below this.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Adds `number`; false where it is not below the limit.
    pub fn insert(&mut self, number: u32) -> bool {
        let fits = number < self.limit;
        if fits {
            self.words[number as usize / BITS] |= 1 << (number as usize % BITS);
        }
        fits
    }

    /// Takes `number` out.
    pub fn remove(&mut self, number: u32) {
        if number < self.limit {
            self.words[number as usize / BITS] &= !(1 << (number as usize % BITS));
        }
    }

    /// Is `number` in the set?
    pub fn contains(&self, number: u32) -> bool {
        number < self.limit
            && self.words[number as usize / BITS] >> (number as usize % BITS) & 1 == 1
    }

    /// Returns the number of numbers in it.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// No number at all?
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.limit).filter(|&n| self.contains(n))
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    pub(crate) fn as_ptr(&self) -> *const c_ulong {
        self.words.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut c_ulong {
        self.words.as_mut_ptr()
    }
}

impl fmt::Display for NumList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = print(|buf, size| {
            // SAFETY: `words` holds `limit` bits, `buf` takes `size` bytes.
            unsafe { ffi::sol_list_print(self.words.as_ptr(), self.limit, buf, size) }
        });
        f.write_str(&text)
    }
}

impl fmt::Debug for NumList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NumList({self} below {})", self.limit)
    }
}

/// Writes ascending numbers, of any size, as the kernel does: `0-3,8`.
///
/// ```
/// assert_eq!(soloist_core::show_list(&[0, 1, 2, 3, 8]), "0-3,8");
/// ```
#[must_use]
pub fn show_list(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < numbers.len() {
        let mut j = i;
        while j + 1 < numbers.len() && numbers[j + 1] == numbers[j] + 1 {
            j += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        let _ = match j - i {
            0 => write!(out, "{}", numbers[i]),
            _ => write!(out, "{}-{}", numbers[i], numbers[j]),
        };
        i = j + 1;
    }
    out
}
