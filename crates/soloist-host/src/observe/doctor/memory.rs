//! Memory: the address map over it, its pages and nodes.

use soloist_core::{format_size, AddrMap, Left, NumList};
use soloist_machine::ram::parse_iomem;

use super::Check;
use crate::control::Control;
use crate::machine::{made_up_nodes, movable_bytes, Host};
use crate::words::counted;
use crate::HostError;

/// The check whose hint comes first.
pub(super) const MAP: &str = "address map";

/// Does the map hold all memory that this machine has?
pub(super) fn fit(host: &Host, offered: Option<&AddrMap>) -> Check {
    let name = MAP;
    let loaded = match Control::open(host).map(|control| control.map()) {
        Ok(Err(HostError::NeedsRoot(_))) => {
            let found = "whether one is loaded, root alone can see";
            return Check::warn(name, found, "run `sudo soloist doctor`");
        }
        loaded => loaded.ok().and_then(Result::ok),
    };
    let Some(map) = loaded.as_ref().or(offered) else {
        return Check::warn(
            name,
            "none is loaded",
            "`soloist map list` says which known machines fit, `soloist map detect` measures this one's; then `soloist up --machine NAME`",
        );
    };
    let memory = match ram(host) {
        Some(memory) => memory,
        None => {
            let found = format!("{}: whether it fits can't be seen", map.name());
            return Check::warn(name, found, "run `sudo soloist doctor`");
        }
    };
    let total: u64 = memory.iter().map(|r| r.1 - r.0).sum();
    let off = off_map(map, &memory);
    if off == 0 {
        return Check::ok(
            name,
            format!(
                "{} holds all {} of this machine",
                map.name(),
                format_size(total)
            ),
        );
    }
    let found = format!(
        "{}: {} of this machine's {} lie outside it",
        map.name(),
        format_size(off),
        format_size(total)
    );
    Check::warn(name, found, "memory outside the map is never handed out in colour; is it this machine's map? See `soloist map list`")
}

/// The size of pages, and what large ones leave of the map's colours.
pub(super) fn pages(host: &Host, offered: Option<&AddrMap>) -> Check {
    let name = "pages";
    let found = host.page_size().to_string();
    let loaded = Control::open(host).and_then(|control| control.map()).ok();
    let map = match (loaded, offered) {
        (Some(map), _) => Ok(Some(map)),
        (None, Some(map)) => map.for_pages(host.page_size()).map(Some),
        (None, None) => Ok(None),
    };
    match map.map(|map| map.as_ref().and_then(Left::of)) {
        Err(refusal) => Check::fail(
            name,
            format!("{found}: the map is not of whole pages: {refusal}"),
            "move the range's ends to whole pages in the machine file",
        ),
        Ok(Some(left)) if left.is_less() => Check::warn(
            name,
            left.to_string(),
            "a kernel with 4 KiB pages has all of them: Debian's without -16k, `kernel=kernel8.img` on Raspberry Pi OS",
        ),
        Ok(Some(left)) => Check::ok(name, left.to_string()),
        Ok(None) => Check::ok(name, found),
    }
}

/// Bytes of `memory` in no range of `map`.
fn off_map(map: &AddrMap, memory: &[(u64, u64)]) -> u64 {
    let inside = |&(start, end): &(u64, u64)| -> u64 {
        map.ranges()
            .map(|r| r.end.min(end).saturating_sub(r.start.max(start)))
            .sum()
    };
    memory.iter().map(|r| r.1 - r.0 - inside(r)).sum()
}

/// System RAM, where /proc/iomem shows its addresses (root).
fn ram(host: &Host) -> Option<Vec<(u64, u64)>> {
    let ranges = parse_iomem(&host.read("/proc/iomem").ok()?);
    (!ranges.is_empty()).then(|| ranges.iter().map(|r| (r.start, r.end)).collect())
}

pub(super) fn nodes(host: &Host) -> Check {
    let name = "memory nodes";
    let online = host.text("/sys/devices/system/node/online");
    let online = match online.as_deref().unwrap_or("0") {
        "0" => "one".to_owned(),
        list => list.to_owned(),
    };
    let online = match made_up_nodes(host) {
        Some((all, real)) => format!(
            "{online}; numa=fake made {all} of {real}, which colours take for what they are"
        ),
        None => online,
    };
    let balancing = host.text("/proc/sys/kernel/numa_balancing");
    let modes: Option<u32> = balancing.and_then(|bits| bits.parse().ok());
    // Another bit stands for moves to faster memory and back.
    if modes.is_some_and(|bits| bits & 1 != 0) {
        return Check::warn(
            name,
            format!("{online}; NUMA balancing is on"),
            "coloured tasks are left out of it; sysctl kernel.numa_balancing=0 spares everybody its faults",
        );
    }
    Check::ok(name, online)
}

pub(super) fn huge_pages(host: &Host) -> Check {
    let name = "huge pages";
    let chosen = host
        .text("/sys/kernel/mm/transparent_hugepage/enabled")
        .and_then(|text| Some(text.split('[').nth(1)?.split(']').next()?.to_owned()));
    let reserved: u64 = host
        .text("/proc/sys/vm/nr_hugepages")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let found = format!(
        "transparent: {}; {reserved} reserved",
        chosen.as_deref().unwrap_or("not in this kernel")
    );
    if reserved > 0 {
        return Check::warn(name, found, "reserved huge pages (hugetlb) are never in colour: a program that asks for them gets them");
    }
    Check::ok(
        name,
        format!(
            "{found} (a coloured task gets small pages, unless its colours hold whole huge ones)"
        ),
    )
}

pub(super) fn swap_and_ksm(host: &Host) -> Check {
    let name = "swap, KSM";
    let swaps = host
        .text("/proc/swaps")
        .map_or(0, |t| t.lines().count().saturating_sub(1));
    let ksm = host
        .text("/sys/kernel/mm/ksm/run")
        .is_some_and(|v| v == "1");
    let found = format!(
        "{}, KSM {}",
        counted(swaps as u64, "swap area"),
        if ksm { "on" } else { "off" }
    );
    if swaps > 0 {
        return Check::warn(
            name,
            found,
            "coloured pages stay in memory; a real-time machine does without: swapoff -a",
        );
    }
    Check::ok(name, found)
}

/// Memory that no page table can be in.
pub(super) fn movable(host: &Host) -> Option<Check> {
    let mut all = NumList::new(1024);
    (0..1024).for_each(|node| {
        all.insert(node);
    });
    let bytes = movable_bytes(host, &all);
    (bytes > 0).then(|| {
        Check::warn(
            "movable memory",
            format!("{} of this machine's memory is kept movable", format_size(bytes)),
            "page tables are never there, so fewer of them are in colour: boot without kernelcore= and movablecore= where they must be",
        )
    })
}
