//! Whether a machine file fits this machine: its processor, modules and memory.

use soloist_machine::ram::RamRange;
use soloist_machine::{Machine, Trust};
use wildmatch::WildMatch;

use crate::machine::edac::{counted, memory_nodes, Counted};
use crate::machine::host::Host;
use crate::machine::memory::memory_ranges;
use crate::machine::node::real_nodes;
use crate::machine::objections::Objections;
use crate::machine::smbios::{modules, Modules};
use crate::machine::topology::cpu_name;

/// What a host says of itself, to hold a machine file against.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The CPU's model name, or the board's.
    pub cpu: Option<String>,
    /// Memory modules, as the firmware lists them (root).
    pub modules: Option<Modules>,
    /// Memory nodes.
    pub nodes: usize,
    /// Memory by node.
    pub ranges: Vec<RamRange>,
    /// What the kernel's drivers count.
    pub counted: Option<Counted>,
}

impl Facts {
    /// Those of `host`.
    #[must_use]
    pub fn of(host: &Host) -> Self {
        Self {
            cpu: cpu_name(host),
            modules: modules(host),
            nodes: real_nodes(host).len().max(1),
            ranges: memory_ranges(host),
            counted: counted(host),
        }
    }
}

/// Memory of a host that a map need not know, bytes: kernels round blocks up, and what devices
/// hide below 4 GiB lies above the end of a map that does not count it.
fn spare(host: &Facts) -> u64 {
    let all: u64 = host
        .ranges
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    (all / 4).min(2 << 30)
}

/// Holds a machine's file against a host: CPU, nodes, modules, memory. Maps of
/// virtual machines fit any CPU.
#[must_use]
pub fn objections(machine: &Machine, host: &Facts) -> Objections {
    let mut found = Objections::default();
    let globs = &machine.host.cpu;
    match &host.cpu {
        _ if machine.about.trust == Trust::Synthetic => {}
        Some(_) if globs.is_empty() => found.unknown.push("the file names no CPU".into()),
        Some(cpu) if globs.iter().any(|glob| WildMatch::new(glob).matches(cpu)) => {}
        Some(cpu) => found.against.push(format!(
            "the CPU is {cpu}, the file is for {}",
            globs.join(" or ")
        )),
        None => found.unknown.push("this host does not name its CPU".into()),
    }
    let nodes = nodes_of(machine);
    if host.nodes != nodes {
        found.against.push(format!(
            "this host has {} memory node{}, the file {nodes}",
            host.nodes,
            if host.nodes == 1 { "" } else { "s" }
        ));
    }
    let modules = host.modules.as_ref();
    for (what, want, have) in [
        (
            "channels",
            channels(machine),
            modules.and_then(|m| m.channels_of(memory_nodes(&machine.map))),
        ),
        (
            "memory modules",
            machine.host.dimms,
            modules.map(|m| m.dimms),
        ),
    ] {
        match (want, have) {
            (Some(want), Some(have)) if want != have => {
                found
                    .against
                    .push(format!("{have} {what}, the file is for {want}"));
            }
            (Some(want), None) => found.unknown.push(format!(
                "whether it has {want} {what}, as the file is for (root sees it)"
            )),
            _ => {}
        }
    }
    if host.ranges.is_empty() {
        found
            .unknown
            .push("where its memory lies (root sees it)".into());
    }
    let uncovered: u64 = host
        .ranges
        .iter()
        .map(|range| outside(machine, range))
        .sum();
    if uncovered > spare(host) {
        found.against.push(format!(
            "{} of this host's memory is not in the map, or on another node there",
            soloist_core::format_size(uncovered)
        ));
    }
    if let Some(counted) = &host.counted {
        let says = counted.against(&machine.map, machine.host.channels, machine.about.trust);
        found.against.extend(says.against);
        found.unknown.extend(says.unknown);
    }
    found
}

