//! Types of Arm's cores, by the part number of MIDR_EL1, and which of the events that
//! count memory traffic each has, by its Technical Reference Manual and the lists of
//! Linux' tools/perf/pmu-events/arch/arm64/arm. None was counted on such a core here. How
//! exact they are on an RK3588 and an AGX Orin: A. Pradhan et al., Predictable Memory
//! Bandwidth Regulation for DynamIQ Arm Systems, RTCSA 2025.

use std::collections::BTreeMap;

use soloist_core::{cpu_list, NumList, MAX_CPUS};

use crate::machine::host::Host;

/// Arm Limited, as MIDR_EL1 names it.
const ARM: u32 = 0x41;

/// Events by Arm's names, and ours of some.
pub(crate) const EVENTS: [&str; 9] = [
    "BUS_ACCESS",
    "bus-accesses",
    "bus-reads",
    "bus-writes",
    "L2D_CACHE_REFILL",
    "L2-refills",
    "L3D_CACHE_REFILL",
    "LL_CACHE_MISS_RD",
    "MEM_ACCESS_WR",
];

/// Events of an L3, which cores lack whose last level is the L2.
const OF_L3: [&str; 2] = ["L3D_CACHE_REFILL", "LL_CACHE_MISS_RD"];

/// Part number, name, the [`EVENTS`] that it lacks.
const KNOWN: [(u32, &str, &[&str]); 9] = [
    // Its manual has no event of stores.
    (0xd03, "Cortex-A53", &[OF_L3[0], OF_L3[1], "MEM_ACCESS_WR"]),
    (0xd05, "Cortex-A55", &[]),
    (0xd07, "Cortex-A57", &OF_L3),
    (0xd08, "Cortex-A72", &OF_L3),
    (0xd0b, "Cortex-A76", &[]),
    (0xd0c, "Neoverse N1", &[]),
    (0xd0d, "Cortex-A77", &[]),
    (0xd41, "Cortex-A78", &[]),
    (0xd42, "Cortex-A78AE", &[]),
];

/// Cores of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreType {
    /// `Cortex-A76`; a part that is not known is named by its number.
    pub name: String,
    /// Events of memory traffic that it has; `None`: not known.
    pub events: Option<Vec<&'static str>>,
    /// Its processors.
    pub cpus: NumList,
}

/// The types of this machine's cores, by part number; empty where it has none of Arm's.
#[must_use]
pub fn core_types(host: &Host) -> Vec<CoreType> {
    let mut by_part: BTreeMap<(u32, u32), NumList> = BTreeMap::new();
    for (cpu, part) in parts(host) {
        let cpus = by_part
            .entry(part)
            .or_insert_with(|| NumList::new(MAX_CPUS));
        cpus.insert(cpu);
    }
    let named = |((implementer, part), cpus): ((u32, u32), NumList)| {
        let is_it = |(known, _, _): &&(u32, &str, _)| implementer == ARM && *known == part;
        let known = KNOWN.iter().find(is_it);
        CoreType {
            name: known.map_or_else(
                || format!("part {part:#x} of implementer {implementer:#x}"),
                |(_, name, _)| (*name).to_owned(),
            ),
            events: known.map(|(_, _, lacks)| all_but(lacks)),
            cpus,
        }
    };
    by_part.into_iter().map(named).collect()
}

fn all_but(lacks: &[&str]) -> Vec<&'static str> {
    let all = EVENTS.into_iter();
    all.filter(|event| !lacks.contains(event)).collect()
}

/// Why cores of this machine do not count `event`, which the guard knows; `None`: all
/// do, or it is not known.
#[must_use]
pub fn lacking_event(host: &Host, event: &str) -> Option<String> {
    let types = core_types(host);
    if !EVENTS.contains(&event) || types.is_empty() {
        return None;
    }
    types.iter().find_map(|core| {
        let has = core.events.as_ref()?;
        (!has.contains(&event)).then(|| {
            let (name, cpus, has) = (&core.name, &core.cpus, has.join(", "));
            format!("{event}: {name} (CPUs {cpus}) does not count it; it has {has}")
        })
    })
}

