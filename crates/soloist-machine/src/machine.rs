//! Machine files: one TOML file per machine (docs/reference/machine-files.md).
//!
//! The file is for people; [`Machine::map_text`] turns its `[map]` into the
//! compact text of docs/reference/map-format.md, and only core's parser turns that into
//! a map that decodes.

use serde::Deserialize;
use soloist_core::AddrMap;
use toml::Spanned;

use crate::about::{check_name, About, HostFit};
use crate::cache::Caches;
use crate::classmap::ClassMap;
use crate::dram::{self, Device};
use crate::file::{read_text, FileError, FileText, Wrong};
use crate::map::RawMap;
use crate::memory::Memory;
use crate::spec::MapSpec;
use crate::topology::{check_topology, Topology};
use crate::vm::Vm;

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Name, description, sources.
    pub about: About,
    /// Which hosts it fits.
    pub host: HostFit,
    /// Nodes, CPUs, distances.
    pub topology: Topology,
    /// Caches, where known.
    pub cache: Option<Caches>,
    /// The address map.
    pub map: MapSpec,
    /// What the timing model needs, where known.
    pub memory: Option<Memory>,
    /// Its virtual form, if it has one.
    pub vm: Option<Vm>,
    /// The file as it was named, for messages.
    pub file: String,
}

impl Machine {
    /// The `[memory]` table.
    ///
    /// # Errors
    /// When the file has none.
    pub fn memory_table(&self) -> Result<&Memory, FileError> {
        self.memory.as_ref().ok_or_else(|| {
            let message = format!(
                "no [memory] table; add one with `device = \"NAME\"`, NAME one of {}",
                dram::names()
            );
            FileError::whole(&self.file, message)
        })
    }

    /// The DRAM on every channel.
    ///
    /// # Errors
    /// When no `[memory]` table names it, or it is not known.
    pub fn device(&self) -> Result<Device, FileError> {
        Device::find(&self.memory_table()?.device, &self.file)
    }

    /// Reads a machine from the text of a file; `file` is its name in messages.
    ///
    /// # Errors
    /// With line, what was wrong and what was expected. The map itself is
    /// checked by core's parser before this returns.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let place = FileText { file, text };
        if ClassMap::is_one(text) {
            return Err(FileError::whole(
                file,
                "holds conflict classes of single pages, not a map that tells every address's \
                 bank; `soloist map show`, `decode` and `check` take it, nothing else can",
            ));
        }
        let raw: Raw = toml::from_str(text).map_err(|error| place.toml(&error))?;
        check_name(&raw.machine).map_err(|(span, message)| place.error(span, message))?;
        check_topology(&raw.topology).map_err(|(span, message)| place.error(span, message))?;
        let (map, lines) = raw.map.into_spec(&place)?;
        for section in [
            check(&raw.cache, |caches| caches.check(&map.llc)),
            check(&raw.memory, Memory::check),
            check(&raw.vm, Vm::check),
        ] {
            section.map_err(|(span, message)| place.error(span, message))?;
        }
        lines.check(
            &map,
            &raw.machine.get_ref().name,
            raw.topology.get_ref().nodes(),
            &place,
        )?;
        Ok(Self {
            about: raw.machine.into_inner(),
            host: raw.host,
            topology: raw.topology.into_inner(),
            cache: raw.cache.map(Spanned::into_inner),
            map,
            memory: raw.memory.map(Spanned::into_inner),
            vm: raw.vm.map(Spanned::into_inner),
            file: file.to_owned(),
        })
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// As [`Machine::parse`], or that the file can't be read.
    pub fn read(path: &std::path::Path) -> Result<Self, FileError> {
        let (text, file) = read_text(path)?;
        Self::parse(&text, &file)
    }

    /// The map text of docs/reference/map-format.md: what the kernel module takes.
    #[must_use]
    pub fn map_text(&self) -> String {
        self.map.to_text(&self.about.name)
    }

    /// The map, parsed by core.
    ///
    /// # Panics
    /// Never: [`Machine::parse`] let nothing through that core refuses.
    #[must_use]
    pub fn addr_map(&self) -> AddrMap {
        AddrMap::parse(&self.map_text()).expect("the map was checked when the file was read")
    }
}

// The file as TOML sees it; every value that is checked here keeps its span.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    machine: Spanned<About>,
    #[serde(default)]
    host: HostFit,
    topology: Spanned<Topology>,
    map: RawMap,
    cache: Option<Spanned<Caches>>,
    memory: Option<Spanned<Memory>>,
    vm: Option<Spanned<Vm>>,
}

/// What a section itself finds wrong with its values.
fn check<T>(
    section: &Option<Spanned<T>>,
    values: impl Fn(&T) -> Result<(), String>,
) -> Result<(), Wrong> {
    match section {
        Some(section) => values(section.get_ref()).map_err(|message| (section.span(), message)),
        None => Ok(()),
    }
}
