//! Machines that lack something.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use machine::{Machine, MAP};
use soloist_core::AddrMap;
use soloist_host::observe::{examine, verdict, Check, Status};

fn good() -> Machine {
    let machine = Machine::loaded();
    machine.dir("sys/module/soloist");
    machine.file("lib/modules/6.12.117+deb12-amd64/build/Makefile", "");
    machine.file("proc/sys/kernel/ftrace_enabled", "1\n");
    machine.file(
        "sys/kernel/tracing/available_filter_functions",
        "handle_mm_fault\nvma_alloc_folio_noprof\nget_page_from_freelist\nfree_unref_page_commit\nfree_one_page.constprop.0\ncopy_string_kernel\nmigrate_pages\npagefault_out_of_memory\n",
    );
    machine.file("proc/iomem", "00001000-03ffffff : System RAM\n04000000-07ffffff : System RAM\n  04000000-04ffffff : Kernel code\n");
    machine.file("sys/devices/system/node/online", "0-1\n");
    machine.file(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    machine.file("sys/module/module/parameters/sig_enforce", "N\n");
    machine
}

fn check(machine: &Machine, name: &str) -> Check {
    let found = examine(&machine.host(), None);
    found.into_iter().find(|c| c.name == name).unwrap()
}

#[test]
fn a_good_machine_has_nothing_to_fix() {
    let checks = examine(&good().host(), None);
    let failed: Vec<&Check> = checks.iter().filter(|c| c.status == Status::Fail).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let map = check(&good(), "address map");
    assert_eq!(
        (map.status, map.found.as_str()),
        (Status::Ok, "small holds all 127.9 MiB of this machine")
    );
}

#[test]
fn the_verdict_names_a_map_that_is_missing() {
    let machine = good();
    machine.soloist("map", "\n");
    let checks = examine(&machine.host(), None);
    let said = verdict(&checks);
    assert!(said.ends_with("first address map"), "{said}");
}

#[test]
fn every_kernel_of_the_guest_tests_is_a_tested_one() {
    let machine = good();
    for (release, status) in [
        ("6.1.0-56-rt-amd64", Status::Ok),
        ("7.3.4+deb13-amd64", Status::Ok),
        ("6.18.1", Status::Warn),
        ("6.100.1", Status::Warn),
    ] {
        machine.file("proc/sys/kernel/osrelease", &format!("{release}\n"));
        let kernel = check(&machine, "kernel");
        assert_eq!(kernel.status, status, "{}", kernel.found);
    }
    let found = check(&machine, "kernel").found;
    assert!(found.ends_with("Debian's 6.1, 6.12, 7.3"), "{found}");
}

#[test]
fn what_is_lacking_is_named_with_the_way_out() {
    let machine = good();
    machine.file(
        "sys/kernel/tracing/available_filter_functions",
        "handle_mm_fault\nvma_alloc_folio\nget_page_from_freelist\nfree_one_page\ncopy_string_kernel\n",
    );
    let hooks = check(&machine, "hooks");
    assert_eq!(hooks.status, Status::Fail);
    assert!(
        hooks.found.contains("free_unref_page_commit"),
        "{}",
        hooks.found
    );
    assert!(hooks.found.contains("migrate_pages"), "{}", hooks.found);
    // A kernel of somebody's own: neither tracepoints of cgroups nor isolation of pages.
    let machine = good();
    machine.file(
        "proc/kallsyms",
        "0 T putback_movable_pages\n0 D __tracepoint_task_newtask\n",
    );
    let hooks = check(&machine, "hooks");
    assert_eq!(hooks.status, Status::Fail);
    for name in ["folio_isolate_lru", "cgroup_mkdir"] {
        assert!(hooks.found.contains(name), "{}", hooks.found);
    }
    assert!(!hooks.found.contains("task_newtask"), "{}", hooks.found);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"CONFIG_KPROBES=y\n").unwrap();
    std::fs::write(machine.path("proc/config.gz"), packed.finish().unwrap()).unwrap();
    let tracer = check(&machine, "function tracer");
    assert_eq!(tracer.found, "built without direct calls");
    // A board's kernel, without nodes.
    let next = check(&machine, "hooks").next;
    assert!(next.is_some_and(|next| next.contains("CONFIG_NUMA")));
    std::fs::remove_file(machine.path("proc/config.gz")).unwrap();
    machine.file("proc/sys/kernel/ftrace_enabled", "0\n");
    let tracer = check(&machine, "function tracer");
    assert_eq!(
        tracer.next.as_deref(),
        Some("sysctl kernel.ftrace_enabled=1")
    );
    std::fs::remove_dir(machine.path("sys/module/soloist")).unwrap();
    machine.file("sys/module/module/parameters/sig_enforce", "Y\n");
    assert_eq!(check(&machine, "module signing").status, Status::Fail);
    machine.file(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    let lockdown = check(&machine, "Secure Boot");
    assert_eq!(
        (lockdown.status, lockdown.found.as_str()),
        (Status::Fail, "off, lockdown integrity")
    );
    assert!(lockdown
        .next
        .is_some_and(|next| next.contains("mokutil --import /var/lib/dkms/mok.pub")));
    machine.dir("sys/module/soloist");
    assert_eq!(
        check(&machine, "Secure Boot").status,
        Status::Ok,
        "it is loaded, so it is signed"
    );
    machine.file("proc/sys/kernel/osrelease", "5.10.0\n");
    assert_eq!(check(&machine, "kernel").status, Status::Warn);
    let next = check(&machine, "headers").next.unwrap();
    for words in ["linux-headers-5.10.0", "not Debian's: from where it came"] {
        assert!(next.contains(words), "{next}");
    }
    let headers = |machine: &Machine| check(machine, "headers").status;
    assert_eq!(headers(&machine), Status::Warn, "a module is loaded");
    std::fs::remove_dir(machine.path("sys/module/soloist")).unwrap();
    assert_eq!(headers(&machine), Status::Fail);
}

/// Its tracepoints are there, though kallsyms names none of them.
#[test]
fn a_kernel_that_names_no_variables_is_said_to() {
    let machine = good();
    let table = include_str!("../../../kernel/hook/table.c");
    let symbols = table.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix("{ SYMBOL, false, \"")?;
        name.split('"')
            .next()
            .filter(|&name| name != "ftrace_enabled")
    });
    let symbols: String = symbols.map(|name| format!("0 T {name}\n")).collect();
    machine.file("proc/kallsyms", &symbols);
    machine.file("boot/config-6.12.117+deb12-amd64", "CONFIG_NUMA=y\n");
    let hooks = check(&machine, "hooks");
    assert_eq!(hooks.status, Status::Fail);
    assert!(
        hooks.found.contains("names no ftrace_enabled"),
        "{}",
        hooks.found
    );
    assert!(!hooks.found.contains("cgroup_mkdir"), "{}", hooks.found);
    let next = hooks.next.unwrap();
    assert!(next.contains("CONFIG_KALLSYMS_ALL"), "{next}");
    let all = "CONFIG_NUMA=y\nCONFIG_KALLSYMS_ALL=y\n";
    machine.file("boot/config-6.12.117+deb12-amd64", all);
    let hooks = check(&machine, "hooks");
    assert!(hooks.found.contains("cgroup_mkdir"), "{}", hooks.found);
}

