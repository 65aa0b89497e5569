//! From lines of a kernel's trace to jobs, timelines and figures.
//!
//! [`event`] reads one line. [`track`] makes jobs of what one task did, and
//! [`observer`] a record of all watched tasks. [`timeline`] is what a schedule
//! came to, recorded or computed; [`gantt`] draws it and [`perfetto`] writes it for
//! that viewer. [`measured`] is a record in figures.

pub mod event;
pub mod gantt;
pub mod measured;
pub mod observer;
pub mod perfetto;
pub mod timeline;
pub mod track;

pub use soloist_core::time;
