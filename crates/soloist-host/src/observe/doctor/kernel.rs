//! The running kernel: its version, its functions that the module hooks, and its headers.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use soloist_core::PageSize;

use super::Check;
use crate::control::Control;
use crate::machine::{built_module, Host, MODULE};
use crate::observe::needs::{compare, needs, Kind};

/// Those of this architecture's kernels that the guest tests run on, each once.
fn tested_series() -> Vec<&'static str> {
    let names = include_str!("../../../../../tests/kernels").lines();
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

pub(super) fn kernel(host: &Host) -> Check {
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

pub(super) fn hooks(host: &Host) -> Check {
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
        let next = "a function takes one direct hook: end the BPF program, live patch or probe that holds it (/sys/kernel/tracing/enabled_functions)";
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

/// Those that something else holds.
fn taken_hooks(host: &Host) -> Vec<String> {
    if host.has("/sys/module/soloist") {
        return Vec::new();
    }
    let enabled = host
        .text("/sys/kernel/tracing/enabled_functions")
        .unwrap_or_default();
    let needs = needs();
    let held = enabled.lines().filter_map(held_function);
    let is_ours = |function: &&str| {
        let mut needs = needs.iter();
        needs.any(|need| need.kind == Kind::Hook && need.names.contains(function))
    };
    held.filter(is_ours).map(str::to_owned).collect()
}

/// The function of the line `handle_mm_fault (1)    D   \t...` that no direct hook can take: `D`
/// says that one has it, `I` that a live patch or a probe changes where it goes on.
fn held_function(line: &str) -> Option<&str> {
    let (function, rest) = line.split_once(" (")?;
    let flags = rest.split_once(')')?.1.split('\t').next()?;
    let mut flags = flags.split_whitespace();
    flags
        .any(|flag| ["D", "I"].contains(&flag))
        .then_some(function)
}

pub(super) fn tracer(host: &Host) -> Check {
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

pub(super) fn headers(host: &Host) -> Check {
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
