//! A plan's configuration and the host that runs it: how they differ.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use soloist_core::AddrMap;
use soloist_host::config::{plan as steps_to, Config, Steps};
use soloist_host::control::{Control, Guard, GuardCpu};
use soloist_host::HostError;

use super::config::keep_event;
use super::event::Event;

/// The difference between a host and a plan.
#[derive(Serialize)]
pub struct Difference {
    /// Steps that make it as the plan says; as they are printed.
    #[serde(serialize_with = "printed")]
    pub steps: Steps,
    /// Reservations that would stop tasks with deadlines, and what to do, in words.
    pub stopped: Vec<String>,
}

impl Difference {
    /// Of the host from `config`; `timed`: cores with deadlines.
    ///
    /// # Errors
    /// When the host's groups can't be read, or can never be as `config` says.
    pub fn new(
        control: &Control,
        config: &Config,
        map: &AddrMap,
        timed: &BTreeSet<u32>,
    ) -> Result<Self, HostError> {
        Ok(Self {
            steps: steps_to(config, Some(control), map, false)?,
            stopped: stopped(control, timed),
        })
    }

    /// There is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.steps.steps.is_empty() && self.stopped.is_empty()
    }
}

fn printed<S: Serializer>(steps: &Steps, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.steps.iter().map(ToString::to_string))
}

/// Has the plan's limits rest on the event that the host counts already, which it
/// returns.
///
/// # Errors
/// When the host's guard can't be read.
pub fn take_hosts_event(
    control: &Control,
    config: &mut Config,
    event: &Event,
) -> Result<Event, HostError> {
    keep_event(config);
    let settings = Guard::open(control)?.settings()?;
    Ok(event.on_host(settings.get("event").map_or("", String::as_str)))
}

/// Reservations that would stop tasks with deadlines.
fn stopped(control: &Control, timed: &BTreeSet<u32>) -> Vec<String> {
    // Without a guard nobody is stopped.
    let view = Guard::open(control).and_then(|guard| guard.view());
    let cpus = view.map_or_else(|_| Vec::new(), |view| view.cpus);
    let stopped = cpus
        .iter()
        .filter(|cpu| timed.contains(&cpu.cpu) && cpu.bandwidth != "off");
    let line = |cpu: &GuardCpu| {
        format!(
            "core {} has a reservation of bandwidth ({}), which would stop its tasks with deadlines: take it away (`soloist guard set {}:off`, or its group's)",
            cpu.cpu, cpu.bandwidth, cpu.cpu
        )
    };
    stopped.map(line).collect()
}
