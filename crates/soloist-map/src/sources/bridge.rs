//! Where an Intel client's memory lies, from the registers of its host bridge.
//!
//! Device 0:0.0 holds what firmware settled, in steps of a MiB: TOLUD, where memory
//! below 4 GiB ends and devices begin; TOUUD, where all memory ends; REMAPBASE and
//! REMAPLIMIT, between which lies the memory that the devices hide (offset = address -
//! REMAPBASE + TOLUD); TOM, how much memory there is. Root reads them through
//! /sys/bus/pci; no module is needed. They say nothing of channels or banks. Servers'
//! bridges keep other things there, so that values must agree with each other and with
//! the memory that the kernel has.

use soloist_host::machine::Host;
use soloist_machine::ram::parse_iomem;
use soloist_machine::{MapRange, MapSpec, RamRange};

/// Where they are in configuration space.
const REMAP_BASE: usize = 0x90;
const REMAP_LIMIT: usize = 0x98;
const TOM: usize = 0xa0;
const TOUUD: usize = 0xa8;
const TOLUD: usize = 0xbc;
/// What root is told of a device at least.
const WHOLE: usize = 256;
const INTEL: u16 = 0x8086;
const HOST_BRIDGE: u16 = 0x0600;
/// Bit 0 locks a register; the address begins with bit 20.
const LOCK: u64 = 1;
const STEP: u64 = 1 << 20;
const FOUR_GIB: u64 = 1 << 32;
/// Addresses have fewer bits.
const ADDRESS_BITS: u32 = 42;

/// Where memory lies that `offset = address - shift` holds in, from `border` to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifted {
    /// Its first byte.
    pub border: u64,
    /// Address less offset.
    pub shift: u64,
}

/// What a host bridge says of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Bridge {
    /// First byte behind memory below 4 GiB.
    pub low_end: u64,
    /// First byte behind all memory.
    pub end: u64,
    /// Bytes of memory there are, what firmware keeps included.
    pub bytes: u64,
    /// First byte of what was hidden below 4 GiB and its end, where any is.
    pub lifted: Option<(u64, u64)>,
}

/// Why a host bridge says nothing of memory, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BridgeError(String);

fn refused<T>(why: impl Into<String>) -> Result<T, BridgeError> {
    Err(BridgeError(why.into()))
}

/// Reads the host bridge of `host`, and holds it against the memory that /proc/iomem has
/// there.
///
/// # Errors
/// When there is none of an Intel client, it can't be read, or it says what can't be.
pub fn read(host: &Host) -> Result<Bridge, BridgeError> {
    let iomem = host.read("/proc/iomem").unwrap_or_default();
    read_with(host, &parse_iomem(&iomem))
}

/// As [`read`], with the memory `ram`.
///
/// # Errors
/// The same.
pub fn read_with(host: &Host, ram: &[RamRange]) -> Result<Bridge, BridgeError> {
    let path = host.path("/sys/bus/pci/devices/0000:00:00.0/config");
    let Ok(bytes) = std::fs::read(&path) else {
        return refused("no host bridge at 0000:00:00.0: no PCI, or a virtual machine");
    };
    parse(&bytes, ram)
}

/// Understands the configuration space of device 0:0.0 of a machine with the memory `ram`.
///
/// # Errors
/// As [`read_with`].
pub fn parse(config: &[u8], ram: &[RamRange]) -> Result<Bridge, BridgeError> {
    let word = |at: usize| {
        config
            .get(at..at + 2)
            .map(|b| u16::from_le_bytes([b[0], b[1]]))
    };
    match (word(0), word(0x0a)) {
        (Some(INTEL), Some(HOST_BRIDGE)) => {}
        (Some(vendor), Some(class)) => {
            return refused(format!(
                "device 0000:00:00.0 is of vendor {vendor:#06x} and class {class:#06x}: no host \
                 bridge of Intel"
            ));
        }
        _ => return refused("device 0000:00:00.0 tells less than 12 bytes"),
    }
    if config.len() < WHOLE {
        return refused(format!(
            "only {} bytes of the host bridge can be read: run as root",
            config.len()
        ));
    }
    let low_end = address("TOLUD", long(config, TOLUD) & 0xffff_ffff)?;
    let end = address("TOUUD", long(config, TOUUD))?;
    let bytes = address("TOM", long(config, TOM))?;
    let base = address("REMAPBASE", long(config, REMAP_BASE))?;
    // The last MiB, not what follows it.
    let limit = address("REMAPLIMIT", long(config, REMAP_LIMIT))? + STEP;
    let bridge = Bridge {
        low_end,
        end,
        bytes,
        lifted: (base < limit).then_some((base, limit)),
    };
    match bridge.contradiction(ram) {
        Some(why) => refused(format!("no registers of an Intel client: {why}")),
        None => Ok(bridge),
    }
}

