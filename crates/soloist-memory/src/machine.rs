//! A machine as the timing model needs it: address map, DRAM, policy.
//!
//! The `[memory]` table of a machine file names a DRAM device (a file of
//! `machines/dram/`) and may set the controller's policy:
//!
//! ```toml
//! [memory]
//! device = "ddr3-1600k"
//!
//! [memory.controller]
//! page = "closed"
//! ```

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::Deserialize;
use soloist_core::AddrMap;

use crate::channel::Geometry;
use crate::controller::Policy;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::platform::{CoreConfig, HopConfig, NorthbridgeConfig};

macro_rules! built_in {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../machines/", $folder, $name, ".toml")))),*]
    };
}

/// Devices of the source tree.
const DEVICES: &[(&str, &str)] = built_in!["dram/":
    "ddr2-800",
    "ddr3-1066f",
    "ddr3-1333h",
    "ddr3-1600k",
    "ddr4-2400r",
    "ddr5-4800b",
    "lpddr4-3200",
    "lpddr5-6400",
];

/// Machines that exist in the simulator only.
const MACHINES: &[(&str, &str)] = built_in!["": "ddr3-1600k"];

/// The `[memory]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    device: String,
    #[serde(default)]
    controller: Policy,
    #[serde(default)]
    pub core: CoreConfig,
    #[serde(default)]
    pub northbridge: NorthbridgeConfig,
    #[serde(default)]
    pub hop: Vec<HopConfig>,
}

impl Section {
    /// The table of a machine whose file has been read.
    pub fn of(machine: &soloist_map::Machine) -> Result<Self> {
        Self::read(machine)
    }

    /// The same with some values changed: `changes` is merged into the table.
    pub fn changed(machine: &soloist_map::Machine, changes: &toml::Table) -> Result<Self> {
        let mut table: toml::Table = Self::read(machine)?;
        merge(&mut table, changes);
        table
            .try_into()
            .map_err(|e: toml::de::Error| Error::Model(e.message().replace('\n', " ")))
    }

    fn read<T: DeserializeOwned>(machine: &soloist_map::Machine) -> Result<T> {
        machine
            .section("memory")
            .map_err(|e| Error::Machine(e.to_string()))?
            .ok_or_else(|| Error::Invalid {
                file: machine.file.clone(),
                what: format!(
                    "no [memory] table; add one with `device = \"NAME\"`, NAME one of {}",
                    device_names()
                ),
            })
    }
}

/// Puts the values of `changes` into `table`, tables into tables.
fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(key), change) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(change)) => merge(inner, change),
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
}

/// Reads a machine by name, or by the path of its file.
pub(crate) fn find(name: &str) -> Result<soloist_map::Machine> {
    let machine = match MACHINES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => soloist_map::Machine::parse(text, &format!("machines/{name}.toml")),
        None => soloist_map::known::find(name),
    };
    machine.map_err(|e| Error::Machine(e.to_string()))
}

/// A machine with its memory.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Name.
    pub name: String,
    /// The address map.
    pub map: AddrMap,
    /// DRAM on every channel.
    pub device: Device,
    /// Ranks and banks of a channel.
    pub geometry: Geometry,
    /// The controllers' policy.
    pub policy: Policy,
}

impl Machine {
    /// A machine by name, or by the path of its file.
    pub fn find(name: &str) -> Result<Self> {
        Self::of(&find(name)?)
    }

    /// The memory of a machine whose file has been read.
    pub fn of(machine: &soloist_map::Machine) -> Result<Self> {
        Self::with(machine, &Section::of(machine)?)
    }

    /// The same, `section` being what its file says of memory.
    pub(crate) fn with(machine: &soloist_map::Machine, section: &Section) -> Result<Self> {
        let invalid = |what: String| Error::Invalid {
            file: machine.file.clone(),
            what,
        };
        let device = device(&section.device, &machine.file)?;
        section
            .controller
            .validate()
            .map_err(|what| invalid(format!("[memory.controller]: {what}")))?;
        let map = machine.addr_map();
        let geometry = geometry(&map, &device).map_err(invalid)?;
        Ok(Self {
            name: machine.about.name.clone(),
            map,
            device,
            geometry,
            policy: section.controller.clone(),
        })
    }
}

fn device_names() -> String {
    let names: Vec<_> = DEVICES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// A device by name: beside the machine file, or built in.
fn device(name: &str, machine_file: &str) -> Result<Device> {
    let beside = Path::new(machine_file)
        .parent()
        .unwrap_or(Path::new("."))
        .join("dram")
        .join(format!("{name}.toml"));
    if beside.is_file() {
        return Device::load(&beside);
    }
    match DEVICES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Device::parse(text, &format!("machines/dram/{name}.toml")),
        None => Err(Error::Invalid {
            file: machine_file.to_owned(),
            what: format!(
                "no DRAM device `{name}`: neither {} nor one of {}",
                beside.display(),
                device_names()
            ),
        }),
    }
}

/// Shape of a channel, and whether map and device can belong together.
fn geometry(map: &AddrMap, device: &Device) -> std::result::Result<Geometry, String> {
    // Maps found by timing cannot tell ranks from banks: their "banks" are the
    // banks of all ranks.
    let banks = map.n_ranks() * map.n_banks();
    if banks % device.banks != 0 || map.n_banks() < device.banks {
        return Err(format!(
            "the map has {} ranks of {} banks, a rank of {} has {} banks",
            map.n_ranks(),
            map.n_banks(),
            device.name,
            device.banks
        ));
    }
    let ranks = banks / device.banks;
    if map.line_size() != device.burst_bytes() {
        return Err(format!(
            "the map's lines have {} bytes, a burst of {} {}",
            map.line_size(),
            device.name,
            device.burst_bytes()
        ));
    }
    let group_bits = map.layouts().next().map_or(0, |l| l.bank_group);
    if group_bits == 0 {
        return Ok(Geometry::of_device(device, ranks));
    }
    let groups = 1 << group_bits.count_ones();
    if groups != device.bank_groups {
        return Err(format!(
            "the map has {groups} bank groups, {} has {}",
            device.name, device.bank_groups
        ));
    }
    Ok(Geometry {
        ranks,
        banks: device.banks,
        group_of: (0..device.banks).map(|b| gather(b, group_bits)).collect(),
    })
}

/// The bits of `value` that `mask` selects, side by side.
fn gather(value: u32, mask: u32) -> u8 {
    let bits = (0..32).filter(|b| mask >> b & 1 == 1);
    bits.enumerate()
        .fold(0, |sum, (to, from)| sum | ((value >> from & 1) as u8) << to)
}
