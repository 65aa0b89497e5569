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
    /// Whose cores count.
    #[serde(skip)]
    cores: Cores,
}

/// What an event counts depends on it.
#[derive(Debug, Clone, Copy)]
struct Cores {
    /// They have a prefetcher.
    prefetch: bool,
    /// They are AMD's.
    of_amd: bool,
}

/// How hosts of Arm's processors are named in machine files.
const ARM: [&str; 3] = ["Cortex-", "Raspberry Pi", "Orin"];

/// Why a limit by this event may not hold: a bound counts what reads push out, and nothing
/// pays for a store that goes past the caches, nor for a hit.
fn unfit(name: &str, cores: Cores) -> Option<String> {
    let is_default = name == "LLC-misses";
    let stores = || {
        is_default.then(|| {
            "LLC-misses does not count stores that go past the caches, as those of a large memcpy(3) do"
                .to_owned()
        })
    };
    let why = objection(name, cores.prefetch).or_else(stores);
    let hits = (is_default && cores.of_amd)
        .then(|| "on AMD's processors it counts hits of the L3".to_owned());
    let all: Vec<String> = why.into_iter().chain(hits).collect();
    (!all.is_empty()).then(|| all.join("; "))
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
        let cores = Cores {
            prefetch: memory.is_none_or(|memory| memory.core.prefetch),
            of_amd: machine.host.cpu.iter().any(|cpu| cpu.contains("AMD")),
        };
        let arm = |cpu: &String| ARM.iter().any(|name| cpu.contains(name));
        let name = named.unwrap_or(match machine.host.cpu.iter().any(arm) {
            true => "bus-accesses",
            false => "LLC-misses",
        });
        Some(Self {
            name: name.to_owned(),
            stop: plan.set.stop,
            named: named.is_some(),
            objection: unfit(name, cores),
            cores,
        })
    }

    /// Returns the same of the event that a host counts.
    #[must_use]
    pub fn on_host(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            stop: self.stop,
            named: self.named,
            objection: unfit(name, self.cores),
            cores: self.cores,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_of_an_amd_are_hits_too() {
        let cores = |of_amd| Cores {
            prefetch: false,
            of_amd,
        };
        let says = |name, of_amd| {
            let why = unfit(name, cores(of_amd));
            why.is_some_and(|why| why.contains("hits of the L3"))
        };
        assert!(says("LLC-misses", true));
        assert!(!says("LLC-misses", false));
        assert!(!says("cpu-clock", true));
        assert!(unfit("dram-fills", cores(true)).is_some());
    }
}
