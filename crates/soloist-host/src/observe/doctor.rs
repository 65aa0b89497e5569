//! What this machine offers, and what to do about what it lacks. Each check
//! only reads.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Serialize;
use soloist_core::{format_size, AddrMap, Left, NumList, PageSize};
use soloist_machine::ram::parse_iomem;

use crate::control::{Control, Group};
use crate::machine::{
    built_module, core_types, event_units, made_up_nodes, movable_bytes, source_tree, Build,
    CoreType, Host, ENROLL, EVENT_SOURCES, MODULE,
};
use crate::observe::needs::{compare, needs, Kind};
use crate::words::counted;
use crate::HostError;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but something is worth knowing or doing.
    Warn,
    /// Soloist can't work until this is done.
    Fail,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do next.
    pub next: Option<String>,
}

impl Check {
    /// As it should be.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: found.into(),
            next: None,
        }
    }

    /// Worth knowing, with what to do about it.
    pub fn warn(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Warn,
            found: found.into(),
            next: Some(next.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            status: Status::Fail,
            ..Self::warn(name, found, next)
        }
    }
}

/// Looks at everything. `map`: the map to hold against this machine's memory
/// where none is loaded.
pub fn examine(host: &Host, map: Option<&AddrMap>) -> Vec<Check> {
    let mut checks = vec![
        kernel(host),
        hooks(host),
        tracer(host),
        headers(host),
        module(host),
        secure_boot(host),
        signing(host),
        control(host),
        fit(host, map),
        pages(host, map),
        nodes(host),
        huge_pages(host),
        swap_and_ksm(host),
        pmu(host),
        resctrl(host),
        isolation(host),
    ];
    checks.extend(barred(host));
    checks.extend(intruded(host));
    checks.extend(movable(host));
    checks
}

/// Tasks that run uncoloured since their cpuset contradicts their group.
fn barred(host: &Host) -> Option<Check> {
    let control = Control::open(host).ok()?;
    let contradictions = control.contradictions(host, &control.map().ok()?).ok()?;
    (!contradictions.is_empty()).then(|| {
        Check::warn(
            "tasks and cpusets",
            contradictions.join("; "),
            "give the group colours on the node that cpuset.mems allows, or allow its node",
        )
    })
}

/// Share of an exclusive group's colours from which on others are worth a hint: the
/// kernel's caches come and go.
const MANY_OTHERS: f64 = 0.02;

/// Exclusive groups in whose colours others hold memory.
fn intruded(host: &Host) -> Option<Check> {
    let control = Control::open(host).ok()?;
    let look = |group: &Group| {
        let held = match group.is_exclusive()? {
            true => group.occupancy()?,
            false => None,
        };
        let share = held.and_then(|held| held.share_of_others());
        Ok(share.map(|share| (group.name().to_owned(), share)))
    };
    let shares = control.each_group(look).ok()?;
    let many = |(_, share): &(String, f64)| *share > MANY_OTHERS;
    let (names, found): (Vec<String>, Vec<String>) = shares
        .into_iter()
        .flatten()
        .filter(many)
        .map(|(name, share)| {
            let words = format!("{:.0} % of {name}'s memory is others'", share * 100.0);
            (name, words)
        })
        .unzip();
    let first = names.first()?;
    Some(Check::warn(
        "exclusive colours",
        found.join("; "),
        format!("`soloist group set {first} --evict` moves it out; `soloist group show {first}` says whose it is"),
    ))
}

/// Memory that no page table can be in.
fn movable(host: &Host) -> Option<Check> {
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

/// All of it in one line.
pub fn verdict(checks: &[Check]) -> String {
    let named = |status| {
        let found = checks.iter().filter(move |c| c.status == status);
        found.map(|c| c.name).collect::<Vec<_>>()
    };
    let (failed, warned) = (named(Status::Fail), named(Status::Warn));
    let loaded = checks
        .iter()
        .any(|c| c.name == "control interface" && c.status == Status::Ok);
    let hints = counted(warned.len() as u64, "hint");
    // Without the right map colours keep nothing apart.
    let map = warned
        .iter()
        .find(|name| [MAP, "map's trust"].contains(*name));
    match (failed.as_slice(), warned.len()) {
        ([], 0) => "Soloist works here".to_owned(),
        ([], _) if loaded => match map {
            Some(map) => format!("Soloist works here; {hints} above, first {map}"),
            None => format!("Soloist works here; {hints} above"),
        },
        ([], _) => format!("Soloist can work here: run `soloist up`; {hints} above"),
        (failed, _) => format!("Soloist can't work here yet: {}", failed.join(", ")),
    }
}

/// Those of this architecture's kernels that the guest tests run on, each once.
fn tested_series() -> Vec<&'static str> {
    let names = include_str!("../../../../tests/kernels").lines();
    let mut series: Vec<&str> = names
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|line| line.contains("arm64") == cfg!(target_arch = "aarch64"))
        .filter_map(|line| line.split(['-', ' ', '\t']).next())
        .collect();
    series.sort_unstable();
    series.dedup();
    series
}

