//! Running commands: in a group, in real time, beside co-runners.

mod children;
mod co_runners;
mod explain;
mod job;
mod own;
mod ptrace;
mod realtime;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod registers;
mod seat;

pub use children::kill_children;
pub use co_runners::{output, write_forever, CoRunners, Timing};
pub use explain::Explained;
pub use job::{Exit, Job};
pub use own::check_lasting_name;
pub use realtime::{Class, Realtime};
pub use seat::{Ran, Seat, SeatRequest};

pub use crate::signals::{hear_of_children, HeldSignals};
