//! Running commands: in a group, in real time, beside neighbours.

mod job;
mod neighbours;
mod own;
mod realtime;

pub use job::{Job, Outcome};
pub use neighbours::{output, time, write_forever, Neighbours};
pub use own::Held;
pub use realtime::{Class, Realtime};

pub(crate) use own::is_of_one_run;