/// The remedy where the module does not run at all.
fn unsupported(arch: &str, release: &str, pages: PageSize) -> Option<&'static str> {
    match arch {
        "x86_64" => None,
        "aarch64" if is_before(release, (6, 4)) => {
            Some("boot 6.12 or later: Linux before 6.4 has no direct calls of ftrace on arm64, which the module hooks the kernel by")
        }
        "aarch64" if pages == PageSize::K64 => {
            Some("boot a kernel with smaller pages: the module colours those of 4 and 16 KiB, and this one's have 64")
        }
        "aarch64" => None,
        _ => Some("use an x86-64 or arm64 machine; other processors are not supported yet"),
    }
}

/// Is the kernel `release` older than that version?
fn is_before(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < version,
        _ => false,
    }
}

fn kernel(host: &Host) -> Check {
    let name = "kernel";
    let release = host.kernel_release();
    let arch = std::env::consts::ARCH;
    if let Some(next) = unsupported(arch, &release, host.page_size()) {
        return Check::fail(name, format!("{release} on {arch}"), next);
    }
    let series = tested_series();
    if series.iter().any(|s| release.starts_with(&format!("{s}."))) {
        return Check::ok(name, release);
    }
    Check::warn(
        name,
        format!(
            "{release} is none of the tested series, Debian's {}",
            series.join(", ")
        ),
        "try `soloist vm run` here, or boot one of these; the module refuses to load where a hook does not fit",
    )
}

fn hooks(host: &Host) -> Check {
    let name = "hooks";
    let Some(seen) = compare(host) else {
        return Check::warn(
            name,
            "neither the function tracer nor kallsyms can be read",
            seen_by(host, TRACEFS),
        );
    };
    // Without this kallsyms names functions alone: neither a tracepoint nor a variable.
    let all = config(host, "CONFIG_KALLSYMS_ALL").as_deref() != Some("n");
    let (how, absent) = match all {
        true => ("has no", [seen.absent, seen.events].concat()),
        false => ("names no", seen.absent),
    };
    let lacks = [("can't hook", &seen.unhooked), (how, &absent)];
    let lacks: Vec<String> = lacks
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", names.join(", ")))
        .collect();
    if !lacks.is_empty() {
        let found = format!("this kernel {}", lacks.join(", and "));
        // Without nodes a fault's page is allocated by a macro.
        let nodes = config(host, "CONFIG_NUMA").as_deref() != Some("n");
        let next = match (all || absent.is_empty(), nodes) {
            (true, true) => format!("boot a stock Debian kernel: {}", tested_series().join(", ")),
            (true, false) => {
                "boot a kernel with CONFIG_NUMA, on a machine of one node too".to_owned()
            }
            (false, true) => "boot a kernel with CONFIG_KALLSYMS_ALL".to_owned(),
            (false, false) => "boot a kernel with CONFIG_KALLSYMS_ALL and CONFIG_NUMA".to_owned(),
        };
        return Check::fail(name, found, next);
    }
    let taken = taken_hooks(host);
    if !taken.is_empty() {
        let found = format!("something else hooks {}", taken.join(", "));
        let next = "a function takes one direct hook: end the BPF program or live patch that holds it (/sys/kernel/tracing/enabled_functions)";
        return Check::fail(name, found, next);
    }
    let lacks = lacking(host);
    if !lacks.is_empty() {
        let found = format!("this kernel lacks {}", lacks.join(", "));
        let next = "`journalctl -k -g soloist` says what is lost without each; all else works";
        return Check::warn(name, found, next);
    }
    let found = format!("{} functions", seen.hooks);
    if seen.traceable {
        Check::ok(name, format!("{found}: all can be hooked"))
    } else {
        Check::warn(
            name,
            format!("{found}: all there"),
            format!(
                "{} to see whether they can be hooked",
                seen_by(host, TRACEFS)
            ),
        )
    }
}

const TRACEFS: &str = "mount -t tracefs tracefs /sys/kernel/tracing";

/// How to see what can't be read: as root, who lacks `else_do` perhaps.
fn seen_by(host: &Host, else_do: &str) -> String {
    match host.is_root() {
        true => format!("run `{else_do}`, then `soloist doctor` again"),
        false => "run `sudo soloist doctor`".to_owned(),
    }
}

