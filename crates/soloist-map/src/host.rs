//! What this machine is: CPU, memory ranges, modules. Everything is read from
//! /proc and /sys; what can't be read is left out, never guessed.

use std::fs;

use soloist_machine::ram::{join, parse_iomem, RamRange};
use soloist_machine::{Machine, Topology, Trust};

use crate::edac::Counted;
use crate::objections::Objections;

/// Memory on both sides of less than this has one place.
const HOLE: u64 = 64 << 20;
/// Below it x86 hides memory behind devices.
const FOUR_GIB: u64 = 4 << 30;

/// The CPU's model name; on arm64, where cpuinfo has none, the board's.
#[must_use]
pub fn cpu_name() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    field("model name").or_else(|| {
        let model = fs::read("/proc/device-tree/model").ok()?;
        Some(
            String::from_utf8_lossy(&model)
                .trim_end_matches('\0')
                .to_owned(),
        )
    })
}

/// Whether no hypervisor announces itself.
#[must_use]
pub fn is_bare_metal() -> bool {
    crate::guest::sign().is_none()
}

/// Ranges of memory by node, from the kernel's memory blocks; neighbours of one node are
/// one. A block may be memory in part only: /proc/iomem tells root where it begins and
/// ends. Without nodes in sysfs all is from there, or empty.
#[must_use]
pub fn memory_ranges() -> Vec<RamRange> {
    let blocks = block_ranges().unwrap_or_default();
    let iomem = fs::read_to_string("/proc/iomem").unwrap_or_default();
    let ram = parse_iomem(&iomem);
    match (blocks.as_slice(), ram.as_slice()) {
        ([], _) => ram,
        (_, []) => blocks,
        _ => blocks
            .iter()
            .flat_map(|block| trimmed(block, &ram))
            .collect(),
    }
}

/// What of a run of blocks is memory. What firmware keeps here and there is left in, but
/// not a hole, nor what lies on both sides of 4 GiB.
fn trimmed(block: &RamRange, ram: &[RamRange]) -> Vec<RamRange> {
    let mut kept: Vec<RamRange> = Vec::new();
    for range in ram {
        let (start, end) = (range.start.max(block.start), range.end.min(block.end));
        if start >= end {
            continue;
        }
        match kept.last_mut() {
            Some(last) if start - last.end < HOLE && (last.end > FOUR_GIB || start < FOUR_GIB) => {
                last.end = end;
            }
            _ => kept.push(RamRange {
                start,
                end,
                ..*block
            }),
        }
    }
    kept
}

fn block_ranges() -> Option<Vec<RamRange>> {
    let size = fs::read_to_string("/sys/devices/system/memory/block_size_bytes").ok()?;
    let size = u64::from_str_radix(size.trim(), 16).ok()?;
    let mut blocks = Vec::new();
    for entry in fs::read_dir("/sys/devices/system/node").ok()?.flatten() {
        let name = entry.file_name();
        let Some(node) = name.to_str().and_then(|n| n.strip_prefix("node")) else {
            continue;
        };
        let Ok(node) = node.parse::<u8>() else {
            continue;
        };
        for link in fs::read_dir(entry.path()).ok()?.flatten() {
            let name = link.file_name();
            let number = name.to_str().and_then(|n| n.strip_prefix("memory"));
            if let Some(Ok(number)) = number.map(str::parse::<u64>) {
                blocks.push((number * size, node));
            }
        }
    }
    blocks.sort_unstable();
    Some(join(blocks.into_iter().map(|(start, node)| RamRange {
        start,
        end: start + size,
        node,
    })))
}

/// Memory that can be had without swapping (`MemAvailable`).
#[must_use]
pub fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// Bytes of transparent or reserved huge pages in the mapping that holds `at`.
#[must_use]
pub fn huge_bytes_at(at: u64) -> u64 {
    let Ok(smaps) = fs::read_to_string("/proc/self/smaps") else {
        return 0;
    };
    let mut inside = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        let head = line.split_whitespace().next().unwrap_or_default();
        if let Some((start, end)) = head.split_once('-') {
            let hex = |text| u64::from_str_radix(text, 16).ok();
            if let (Some(start), Some(end)) = (hex(start), hex(end)) {
                inside = (start..end).contains(&at);
            }
        }
        let huge = ["AnonHugePages:", "Private_Hugetlb:", "Shared_Hugetlb:"].contains(&head);
        if inside && huge {
            let kib = line
                .split_whitespace()
                .nth(1)
                .and_then(|n| n.parse::<u64>().ok());
            bytes += kib.unwrap_or(0) << 10;
        }
    }
    bytes
}

