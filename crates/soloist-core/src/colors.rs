//! The colours of one owner.

use std::fmt;

use crate::ffi;
use crate::list::NumList;
use crate::map::AddrMap;

/// A set of bank sets and a set of LLC colours. Where one of them is `None`,
/// any will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColorSet {
    sets: NumList,
    llc: NumList,
    by_bank: bool,
    by_llc: bool,
    /// Shares no bank set and no LLC colour (of those that it names) with
    /// another owner.
    pub exclusive: bool,
    /// Kept apart from other owners by controller where there are enough.
    pub realtime: bool,
}

impl ColorSet {
    /// Every colour of `map`: no restriction.
    pub fn any(map: &AddrMap) -> Self {
        Self {
            sets: NumList::new(map.n_bank_sets()),
            llc: NumList::new(map.n_llc()),
            by_bank: false,
            by_llc: false,
            exclusive: false,
            realtime: false,
        }
    }

    /// Restricted to these bank sets; numbers that the map does not have are
    /// left out.
    pub fn with_sets(mut self, sets: impl IntoIterator<Item = u32>) -> Self {
        self.by_bank = true;
        for set in sets {
            self.sets.insert(set);
        }
        self
    }

    /// Restricted to these LLC colours.
    pub fn with_llc(mut self, llc: impl IntoIterator<Item = u32>) -> Self {
        self.by_llc = true;
        for color in llc {
            self.llc.insert(color);
        }
        self
    }

    /// Bank sets it is restricted to.
    pub fn sets(&self) -> Option<&NumList> {
        self.by_bank.then_some(&self.sets)
    }

    /// LLC colours it is restricted to.
    pub fn llc(&self) -> Option<&NumList> {
        self.by_llc.then_some(&self.llc)
    }

    /// Would a frame of this bank set and LLC colour be in colour?
    pub fn holds(&self, bank_set: u32, llc: u32) -> bool {
        (!self.by_bank || self.sets.contains(bank_set)) && (!self.by_llc || self.llc.contains(llc))
    }

    /// Cells that can hold pages, ascending.
    ///
    /// # Panics
    /// If `map` is not of the shape that this set was made for.
    pub fn cells(&self, map: &AddrMap) -> Vec<u32> {
        let raw = self.raw(map);
        let call = |cells: &mut [u32]| {
            let max = u32::try_from(cells.len()).unwrap_or(u32::MAX);
            // SAFETY: bitmaps of the map's size (checked), `cells` takes `max`.
            unsafe { ffi::sol_colors_cells(map.as_ptr(), &raw, cells.as_mut_ptr(), max) }
        };
        let mut cells = vec![0; call(&mut []) as usize];
        call(&mut cells);
        cells
    }

    /// Bytes of the machine's memory in these colours.
    ///
    /// # Panics
    /// If `map` is not of the shape that this set was made for.
    pub fn bytes(&self, map: &AddrMap) -> u64 {
        // SAFETY: bitmaps of the map's size (checked).
        unsafe { ffi::sol_colors_bytes(map.as_ptr(), &self.raw(map)) }
    }

    /// For C to read; valid while `self` is borrowed.
    pub(crate) fn raw(&self, map: &AddrMap) -> ffi::Colors {
        self.check(map);
        ffi::Colors {
            sets: self.sets.as_ptr().cast_mut(),
            llc: self.llc.as_ptr().cast_mut(),
            by_bank: self.by_bank,
            by_llc: self.by_llc,
            exclusive: self.exclusive,
            realtime: self.realtime,
        }
    }

    /// Lets C write the bitmaps through `write`, then takes over its flags.
    pub(crate) fn write(
        &mut self,
        map: &AddrMap,
        write: impl FnOnce(&mut ffi::Colors) -> i32,
    ) -> i32 {
        self.check(map);
        let mut raw = ffi::Colors {
            sets: self.sets.as_mut_ptr(),
            llc: self.llc.as_mut_ptr(),
            by_bank: self.by_bank,
            by_llc: self.by_llc,
            exclusive: self.exclusive,
            realtime: self.realtime,
        };
        let code = write(&mut raw);
        self.by_bank = raw.by_bank;
        self.by_llc = raw.by_llc;
        self.exclusive = raw.exclusive;
        self.realtime = raw.realtime;
        code
    }

    fn check(&self, map: &AddrMap) {
        let ours = (self.sets.limit(), self.llc.limit());
        assert_eq!(
            ours,
            (map.n_bank_sets(), map.n_llc()),
            "a colour set of another map"
        );
    }
}

/// `bank sets 0-3, LLC colours 8`.
impl fmt::Display for ColorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sets() {
            Some(sets) => write!(f, "bank sets {sets}")?,
            None => f.write_str("any bank")?,
        }
        match self.llc() {
            Some(llc) => write!(f, ", LLC colours {llc}"),
            None => Ok(()),
        }
    }
}
