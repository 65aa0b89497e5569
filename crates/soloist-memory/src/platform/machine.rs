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

use soloist_core::AddrMap;
use soloist_machine::dram::Device;
use soloist_machine::memory::{Memory, Policy};
use soloist_machine::{known, FileError};

use crate::controller::schedulers;
use crate::dram::Geometry;
use crate::error::{Error, Result};

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
        Self::of(&known::find(name)?)
    }

    /// The memory of a machine whose file has been read.
    pub fn of(machine: &soloist_machine::Machine) -> Result<Self> {
        let memory = Self::with(machine, machine.memory_table()?)?;
        memory.has_its_rows(&machine.file)?;
        Ok(memory)
    }

    /// Whether the device that the machine's file names has rows of the map's size. One that is
    /// tried in its place need not.
    pub(crate) fn has_its_rows(&self, file: &str) -> Result<()> {
        let (ours, theirs) = (row_bytes(&self.map), self.device.row_bytes);
        match ours.is_none_or(|ours| ours == u64::from(theirs)) {
            true => Ok(()),
            false => Err(Error::File(FileError::whole(
                file,
                format!(
                    "the map's rows have {} bytes, those of {} {theirs}: name a device of as many column bits",
                    ours.unwrap_or(0),
                    self.device.name
                ),
            ))),
        }
    }

    /// The same, `section` being what its file says of memory.
    pub(crate) fn with(machine: &soloist_machine::Machine, section: &Memory) -> Result<Self> {
        let invalid = |what: String| Error::File(FileError::whole(&machine.file, what));
        let mut device = Device::find(&section.device, &machine.file)?;
        if let Some(scheme) = section.controller.refresh {
            device = device.refreshed_by(scheme).map_err(invalid)?;
        }
        let map = machine.addr_map();
        let geometry = geometry(&map, &device).map_err(invalid)?;
        check_scheduler(&section.controller.scheduler).map_err(invalid)?;
        Ok(Self {
            name: machine.about.name.clone(),
            map,
            device,
            geometry,
            policy: section.controller.clone(),
        })
    }
}

/// Whether the model has a scheduler of that name.
fn check_scheduler(name: &str) -> std::result::Result<(), String> {
    let known: Vec<String> = schedulers().collect();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(format!(
        "[memory.controller]: no scheduler `{name}`; there are: {}",
        known.join(", ")
    ))
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

/// Bytes of a row by the map; `None`: it names no columns.
fn row_bytes(map: &AddrMap) -> Option<u64> {
    let line = u64::from(map.line_size());
    let layout = map.layouts().find(|layout| !layout.col.is_empty())?;
    // Columns of a line are in the map or not.
    let lines = layout.col.iter().filter(|bit| bit.mask >= line).count();
    Some(line << lines)
}

/// The bits of `value` that `mask` selects, side by side.
fn gather(value: u32, mask: u32) -> u8 {
    let bits = (0..32).filter(|b| mask >> b & 1 == 1);
    bits.enumerate()
        .fold(0, |sum, (to, from)| sum | ((value >> from & 1) as u8) << to)
}
