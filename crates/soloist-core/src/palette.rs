//! Who owns which colours, and automatic assignment.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use serde::Serialize;

use crate::colors::ColorSet;
use crate::ffi;
use crate::map::AddrMap;
use crate::text::Refusal;

/// Names an owner of a [`Palette`].
pub type OwnerId = u32;

/// Counts of the owners that name a bank set or LLC colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// All of them.
    pub owners: u32,
    /// Those that share it with nobody (0 or 1).
    pub exclusive: u32,
    /// Real-time ones.
    pub realtime: u32,
}

/// A request for automatic assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Bank sets, at least 1.
    pub sets: u32,
    /// LLC colours; 0: do not colour the LLC.
    pub llc: u32,
    /// Bitmap of the nodes that the task's cores are on; 0: any.
    pub near: u64,
    /// Bitmap of the nodes allowed at all.
    pub allowed: u64,
    /// Only nodes of `near` will do.
    pub strict: bool,
    /// Keep apart from other owners by controller.
    pub realtime: bool,
}

impl Default for Want {
    fn default() -> Self {
        Self {
            sets: 1,
            llc: 0,
            near: 0,
            allowed: u64::MAX,
            strict: false,
            realtime: false,
        }
    }
}

/// A table of colours and their owners. A change happens whole or not at all.
pub struct Palette {
    map: AddrMap,
    /// Backing of `raw`'s arrays: C's, read here only through `raw`.
    _memory: Box<[u64]>,
    raw: ffi::Palette,
    owners: BTreeMap<OwnerId, ColorSet>,
}

// SAFETY: `raw` points into `_memory` and the shared, never changing map, both
// owned by the value; C has no other state. `&self` methods only read.
unsafe impl Send for Palette {}
// SAFETY: as above.
unsafe impl Sync for Palette {}

impl Palette {
    /// A palette over `map` that nobody owns anything of.
    pub fn new(map: &AddrMap) -> Self {
        // SAFETY: a parsed map.
        let bytes = unsafe { ffi::sol_palette_bytes(map.as_ptr()) };
        let mut memory = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let mut raw = ffi::Palette::default();
        // SAFETY: `memory` has the bytes asked for, aligned to 8; it and the
        // map live as long as `raw`.
        unsafe { ffi::sol_palette_init(&mut raw, map.as_ptr(), memory.as_mut_ptr().cast()) };
        raw.in_use = None;
        Self {
            map: map.clone(),
            _memory: memory,
            raw,
            owners: BTreeMap::new(),
        }
    }

    /// The map it is over.
    pub fn map(&self) -> &AddrMap {
        &self.map
    }

    /// Colours of `owner`.
    pub fn colors(&self, owner: OwnerId) -> Option<&ColorSet> {
        self.owners.get(&owner)
    }

    /// All owners and their colours.
    pub fn owners(&self) -> impl Iterator<Item = (OwnerId, &ColorSet)> {
        self.owners.iter().map(|(&id, colors)| (id, colors))
    }

    /// Gives `owner` the colours `new` in place of those it had; `None` gives
    /// them all back. Refused: nothing changed.
    pub fn change(&mut self, owner: OwnerId, new: Option<ColorSet>) -> Result<(), Refusal> {
        let old = self.owners.get(&owner).map(|c| c.raw(&self.map));
        let raw_new = new.as_ref().map(|c| c.raw(&self.map));
        let as_ptr = |c: &Option<ffi::Colors>| c.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut err = ffi::Err::default();
        // SAFETY: `raw` was initialised; both sets have the map's size
        // (`raw()` checks) and outlive the call; `old` is what C counted.
        let code = unsafe {
            ffi::sol_palette_change(&mut self.raw, as_ptr(&old), as_ptr(&raw_new), &mut err)
        };
        err.check(code)?;
        match new {
            Some(colors) => self.owners.insert(owner, colors),
            None => self.owners.remove(&owner),
        };
        Ok(())
    }

    /// Free colours for a new owner; does not take them. Not exclusive: that
    /// is the caller's to say.
    pub fn assign(&self, want: &Want) -> Result<ColorSet, Refusal> {
        self.assign_raw(&self.raw, want)
    }

    /// Does what [`Self::assign`] does, where `in_use` says how many frames of a bank set
    /// are still in use, whoever had them.
    pub fn assign_with<F: Fn(u32) -> u64>(
        &self,
        want: &Want,
        in_use: &F,
    ) -> Result<ColorSet, Refusal> {
        unsafe extern "C" fn call<F: Fn(u32) -> u64>(ctx: *const c_void, set: u32) -> u64 {
            // SAFETY: `ctx` is the `in_use` below, borrowed over the call.
            let in_use = unsafe { &*ctx.cast::<F>() };
            in_use(set)
        }
        let raw = ffi::Palette {
            in_use: Some(call::<F>),
            ctx: ptr::from_ref(in_use).cast(),
            ..self.raw
        };
        self.assign_raw(&raw, want)
    }

    fn assign_raw(&self, raw: &ffi::Palette, want: &Want) -> Result<ColorSet, Refusal> {
        let want = ffi::Want {
            n_sets: want.sets,
            n_llc: want.llc,
            near: want.near,
            allowed: want.allowed,
            strict: want.strict,
            realtime: want.realtime,
            llc: std::ptr::null(),
        };
        let mut err = ffi::Err::default();
        let mut out = ColorSet::any(&self.map);
        let code = out.write(&self.map, |out| {
            // SAFETY: an initialised palette, empty bitmaps of the map's size.
            unsafe { ffi::sol_palette_assign(raw, &want, out, &mut err) }
        });
        err.check(code).map(|()| out)
    }

    /// Owners of `bank_set`; `None` where the map has no such set.
    pub fn set_usage(&self, bank_set: u32) -> Option<Usage> {
        // SAFETY: `set` holds n_bank_sets counters.
        (bank_set < self.map.n_bank_sets())
            .then(|| Usage::from(unsafe { *self.raw.set.add(bank_set as usize) }))
    }

    /// Owners of the LLC colour `llc`; `None` where the map has no such colour.
    pub fn llc_usage(&self, llc: u32) -> Option<Usage> {
        // SAFETY: `llc` holds n_llc counters.
        (llc < self.map.n_llc()).then(|| Usage::from(unsafe { *self.raw.llc.add(llc as usize) }))
    }
}

impl From<ffi::Use> for Usage {
    fn from(u: ffi::Use) -> Self {
        Self {
            owners: u.owners,
            exclusive: u.exclusive,
            realtime: u.realtime,
        }
    }
}
