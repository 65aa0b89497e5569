//! PCI configuration space of the processor's nodes (device 18h + node), from
//! sysfs or from a dump.

use std::collections::BTreeMap;
use std::fs;

use soloist_machine::FileError;

use crate::machine::host::Host;

/// First device number of the nodes on bus 0.
const FIRST_DEVICE: u8 = 0x18;

/// Registers by node, function and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers {
    words: BTreeMap<(u8, u8, u16), u32>,
}

/// Why registers can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PciError {
    /// Nothing there.
    #[error("no northbridge at 00:18.0: not an AMD processor of this kind, or a virtual machine")]
    NoDevice,
    /// Too little could be read.
    #[error("only the first 64 bytes can be read: run as root")]
    Privilege,
    /// A register that the algorithm needs.
    #[error("node {node}: register F{function}x{offset:X} is not in the dump; registers from 0x100 need extended configuration space (lspci -xxxx as root)")]
    Missing {
        /// Node.
        node: u8,
        /// PCI function.
        function: u8,
        /// Offset.
        offset: u16,
    },
}

impl Registers {
    /// Reads a dump: either `lspci -xxxx`, or lines `18.1 0x40 0x00000003`
    /// (device.function, offset, value). `#` begins a comment.
    ///
    /// # Errors
    /// With the line.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut registers = Self::default();
        let mut place: Option<(u8, u8)> = None;
        for (i, line) in text.lines().enumerate() {
            let wrong = |message: &str| {
                FileError::in_line("", i + 1, format!("`{}`: {message}", line.trim()))
            };
            let line = line.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(first) = words.first() else {
                continue;
            };
            if let Some((offset, "")) = first.split_once(':') {
                let offset = u16::from_str_radix(offset, 16)
                    .ok()
                    .filter(|offset| offset % 16 == 0 && *offset < 4096)
                    .ok_or_else(|| wrong("expected an offset below 1000, in steps of 10"))?;
                if let Some((node, function)) = place {
                    registers
                        .add_bytes(node, function, offset, &words[1..])
                        .ok_or_else(|| wrong("expected 16 bytes in hexadecimal"))?;
                }
            } else if words.len() == 3 && words[1].starts_with("0x") {
                let number =
                    |word: &str| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok();
                let (node, function) =
                    device(first).ok_or_else(|| wrong("expected a device such as 18.1"))?;
                let offset = number(words[1])
                    .filter(|offset| offset % 4 == 0 && *offset < 4096)
                    .ok_or_else(|| wrong("expected an offset that is a multiple of 4"))?;
                let value = number(words[2]).ok_or_else(|| wrong("expected a value of 32 bits"))?;
                registers
                    .words
                    .insert((node, function, offset as u16), value);
            } else {
                // A heading of lspci; other devices are passed over.
                place = device(first);
            }
        }
        if registers.words.is_empty() {
            let message = "no registers of devices 00:18 to 00:1f in it";
            return Err(FileError::whole("", message));
        }
        Ok(registers)
    }

    fn add_bytes(&mut self, node: u8, function: u8, offset: u16, bytes: &[&str]) -> Option<()> {
        let bytes: Vec<u8> = bytes
            .iter()
            .map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect::<Option<_>>()?;
        if bytes.len() != 16 {
            return None;
        }
        self.add(node, function, offset, &bytes);
        Some(())
    }

    fn add(&mut self, node: u8, function: u8, offset: u16, bytes: &[u8]) {
        for (i, word) in bytes.chunks_exact(4).enumerate() {
            let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            self.words
                .insert((node, function, offset + 4 * i as u16), value);
        }
    }

    /// Reads those of `host`, through /sys/bus/pci.
    ///
    /// # Errors
    /// When there is no such device, or not all of it can be read.
    pub fn read(host: &Host) -> Result<Self, PciError> {
        let devices = host.path("/sys/bus/pci/devices");
        let mut registers = Self::default();
        for node in 0..8 {
            for function in 0..5 {
                let name = format!("0000:00:{:02x}.{function}/config", FIRST_DEVICE + node);
                if let Ok(bytes) = fs::read(devices.join(name)) {
                    if bytes.len() <= 64 {
                        return Err(PciError::Privilege);
                    }
                    registers.add(node, function, 0, &bytes);
                }
            }
        }
        if registers.words.is_empty() {
            return Err(PciError::NoDevice);
        }
        Ok(registers)
    }

    /// A register.
    ///
    /// # Errors
    /// When the dump lacks it.
    pub fn get(&self, node: u8, function: u8, offset: u16) -> Result<u32, PciError> {
        let word = self.words.get(&(node, function, offset));
        word.copied().ok_or(PciError::Missing {
            node,
            function,
            offset,
        })
    }

    /// A register, 0 where the dump lacks it.
    #[must_use]
    pub fn get_or_zero(&self, node: u8, function: u8, offset: u16) -> u32 {
        let word = self.words.get(&(node, function, offset));
        word.copied().unwrap_or(0)
    }
}

/// `18.1`, `00:18.1` or `0000:00:18.1`: node and function.
fn device(word: &str) -> Option<(u8, u8)> {
    let (device, function) = word.rsplit(':').next()?.split_once('.')?;
    let device = u8::from_str_radix(device, 16).ok()?;
    let node = device.checked_sub(FIRST_DEVICE).filter(|node| *node < 8)?;
    let function = function.parse().ok().filter(|function| *function < 8)?;
    let bus = word.rsplit(':').nth(1).unwrap_or("00");
    (bus == "00").then_some((node, function))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_lspci_and_plain_lines() {
        let lspci = "00:18.1 Host bridge: AMD Address Map\n\
             40: 03 00 00 00 00 00 27 02 00 00 00 00 00 00 00 00\n\
             01:00.0 VGA\n40: ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff\n";
        let registers = Registers::parse(lspci).unwrap();
        assert_eq!(registers.get(0, 1, 0x44), Ok(0x0227_0000));
        let plain = Registers::parse("# mine\n18.1 0x40 0x3\n19.2 0x110 0x84\n").unwrap();
        assert_eq!(plain.get(1, 2, 0x110), Ok(0x84));
        assert!(plain.get(0, 2, 0x110).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,120}") {
            let _ = Registers::parse(&text);
        }

        #[test]
        fn dump_like_text_never_panics(text in "[0-9a-f:. x#\n]{0,200}") {
            let _ = Registers::parse(&text);
        }
    }
}