/// Nodes, their CPUs and distances, from sysfs; one node where it tells none.
#[must_use]
pub fn topology() -> Topology {
    let read = |path: String| {
        fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let root = "/sys/devices/system";
    let nodes: Vec<u32> = read(format!("{root}/node/online"))
        .and_then(|list| soloist_core::cpu_list(&list).ok())
        .map_or_else(Vec::new, |list| list.iter().collect());
    let cpus: Vec<String> = nodes
        .iter()
        .filter_map(|node| read(format!("{root}/node/node{node}/cpulist")))
        .collect();
    let distances = nodes
        .iter()
        .filter_map(|node| read(format!("{root}/node/node{node}/distance")))
        .map(|row| {
            row.split_whitespace()
                .filter_map(|d| d.parse().ok())
                .collect()
        })
        .collect();
    if cpus.is_empty() || cpus.len() != nodes.len() {
        let all = read(format!("{root}/cpu/online")).unwrap_or_else(|| "0".into());
        return Topology {
            sockets: 1,
            cpus: vec![all],
            distances: Vec::new(),
            clock_mhz: None,
        };
    }
    let packages: std::collections::BTreeSet<String> = fs::read_dir(format!("{root}/cpu"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path().join("topology/physical_package_id");
            fs::read_to_string(path).ok()
        })
        .collect();
    Topology {
        sockets: (packages.len().clamp(1, cpus.len())) as u32,
        cpus,
        distances,
        clock_mhz: None,
    }
}

/// Memory modules as the firmware lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Modules {
    /// Populated sockets.
    pub dimms: u32,
    /// Different channels that the locators name, when they do.
    pub channels: Option<u32>,
    /// Bytes in all.
    pub bytes: u64,
}

/// Modules from the SMBIOS table (root); `None` when it can't be read.
#[must_use]
pub fn modules() -> Option<Modules> {
    fs::read("/sys/firmware/dmi/tables/DMI")
        .ok()
        .map(|table| parse_smbios(&table))
}

/// Reads the memory devices (type 17) of an SMBIOS structure table.
#[must_use]
pub fn parse_smbios(table: &[u8]) -> Modules {
    let mut modules = Modules::default();
    let mut channels = std::collections::BTreeSet::new();
    let mut at = 0;
    while let Some(&[kind, length, ..]) = table.get(at..at + 4) {
        let length = usize::from(length);
        let Some(body) = table.get(at..at + length).filter(|_| length >= 4) else {
            break;
        };
        let strings = &table[at + length..];
        let end = strings.windows(2).position(|pair| pair == [0, 0]);
        if kind == 17 {
            if let Some(bytes) = module_bytes(body) {
                modules.dimms += 1;
                modules.bytes += bytes;
                let locators = [body.get(0x10), body.get(0x11)];
                let channel = locators
                    .into_iter()
                    .flatten()
                    .filter_map(|&index| string_at(strings, index))
                    .find_map(|name| channel_of(&name));
                channels.extend(channel);
            }
        }
        let Some(end) = end.filter(|_| kind != 127) else {
            break;
        };
        at += length + end + 2;
    }
    modules.channels = (!channels.is_empty()).then_some(channels.len() as u32);
    modules
}

fn module_bytes(body: &[u8]) -> Option<u64> {
    let size = u16::from_le_bytes(body.get(0x0c..0x0e)?.try_into().ok()?);
    match size {
        0 | 0xffff => None,
        0x7fff => {
            let extended = u32::from_le_bytes(body.get(0x1c..0x20)?.try_into().ok()?);
            Some(u64::from(extended & 0x7fff_ffff) << 20)
        }
        kib if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) << 10),
        mib => Some(u64::from(mib) << 20),
    }
}

fn string_at(strings: &[u8], index: u8) -> Option<String> {
    let text = strings
        .split(|&byte| byte == 0)
        .nth(usize::from(index.checked_sub(1)?))?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// `Channel A`, `ChannelB-DIMM0`, `P0 CHANNEL C`: node and letter or number.
fn channel_of(locator: &str) -> Option<String> {
    let upper = locator.to_ascii_uppercase();
    let at = upper.find("CHANNEL")?;
    let name: String = upper[at + 7..]
        .trim_start_matches([' ', '_', '-'])
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    (!name.is_empty()).then(|| format!("{}{name}", &upper[..at]))
}

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
    /// This host's.
    #[must_use]
    pub fn here() -> Self {
        Self {
            cpu: cpu_name(),
            modules: modules(),
            nodes: topology().nodes(),
            ranges: memory_ranges(),
            counted: crate::edac::read(),
        }
    }
}

