//! From timings to the layouts of a node's memory.
//!
//! A [`node`] is searched for its layouts, each a [`region`]: collect conflicting pairs, see
//! whether channels come from a division ([`division`]), solve for the bank functions
//! ([`mod@functions`]), find where the memory lies in its node (`place`), then the rows
//! (`rows`). What was found must stand up in fresh pairs ([`prove`]) and all over the node
//! ([`mod@sweep`], [`lifted`]); [`names`] says which function is which.

pub mod division;
pub mod functions;
pub mod lifted;
pub mod names;
pub mod node;
mod place;
pub mod prove;
pub mod region;
pub(crate) mod rows;
pub mod sweep;
