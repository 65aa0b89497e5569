//! Whether this kernel runs in a virtual machine: there, physical addresses
//! are the guest's, and no map of them says where memory lies.
//!
//! A processor of x86 says it itself. On arm64 none does, so the firmware is
//! asked: a guest calls power functions (PSCI) through its hypervisor (`hvc`),
//! where bare metal calls its secure monitor (`smc`), by the device tree or by
//! ACPI's FADT; and hypervisors put their names into DMI.

use std::fs;

use crate::machine::host::Host;

/// Flags of the FADT: at byte 129, bit 1: PSCI by `hvc` (ACPI 6.5, 5.2.9.4).
const FADT_ARM_FLAGS: usize = 129;
const PSCI_USE_HVC: u16 = 2;
/// What hypervisors are called in DMI.
const NAMES: [&str; 10] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "Xen",
    "Bochs",
    "Parallels",
    "Virtual Machine",
    "Apple Virtualization",
    "Google Compute Engine",
];

/// What shows that this is a virtual machine, in words; `None`: nothing does.
#[must_use]
pub fn sign(host: &Host) -> Option<String> {
    let text = |path: &str| {
        let bytes = fs::read(host.path(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim_end_matches(['\0', '\n']).to_owned())
    };
    let flagged = text("proc/cpuinfo").is_some_and(|info| {
        info.lines().any(|line| {
            line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor")
        })
    });
    if flagged {
        return Some("the processor says so (flag hypervisor)".into());
    }
    if let Some(kind) = text("sys/hypervisor/type") {
        return Some(format!("/sys/hypervisor says {kind}"));
    }
    if host.has("proc/device-tree/hypervisor") {
        return Some("the device tree has a hypervisor node".into());
    }
    if text("proc/device-tree/compatible").is_some_and(|all| all.contains("dummy-virt")) {
        return Some("the device tree is a virtual board's (linux,dummy-virt)".into());
    }
    if text("proc/device-tree/psci/method").as_deref() == Some("hvc") {
        return Some("the device tree calls PSCI through a hypervisor (hvc)".into());
    }
    let fadt = fs::read(host.path("sys/firmware/acpi/tables/FACP")).ok();
    let flags = fadt
        .as_deref()
        .and_then(|table| table.get(FADT_ARM_FLAGS..FADT_ARM_FLAGS + 2))
        .map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    if flags & PSCI_USE_HVC != 0 {
        return Some("ACPI calls PSCI through a hypervisor (hvc)".into());
    }
    ["sys_vendor", "product_name", "bios_vendor"]
        .into_iter()
        .filter_map(|field| text(&format!("sys/class/dmi/id/{field}")))
        .find(|name| NAMES.iter().any(|known| name.contains(known)))
        .map(|name| format!("DMI says {name}"))
}

/// Whether no hypervisor announces itself.
#[must_use]
pub fn is_bare_metal(host: &Host) -> bool {
    sign(host).is_none()
}

/// What shows that a program plays this processor, in words; `None`: nothing does. How
/// long anything takes there says nothing of memory. QEMU's processor of x86 says it
/// itself, whatever model it plays; of arm64 only the model that is QEMU's own (`max`).
#[must_use]
pub fn emulator(host: &Host) -> Option<String> {
    let cpuid = host.is_live().then(tcg).flatten();
    cpuid.or_else(|| emulator_by_name(host))
}

/// virtio's number of a balloon, and of its feature to report free pages.
const BALLOON: &str = "0x0005";
const REPORTING: usize = 5;

/// By what this machine gives pages that are free back to its host, in words; `None`:
/// nothing is seen that would. What such a page is made of changes with its next use.
#[must_use]
pub fn gives_free_pages_back(host: &Host) -> Option<String> {
    let devices = fs::read_dir(host.path("sys/bus/virtio/devices"));
    let reports = devices.into_iter().flatten().flatten().any(|device| {
        let text = |file: &str| fs::read_to_string(device.path().join(file)).unwrap_or_default();
        text("device").trim() == BALLOON
            && text("features").as_bytes().get(REPORTING) == Some(&b'1')
    });
    if reports {
        return Some("free page reporting of virtio-balloon".into());
    }
    host.has("sys/bus/vmbus/drivers/hv_balloon")
        .then(|| "Hyper-V's balloon, hv_balloon".into())
}

/// The name that hypervisors have in CPUID, if it is that of QEMU's emulator.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "`__cpuid` is unsafe in older compilers")]
fn tcg() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // SAFETY: every processor of x86-64 has the instruction; a leaf that is not there
    // gives figures of another.
    let leaf = unsafe { __cpuid(0x4000_0000) };
    let words = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes);
    (words.concat() == b"TCGTCGTCGTCG").then(|| "CPUID says TCG, QEMU's emulator".into())
}

#[cfg(not(target_arch = "x86_64"))]
fn tcg() -> Option<String> {
    None
}

