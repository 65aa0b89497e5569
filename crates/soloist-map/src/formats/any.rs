//! Every format of other tools by its name, and the map that a file of one makes.

use std::str::FromStr;

use soloist_core::format_size;
use soloist_machine::{
    write, About, FileError, Layout, Machine, MapRange, MapSpec, Topology, Trust,
};

use crate::formats::found::{self, FillError, Found, Memory};
use crate::formats::functions::{self, Format};
use crate::formats::layouts::{self, Tool};
use crate::formats::order::{self, Geometry};

/// A format of another tool.
#[derive(Debug, Clone, Copy)]
pub enum AnyFormat {
    /// Whole layouts.
    Layout(Tool),
    /// A mapping string of a simulator.
    Order,
    /// A list of functions.
    Functions(Format),
}

/// A map from another tool's file, and how far it goes.
#[derive(Debug)]
pub struct Imported {
    /// The map.
    pub map: MapSpec,
    /// How far it is to be trusted.
    pub trust: Trust,
    /// What was filled in, in sentences.
    pub notes: Vec<String>,
}

/// Why a file makes no map.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// What was asked for can't be, in words.
    #[error("{0}")]
    Misuse(String),
    /// The file is wrong.
    #[error(transparent)]
    Format(#[from] FileError),
    /// What the file leaves open can't be filled in.
    #[error(transparent)]
    Fill(FillError),
    /// What a format can't say of a map.
    #[error("{0}")]
    Unsaid(String),
}

impl Imported {
    /// A map of which nothing was filled in.
    #[must_use]
    pub fn whole(map: MapSpec, trust: Trust) -> Self {
        Self {
            map,
            trust,
            notes: Vec::new(),
        }
    }

    /// The map as a file of the format `to`: `text` (the kernel's), `machine`, or another
    /// tool's; `about` and `topology` are the machine's.
    ///
    /// # Errors
    /// When there is no such format, or it can't say what the map is.
    pub fn write(
        &self,
        to: &str,
        about: &About,
        topology: &Topology,
    ) -> Result<String, ImportError> {
        let (map, name) = (&self.map, &about.name);
        match to {
            "text" => return Ok(map.to_text(name)),
            "machine" => {
                let text = write::machine_file(about, topology, map, &self.notes);
                Machine::parse(&text, "the map that was found")?;
                return Ok(text);
            }
            _ => {}
        }
        if map.layouts.iter().any(|l| l.interleave.is_some()) {
            return Err(ImportError::Unsaid(format!(
                "{name}: its channels come from a division, which {to} can't say"
            )));
        }
        let [layout] = map.layouts.as_slice() else {
            let why = format!("{name} has several layouts; {to} holds one");
            return Err(ImportError::Unsaid(why));
        };
        let format: AnyFormat = to.parse().map_err(ImportError::Misuse)?;
        format.write(name, layout).map_err(ImportError::Unsaid)
    }

    /// What a file of the format `to` does not say, in sentences: where a function is over
    /// an offset that is not the address.
    #[must_use]
    pub fn left_out(&self, to: &str) -> Vec<String> {
        if ["text", "machine"].contains(&to) {
            return Vec::new();
        }
        // A list has banks alone.
        let only_banks = matches!(to.parse(), Ok(AnyFormat::Functions(_)));
        let moved = self.map.ranges.iter().filter_map(|range| {
            let layout = &self.map.layouts[range.layout];
            let banks = layout.bank_functions();
            let columns = layout.column.iter().map(|column| column.mask);
            let rest = layout.row_masks().into_iter().chain(columns);
            let rest = rest.filter(|_| !only_banks);
            let used = banks
                .into_iter()
                .chain(rest)
                .fold(0, |all, mask| all | mask);
            let shift = range.start.wrapping_sub(range.base);
            // Bits below the lowest of the shift are the same in both.
            let lowest = shift & shift.wrapping_neg();
            (used >= lowest && shift != 0).then(|| moved(range))
        });
        moved.collect()
    }
}