/// What the loaded module found lacking, and does without.
fn lacking(host: &Host) -> Vec<String> {
    let features = Control::open(host).and_then(|control| control.features());
    let lacks = features.ok().and_then(|mut f| f.remove("lacks"));
    let names = lacks.unwrap_or_default();
    let names = names.split(',').filter(|n| !n.is_empty() && *n != "-");
    names.map(str::to_owned).collect()
}

/// Those that have a direct hook which is not ours.
fn taken_hooks(host: &Host) -> Vec<String> {
    if host.has("/sys/module/soloist") {
        return Vec::new();
    }
    let enabled = host
        .text("/sys/kernel/tracing/enabled_functions")
        .unwrap_or_default();
    let needs = needs();
    let mut taken = Vec::new();
    let mut function = "";
    for line in enabled.lines() {
        // `handle_mm_fault (1) ...`, and on a line of its own `direct-->...`.
        if !line.starts_with('\t') {
            function = line.split_whitespace().next().unwrap_or("");
        }
        let ours = needs
            .iter()
            .any(|need| need.kind == Kind::Hook && need.names.contains(&function));
        if ours && line.contains("direct-->") {
            taken.push(function.to_owned());
        }
    }
    taken
}

fn tracer(host: &Host) -> Check {
    let name = "function tracer";
    if config(host, "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS").as_deref() == Some("n") {
        return Check::fail(
            name,
            "built without direct calls",
            "boot a kernel with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
        );
    }
    match host.text("/proc/sys/kernel/ftrace_enabled").as_deref() {
        Some("1") => Check::ok(name, "on"),
        Some("0") => Check::fail(name, "off", "sysctl kernel.ftrace_enabled=1"),
        _ => Check::fail(
            name,
            "this kernel has none",
            "boot a kernel with CONFIG_FUNCTION_TRACER, such as Debian's",
        ),
    }
}

fn headers(host: &Host) -> Check {
    let name = "headers";
    let release = host.kernel_release();
    let build = format!("/lib/modules/{release}/build/Makefile");
    if host.has(&build) {
        return Check::ok(name, format!("/lib/modules/{release}/build"));
    }
    let next = format!(
        "apt install linux-headers-{release} (of a kernel that is not Debian's: from where it came)"
    );
    if built_module(host, &release, MODULE).is_some() {
        Check::warn(
            name,
            "none for this kernel (its module is built already)",
            next,
        )
    } else if host.has("/sys/module/soloist") {
        Check::warn(
            name,
            "none for this kernel (a module is loaded already)",
            next,
        )
    } else {
        Check::fail(name, "none for this kernel", next)
    }
}

fn module(host: &Host) -> Check {
    let name = "module";
    let release = host.kernel_release();
    if host.has("/sys/module/soloist") {
        return loaded(host, &release);
    }
    match built_module(host, &release, MODULE) {
        Some(path) => Check::ok(
            name,
            format!("built: {}; `soloist up` loads it", path.display()),
        ),
        None if source_tree().is_some() => Check::warn(
            name,
            "not built for this kernel",
            "`soloist up` builds and loads it",
        ),
        None => Check::fail(
            name,
            "neither built nor installed for this kernel",
            "install it by DKMS, or run soloist from its source tree",
        ),
    }
}

/// Is the loaded module the one that the next `soloist up` would load?
fn loaded(host: &Host, release: &str) -> Check {
    let name = "module";
    let running = Build::running(host);
    let Some(path) = built_module(host, release, MODULE) else {
        return Check::ok(name, format!("loaded{running}"));
    };
    match Build::of_file(&path) {
        Some(file) if file.differs(&running) => Check::warn(
            name,
            format!("loaded{running}, but {} is another build{file}", path.display()),
            "`soloist save`, `soloist down`, `soloist up` take the new one; tasks that run stay uncoloured afterwards",
        ),
        _ => Check::ok(name, format!("loaded{running}")),
    }
}

fn secure_boot(host: &Host) -> Check {
    let name = "Secure Boot";
    let (on, lockdown) = (secure_boot_is_on(host), lockdown(host));
    let booted = match on {
        Some(true) => "on",
        Some(false) => "off",
        None => NOT_TOLD,
    };
    let locked = lockdown.as_deref().unwrap_or(NOT_TOLD);
    let found = format!("{booted}, lockdown {locked}");
    // A module that is loaded was signed by a key that the kernel knows.
    if host.has("/sys/module/soloist") {
        return Check::ok(name, found);
    }
    match lockdown.as_deref() {
        Some("none") => Check::ok(name, found),
        Some(_) => Check::fail(
            name,
            found,
            format!("only signed modules are taken: {ENROLL}"),
        ),
        None if on == Some(false) => Check::ok(name, found),
        None => Check::warn(
            name,
            found,
            "`mount -t securityfs securityfs /sys/kernel/security` shows whether only signed modules are taken",
        ),
    }
}

