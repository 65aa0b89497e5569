//! Running commands: in a group, in real time, beside neighbours.

mod explain;
mod job;
mod neighbours;
mod own;
mod ptrace;
mod realtime;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod registers;
mod seat;

pub use explain::Explained;
pub use job::{Exit, Job};
pub use neighbours::{output, write_forever, Neighbours, Timing};
pub use realtime::{Class, Realtime};
pub use seat::{Ran, Seat, SeatRequest};

pub(crate) use own::is_of_one_run;
