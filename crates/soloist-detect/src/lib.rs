//! Finds the address map of memory by timing, and chooses among the sources of a map.
//!
//! A [`timing`] source is real memory or a simulated one. A [`meter`] tells by it which
//! pairs of lines conflict, and a [`model`] says which should. From these come the layouts
//! of memory ([`mod@layout`]) or, where addresses are not physical, conflict [`classes`];
//! [`detect`] does all of it. [`check`](mod@check) measures whether a map is this machine's,
//! [`cache`] looks at the last level, and [`choice`] weighs what was measured against the
//! sources that need no timing (`soloist-map`).

pub mod cache;
pub mod check;
pub mod choice;
pub mod classes;
mod detect;
pub mod layout;
pub mod meter;
pub mod model;
mod options;
pub mod timing;

pub use detect::{detect, Detected, RegionReport};
pub use options::Options;
