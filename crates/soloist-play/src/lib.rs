//! Programs placed by a policy, seated on the cores of a machine and played on the
//! memory model.
//!
//! A [`Stage`](stage::Stage) has seats: on each a program ([`programs`]: generators, and
//! recordings of real ones) and where its pages come from. One placer gives
//! them frames of Linux' allocator or of core's lists ([`placement`]) as the stage's
//! policy says ([`policy`]: a policy is a file); one player ([`play`]) steps them; a
//! regulator ([`guard`]) holds them back. Only the stage calls the memory system;
//! [`requests`] plays traces of requests, which have no cores.
//!
//! Upon it stand [`pace`], which finds how a program comes to its counted speed, and
//! [`replay`], which plays recordings alone and beside each other. [`import`] makes
//! recordings of other tools' traces.

pub mod guard;
pub mod import;
pub mod pace;
mod place;
pub mod placement;
pub mod play;
pub mod policy;
pub mod profile;
pub mod programs;
mod regulation;
pub mod replay;
pub mod requests;
pub mod stage;
pub mod thread;
pub mod warm;