/// How many nodes a file has: a number that has neither processors nor memory is none.
fn nodes_of(machine: &Machine) -> usize {
    let cpus = machine.topology.cpus_of_nodes();
    let ranges = &machine.map.ranges;
    let has_memory = |node: usize| ranges.iter().any(|range| range.node as usize == node);
    let exists = |(node, cpus): &(usize, Vec<u32>)| !cpus.is_empty() || has_memory(*node);
    cpus.into_iter().enumerate().filter(exists).count()
}

/// Channels of all nodes, where the file names those of one.
fn channels(machine: &Machine) -> Option<u32> {
    let of_node = machine.host.channels?;
    Some(of_node.saturating_mul(memory_nodes(&machine.map)))
}

/// Bytes of a range that the map lacks, or has on another node.
fn outside(machine: &Machine, range: &RamRange) -> u64 {
    let shared = machine
        .map
        .ranges
        .iter()
        .filter(|known| known.node == range.node);
    let covered: u64 = shared
        .map(|known| {
            known
                .end
                .min(range.end)
                .saturating_sub(known.start.max(range.start))
        })
        .sum();
    (range.end - range.start).saturating_sub(covered)
}

/// How a known machine compares with this host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fit {
    /// Every property that the machine names and the host tells agrees.
    pub fits: bool,
    /// What agrees, differs or is not known, in words.
    pub reasons: Vec<String>,
}

/// Compares `machine` with `host`: CPU name, channels, modules, ranges.
#[must_use]
pub fn fit(host: &Host, machine: &Machine) -> Fit {
    fit_to(
        machine,
        cpu_name(host).as_deref(),
        modules(host).as_ref(),
        &memory_ranges(host),
    )
}

/// As [`fit`], for a host that is described.
#[must_use]
fn fit_to(
    machine: &Machine,
    cpu: Option<&str>,
    modules: Option<&Modules>,
    ranges: &[RamRange],
) -> Fit {
    let mut fit = Fit {
        fits: true,
        reasons: Vec::new(),
    };
    let host = &machine.host;
    match cpu {
        Some(cpu)
            if host
                .cpu
                .iter()
                .any(|glob| WildMatch::new(glob).matches(cpu)) =>
        {
            fit.reasons.push(format!("the CPU is {cpu}"));
        }
        Some(cpu) => fit.miss(format!("the CPU is {cpu}")),
        None => fit.miss("the CPU is not known".into()),
    }
    for (what, want, have) in [
        (
            "channels",
            channels(machine),
            modules.and_then(|m| m.channels_of(memory_nodes(&machine.map))),
        ),
        ("memory modules", host.dimms, modules.map(|m| m.dimms)),
    ] {
        match (want, have) {
            (Some(want), Some(have)) if want == have => {
                fit.reasons.push(format!("{have} {what}"));
            }
            (Some(want), Some(have)) => fit.miss(format!("{have} {what}, not {want}")),
            (Some(_), None) => fit.reasons.push(format!("{what}: not told by this host")),
            (None, _) => {}
        }
    }
    let outside = ranges.iter().find(|range| !covers(machine, range));
    if let Some(range) = outside {
        fit.miss(format!(
            "memory from {:#x} to {:#x} on node {} is not in the map",
            range.start,
            range.end - 1,
            range.node
        ));
    }
    fit
}

impl Fit {
    fn miss(&mut self, reason: String) {
        self.fits = false;
        self.reasons.push(reason);
    }
}

