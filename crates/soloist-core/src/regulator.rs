//! Bandwidth reservation: MemGuard's rules, which core/regulator/regulator.h explains.
//!
//! A state machine without clock or counter. Who drives it calls
//! [`Regulator::begin`] and then [`Regulator::core`] for each core when a
//! period begins, [`Regulator::used`] when a core's usage has come to a limit,
//! and does what the [`Answer`] says.

use std::ptr;

use serde::{Deserialize, Serialize};

use crate::colors::ColorSet;
use crate::ffi;
use crate::map::AddrMap;
use crate::text::Refusal;

/// Kinds of traffic that have budgets of their own: reads, then writes.
pub const TRAFFICS: usize = ffi::TRAFFICS as usize;
/// A limit that is never reached.
pub const NO_LIMIT: u32 = ffi::NO_LIMIT;

/// The rule for the rest of a period once all cores have used their budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// All stand still until it ends.
    #[default]
    None,
    /// All run until it ends.
    Spare,
    /// A new one begins at once.
    Proportional,
}

/// Settings of a regulator. Rates are bytes per second, budgets are lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regulation {
    /// Length of a period, microseconds, 10 to 1,000,000.
    pub period_us: u32,
    /// Bytes of a line: what one counted event moves.
    pub line: u32,
    /// Guaranteed bandwidth, reads and writes; 0 for writes: not regulated.
    pub r_min: [u64; TRAFFICS],
    /// Peak bandwidth.
    pub peak: u64,
    /// Lines that a core above its reservation reclaims at a time; 0: 1 % of the peak.
    pub q_min: u32,
    /// Weight of the newest period in the prediction, 1 to 256, in 1/256.
    pub ewma: u16,
    /// Best effort.
    pub sharing: Sharing,
}

/// A reservation of one core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Bytes per second, reads and writes; used if `weight` is 0.
    pub rate: [u64; TRAFFICS],
    /// Share of what absolute reservations leave; 0: absolute.
    pub weight: u32,
    /// Gives what it will not use, and takes when short of it.
    pub reclaim: bool,
}

/// Counts of a core since it was first regulated, in lines unless a field says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CoreCounts {
    /// Used, in periods that have ended.
    pub used: [u64; TRAFFICS],
    /// Given to the global budget.
    pub donated: [u64; TRAFFICS],
    /// Taken out of it.
    pub reclaimed: [u64; TRAFFICS],
    /// Used above the budget.
    pub beyond: [u64; TRAFFICS],
    /// Periods begun.
    pub periods: u64,
    /// Times it was stopped.
    pub stops: u64,
    /// Periods with a reclaim under-run error.
    pub underruns: u64,
}

/// An order to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Let the core run, and tell when its usage comes to a limit.
    Run,
    /// Stop it until it begins another period.
    Stop,
    /// Let all cores of this domain run, without limits.
    Free(u32),
    /// [`Regulator::restart`] this domain, then all its cores begin.
    Restart(u32),
}

/// An order to the driver, and how far the core may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The order.
    pub order: Order,
    /// Lines used in this period at which to tell again, or [`NO_LIMIT`].
    pub limit: [u32; TRAFFICS],
}

impl From<ffi::Answer> for Answer {
    fn from(a: ffi::Answer) -> Self {
        Self {
            order: match a.order {
                ffi::RUN => Order::Run,
                ffi::STOP => Order::Stop,
                ffi::FREE => Order::Free(a.domain),
                _ => Order::Restart(a.domain),
            },
            limit: a.limit,
        }
    }
}

/// Reservations of a machine's cores, and how the period that runs stands.
///
/// Functions that take a core's number panic if there is no such core.
pub struct Regulator {
    /// A `struct sol_regulator`; it points into `_cores`.
    raw: Box<[u64]>,
    _cores: Box<[u64]>,
    n_cores: u32,
}

impl Regulator {
    /// Nobody is regulated, all cores are online and share all banks.
    pub fn new(set: &Regulation, n_cores: u32) -> Result<Self, Refusal> {
        let raw_set = ffi::Regulation {
            period: set.period_us,
            line: set.line,
            r_min: set.r_min,
            peak: set.peak,
            q_min: set.q_min,
            ewma: set.ewma,
            sharing: set.sharing as u8,
        };
        let zeroed = |bytes: usize| vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let mut raw = zeroed(size_of::<ffi::Regulator>());
        let mut cores = zeroed(size_of::<ffi::Core>() * n_cores as usize);
        let mut err = ffi::Err::default();
        // SAFETY: both have the sizes asked for, aligned to 8, and neither
        // moves while the value lives; C refuses 0 cores before it writes.
        let code = unsafe {
            ffi::sol_regulator_init(
                raw.as_mut_ptr().cast(),
                &raw_set,
                cores.as_mut_ptr().cast(),
                n_cores,
                &mut err,
            )
        };
        err.check(code)?;
        Ok(Self {
            raw,
            _cores: cores,
            n_cores,
        })
    }

    /// Returns the number of cores.
    pub fn n_cores(&self) -> u32 {
        self.n_cores
    }

    /// Sets a reservation, or (`None`) takes it away, from the next period on.
    /// Refused: nothing changed.
    pub fn reserve(&mut self, core: u32, want: Option<&Reservation>) -> Result<(), Refusal> {
        let raw = want.map(|w| ffi::Reservation {
            rate: w.rate,
            weight: w.weight,
            reclaim: w.reclaim,
        });
        let want = raw.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut err = ffi::Err::default();
        // SAFETY: initialised; C checks the core's number.
        let code = unsafe { ffi::sol_regulator_reserve(self.as_mut_ptr(), core, want, &mut err) };
        err.check(code)
    }

