//! The module's control interface: groups, rules, the guard, and what is asked of them.

mod group;
mod guard;
mod implicit;
mod interface;
mod load;
mod node;
mod request;
mod rule;
mod tasks;
mod traffic;

pub use group::{limits, Exhaust, Group, GroupView, Mode, Text};
pub use guard::{format_rate, parse_rate, Bandwidth, Guard, GuardCpu, GuardView};
pub use implicit::ImplicitGroup;
pub use interface::{Control, KeyValues};
pub use load::{load, unload, wants_map, LoadReport, ModuleChoice};
pub use node::{claim, nearest_memory, nodes, usable_cpus, Node};
pub use request::{Choice, ColorRequest, Plan};
pub use rule::{Rule, RuleChange, RuleView, LIMIT_DEFAULT};
pub use tasks::{barred_words, check_nodes, contradiction, in_use, movable_bytes, named, Barred};
pub use traffic::{check_event, objection, proviso};

pub(crate) use group::{colors_of, nodes_of};
pub(crate) use interface::check_name;
pub(crate) use load::{built_module, image, source_tree, ENROLL};
pub(crate) use rule::check_colors;