/// An emulated processor by the name that it goes by.
fn emulator_by_name(host: &Host) -> Option<String> {
    let info = host.read("proc/cpuinfo").ok()?;
    let value = |line: &str, key: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    let has = |key: &str, is: &dyn Fn(&str) -> bool| {
        let mut lines = info.lines().filter_map(|line| value(line, key));
        lines.find(|value| is(value))
    };
    let names = |name: &str| {
        ["QEMU TCG", "Bochs"]
            .iter()
            .any(|known| name.contains(known))
    };
    if let Some(model) = has("model name", &names) {
        return Some(format!("the processor is called {model}"));
    }
    let is_max = has("CPU implementer", &|id| id == "0x00").is_some()
        && has("CPU part", &|id| id == "0x051").is_some();
    is_max.then(|| "the processor is QEMU's own, `max`".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The sign on a machine that has only these files.
    fn sign_of(name: &str, files: &[(&str, &[u8])]) -> Option<String> {
        let root = std::env::temp_dir().join(format!("soloist-{}-{name}", std::process::id()));
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let sign = sign(&Host::at(&root));
        let _ = fs::remove_dir_all(root);
        sign
    }

    #[test]
    fn emulators_are_told_from_processors() {
        let root = std::env::temp_dir().join(format!("soloist-{}-emulator", std::process::id()));
        fs::create_dir_all(root.join("proc")).unwrap();
        for (info, is) in [
            (
                "model name\t: QEMU TCG CPU version 2.5+\nflags\t: hypervisor\n",
                true,
            ),
            (
                "CPU implementer\t: 0x00\nCPU architecture: 8\nCPU part\t: 0x051\n",
                true,
            ),
            // By KVM they are called so as well.
            ("model name\t: QEMU Virtual CPU version 2.5+\n", false),
            ("model name\t: AMD EPYC 9654\nflags\t: hypervisor\n", false),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd0b\n", false),
            ("", false),
        ] {
            fs::write(root.join("proc/cpuinfo"), info).unwrap();
            assert_eq!(emulator_by_name(&Host::at(&root)).is_some(), is, "{info}");
        }
        let _ = fs::remove_dir_all(root);
    }

    #[test]
    fn who_reports_free_pages_is_seen() {
        let root = std::env::temp_dir().join(format!("soloist-{}-balloon", std::process::id()));
        let device = root.join("sys/bus/virtio/devices/virtio3");
        fs::create_dir_all(&device).unwrap();
        let gives = |id: &str, features: &str| {
            fs::write(device.join("device"), format!("{id}\n")).unwrap();
            fs::write(device.join("features"), format!("{features}\n")).unwrap();
            gives_free_pages_back(&Host::at(&root)).is_some()
        };
        assert!(gives("0x0005", "0010010000000000"));
        assert!(!gives("0x0005", "0010000000000000"));
        assert!(!gives("0x0002", "0010010000000000"));
        fs::create_dir_all(root.join("sys/bus/vmbus/drivers/hv_balloon")).unwrap();
        assert!(gives("0x0002", ""));
        let _ = fs::remove_dir_all(root);
    }

    #[test]
    fn guests_are_told_from_bare_metal() {
        let mut hvc = vec![0; 276];
        hvc[FADT_ARM_FLAGS] = 3;
        let guests: [(&str, &str, &[u8]); 8] = [
            ("x86", "proc/cpuinfo", b"flags\t\t: fpu hypervisor lm\n"),
            ("xen", "sys/hypervisor/type", b"xen\n"),
            ("psci", "proc/device-tree/psci/method", b"hvc\0"),
            ("virt", "proc/device-tree/compatible", b"linux,dummy-virt\0"),
            (
                "node",
                "proc/device-tree/hypervisor/compatible",
                b"xen,xen\0",
            ),
            ("fadt", "sys/firmware/acpi/tables/FACP", &hvc),
            ("dmi", "sys/class/dmi/id/sys_vendor", b"QEMU\n"),
            (
                "azure",
                "sys/class/dmi/id/product_name",
                b"Virtual Machine\n",
            ),
        ];
        for (name, path, content) in guests {
            assert!(sign_of(name, &[(path, content)]).is_some(), "{name}");
        }
        let mut smc = vec![0; 276];
        smc[FADT_ARM_FLAGS] = 1;
        let metal: [(&str, &[u8]); 6] = [
            ("proc/cpuinfo", b"Features\t: fp asimd\n"),
            ("proc/device-tree/psci/method", b"smc\0"),
            (
                "proc/device-tree/compatible",
                b"raspberrypi,5-model-b\0brcm,bcm2712\0",
            ),
            ("sys/firmware/acpi/tables/FACP", &smc),
            ("sys/class/dmi/id/sys_vendor", b"Supermicro\n"),
            ("sys/class/dmi/id/product_name", b"PowerEdge R6625\n"),
        ];
        assert_eq!(sign_of("metal", &metal), None);
        assert_eq!(sign_of("nothing", &[]), None);
    }
}
