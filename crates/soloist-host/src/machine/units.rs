//! Units that count events of processors.

use std::fs;

use crate::machine::host::Host;

/// Where the kernel lists all units that count.
pub(crate) const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

/// The units that count events of processors, Arm's by type: `armv8_cortex_a76`.
#[must_use]
pub fn event_units(host: &Host) -> Vec<String> {
    let entries = fs::read_dir(host.path(EVENT_SOURCES));
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_processors = |unit: &String| {
        (unit == "cpu"
            || unit == "cpu_core"
            || unit.starts_with("armv8")
            || unit.starts_with("armv9"))
            && host.has(&format!("{EVENT_SOURCES}/{unit}/events"))
    };
    let mut units: Vec<String> = names.filter(is_processors).collect();
    units.sort_unstable();
    units
}