/// Memory of a host that a map need not know: kernels round blocks up.
const SPARE_BLOCKS: u64 = 2 << 30;

/// Holds a machine's file against a host: CPU, nodes, modules, memory. Maps of
/// virtual machines fit any CPU.
#[must_use]
pub fn objections(machine: &Machine, host: &Facts) -> Objections {
    let mut found = Objections::default();
    let globs = &machine.host.cpu;
    match &host.cpu {
        _ if machine.about.trust == Trust::Synthetic => {}
        Some(_) if globs.is_empty() => found.unknown.push("the file names no CPU".into()),
        Some(cpu) if globs.iter().any(|glob| glob_matches(glob, cpu)) => {}
        Some(cpu) => found.against.push(format!(
            "the CPU is {cpu}, the file is for {}",
            globs.join(" or ")
        )),
        None => found.unknown.push("this host does not name its CPU".into()),
    }
    let nodes = machine.topology.nodes();
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
            machine.host.channels,
            modules.and_then(|m| m.channels),
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
    if uncovered > SPARE_BLOCKS {
        found.against.push(format!(
            "{} of this host's memory is not in the map",
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

/// Compares `machine` with this host: CPU name, channels, modules, ranges.
#[must_use]
pub fn fit(machine: &Machine) -> Fit {
    fit_to(
        machine,
        cpu_name().as_deref(),
        modules().as_ref(),
        &memory_ranges(),
    )
}

/// As [`fit`], for a host that is described.
#[must_use]
pub fn fit_to(
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
        Some(cpu) if host.cpu.iter().any(|glob| glob_matches(glob, cpu)) => {
            fit.reasons.push(format!("the CPU is {cpu}"));
        }
        Some(cpu) => fit.miss(format!("the CPU is {cpu}")),
        None => fit.miss("the CPU is not known".into()),
    }
    for (what, want, have) in [
        ("channels", host.channels, modules.and_then(|m| m.channels)),
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

/// Shell-like globs: `*` any characters, `?` one.
#[must_use]
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    g = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|&c| c == '*')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_machines_map_is_told() {
        let skylake = soloist_machine::known::find("skylake").unwrap();
        let range = |start, end, node| RamRange { start, end, node };
        let host = Facts {
            cpu: Some("Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz".into()),
            modules: Some(Modules {
                dimms: 2,
                channels: Some(2),
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

    /// Blocks of 2 GiB cover the hole, and more than there is at the end.
    #[test]
    fn blocks_are_cut_to_the_memory_in_them() {
        let range = |start, end| RamRange {
            start,
            end,
            node: 1,
        };
        let ram = parse_iomem(
            "00001000-0009ffff : System RAM\n00100000-9b8aefff : System RAM\n\
             9b8b0000-d9ffefff : System RAM\n100000000-41e5fffff : System RAM\n\
             480000000-4bfffffff : System RAM\n",
        );
        let kept = trimmed(&range(0, 0x4_8000_0000), &ram);
        let low = range(0x1000, 0xd9ff_f000);
        assert_eq!(kept, [low, range(0x1_0000_0000, 0x4_1e60_0000)]);
        assert_eq!(trimmed(&range(0x4_4000_0000, 0x4_8000_0000), &ram), []);
    }

    #[test]
    fn globs() {
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

    #[test]
    fn reads_modules_from_smbios() {
        let mut table = vec![17u8, 0x22, 1, 0];
        table.resize(0x22, 0);
        table[0x0c..0x0e].copy_from_slice(&8192u16.to_le_bytes());
        table[0x10] = 1;
        table.extend(b"ChannelA-DIMM0\0\0");
        let second = table.clone();
        table.extend(second);
        table.extend([127, 4, 0, 0, 0, 0]);
        let modules = parse_smbios(&table);
        assert_eq!(
            modules,
            Modules {
                dimms: 2,
                channels: Some(1),
                bytes: 16 << 30
            }
        );
    }

    proptest! {
        #[test]
        fn smbios_never_panics(table in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_smbios(&table);
        }
    }
}