    /// Weight of the task on a core that has one, from the next period on.
    pub fn weight(&mut self, core: u32, weight: u32) {
        self.check(core);
        // SAFETY: initialised, a known core.
        unsafe { ffi::sol_regulator_weight(self.as_mut_ptr(), core, weight) }
    }

    /// Says whether a core has something to run, from the next period on.
    pub fn active(&mut self, core: u32, active: bool) {
        self.check(core);
        // SAFETY: initialised, a known core.
        unsafe { ffi::sol_regulator_active(self.as_mut_ptr(), core, active) }
    }

    /// An offline core takes no part, but keeps its reservation.
    pub fn online(&mut self, core: u32, online: bool) -> Answer {
        self.check(core);
        // SAFETY: initialised, a known core.
        unsafe { ffi::sol_regulator_online(self.as_mut_ptr(), core, online) }.into()
    }

    /// Says which pools of banks each core shares ([`pools`]), from the next period on. A
    /// refusal changes nothing.
    ///
    /// # Panics
    /// Unless there is one bitmap for each core.
    pub fn set_pools(&mut self, pools: &[u64]) -> Result<(), Refusal> {
        assert_eq!(pools.len(), self.n_cores as usize, "a bitmap for each core");
        let mut err = ffi::Err::default();
        // SAFETY: initialised, `pools` has n_cores elements.
        let code = unsafe { ffi::sol_regulator_pools(self.as_mut_ptr(), pools.as_ptr(), &mut err) };
        err.check(code)
    }

    /// A period begins for all; [`Self::core`] must follow for each core.
    pub fn begin(&mut self) {
        // SAFETY: initialised.
        unsafe { ffi::sol_regulator_begin(self.as_mut_ptr()) }
    }

    /// A period begins for one domain; [`Self::core`] must follow for its
    /// cores.
    ///
    /// # Panics
    /// If there is no such domain (there are 64).
    pub fn restart(&mut self, domain: u32) {
        assert!(domain < ffi::POOLS, "no domain {domain}");
        // SAFETY: initialised, domain below SOL_POOLS.
        unsafe { ffi::sol_regulator_restart(self.as_mut_ptr(), domain) }
    }

    /// The period begins for `core`, which used so many lines in the last one.
    pub fn core(&mut self, core: u32, used: [u32; TRAFFICS]) -> Answer {
        self.check(core);
        // SAFETY: initialised, a known core, TRAFFICS counts.
        unsafe { ffi::sol_regulator_core(self.as_mut_ptr(), core, used.as_ptr()) }.into()
    }

    /// `core` has used so many lines in this period.
    pub fn used(&mut self, core: u32, used: [u32; TRAFFICS]) -> Answer {
        self.check(core);
        // SAFETY: initialised, a known core, TRAFFICS counts.
        unsafe { ffi::sol_regulator_used(self.as_mut_ptr(), core, used.as_ptr()) }.into()
    }

    /// Is the core to stand still?
    pub fn stopped(&self, core: u32) -> bool {
        self.check(core);
        // SAFETY: initialised, a known core.
        unsafe { ffi::sol_rust_stopped(self.as_ptr(), core) }
    }

    /// Domain of a core: those of one domain depend on each other.
    pub fn domain(&self, core: u32) -> u32 {
        self.check(core);
        // SAFETY: initialised, a known core.
        unsafe { (*self.core_ptr(core)).domain.into() }
    }

    /// Returns a core's counts.
    pub fn counts(&self, core: u32) -> CoreCounts {
        self.check(core);
        // SAFETY: initialised, a known core; the struct is copied.
        let s = unsafe { (*self.core_ptr(core)).stats };
        CoreCounts {
            used: s.used,
            donated: s.donated,
            reclaimed: s.reclaimed,
            beyond: s.beyond,
            periods: s.periods,
            stops: s.stops,
            underruns: s.underruns,
        }
    }

    fn check(&self, core: u32) {
        assert!(core < self.n_cores, "no core {core} of {}", self.n_cores);
    }

    /// What C knows of `core`, which there is.
    fn core_ptr(&self, core: u32) -> *const ffi::Core {
        // SAFETY: initialised; as many cores as `n_cores`.
        unsafe { (*self.as_ptr()).core.add(core as usize) }
    }

    fn as_ptr(&self) -> *const ffi::Regulator {
        self.raw.as_ptr().cast()
    }

    fn as_mut_ptr(&mut self) -> *mut ffi::Regulator {
        self.raw.as_mut_ptr().cast()
    }
}

/// Groups `map`'s bank sets by which cores have colours in them: one bitmap of
/// pools for each core. `None`: any bank set.
///
/// # Panics
/// If a colour set is of another map.
pub fn pools(map: &AddrMap, colors: &[Option<&ColorSet>]) -> Vec<u64> {
    let raw: Vec<Option<ffi::Colors>> = colors.iter().map(|c| c.map(|c| c.raw(map))).collect();
    let pointers: Vec<*const ffi::Colors> = raw
        .iter()
        .map(|c| c.as_ref().map_or(ptr::null(), ptr::from_ref))
        .collect();
    let mut pools = vec![0; colors.len()];
    // SAFETY: bitmaps of the map's size (`raw()` checks), as many pointers and
    // results as cores.
    unsafe {
        ffi::sol_pools(
            map.n_bank_sets(),
            pointers.as_ptr(),
            colors.len() as u32,
            pools.as_mut_ptr(),
        );
    }
    pools
}
