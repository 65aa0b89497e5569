//! Facts of this machine: files below its root, processes and their pages, cgroups,
//! users, builds of the module. Nothing here needs the module to be loaded.

mod build;
pub(crate) mod cgroup;
mod core_type;
mod cpus;
pub mod edac;
mod fit;
pub mod guest;
mod host;
mod memory;
mod module;
mod node;
mod objections;
mod pages;
pub mod pci;
mod siblings;
mod smbios;
mod spinner;
mod task;
mod topology;
mod units;
mod user;

pub use cgroup::{find_existing, Cgroup, EVERYTHING_ELSE};
pub use core_type::{core_types, lacking_event, CoreType};
pub use cpus::{named_cpus, processors_beside};
pub use fit::{fit, objections, Facts, Fit};
pub use host::Host;
pub use memory::{available_bytes, huge_bytes_at, memory_ranges};
pub use node::{check_nodes, movable_bytes, nearest_memory, node_of_cpu, usable_cpus};
pub use objections::Objections;
pub use pages::{Page, PageReader};
pub use siblings::{in_cache_of, of_one_core, one_of_each_core, siblings};
pub use smbios::Modules;
pub use spinner::{spinners, Spinner};
pub use task::{named, pin, threads};
pub use topology::{cpu_name, topology};
pub use units::event_units;
pub use user::user_id;

pub(crate) use build::Build;
pub(crate) use cgroup::is_of_systemd;
pub(crate) use host::text_of;
pub(crate) use module::{
    built_module, image, is_signed, module_file, source_tree, ENROLL, FIRMWARE_MODULE, MODULE,
};
pub(crate) use node::{cpus_of_node, cpuset_nodes, made_up_nodes, may_allocate_on};
pub(crate) use task::{allowed_cpus, command_of, not_seen, plain, process_of, NAMED};
pub(crate) use units::EVENT_SOURCES;
