//! The map that the registers of this machine hold: AMD Family 10h's whole one, or where
//! memory lies, of an Intel client.

use soloist_core::format_size;
use soloist_host::machine::pci::Registers;
use soloist_host::machine::Host;
use soloist_machine::{known, FileError, MapSpec};

use crate::sources::amd10h::{self, AmdError};
use crate::sources::bridge::{self, BridgeError};

/// Why registers make no map.
#[derive(Debug, thiserror::Error)]
pub enum RegistersError {
    /// They contradict themselves.
    #[error(transparent)]
    Amd(#[from] AmdError),
    /// No host bridge says where memory lies.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    /// The functions' machine file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are none of AMD's, or the functions are for other memory; in words.
    #[error("{0}")]
    Missing(String),
}

/// The map in the registers of an AMD Family 10h processor.
///
/// # Errors
/// When there are none, or they make no map.
pub fn decode(host: &Host) -> Result<MapSpec, RegistersError> {
    let registers = Registers::read(host).map_err(|error| {
        RegistersError::Missing(match bridge::read(host) {
            Ok(bridge) => format!(
                "{error}. Intel's host bridge says where memory lies: {}; it says nothing of banks: \
                 --functions takes a machine's",
                bridge.said()
            ),
            Err(other) => format!("{error}; {other}"),
        })
    })?;
    Ok(amd10h::map(&registers)?)
}

/// The functions of the machine `name` over the memory that the host bridge shows, and
/// where they are from, in words.
///
/// # Errors
/// When there is no such bridge, or the functions are for other memory.
pub fn over_bridge(host: &Host, name: &str) -> Result<(MapSpec, String), RegistersError> {
    let (bridge, machine) = (bridge::read(host)?, known::find(name)?);
    let map = bridge.lay(&machine.map).ok_or_else(|| {
        RegistersError::Missing(format!(
            "{name} is for {} in one piece from address 0 on, and the host bridge says {}",
            format_size(machine.map.bytes()),
            format_size(bridge.bytes)
        ))
    })?;
    let source = format!(
        "functions of {name}; where memory lies: the host bridge ({}); soloist map check measures",
        bridge.said()
    );
    Ok((map, source))
}