#[test]
fn a_hook_that_is_taken_is_seen() {
    let machine = good();
    machine.file(
        "sys/kernel/tracing/enabled_functions",
        "handle_mm_fault (1) R I     \ttramp: 0xffffffffc0a01000 (x+0x0/0x0) \ncopy_string_kernel (1)    D   \n\tdirect-->bpf_trampoline_1\n",
    );
    assert_eq!(check(&machine, "hooks").status, Status::Ok, "they are ours");
    std::fs::remove_dir(machine.path("sys/module/soloist")).unwrap();
    let hooks = check(&machine, "hooks");
    assert_eq!(hooks.status, Status::Fail);
    assert_eq!(
        hooks.found,
        "something else hooks handle_mm_fault, copy_string_kernel"
    );
    // A tracer that only looks on leaves it free.
    for (flags, status) in [
        ("    D   \n\tdirect-->bpf_trampoline_1", Status::Fail),
        ("    D O \n\tdirect(jmp)-->bpf_trampoline_1", Status::Fail),
        (
            " R I     \ttramp: 0xffffffffc0a01000 (x+0x0/0x0) ",
            Status::Fail,
        ),
        (
            " R       \ttramp: 0xffffffffc0a01000 (x+0x0/0x0) ",
            Status::Ok,
        ),
    ] {
        let line = format!("handle_mm_fault (1){flags}\n");
        machine.file("sys/kernel/tracing/enabled_functions", &line);
        assert_eq!(check(&machine, "hooks").status, status, "{flags}");
    }
}