/// Each processor's implementer and part: from MIDR_EL1, else from /proc/cpuinfo.
fn parts(host: &Host) -> Vec<(u32, (u32, u32))> {
    let online = host.text("/sys/devices/system/cpu/online");
    let online = online.and_then(|list| cpu_list(&list).ok());
    let midr = |cpu: u32| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1");
        let text = host.text(&file)?;
        let midr = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
        Some((
            cpu,
            ((midr >> 24 & 0xff) as u32, (midr >> 4 & 0xfff) as u32),
        ))
    };
    let cpus = online.iter().flat_map(NumList::iter);
    let found: Vec<_> = cpus.filter_map(midr).collect();
    match found.is_empty() {
        true => listed(&host.read("/proc/cpuinfo").unwrap_or_default()),
        false => found,
    }
}

/// The same from the lines that arm64's cpuinfo has for each processor.
fn listed(info: &str) -> Vec<(u32, (u32, u32))> {
    let (mut cpu, mut implementer, mut found) = (None, None, Vec::new());
    for (key, value) in info.lines().filter_map(|line| line.split_once(':')) {
        let hex = || u32::from_str_radix(value.trim().strip_prefix("0x")?, 16).ok();
        match key.trim() {
            "processor" => cpu = value.trim().parse().ok(),
            "CPU implementer" => implementer = hex(),
            "CPU part" => {
                if let (Some(cpu), Some(implementer), Some(part)) = (cpu, implementer, hex()) {
                    found.push((cpu, (implementer, part)));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn host(parts: &[u64]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let cpus = root.path().join("sys/devices/system/cpu");
        for (cpu, part) in parts.iter().enumerate() {
            let regs = cpus.join(format!("cpu{cpu}/regs/identification"));
            std::fs::create_dir_all(&regs).unwrap();
            let midr = 0x410f_0000u64 | part << 4 | 1;
            std::fs::write(regs.join("midr_el1"), format!("{midr:#018x}\n")).unwrap();
        }
        let last = parts.len() - 1;
        std::fs::write(cpus.join("online"), format!("0-{last}\n")).unwrap();
        let host = Host::at(root.path());
        (root, host)
    }

    /// An RK3588, a Raspberry Pi 4, an i.MX 8M Plus.
    #[test]
    fn events_go_by_the_part_number() {
        let (_root, rk3588) = host(&[0xd05, 0xd05, 0xd05, 0xd05, 0xd0b, 0xd0b, 0xd0b, 0xd0b]);
        let types = core_types(&rk3588);
        let said: Vec<String> = types
            .iter()
            .map(|t| format!("{} {}", t.name, t.cpus))
            .collect();
        assert_eq!(said, ["Cortex-A55 0-3", "Cortex-A76 4-7"]);
        assert_eq!(lacking_event(&rk3588, "L3D_CACHE_REFILL"), None);

        let (_root, pi4) = host(&[0xd08; 4]);
        let said = lacking_event(&pi4, "L3D_CACHE_REFILL").unwrap();
        assert!(
            said.starts_with("L3D_CACHE_REFILL: Cortex-A72 (CPUs 0-3) does not"),
            "{said}"
        );
        assert!(said.contains("L2D_CACHE_REFILL"), "{said}");
        assert_eq!(lacking_event(&pi4, "MEM_ACCESS_WR"), None);

        let (_root, imx8) = host(&[0xd03; 4]);
        assert!(lacking_event(&imx8, "MEM_ACCESS_WR").is_some());
        assert_eq!(lacking_event(&imx8, "BUS_ACCESS"), None);
        assert_eq!(lacking_event(&imx8, "page-faults"), None);
    }

    #[test]
    fn a_core_that_is_not_known_is_named_and_lacks_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let info = "processor\t: 0\nCPU implementer\t: 0x61\nCPU part\t: 0x023\n\n\
                    processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        std::fs::write(root.path().join("proc/cpuinfo"), info).unwrap();
        let host = Host::at(root.path());
        let types = core_types(&host);
        assert_eq!(types[0].name, "Neoverse N1");
        assert_eq!(types[1].name, "part 0x23 of implementer 0x61");
        assert_eq!(types[1].events, None);
        assert_eq!(lacking_event(&host, "LL_CACHE_MISS_RD"), None);
        // An x86 host.
        std::fs::write(root.path().join("proc/cpuinfo"), "processor : 0\n").unwrap();
        assert!(core_types(&host).is_empty());
        assert_eq!(lacking_event(&host, "LL_CACHE_MISS_RD"), None);
    }
}
