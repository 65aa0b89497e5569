//! The plan as `soloist apply` takes it.

use std::collections::{BTreeMap, BTreeSet};

use soloist_core::{AddrMap, NumList};
use soloist_host::config::{Config, GroupConfig};
use soloist_host::control::{Exhaust, Mode};
use soloist_machine::known;
use soloist_memory::Platform;

use super::event::Event;
use super::{Assignment, Plan};
use crate::analysis::interference::PERIOD_PS;

/// No memory is left for what the plan does not name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tasks with deadlines are on every controller of {0}, so none is left for all else")]
pub struct NoControllerLeft(String);

/// The configuration of a plan: groups, their colours and reserves, limits of cores.
/// `file` is the machine's.
#[must_use]
pub fn config(plan: &Plan, platform: &Platform, file: &str, event: Option<&Event>) -> Config {
    let name = &plan.machine;
    let built_in = known::find(name).is_ok_and(|known| known.file == file);
    let mut config = Config {
        machine: Some(if built_in { name } else { file }.to_owned()),
        guard: event.map_or_else(BTreeMap::new, |event| guard(plan, platform, event)),
        ..Config::default()
    };
    let llc = |a: &Assignment| cache_colors(&platform.memory.map, &a.llc);
    for (assignment, task) in plan.assignments.iter().zip(&plan.set.tasks) {
        let mine = llc(assignment);
        // The kernel counts owners of a cache colour over all caches, so two
        // groups of two caches can't both be its only owner.
        let alone = plan
            .assignments
            .iter()
            .filter(|other| other.group != assignment.group)
            .all(|other| llc(other).is_disjoint(&mine));
        let group = config.groups.entry(assignment.group.clone());
        let group = group.or_insert_with(|| GroupConfig {
            bank_sets: assignment.bank_sets.clone(),
            llc: match mine.is_empty() {
                true => String::new(),
                false => assignment.llc.clone(),
            },
            mode: match alone {
                true => Mode::Exclusive,
                false => Mode::Shareable,
            },
            ..GroupConfig::default()
        });
        let before = group
            .reserve
            .as_deref()
            .and_then(|s| soloist_core::parse_size(s).ok());
        if task.release.is_some() {
            let bytes = before.unwrap_or(0) + task.bytes.next_multiple_of(4096);
            group.reserve = Some(bytes.to_string());
        }
        if let Some(limit) = assignment.limit {
            // But for stores that go round the caches, a write to memory makes
            // room for a line that was read: a limit of what is read limits both.
            let rate = format!("{}MB/s:reclaim=0", limit / 1_000_000);
            config.cpus.insert(assignment.core.to_string(), rate);
        }
    }
    config
}

/// Where systemd puts all that runs on a host.
const REST: [(&str, &str); 4] = [
    ("rest-system", "/system.slice"),
    ("rest-user", "/user.slice"),
    ("rest-machine", "/machine.slice"),
    ("rest-init", "/init.scope"),
];

/// CAMC's rule for what the plan doesn't name: it is on other controllers than
/// tasks with deadlines, as long as their memory lasts.
///
/// # Errors
/// When tasks with deadlines are on all controllers.
pub fn add_rest(
    config: &mut Config,
    plan: &Plan,
    platform: &Platform,
) -> Result<(), NoControllerLeft> {
    let map = &platform.memory.map;
    let tasks = plan.set.tasks.iter();
    let timed = plan.assignments.iter().zip(tasks);
    let timed = timed.filter(|(_, task)| task.release.is_some());
    let timed: BTreeSet<u32> = timed.map(|(a, _)| a.node).collect();
    let named = config.groups.values();
    let named = named.filter_map(|g| NumList::parse(&g.bank_sets, map.n_bank_sets()).ok());
    let named: BTreeSet<u32> = named.flat_map(|l| l.iter().collect::<Vec<_>>()).collect();
    let mut sets = NumList::new(map.n_bank_sets());
    for node in (0..map.n_nodes()).filter(|node| !timed.contains(node)) {
        let here = map.sets_of_node(node).filter(|set| !named.contains(set));
        here.for_each(|set| {
            sets.insert(set);
        });
    }
    if sets.is_empty() {
        return Err(NoControllerLeft(plan.machine.clone()));
    }
    for (name, cgroup) in REST {
        let group = GroupConfig {
            bank_sets: sets.to_string(),
            exhaust: Exhaust::Spill,
            cgroups: vec![cgroup.to_owned()],
            ..GroupConfig::default()
        };
        config.groups.insert(name.to_owned(), group);
    }
    Ok(())
}

/// The cache colours that a group has to name: none where it has them all.
fn cache_colors(map: &AddrMap, list: &str) -> BTreeSet<u32> {
    let named = NumList::parse(list, map.n_llc()).ok();
    let colors: BTreeSet<u32> = named.iter().flat_map(NumList::iter).collect();
    match colors.len() as u32 == map.n_llc() {
        true => BTreeSet::new(),
        false => colors,
    }
}

/// All that the plan's limits need of the guard: each of these could make them
/// others, or none.
fn guard(plan: &Plan, platform: &Platform, event: &Event) -> BTreeMap<String, String> {
    let limits = plan.assignments.iter();
    let limits: BTreeMap<u32, u64> = limits.filter_map(|a| Some((a.core, a.limit?))).collect();
    // The guard promises 99 of 100 bytes of r_min. Limits may add up to more
    // than one bank can do: they hold tasks back and promise them nothing.
    let all: u64 = limits.values().sum();
    let r_min = (platform.memory.device.one_bank_bandwidth() as u64).max(all.div_ceil(99) * 100);
    let settings = [
        ("event", event.name.clone()),
        ("line", platform.memory.map.line_size().to_string()),
        ("write_event", "none".to_owned()),
        ("write_r_min", "0".to_owned()),
        ("period_us", (PERIOD_PS / 1_000_000).to_string()),
        ("r_min", r_min.to_string()),
        ("sharing", "none".to_owned()),
        ("count_kernel", "1".to_owned()),
        ("per_task", "0".to_owned()),
        ("stop", "anywhere".to_owned()),
    ];
    let named = settings.into_iter();
    named.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Takes out the event and what comes with it, so that the host's own stays.
pub(super) fn keep_event(config: &mut Config) {
    for key in ["event", "line", "write_event", "write_r_min"] {
        config.guard.remove(key);
    }
}