/// Those of Arm name none of it in /proc/cpuinfo.
#[test]
fn what_the_kernel_offers_of_a_processor_is_told() {
    let machine = good();
    machine.file("proc/cpuinfo", "processor\t: 0\n");
    let found = || check(&machine, "resctrl").found;
    assert!(found().contains("offers none"), "{}", found());
    machine.file("proc/filesystems", "nodev\tresctrl\n");
    assert!(found().starts_with("offered"), "{}", found());
}

#[test]
fn what_the_kernel_lacks_is_named() {
    let machine = good();
    machine.file(
        "sys/kernel/config/soloist/features",
        "hooks partial\nlacks ksm_madvise,folio_alloc_swap\n",
    );
    let hooks = check(&machine, "hooks");
    assert_eq!(hooks.status, Status::Warn);
    assert_eq!(
        hooks.found,
        "this kernel lacks ksm_madvise, folio_alloc_swap"
    );
    machine.file("sys/kernel/config/soloist/features", "hooks ok\nlacks -\n");
    assert_eq!(check(&machine, "hooks").status, Status::Ok);
}

#[test]
fn a_map_of_another_machine_is_seen() {
    let machine = good();
    machine.file(
        "proc/iomem",
        "00001000-07ffffff : System RAM\n100000000-13fffffff : System RAM\n",
    );
    let map = check(&machine, "address map");
    assert_eq!(map.status, Status::Warn);
    assert!(
        map.found.contains("1 GiB of this machine's"),
        "{}",
        map.found
    );
    // /proc/iomem shows zeroes to all but root.
    machine.file("proc/iomem", "00000000-00000000 : System RAM\n");
    assert!(check(&machine, "address map")
        .next
        .unwrap()
        .contains("sudo"));
}

#[test]
fn a_map_is_offered_before_one_is_loaded() {
    let machine = Machine::new();
    machine.file("proc/iomem", "00001000-07ffffff : System RAM\n");
    let map = AddrMap::parse(MAP).unwrap();
    let fits = |map| {
        let found = examine(&machine.host(), map);
        found
            .into_iter()
            .find(|c| c.name == "address map")
            .unwrap()
            .status
    };
    assert_eq!(fits(Some(&map)), Status::Ok);
    assert_eq!(fits(None), Status::Warn);
}

#[test]
fn a_module_that_is_not_the_installed_one_is_seen() {
    let machine = good();
    // A release that no source tree has a module for.
    machine.file("proc/sys/kernel/osrelease", "6.12.0-none\n");
    machine.file("sys/module/soloist/srcversion", "AAAA\n");
    let file = "lib/modules/6.12.0-none/updates/dkms/soloist.ko";
    machine.file(file, "ELF\0license=GPL\0srcversion=AAAA\0depends=\0");
    assert_eq!(check(&machine, "module").status, Status::Ok);
    machine.file(file, "ELF\0license=GPL\0srcversion=BBBB\0depends=\0");
    let module = check(&machine, "module");
    assert_eq!(module.status, Status::Warn);
    for sources in ["AAAA", "BBBB"] {
        assert!(module.found.contains(sources), "{}", module.found);
    }
}

#[test]
fn one_line_says_it_all() {
    let machine = good();
    let line = |machine: &Machine| verdict(&examine(&machine.host(), None));
    assert!(
        line(&machine).starts_with("Soloist works here"),
        "{}",
        line(&machine)
    );
    machine.file("proc/sys/kernel/ftrace_enabled", "0\n");
    assert_eq!(
        line(&machine),
        "Soloist can't work here yet: function tracer"
    );
}

/// On AMD's processors perf's cache-misses are misses of the L2.
#[test]
fn an_amd_says_what_its_misses_are() {
    let machine = good();
    machine.file("sys/bus/event_source/devices/cpu/events/cache-misses", "");
    for (vendor, family, hits, fills) in [
        ("AuthenticAMD", 23, true, false),
        ("AuthenticAMD", 25, true, true),
        ("GenuineIntel", 6, false, false),
    ] {
        let info = format!("vendor_id\t: {vendor}\ncpu family\t: {family}\n");
        machine.file("proc/cpuinfo", &info);
        let pmu = check(&machine, "PMU");
        assert_eq!(pmu.status, Status::Ok);
        let says = |what| pmu.found.contains(what);
        assert_eq!(says("hits of the L3"), hits, "{}", pmu.found);
        assert_eq!(says("dram-fills"), fills, "{}", pmu.found);
    }
}

