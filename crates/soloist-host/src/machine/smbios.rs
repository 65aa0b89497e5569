//! Memory modules, as the firmware lists them in its SMBIOS table.

use std::collections::BTreeSet;
use std::fs;

use crate::machine::host::Host;

/// Memory modules as the firmware lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Modules {
    /// Populated sockets.
    pub dimms: u32,
    /// Different channels that the locators name, when they do.
    pub channels: Option<u32>,
    /// The words before the channel's name tell nodes apart, as `NODE 0` and `NODE 1`.
    pub names_nodes: bool,
    /// Bytes in all.
    pub bytes: u64,
}

impl Modules {
    /// Channels of all `nodes`; `None` where channels of two nodes may have one name.
    #[must_use]
    pub fn channels_of(&self, nodes: u32) -> Option<u32> {
        self.channels.filter(|_| nodes < 2 || self.names_nodes)
    }
}

/// Modules from the SMBIOS table (root); `None` when it can't be read.
#[must_use]
pub fn modules(host: &Host) -> Option<Modules> {
    fs::read(host.path("/sys/firmware/dmi/tables/DMI"))
        .ok()
        .map(|table| parse_smbios(&table))
}

/// Reads the memory devices (type 17) of an SMBIOS structure table.
#[must_use]
fn parse_smbios(table: &[u8]) -> Modules {
    let mut modules = Modules::default();
    let mut channels = BTreeSet::new();
    let mut at = 0;
    while let Some(&[kind, length, ..]) = table.get(at..at + 4) {
        let length = usize::from(length);
        let Some(body) = table.get(at..at + length).filter(|_| length >= 4) else {
            break;
        };
        let strings = &table[at + length..];
        let end = strings.windows(2).position(|pair| pair == [0, 0]);
        if kind == 17 && is_ram(body) {
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
    let befores: BTreeSet<_> = channels.iter().map(|(before, _)| before).collect();
    modules.names_nodes = befores.len() > 1;
    modules.channels = (!channels.is_empty()).then_some(channels.len() as u32);
    modules
}

/// Is it a module of RAM? Others are flash, where the firmware lies, and memory that keeps what it
/// holds.
fn is_ram(body: &[u8]) -> bool {
    let is_rom = matches!(body.get(0x12), Some(0x08..=0x0c | 0x1f));
    let keeps = matches!(body.get(0x28), Some(0x04..=0x07));
    !is_rom && !keeps
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

/// `Channel A`, `ChannelB-DIMM0`, `P0 CHANNEL C`: node, if any, and letter or number.
fn channel_of(locator: &str) -> Option<(String, String)> {
    let upper = locator.to_ascii_uppercase();
    let at = upper.find("CHANNEL")?;
    let name: String = upper[at + 7..]
        .trim_start_matches([' ', '_', '-'])
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    (!name.is_empty()).then(|| (upper[..at].to_owned(), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_modules_from_smbios() {
        let entry = |mib: u16, kind: u8, technology: u8, locator: &[u8]| {
            let mut entry = vec![17u8, 0x54, 1, 0];
            entry.resize(0x54, 0);
            entry[0x0c..0x0e].copy_from_slice(&mib.to_le_bytes());
            entry[0x10] = 1;
            (entry[0x12], entry[0x28]) = (kind, technology);
            [&entry, locator, b"\0\0"].concat()
        };
        let (ddr4, flash, dram, nvdimm) = (0x1a, 0x09, 0x03, 0x04);
        let table = [
            entry(8192, ddr4, dram, b"ChannelA-DIMM0"),
            entry(8192, ddr4, dram, b"ChannelA-DIMM1"),
            entry(16384, ddr4, nvdimm, b"ChannelB-DIMM0"),
            entry(16, flash, 0x02, b"SYSTEM ROM"),
            vec![127, 4, 0, 0, 0, 0],
        ];
        let table = table.concat();
        let modules = parse_smbios(&table);
        assert_eq!(
            modules,
            Modules {
                dimms: 2,
                channels: Some(1),
                names_nodes: false,
                bytes: 16 << 30
            }
        );
        assert_eq!(
            (modules.channels_of(1), modules.channels_of(2)),
            (Some(1), None)
        );
    }

    proptest! {
        #[test]
        fn smbios_never_panics(table in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_smbios(&table);
        }
    }
}