/// The answer where a file can't be read.
const NOT_TOLD: &str = "not told";

/// `None`: EFI booted this machine, and its variable can't be read.
fn secure_boot_is_on(host: &Host) -> Option<bool> {
    let efi = "/sys/firmware/efi";
    let variable = format!("{efi}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    match fs::read(host.path(&variable)) {
        Ok(bytes) => Some(bytes.last() == Some(&1)),
        Err(_) => (!host.has(efi)).then_some(false),
    }
}

/// The kernel's lockdown; `None`: securityfs, which says it, is not mounted.
fn lockdown(host: &Host) -> Option<String> {
    let folder = "/sys/kernel/security";
    match host.text(&format!("{folder}/lockdown")) {
        Some(text) => Some(text.split('[').nth(1)?.split(']').next()?.to_owned()),
        // Where it is mounted and has no such file the kernel was built without.
        None => host
            .has(&format!("{folder}/lsm"))
            .then(|| "none".to_owned()),
    }
}

fn signing(host: &Host) -> Check {
    let name = "module signing";
    match host
        .text("/sys/module/module/parameters/sig_enforce")
        .as_deref()
    {
        Some("Y") if host.has("/sys/module/soloist") => Check::ok(name, "enforced"),
        Some("Y") => Check::fail(name, "enforced", ENROLL),
        _ => Check::ok(name, "not enforced"),
    }
}

fn control(host: &Host) -> Check {
    let name = "control interface";
    match Control::open(host) {
        Ok(control) => {
            let groups = counted(control.groups().map_or(0, |g| g.len() as u64), "group");
            let rules = counted(control.rules().map_or(0, |r| r.len() as u64), "rule");
            Check::ok(
                name,
                format!("/sys/kernel/config/soloist: {groups}, {rules}"),
            )
        }
        Err(_) if host.has("/sys/module/soloist") => Check::fail(
            name,
            "the module is loaded, configfs is not mounted",
            "run `soloist up`",
        ),
        Err(_) => Check::warn(
            name,
            "not there: the module is not loaded",
            "run `soloist up`",
        ),
    }
}

const MAP: &str = "address map";

/// Does the map hold all memory that this machine has?
fn fit(host: &Host, offered: Option<&AddrMap>) -> Check {
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
fn pages(host: &Host, offered: Option<&AddrMap>) -> Check {
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

fn nodes(host: &Host) -> Check {
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
    if host.text("/proc/sys/kernel/numa_balancing").as_deref() == Some("1") {
        return Check::warn(
            name,
            format!("{online}; NUMA balancing is on"),
            "coloured tasks are left out of it; sysctl kernel.numa_balancing=0 spares everybody its faults",
        );
    }
    Check::ok(name, online)
}

fn huge_pages(host: &Host) -> Check {
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

fn swap_and_ksm(host: &Host) -> Check {
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

fn pmu(host: &Host) -> Check {
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
    Check::ok(name, found.join("; "))
}

fn resctrl(host: &Host) -> Check {
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
        (_, true) => Check::ok(name, "this processor offers none (LLC colours do without)"),
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

fn isolation(host: &Host) -> Check {
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

/// A setting of the running kernel's configuration; `None` where neither of its files
/// can be read, `n` where it is not set.
fn config(host: &Host, option: &str) -> Option<String> {
    let text = host
        .read(&format!("/boot/config-{}", host.kernel_release()))
        .or_else(|_| unpacked(&host.path("/proc/config.gz")))
        .ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(option)?.strip_prefix('='));
    Some(value.unwrap_or("n").to_owned())
}

/// The text in a file that gzip packed.
fn unpacked(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file)?).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Debian's kernels and boards' own: a Jetson's is 5.15.
    #[test]
    fn kernels_of_arm64_without_direct_calls_are_refused() {
        for (release, runs) in [
            ("5.15.148-tegra", false),
            ("6.1.0-56-arm64", false),
            ("6.6.31+rpt-rpi-2712", true),
            ("6.12.117+deb12-arm64", true),
            ("7.3.4+deb13-arm64", true),
            ("next", true),
        ] {
            for pages in [PageSize::K4, PageSize::K16] {
                let refused = unsupported("aarch64", release, pages);
                assert_eq!(refused.is_none(), runs, "{release}");
            }
            assert!(unsupported("aarch64", release, PageSize::K64).is_some());
            assert_eq!(unsupported("x86_64", release, PageSize::K4), None);
        }
    }
}
