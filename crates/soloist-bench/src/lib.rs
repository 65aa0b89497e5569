//! Experiments on this machine's own memory, by timing alone: what co-runners cost there, and
//! what to do about it.
//!
//! The experiments of PALLOC and CAMC, without a module. A victim on one
//! processor follows pointers, one access at a time, each from memory; neighbours
//! on others read or write. Each experiment says whose lines lie in which banks
//! and asks [`cores`] for rounds.
//!
//! - [`two_banks`]: a neighbour in the same bank against one in another.
//! - [`slices`]: as many banks as a small machine has, shared, private, or all
//!   tasks in few of them; all banks by page colours.
//! - [`pages`]: whole pages by address bits, with caches.
//! - [`whole`]: all of memory, where banks were found pair by pair.
//! - [`paced`]: the same beside neighbours that are slowed down.
//! - [`channels`]: neighbours on another channel against neighbours in other banks.
//! - [`recorded`]: a recorded program's accesses, by the policy that placed them.
//!
//! [`density`] draws from all of it how many banks each busy core needs. [`campaign`] runs
//! the experiments, [`report`] holds what was found, and [`advice`] says what to do.
//!
//! Lines of known banks come from the detector ([`banks`]). Conditions come in random order,
//! block by block, so that without an effect every sign of a block's difference is as likely
//! as the other, however the machine drifts. A test by signed ranks says how likely the
//! difference is chance, a bootstrap how large it may be ([`statistics`]).

pub mod advice;
pub mod banks;
pub mod campaign;
pub mod channels;
pub mod cores;
pub mod density;
pub mod in_slices;
pub mod origin;
pub mod paced;
pub mod pages;
pub mod picture;
pub mod recorded;
pub mod report;
pub mod slices;
pub mod statistics;
pub mod two_banks;
pub mod whole;
