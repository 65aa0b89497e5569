//! This machine: the control interface, processes and their pages, and what
//! the running kernel offers. The command line prints what is found here.
//!
//! Everything is read below a [`Host`]'s root, so that tests put a made-up
//! machine into a directory.

mod control;
mod doctor;
mod error;
mod group;
mod guard;
mod host;
mod implicit;
mod job;
mod load;
mod pages;
mod request;
mod rule;
mod task;
mod verify;

pub use control::{Control, KeyValues};
pub use doctor::{examine, Check, Status};
pub use error::HostError;
pub use group::{Exhaust, Group, GroupView, Mode};
pub use guard::{parse_rate, Bandwidth, Guard, GuardCpu, GuardView};
pub use host::Host;
pub use implicit::ImplicitGroup;
pub use job::{Job, Outcome};
pub use load::{load, unload, LoadReport, ModuleChoice};
pub use pages::{Page, PageReader};
pub use request::{Choice, ColorRequest, Plan};
pub use rule::{Rule, RuleView};
pub use task::{node_of_cpu, pin, threads};
pub use verify::{verify, GroupColors, MappingReport, Reason, Report, Tally};

pub use soloist_core::{cpu_list, format_size, parse_size, SizeError};
