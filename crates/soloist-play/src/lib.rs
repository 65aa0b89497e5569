//! Programs played on the memory model: pages are placed by a policy
//! ([`placement`]), programs ([`programs`]) and recordings ([`replay`]) are stepped
//! on cores, and what they take of memory is regulated ([`governor`], [`linux`]).

pub mod governor;
pub mod linux;
pub mod placement;
pub mod programs;
pub mod replay;