fn covers(machine: &Machine, range: &RamRange) -> bool {
    let mut at = range.start;
    for known in &machine.map.ranges {
        if known.start <= at && at < known.end && known.node == range.node {
            at = known.end;
        }
    }
    at >= range.end
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn another_machines_map_is_told() {
        let skylake = soloist_machine::known::find("skylake").unwrap();
        let range = |start, end, node| RamRange { start, end, node };
        let host = Facts {
            cpu: Some("Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz".into()),
            modules: Some(Modules {
                dimms: 2,
                channels: Some(2),
                names_nodes: true,
                bytes: 16 << 30,
            }),
            nodes: 1,
            ranges: vec![range(0, 0x8000_0000, 0), range(1 << 32, 0x3_8000_0000, 0)],
            counted: Some(Counted {
                by: "EDAC".into(),
                channels: 2,
                ranks: None,
                bytes: skylake.map.bytes(),
            }),
        };
        assert_eq!(objections(&skylake, &host), Objections::default());
        let other = |change: &dyn Fn(&mut Facts), says: &str| {
            let mut host = host.clone();
            change(&mut host);
            let against = objections(&skylake, &host).against;
            assert!(
                against.len() == 1 && against[0].contains(says),
                "{against:?}"
            );
        };
        other(&|h| h.cpu = Some("AMD EPYC".into()), "AMD EPYC");
        other(&|h| h.nodes = 2, "2 memory nodes");
        other(
            &|h| h.modules.as_mut().unwrap().channels = Some(1),
            "1 channels",
        );
        other(&|h| h.ranges.push(range(1 << 36, 1 << 37, 0)), "64 GiB");
        other(&|h| h.ranges[1].node = 1, "not in the map");
        other(
            &|h| h.counted.as_mut().unwrap().channels = 1,
            "EDAC counts 1 channel",
        );
        other(
            &|h| h.counted.as_mut().unwrap().bytes = 1 << 30,
            "EDAC counts 1 GiB",
        );
        let silent = objections(
            &skylake,
            &Facts {
                nodes: 1,
                ..Facts::default()
            },
        );
        assert!(silent.against.is_empty());
        assert_eq!(silent.unknown.len(), 3, "{silent:?}");
    }

    #[test]
    fn a_small_machine_is_held_against_the_map_too() {
        let small = soloist_machine::known::find("qemu-2node").unwrap();
        let against = |ranges: [(u64, u64, u8); 2]| {
            let range = |(start, end, node)| RamRange { start, end, node };
            let host = Facts {
                nodes: 2,
                ranges: ranges.map(range).into(),
                ..Facts::default()
            };
            objections(&small, &host).against
        };
        let half = 1 << 30;
        assert!(against([(0, half, 0), (half, 2 * half, 1)]).is_empty());
        let above = against([(4 * half, 5 * half, 0), (5 * half, 6 * half, 1)]);
        assert_eq!(
            above,
            ["2 GiB of this host's memory is not in the map, or on another node there"]
        );
        let swapped = against([(0, half, 1), (half, 2 * half, 0)]);
        assert_eq!(swapped, above);
        // The last block is rounded up.
        assert!(against([(0, half, 0), (half, 2 * half + (128 << 20), 1)]).is_empty());
    }

    /// A file names the channels of a node, the firmware those of the whole machine.
    #[test]
    fn channels_of_all_nodes_are_compared() {
        let opteron = soloist_machine::known::find("opteron-6128").unwrap();
        let modules = |channels| Modules {
            dimms: 16,
            channels: Some(channels),
            names_nodes: true,
            bytes: 32 << 30,
        };
        let against = |channels| {
            let host = Facts {
                modules: Some(modules(channels)),
                nodes: 4,
                ..Facts::default()
            };
            objections(&opteron, &host).against
        };
        assert!(against(8).is_empty(), "{:?}", against(8));
        assert_eq!(against(4), ["4 channels, the file is for 8"]);
        let fits = |channels| {
            let cpu = "AMD Opteron(tm) Processor 6128";
            fit_to(&opteron, Some(cpu), Some(&modules(channels)), &[])
        };
        assert!(fits(8).fits, "{:?}", fits(8));
        assert!(!fits(2).fits, "{:?}", fits(2));
    }

    #[test]
    fn globs() {
        let glob_matches = |glob, text| WildMatch::new(glob).matches(text);
        assert!(glob_matches(
            "AMD Opteron(tm) Processor 6128*",
            "AMD Opteron(tm) Processor 6128 HE"
        ));
        assert!(glob_matches(
            "*W3530*",
            "Intel(R) Xeon(R) CPU           W3530  @ 2.80GHz"
        ));
        assert!(!glob_matches("AMD Ryzen ? 3?00*", "AMD EPYC"));
    }
}