/// How an address becomes the offset that functions are over.
fn moved(range: &MapRange) -> String {
    let MapRange { start, base, .. } = *range;
    match start > base {
        true => format!(
            "from {start:#x} on, subtract {:#x} from an address first (DARE's --offset)",
            start - base
        ),
        false => format!(
            "from {start:#x} on, add {:#x} to an address first",
            base - start
        ),
    }
}

impl FromStr for AnyFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match (Tool::named(name), name) {
            (Some(tool), _) => Ok(Self::Layout(tool)),
            (None, "order") => Ok(Self::Order),
            (None, name) => Ok(Self::Functions(name.parse()?)),
        }
    }
}

/// Physical addresses have no more bits than 52.
const MOST_MEMORY: u64 = 1 << 52;

impl AnyFormat {
    /// The map of `memory` that `text` makes; `geometry`: widths of an order's fields.
    ///
    /// # Errors
    /// When the text is wrong, or memory and map do not go together.
    pub fn import(
        self,
        text: &str,
        geometry: &str,
        memory: &Memory,
    ) -> Result<Imported, ImportError> {
        if let Some(bytes) = memory.bytes.filter(|&bytes| bytes > MOST_MEMORY) {
            let most = format_size(MOST_MEMORY);
            let why = format!("--memory {}: expected at most {most}", format_size(bytes));
            return Err(ImportError::Misuse(why));
        }
        let (layout, doubts) = match self {
            Self::Layout(tool) => layouts::read(tool, text).and_then(Found::layout)?,
            Self::Functions(format) => functions::read(format, text).and_then(Found::layout)?,
            Self::Order => (ordered(text, geometry, memory)?, Vec::new()),
        };
        let filled = found::fill(layout, doubts, memory).map_err(|error| match error {
            FillError::Hole(_) | FillError::Start(_) => ImportError::Misuse(error.to_string()),
            error => ImportError::Fill(error),
        })?;
        Ok(Imported {
            map: filled.map,
            trust: match self {
                // A simulator's: no machine is known to have it.
                Self::Order => Trust::Assumed,
                _ => filled.trust,
            },
            notes: filled.notes,
        })
    }

    /// `layout` of the machine `name` as a file of this format.
    ///
    /// # Errors
    /// With what the format can't say.
    pub fn write(self, name: &str, layout: &Layout) -> Result<String, String> {
        let functions = layout.bank_functions();
        if functions.is_empty() {
            return Err(format!(
                "{name}: its map has no functions of banks, which other tools' formats are of; \
                 --to machine and --to text hold all of it"
            ));
        }
        match self {
            Self::Layout(tool) => layouts::write(tool, name, layout),
            Self::Order => order::write(layout).map(|order| order + "\n"),
            Self::Functions(format) => functions::write(format, &functions),
        }
    }
}

/// The layout of a mapping string over `memory`.
fn ordered(text: &str, geometry: &str, memory: &Memory) -> Result<Layout, ImportError> {
    let geometry: Geometry = geometry.parse().map_err(ImportError::Misuse)?;
    let bytes = memory.bytes.unwrap_or(found::USUAL_MEMORY);
    let bits = bytes.next_power_of_two().trailing_zeros();
    order::read(text, geometry, bits).map_err(ImportError::Misuse)
}

/// One node after the other, a CPU each: what the formats don't tell.
#[must_use]
pub fn plain_topology(map: &MapSpec) -> Topology {
    let nodes = map.ranges.iter().map(|range| range.node).max().unwrap_or(0);
    Topology {
        sockets: 1,
        cpus: (0..=nodes).map(|node| node.to_string()).collect(),
        distances: Vec::new(),
        clock_mhz: None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_map_without_banks_is_no_file_of_another_tool() {
        let machine = soloist_machine::known::find("ampere-altra").unwrap();
        let imported = Imported::whole(machine.map, Trust::Exact);
        let write = |to: &str| imported.write(to, &machine.about, &machine.topology);
        for to in ["bits", "hex", "palloc", "drama", "dare", "order"] {
            let said = write(to).unwrap_err().to_string();
            assert!(said.contains("no functions of banks"), "{to}: {said}");
        }
        assert!(write("machine").is_ok() && write("text").is_ok());
    }
}