fn long(config: &[u8], at: usize) -> u64 {
    let bytes = config[at..].iter().take(8).rev();
    bytes.fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn address(name: &str, register: u64) -> Result<u64, BridgeError> {
    let address = register & !LOCK;
    match address % STEP == 0 && address >> ADDRESS_BITS == 0 {
        true => Ok(address),
        false => refused(format!(
            "no registers of an Intel client: {name} is {register:#x}, no multiple of a MiB below \
             2^{ADDRESS_BITS}"
        )),
    }
}

impl Bridge {
    /// What can't be, in words.
    fn contradiction(&self, ram: &[RamRange]) -> Option<String> {
        let Self {
            low_end,
            end,
            bytes,
            ..
        } = *self;
        if low_end == 0 || bytes < low_end {
            return Some(format!("TOLUD is {low_end:#x} of TOM {bytes:#x}"));
        }
        if let Some((base, limit)) = self.lifted {
            let hidden = FOUR_GIB.saturating_sub(low_end);
            let lifted = limit - base;
            // All that is hidden is lifted, unless memory ends below 4 GiB.
            let fits = lifted == hidden || (base == FOUR_GIB && lifted < hidden);
            if base < FOUR_GIB || base > bytes.max(FOUR_GIB) || limit != end || !fits {
                return Some(format!(
                    "REMAPBASE {base:#x} to REMAPLIMIT {:#x} is not what TOLUD {low_end:#x} hides, \
                     up to TOUUD {end:#x}",
                    limit - 1
                ));
            }
        } else if end > FOUR_GIB.max(bytes) {
            return Some(format!(
                "TOUUD {end:#x} is behind TOM {bytes:#x}, and nothing is lifted"
            ));
        }
        let outside = ram.iter().find(|range| {
            let end = if range.start < FOUR_GIB { low_end } else { end };
            range.end > end
        });
        outside.map(|range| {
            format!(
                "the kernel has memory up to {:#x}, and by TOLUD {low_end:#x} and TOUUD {end:#x} \
                 there is none",
                range.end - 1
            )
        })
    }

    /// What is lifted, for the detector.
    #[must_use]
    pub fn lifted(&self) -> Option<Lifted> {
        let (border, _) = self.lifted?;
        let shift = border - self.low_end;
        Some(Lifted { border, shift })
    }

    /// All memory, as ranges of a map's first layout.
    #[must_use]
    pub fn ranges(&self) -> Vec<MapRange> {
        let straight_end = self.lifted.map_or(self.end, |(base, _)| base);
        let parts = [
            (0, self.low_end, 0),
            (FOUR_GIB, straight_end, FOUR_GIB),
            self.lifted
                .map_or((0, 0, 0), |(base, end)| (base, end, self.low_end)),
        ];
        let parts = parts.into_iter().filter(|(start, end, _)| start < end);
        parts
            .map(|(start, end, base)| MapRange {
                start,
                end,
                node: 0,
                base,
                layout: 0,
            })
            .collect()
    }

    /// `map`, whose functions are over all memory in one piece, with the ranges of this
    /// machine; `None`: it is of another size, or not in one piece.
    #[must_use]
    pub fn lay(&self, map: &MapSpec) -> Option<MapSpec> {
        let whole = matches!(map.ranges.as_slice(), [one] if one.start == 0 && one.base == 0);
        (whole && map.bytes() == self.bytes).then(|| MapSpec {
            ranges: self.ranges(),
            ..map.clone()
        })
    }

    /// Where memory lies, in words.
    #[must_use]
    pub fn said(&self) -> String {
        let last = self.end - 1;
        let low = format!("below 4 GiB it ends at {:#x}", self.low_end - 1);
        match self.lifted {
            Some((base, _)) => format!(
                "{low}; what devices hide there lies from {base:#x} to {last:#x}, all else where \
                 its address says"
            ),
            None => format!("{low}; nothing is lifted"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 16 GiB, of which an engine keeps 32 MiB.
    fn config() -> Vec<u8> {
        let mut config = vec![0; 256];
        let mut put = |at: usize, value: u64, bytes: usize| {
            config[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        };
        put(0, 0x3e30_8086, 4);
        put(0x0a, 0x0600, 2);
        put(REMAP_BASE, 0x3_fe00_0001, 8);
        put(REMAP_LIMIT, 0x4_1e50_0001, 8);
        put(TOM, 0x4_0000_0001, 8);
        put(TOUUD, 0x4_1e60_0001, 8);
        put(TOLUD, 0xdfa0_0001, 4);
        config
    }

    fn ram() -> Vec<RamRange> {
        let range = |start, end| RamRange {
            start,
            end,
            node: 0,
        };
        vec![range(0, 0xd9ff_f000), range(FOUR_GIB, 0x4_1e60_0000)]
    }

    #[test]
    fn a_clients_registers_say_where_its_memory_lies() {
        let bridge = parse(&config(), &ram()).unwrap();
        let lifted = bridge.lifted().unwrap();
        assert_eq!(
            (lifted.border, lifted.shift),
            (0x3_fe00_0000, 0x3_1e60_0000)
        );
        let ranges: Vec<_> = bridge
            .ranges()
            .iter()
            .map(|r| (r.start, r.end, r.base))
            .collect();
        let low = (0, 0xdfa0_0000, 0);
        let straight = (FOUR_GIB, 0x3_fe00_0000, FOUR_GIB);
        assert_eq!(
            ranges,
            [low, straight, (0x3_fe00_0000, 0x4_1e60_0000, 0xdfa0_0000)]
        );
        let skylake = soloist_machine::known::find("skylake").unwrap();
        assert_eq!(bridge.lay(&skylake.map).unwrap().ranges, bridge.ranges());
        let haswell = soloist_machine::known::find("haswell").unwrap();
        assert_eq!(bridge.lay(&haswell.map), None);
        assert!(bridge.said().contains("from 0x3fe000000 to 0x41e5fffff"));
    }

    #[test]
    fn what_is_no_clients_is_refused_in_words() {
        let refuses = |change: &dyn Fn(&mut Vec<u8>), says: &str| {
            let mut config = config();
            change(&mut config);
            let why = parse(&config, &ram()).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        };
        refuses(&|c| c.truncate(64), "run as root");
        refuses(&|c| c.truncate(8), "less than 12 bytes");
        refuses(&|c| c[0] = 0x22, "vendor 0x8022");
        refuses(&|c| c[0x0a] = 4, "class 0x0604");
        refuses(
            &|c| c[TOLUD..].iter_mut().for_each(|b| *b = 0),
            "TOLUD is 0x0",
        );
        refuses(&|c| c[TOLUD + 1] = 0x10, "TOLUD is 0xdfa01001");
        refuses(&|c| c[TOUUD + 7] = 1, "TOUUD is");
        refuses(&|c| c[REMAP_BASE + 3] = 0xf0, "is not what TOLUD");
        refuses(&|c| c[REMAP_LIMIT + 3] = 0x1f, "is not what TOLUD");
        refuses(&|c| c[TOLUD + 3] = 0xc0, "is not what TOLUD");
        // As a virtual machine's bridge, and as a server's, which has nothing there.
        refuses(&|c| c[0x90..].fill(0), "TOLUD is 0x0");
        refuses(&|c| c[0x90..].fill(0xff), "is 0xffff");
        let mut more = ram();
        more[1].end += STEP;
        let why = parse(&config(), &more).unwrap_err().to_string();
        assert!(why.contains("memory up to 0x41e6fffff"), "{why}");
    }

    #[test]
    fn a_machine_is_read_below_a_root() {
        let root = std::env::temp_dir().join(format!("soloist-bridge-{}", std::process::id()));
        let device = root.join("sys/bus/pci/devices/0000:00:00.0");
        std::fs::create_dir_all(&device).unwrap();
        assert!(read_with(&Host::at(&root), &ram())
            .unwrap_err()
            .to_string()
            .contains("no host bridge"));
        std::fs::write(device.join("config"), config()).unwrap();
        let host = Host::at(&root);
        let read = super::read(&host);
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let more = "100000000-41e6fffff : System RAM\n";
        std::fs::write(root.join("proc/iomem"), more).unwrap();
        let denied = super::read(&host);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(read, parse(&config(), &ram()));
        assert!(denied.is_err(), "{denied:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(config in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&config, &ram());
            let mut intel = config;
            intel.resize(256, 0);
            intel[..2].copy_from_slice(&INTEL.to_le_bytes());
            intel[0x0a..0x0c].copy_from_slice(&HOST_BRIDGE.to_le_bytes());
            let _ = parse(&intel, &ram());
        }
    }
}
