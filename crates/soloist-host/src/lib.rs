//! This machine: the control interface, processes and their pages, and what
//! the running kernel offers. The command line prints what is found here.
//!
//! Everything is read below a [`Host`]'s root, so that tests put a made-up
//! machine into a directory.

mod apply;
mod build;
mod cgroup;
mod check;
mod config;
mod control;
mod doctor;
mod error;
mod events;
mod group;
mod guard;
mod host;
mod implicit;
mod job;
mod load;
mod metrics;
mod neighbours;
mod node;
mod order;
mod own;
mod pages;
pub mod picture;
mod rates;
mod realtime;
mod request;
mod rule;
mod sample;
mod task;
mod tasks;
mod traffic;
mod user;
mod verify;
pub mod watch;
mod words;

pub use apply::{plan, Step, Steps};
pub use cgroup::{find_existing, Cgroup};
pub use config::{Config, GroupConfig, RuleConfig};
pub use control::{Control, KeyValues};
pub use doctor::{examine, verdict, Check, Status};
pub use error::HostError;
pub use events::{events, Event, Removed};
pub use group::{limits, Exhaust, Group, GroupView, Mode, Text};
pub use guard::{format_rate, parse_rate, Bandwidth, Guard, GuardCpu, GuardView};
pub use host::Host;
pub use implicit::ImplicitGroup;
pub use job::{Job, Outcome};
pub use load::{load, unload, wants_map, LoadReport, ModuleChoice};
pub use metrics::{openmetrics, MEDIA_TYPE};
pub use neighbours::{output, time, write_forever, Neighbours};
pub use node::{claim, nearest_memory, nodes, usable_cpus, Node};
pub use own::Held;
pub use pages::{Page, PageReader};
pub use rates::{rates, GroupRates};
pub use realtime::{Class, Realtime};
pub use request::{Choice, ColorRequest, Plan};
pub use rule::{Rule, RuleChange, RuleView, LIMIT_DEFAULT};
pub use sample::Summary;
pub use task::{node_of_cpu, pin, threads};
pub use tasks::{barred_words, check_nodes, contradiction, in_use, movable_bytes, named, Barred};
pub use traffic::{check_event, objection, proviso};
pub use user::user_id;
pub use verify::{verify, Cell, GroupColors, MappingReport, Reason, Report, Tally};
pub use words::counted;

pub use soloist_core::{cpu_list, format_size, parse_size, SizeError};
