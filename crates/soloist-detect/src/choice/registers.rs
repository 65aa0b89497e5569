//! The map that registers hold.

use soloist_host::machine::pci::Registers;
use soloist_host::machine::Host;
use soloist_machine::Trust;

use crate::choice::finding::{about, Candidate, Finding, Source};
use soloist_map::sources::{amd10h, bridge};

pub(crate) fn from_registers(host: &Host) -> Finding {
    let read = Registers::read(host)
        .map_err(|error| error.to_string())
        .and_then(|registers| amd10h::map(&registers).map_err(|error| error.to_string()));
    match read {
        Err(why) => Finding::nothing(
            Source::Registers,
            match bridge::read(host) {
                Ok(bridge) => format!(
                    "Intel's host bridge says where memory lies, and nothing of banks: {}",
                    bridge.said()
                ),
                Err(other) => format!("{why}; {other}"),
            },
        ),
        Ok(map) => Finding {
            from: Source::Registers,
            found: "AMD Family 10h: decoded".into(),
            nodes: Vec::new(),
            map: Some(Candidate {
                about: about(host, "registers", Trust::Exact, "AMD Family 10h registers"),
                map,
                notes: Vec::new(),
            }),
            channels: None,
        },
    }
}
