//! Facts of this machine: files below its root, processes and their pages, cgroups,
//! users, builds of the module. Nothing here needs the module to be loaded.

mod build;
pub(crate) mod cgroup;
mod host;
mod pages;
mod task;
mod user;

pub use cgroup::{find_existing, Cgroup};
pub use host::Host;
pub use pages::{Page, PageReader};
pub use task::{node_of_cpu, pin, threads};
pub use user::user_id;

pub(crate) use build::Build;
pub(crate) use cgroup::is_of_systemd;
pub(crate) use task::{allowed_cpus, process_of};
