//! What happens: where pages are, counters and rates, what changed, and what a
//! machine lacks.

mod doctor;
mod events;
mod metrics;
mod needs;
pub mod picture;
mod rates;
mod sample;
mod trust;
mod verify;
pub mod watch;

pub use doctor::{examine, verdict, Check, Status};
pub use events::{events, Event, Removed};
pub use metrics::{openmetrics, MEDIA_TYPE};
pub use rates::{rates, GroupRates};
pub use sample::Summary;
pub use trust::examine_for;
pub use verify::{verify, Cell, GroupColors, Held, MappingReport, Reason, Report, Tally};
