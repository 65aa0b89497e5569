//! A plan's configuration and the host that runs it: how they differ.

use std::collections::BTreeSet;
use std::fs;

use serde::{Serialize, Serializer};
use soloist_core::AddrMap;
use soloist_host::config::{plan as steps_to, Config, Steps};
use soloist_host::control::{Control, Guard, GuardCpu};
use soloist_host::machine::{siblings, Host};
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
    /// The kernel's servers that would run ordinary tasks before those with deadlines, in
    /// words: starting the plan's tasks, one turns them off.
    pub servers: Vec<String>,
}

impl Difference {
    /// Of `host`, which `control` is of, from `config`; `timed`: cores with deadlines.
    ///
    /// # Errors
    /// When the host's groups can't be read, or can never be as `config` says.
    pub fn new(
        host: &Host,
        control: &Control,
        config: &Config,
        map: &AddrMap,
        timed: &BTreeSet<u32>,
    ) -> Result<Self, HostError> {
        Ok(Self {
            steps: steps_to(config, Some(control), map, false)?,
            stopped: stopped(control, timed),
            servers: servers(host, timed),
        })
    }

    /// There is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.steps.steps.is_empty() && self.stopped.is_empty() && self.servers.is_empty()
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

/// Where the kernel has the settings of its scheduler.
const SCHED: &str = "/sys/kernel/debug/sched";

/// Servers on cores with deadlines that may run ordinary tasks first.
fn servers(host: &Host, timed: &BTreeSet<u32>) -> Vec<String> {
    let Ok(all) = fs::read_dir(host.path(SCHED)) else {
        let what = format!("{SCHED} can't be read, so it is not known whether the kernel runs ordinary tasks before those with deadlines: mount debugfs, and ask as root");
        return vec![what];
    };
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| name.ends_with("_server")).collect();
    let on = |name: &String, core: u32| {
        let path = format!("{SCHED}/{name}/cpu{core}/runtime");
        let runtime = host.text(&path).filter(|runtime| runtime != "0")?;
        Some(format!(
            "core {core}: the kernel's {name} may run ordinary tasks before those with deadlines, for {runtime} ns at a time: write 0 to {path}, from a task on that core (taskset -c {core}), or the kernel may warn"
        ))
    };
    let pairs = timed
        .iter()
        .flat_map(|&core| names.iter().map(move |name| (name, core)));
    pairs.filter_map(|(name, core)| on(name, core)).collect()
}

/// Why a bound may not hold on this host, and what to do; `None`: nothing is known against one.
/// Limits rest on `event`, if there are any. `timed`: cores with deadlines.
#[must_use]
pub fn doubt(event: Option<&Event>, host: &Host, timed: &BTreeSet<u32>) -> Option<String> {
    threads_run(host, timed).or_else(|| limits_doubted(event, host))
}

/// Hardware threads that share a core with deadlines, in words.
fn threads_run(host: &Host, timed: &BTreeSet<u32>) -> Option<String> {
    let shared = |&core: &u32| Some((core, siblings(host, core).first().copied()?));
    let (core, other) = timed.iter().find_map(shared)?;
    Some(format!(
        "CPU {other} is a hardware thread of core {core}, and no bound counts what it takes of the core: write 0 to /sys/devices/system/cpu/cpu{other}/online"
    ))
}

fn limits_doubted(event: Option<&Event>, host: &Host) -> Option<String> {
    let objection = event?.objection.as_ref().map(|why| {
        format!(
            "{why}; name an event that counts every line with --event (docs/reference/guard.md)"
        )
    });
    objection.or_else(|| stops_late(host))
}

/// Why tasks of a core with a limit may go on for longer than any bound counts, in words;
/// `None`: the kernel preempts them wherever they are.
fn stops_late(host: &Host) -> Option<String> {
    let version = host.text("/proc/version").unwrap_or_default();
    if version
        .split(' ')
        .any(|w| matches!(w, "PREEMPT" | "PREEMPT_RT"))
    {
        return None;
    }
    let path = format!("{SCHED}/preempt");
    match host.text(&path) {
        Some(model) if model.contains("(full)") || model.contains("(lazy)") => None,
        Some(model) => Some(format!(
            "this kernel stops a task at the end of a stretch of a system call ({path}: {model}): write full there, or boot with preempt=full"
        )),
        None => Some(format!(
            "it is not known whether this kernel preempts system calls ({path} can't be read)"
        )),
    }
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