/// A Raspberry Pi 5 as its firmware boots it.
#[test]
fn a_board_says_its_events_and_its_one_node() {
    let machine = good();
    machine.file(
        "sys/bus/event_source/devices/armv8_cortex_a76/events/cpu_cycles",
        "",
    );
    machine.file("sys/devices/system/cpu/online", "0-3\n");
    for cpu in 0..4 {
        let midr = format!("sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1");
        machine.file(&midr, "0x00000000414fd0b1\n");
    }
    let pmu = check(&machine, "PMU");
    assert_eq!(pmu.status, Status::Ok);
    assert!(
        pmu.found.contains("Cortex-A76 (CPUs 0-3): BUS_ACCESS"),
        "{}",
        pmu.found
    );
    assert!(pmu.found.contains("L3D_CACHE_REFILL"), "{}", pmu.found);

    assert_eq!(check(&machine, "memory nodes").found, "0-1");
    // Bits: balancing, and moves to faster memory and back.
    for (bits, status) in [("3", Status::Warn), ("1", Status::Warn), ("2", Status::Ok)] {
        machine.file("proc/sys/kernel/numa_balancing", bits);
        assert_eq!(check(&machine, "memory nodes").status, status, "{bits}");
    }
    for node in 0..2 {
        machine.file(
            &format!("sys/devices/system/node/node{node}/distance"),
            "10 10\n",
        );
    }
    let nodes = check(&machine, "memory nodes");
    assert!(
        nodes.found.contains("numa=fake made 2 of 1"),
        "{}",
        nodes.found
    );
    assert_eq!(soloist_host::machine::topology(&machine.host()).nodes(), 1);
}

/// Only the kernel knows which keys it takes.
#[test]
fn a_signed_module_may_be_taken() {
    let machine = Machine::new();
    machine.file("proc/sys/kernel/osrelease", "9.9-none\n");
    machine.file("sys/module/module/parameters/sig_enforce", "Y\n");
    let lockdown = "none [integrity] confidentiality\n";
    machine.file("sys/kernel/security/lockdown", lockdown);
    let said = |end: &str| {
        let module = format!("a module's bytes{end}");
        machine.file("lib/modules/9.9-none/updates/dkms/soloist.ko", &module);
        ["Secure Boot", "module signing"].map(|name| {
            let check = check(&machine, name);
            (check.status, check.next.unwrap_or_default())
        })
    };
    for (status, next) in said("") {
        assert_eq!(status, Status::Fail);
        assert!(next.contains("mokutil --import"), "{next}");
    }
    for (status, next) in said("~Module signature appended~\n") {
        assert_eq!(status, Status::Warn);
        assert!(next.contains("mokutil --list-enrolled"), "{next}");
    }
}

#[test]
fn secure_boot_that_nobody_tells_of_is_not_called_off() {
    let machine = Machine::new();
    let said = || {
        let found = check(&machine, "Secure Boot");
        (found.status, found.found)
    };
    // No EFI, no Secure Boot.
    assert_eq!(said(), (Status::Ok, "off, lockdown not told".to_owned()));
    machine.dir("sys/firmware/efi/efivars");
    let not_told = "not told, lockdown not told".to_owned();
    assert_eq!(said(), (Status::Warn, not_told));
    // This kernel has a file for each security module that it was built with.
    machine.file("sys/kernel/security/lsm", "capability");
    assert_eq!(said(), (Status::Ok, "not told, lockdown none".to_owned()));
    let variable = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    let variable = format!("sys/firmware/efi/efivars/{variable}");
    machine.file(&variable, "\u{6}\0\0\0\u{1}");
    assert_eq!(said(), (Status::Ok, "on, lockdown none".to_owned()));
    std::fs::remove_file(machine.path("sys/kernel/security/lsm")).unwrap();
    assert_eq!(said(), (Status::Warn, "on, lockdown not told".to_owned()));
    machine.dir("sys/module/soloist");
    assert_eq!(said().0, Status::Ok);
}
