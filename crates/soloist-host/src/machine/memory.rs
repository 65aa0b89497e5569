//! Memory by address: where it lies, how much is free, and which of it is in huge pages.

use std::fs;

use soloist_machine::ram::{join, parse_iomem, RamRange};

use crate::machine::cgroup::memory_left;
use crate::machine::host::Host;
use crate::machine::node::real_node;

/// Memory on both sides of less than this has one place.
const HOLE: u64 = 64 << 20;
/// Below it x86 hides memory behind devices.
const FOUR_GIB: u64 = 4 << 30;

/// Ranges of memory by node, from the kernel's memory blocks; neighbours of one node are
/// one, and so are those that `numa=fake` made of one. A block may be memory in part
/// only: /proc/iomem tells root where it begins and
/// ends. Without nodes in sysfs all is from there, or empty.
#[must_use]
pub fn memory_ranges(host: &Host) -> Vec<RamRange> {
    let blocks = block_ranges(host).unwrap_or_default();
    let iomem = host.read("/proc/iomem").unwrap_or_default();
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

fn block_ranges(host: &Host) -> Option<Vec<RamRange>> {
    let size = host.text("/sys/devices/system/memory/block_size_bytes")?;
    let size = u64::from_str_radix(&size, 16).ok()?;
    let mut blocks = Vec::new();
    for entry in fs::read_dir(host.path("/sys/devices/system/node"))
        .ok()?
        .flatten()
    {
        let name = entry.file_name();
        let Some(node) = name.to_str().and_then(|n| n.strip_prefix("node")) else {
            continue;
        };
        let Ok(Ok(node)) = node.parse().map(|node| u8::try_from(real_node(host, node))) else {
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

/// Memory that can be had without swapping (`MemAvailable`), and without more than the
/// cgroups of this process allow: the kernel would end it.
#[must_use]
pub fn available_bytes(host: &Host) -> Option<u64> {
    let text = host.text("/proc/meminfo")?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let bytes = kib << 10;
    Some(memory_left(host).map_or(bytes, |left| left.min(bytes)))
}

/// Bytes of transparent or reserved huge pages in the mapping of this process that holds
/// `at`.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// The kernel ends a process that takes more than its cgroup, or one above it, may have.
    #[test]
    fn available_is_what_the_cgroups_leave() {
        let v1 = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                  32 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let v2 = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let boxed = "31 30 0:27 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let own = "sys/fs/cgroup/box/inner/memory";
        let above = "sys/fs/cgroup/box/memory";
        let old = "sys/fs/cgroup/memory/box/memory";
        for (mounts, cgroup, files, mib) in [
            (v2, "0::/box/inner", vec![], 4096),
            (v2, "0::/box/inner", vec![(own, "max", "900")], 4096),
            (v2, "0::/box/inner", vec![(own, "1000", "900")], 200),
            (
                v2,
                "0::/box/inner",
                vec![(own, "max", "0"), (above, "300", "1000")],
                0,
            ),
            (
                v2,
                "0::/box/inner",
                vec![(own, "3000", "0"), (above, "2000", "500")],
                1600,
            ),
            (v2, "0::/box/inner", vec![(own, "9000", "0")], 4096),
            (
                boxed,
                "0::/box/inner",
                vec![("sys/fs/cgroup/inner/memory", "1000", "900")],
                200,
            ),
            (
                v1,
                "4:cpu:/box\n3:memory:/box",
                vec![(old, "1000", "900")],
                200,
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 4194304 kB\n");
            write("proc/self/mountinfo", mounts);
            write("proc/self/cgroup", cgroup);
            let (limit, used, idle) = match mounts == v1 {
                true => (".limit_in_bytes", ".usage_in_bytes", "total_inactive_file"),
                false => (".max", ".current", "inactive_file"),
            };
            for (of, most, now) in files {
                let bytes = |mib: &str| mib.parse::<u64>().map(|mib| (mib << 20).to_string());
                write(
                    &format!("{of}{limit}"),
                    &bytes(most).unwrap_or("max".into()),
                );
                write(&format!("{of}{used}"), &bytes(now).unwrap());
                let idle = format!("inactive_anon 5\n{idle} {}\n", 100 << 20);
                write(&format!("{of}.stat"), &idle);
            }
            let found = available_bytes(&Host::at(dir.path()));
            assert_eq!(found, Some(mib << 20), "{mounts}{cgroup}");
        }
    }

    /// Above `memory.high` a task is not ended, but hardly gets on.
    #[test]
    fn available_is_what_runs_unthrottled() {
        let dir = tempfile::tempdir().unwrap();
        let cgroup = dir.path().join("sys/fs/cgroup/box");
        let own = dir.path().join("proc/self");
        for folder in [&cgroup, &own] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(
            dir.path().join("proc/meminfo"),
            "MemAvailable: 4194304 kB\n",
        )
        .unwrap();
        fs::write(own.join("cgroup"), "0::/box\n").unwrap();
        let mount = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        fs::write(own.join("mountinfo"), mount).unwrap();
        fs::write(cgroup.join("memory.current"), "1048576\n").unwrap();
        for (most, high, mib) in [("max", "3145728", 2), ("2097152", "3145728", 1)] {
            fs::write(cgroup.join("memory.max"), most).unwrap();
            fs::write(cgroup.join("memory.high"), high).unwrap();
            let found = available_bytes(&Host::at(dir.path()));
            assert_eq!(found, Some(mib << 20), "{most}, {high}");
        }
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
}
