//! The module's control interface: groups, rules, the guard, and what is asked of them.

mod bandwidth;
mod claim;
mod firmware;
mod group;
mod guard;
mod implicit;
mod interface;
mod load;
mod moves;
mod occupancy;
mod request;
mod rest;
mod rule;
mod tasks;
mod traffic;

pub use bandwidth::{format_rate, parse_rate, Bandwidth};
pub use claim::{claim, nodes, Node};
pub use firmware::{ChannelAddress, UmcRegister};
pub use group::{limits, Exhaust, Group, GroupView, Mode, Text};
pub use guard::{Guard, GuardCpu, GuardView};
pub use implicit::ImplicitGroup;
pub use interface::{is_label, Alone, Control, KeyValues};
pub use load::{load, unload, wants_map, FirmwareModule, LoadReport, ModuleChoice};
pub use moves::{MoveHow, MoveReport, Stay, Stood};
pub use occupancy::Occupancy;
pub use request::{Choice, ColorPlan, ColorRequest};
pub use rule::{Rule, RuleChange, RuleView, LIMIT_DEFAULT};
pub use tasks::{barred_words, contradiction, in_use, Barred};
pub(crate) use traffic::check_events_here;
pub use traffic::{check_event, objection, proviso};

pub(crate) use group::{colors_of, nodes_of};
pub(crate) use interface::check_name;
pub(crate) use rule::check_colors;
