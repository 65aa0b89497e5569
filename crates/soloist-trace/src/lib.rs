//! From lines of a kernel's trace to jobs, timelines and figures.
//!
//! [`timeline`] is what a schedule came to, recorded or computed; [`gantt`] draws it
//! and [`perfetto`] writes it for that viewer. [`event`] reads one line of a trace,
//! [`track`] makes jobs of what one task did, and [`observer`] a record of all tasks
//! that [`watch`] names. [`measured`] is a record in figures, and [`coverage`] says
//! whether it has everybody. [`tracefs`] asks the running kernel for lines, and
//! [`recording`] makes a record of them.

pub mod coverage;
pub mod event;
pub mod gantt;
pub mod measured;
pub mod observer;
pub mod perfetto;
pub mod recording;
pub mod timeline;
pub mod tracefs;
pub mod track;
pub mod watch;
