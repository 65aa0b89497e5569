//! What counts the lines that a plan's limits are made of.

use serde::Serialize;
use soloist_core::time::Time;
use soloist_host::control::{objection, proviso};
use soloist_machine::Machine;

use super::Plan;

/// The event of a plan that has limits.
#[derive(Debug, Serialize)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// So long a core may go on that has used its budget up.
    pub stop: Time,
    /// The user named it.
    pub named: bool,
    /// The reason why the limits may not hold.
    pub objection: Option<String>,
    /// The machine has a prefetcher.
    #[serde(skip)]
    prefetches: bool,
}

/// How hosts of Arm's processors are named in machine files.
const ARM: [&str; 3] = ["Cortex-", "Raspberry Pi", "Orin"];

/// Why a limit by this event may not hold: a bound counts what reads push out, and nothing
/// pays for a store that goes past the caches.
fn unfit(name: &str, prefetches: bool) -> Option<String> {
    let stores = || {
        (name == "LLC-misses").then(|| {
            "LLC-misses does not count stores that go past the caches, as those of a large memcpy(3) do"
                .to_owned()
        })
    };
    objection(name, prefetches).or_else(stores)
}

impl Event {
    /// Returns the event that the user named, else one that counts every line of the
    /// machine's cores, if one is known; `None`: the plan has no limits.
    #[must_use]
    pub fn of(named: Option<&str>, machine: &Machine, plan: &Plan) -> Option<Self> {
        if plan.assignments.iter().all(|a| a.limit.is_none()) {
            return None;
        }
        let memory = machine.memory.as_ref();
        let prefetches = memory.is_none_or(|memory| memory.core.prefetch);
        let arm = |cpu: &String| ARM.iter().any(|name| cpu.contains(name));
        let name = named.unwrap_or(match machine.host.cpu.iter().any(arm) {
            true => "bus-accesses",
            false => "LLC-misses",
        });
        Some(Self {
            name: name.to_owned(),
            stop: plan.set.stop,
            named: named.is_some(),
            objection: unfit(name, prefetches),
            prefetches,
        })
    }

    /// Returns the same of the event that a host counts.
    #[must_use]
    pub fn on_host(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            stop: self.stop,
            named: self.named,
            objection: unfit(name, self.prefetches),
            prefetches: self.prefetches,
        }
    }

    /// Returns how soon a core must stop, in words.
    #[must_use]
    pub fn says_when(&self) -> String {
        format!(
            "limits hold if a core stops within {} when its budget is used up, so not with voluntary preemption",
            self.stop
        )
    }

    /// Returns it in words.
    #[must_use]
    pub fn says(&self) -> String {
        let name = &self.name;
        match (&self.objection, proviso(name)) {
            (Some(why), _) => format!("limits may not hold: {why} (--event names another)"),
            (None, Some(proviso)) => format!("limits hold as {name} counts: {proviso}"),
            (None, None) => format!("limits hold as {name} counts"),
        }
    }
}
