//! Processors: their event counters, cache ways and isolation.

use std::fs;

use super::Check;
use crate::machine::{core_types, event_units, CoreType, Host, EVENT_SOURCES};

/// Events of memory traffic that Arm's cores have, by their part numbers.
fn traffic_events(host: &Host) -> Vec<String> {
    let of_type = |core: CoreType| match core.events {
        Some(events) => format!("{} (CPUs {}): {}", core.name, core.cpus, events.join(", ")),
        None => format!(
            "{} (CPUs {}): which events it has is not known",
            core.name, core.cpus
        ),
    };
    core_types(host).into_iter().map(of_type).collect()
}

/// What AMD's processors count as `LLC-misses`, and which of them have something better
/// (kernel/compat/x86/raw_event.h).
fn misses_of_amd(host: &Host) -> Option<&'static str> {
    let info = host.text("/proc/cpuinfo")?;
    let value = |key: &str| {
        let pairs = info.lines().filter_map(|line| line.split_once(':'));
        let mut values = pairs.filter(|(name, _)| name.trim() == key);
        values.next().map(|(_, value)| value.trim())
    };
    if value("vendor_id")? != "AuthenticAMD" {
        return None;
    }
    Some(match value("cpu family")? {
        "25" | "26" => {
            "LLC-misses are misses of the L2 here: hits of the L3 use up budgets; dram-fills \
             counts no such hits, nor what the L2's prefetcher fetches"
        }
        _ => "LLC-misses are misses of the L2 here: hits of the L3 use up budgets",
    })
}

pub(super) fn pmu(host: &Host) -> Check {
    let name = "PMU";
    let units = event_units(host);
    if units.is_empty() {
        return Check::warn(
            name,
            "no processor events here (usual in a virtual machine)",
            "no bandwidth can be reserved before `soloist guard set --event page-faults`",
        );
    }
    let named = |unit: &String| {
        let entries = fs::read_dir(host.path(&format!("{EVENT_SOURCES}/{unit}/events")));
        let events = entries.map_or(0, |entries| entries.count());
        match units.len() {
            1 => format!("{events} named events"),
            _ => format!("{unit}: {events} named events"),
        }
    };
    let mut found: Vec<String> = units.iter().map(named).collect();
    found.extend(traffic_events(host));
    found.extend(misses_of_amd(host).map(str::to_owned));
    Check::ok(name, found.join("; "))
}

pub(super) fn resctrl(host: &Host) -> Check {
    let name = "resctrl";
    let known = host
        .text("/proc/filesystems")
        .is_some_and(|text| text.lines().any(|l| l.ends_with("resctrl")));
    let flags = host.text("/proc/cpuinfo").unwrap_or_default();
    let features: Vec<&str> = ["cat_l3", "cat_l2", "mba", "cqm_llc", "cqm_mbm_total"]
        .into_iter()
        .filter(|f| flags.split_whitespace().any(|word| word == *f))
        .collect();
    match (known, features.is_empty()) {
        (true, false) => Check::ok(name, format!("offers {}", features.join(", "))),
        // Arm's processors name none of it in /proc/cpuinfo.
        (true, true) => Check::ok(
            name,
            "offered; once mounted, /sys/fs/resctrl/info says what",
        ),
        (false, true) => Check::ok(name, "this processor offers none (LLC colours do without)"),
        (false, false) => Check::warn(
            name,
            format!(
                "the processor offers {}, the kernel does not",
                features.join(", ")
            ),
            "boot a kernel with CONFIG_X86_CPU_RESCTRL",
        ),
    }
}

pub(super) fn isolation(host: &Host) -> Check {
    let name = "isolated CPUs";
    let list = |path| host.text(path).filter(|t| !t.is_empty() && t != "(null)");
    let isolated = list("/sys/devices/system/cpu/isolated");
    let tickless = list("/sys/devices/system/cpu/nohz_full");
    match isolated {
        Some(cpus) => Check::ok(
            name,
            format!("{cpus}; without ticks: {}", tickless.as_deref().unwrap_or("none")),
        ),
        None => Check::warn(
            name,
            "none",
            "for hard real time boot with isolcpus=LIST nohz_full=LIST; `soloist run --cpus LIST` puts a task there",
        ),
    }
}
