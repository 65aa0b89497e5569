//! What measuring found: what is said of it, and the file that it makes.

use std::path::Path;

use serde::Serialize;
use soloist_host::machine::edac::Counted;
use soloist_host::machine::{guest, Host};
use soloist_machine::classmap::ClassMap;
use soloist_machine::{write, About, FileError, Machine, MapSpec, Topology, Trust};

use crate::choice::finding::Finding;
use crate::classes::Classes;
use crate::timing::Addresses;
use crate::{Detected, RegionReport};
use soloist_map::compare::differences;

/// What came of measuring, simulated or not.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was measured, in words.
    pub source: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Physical addresses, or bits inside a page only.
    pub physical: bool,
    /// All of it is explained and stood up.
    pub complete: bool,
    /// What is known of each layout.
    pub regions: Vec<RegionReport>,
    /// Probability that banks and rows are right, as far as they were measured.
    pub confidence: f64,
    /// Questions between layouts that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Memory without a layout: start, end, why.
    pub unsolved: Vec<(String, String, String)>,
    /// Raw samples taken.
    pub samples: u64,
    /// Time it took.
    pub seconds: f64,
    /// Of the levels.
    pub unit: &'static str,
    /// Conflict classes, where addresses are not physical.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// Simulated: whether the map came out exactly, else what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<bool>,
    /// What differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Contradictions by the counts of the kernel's drivers, or by its library for Zen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradicted: Vec<String>,
    /// The sources that had no map before timing was tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Finding>,
    /// Why `soloist up` does not take the file that is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Why classes hold for seconds only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleeting: Option<String>,
}

impl Report {
    /// Holds the map against what the kernel's drivers count: one that is
    /// contradicted is not complete.
    pub fn contradict(&mut self, counted: Option<&Counted>, found: &Detected) {
        if let (Some(counted), Some(map)) = (counted, found.map()) {
            self.contradicted = counted.against(&map, None, Trust::Detected).against;
            self.complete &= self.contradicted.is_empty();
        }
    }

    /// Holds the map against what knows of channels only.
    pub fn contradict_channels(&mut self, found: &Detected) {
        if let Some(map) = found.map() {
            let wrong = self.tried.iter().filter_map(|one| one.against(&map));
            self.contradicted.extend(wrong.flatten());
            self.complete &= self.contradicted.is_empty();
        }
    }

    /// Says where the map differs from that of the machine that was simulated.
    pub fn compare(&mut self, found: &Detected, simulated: &MapSpec) {
        let is_physical = found.addresses == Addresses::Physical;
        if let Some(map) = found.map() {
            self.differences = differences(simulated, &map);
        } else if is_physical {
            self.differences = vec!["nothing was found".to_owned()];
        }
        if is_physical {
            self.recovered = Some(self.differences.is_empty());
        }
    }
}

/// What is said of `found`.
#[must_use]
pub fn report(source: String, seed: u64, unit: &'static str, found: &Detected) -> Report {
    Report {
        source,
        seed,
        physical: found.addresses == Addresses::Physical,
        complete: found.is_complete(),
        confidence: found.confidence(),
        open: found.open(),
        regions: found.regions.iter().map(RegionReport::from).collect(),
        unsolved: found
            .unsolved
            .iter()
            .map(|(range, stop)| {
                let hex = |n: u64| format!("{n:#x}");
                (hex(range.start), hex(range.end), stop.to_string())
            })
            .collect(),
        samples: found.samples,
        seconds: found.elapsed.as_secs_f64(),
        unit,
        classes: found.classes.clone(),
        recovered: None,
        differences: Vec::new(),
        contradicted: Vec::new(),
        tried: Vec::new(),
        refused: Vec::new(),
        fleeting: None,
    }
}

/// A file of what was found.
#[derive(Debug)]
pub struct Made {
    /// Its text.
    pub text: String,
    /// What it holds.
    pub of: MadeOf,
}

/// The content of a file that is made from findings.
#[derive(Debug)]
pub enum MadeOf {
    /// A map, read back.
    Map(Box<Machine>),
    /// Conflict classes, which `soloist up` does not take.
    Classes,
}

/// Why no file can be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// Neither a map nor classes.
    #[error("nothing was found to write to {0}")]
    Nothing(String),
    /// What was made can't be read.
    #[error("{what} that can be used")]
    Unusable {
        /// What it is.
        what: &'static str,
        /// Why not.
        source: FileError,
    },
}

/// The file of what was found at `path`.
///
/// # Errors
/// When nothing was found, or the file can't be read.
pub fn file(
    path: &Path,
    found: &Detected,
    report: &Report,
    name: &str,
    topology: Topology,
) -> Result<Made, MakeError> {
    let named = path.display().to_string();
    Ok(match (found.map(), &found.classes) {
        (Some(map), _) => {
            let mut about = about(path, found, report.seed, name);
            let mut notes = found.notes();
            if !report.contradicted.is_empty() {
                about.trust = Trust::Incomplete;
                let contradicted = report.contradicted.iter();
                notes.extend(contradicted.map(|why| format!("open: {why}")));
            }
            let text = write::machine_file(&about, &topology, &map, &notes);
            let machine = Machine::parse(&text, &named).map_err(|source| MakeError::Unusable {
                what: "the map that was found is not one",
                source,
            })?;
            Made {
                text,
                of: MadeOf::Map(Box::new(machine)),
            }
        }
        (None, Some(classes)) if classes.classes > 0 => {
            let about = about(path, found, report.seed, name);
            let map = classes.to_file(about, 6);
            let mut notes = map.sentences();
            notes.extend(report.fleeting.clone());
            let text = map.to_text(&notes);
            ClassMap::parse(&text, &named).map_err(|source| MakeError::Unusable {
                what: "the classes that were found are not ones",
                source,
            })?;
            Made {
                text,
                of: MadeOf::Classes,
            }
        }
        (None, _) => return Err(MakeError::Nothing(named)),
    })
}

/// Whose file it is: named as the file where that makes a name.
fn about(path: &Path, found: &Detected, seed: u64, name: &str) -> About {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    let lower = stem.unwrap_or(name).to_lowercase().replace(['_', '.'], "-");
    let letters: String = lower.chars().filter(fits).take(31).collect();
    About {
        name: if letters.is_empty() {
            name.into()
        } else {
            letters
        },
        description: format!("detected by timing on {name}"),
        trust: match found.is_complete() {
            true => Trust::Detected,
            false => Trust::Incomplete,
        },
        source: vec![format!(
            "soloist map detect --seed {}, {} samples, {:.1} s",
            seed,
            found.samples,
            found.elapsed.as_secs_f64()
        )],
    }
}

/// Why conflict classes are all that could be found here, and where there is more.
#[must_use]
pub fn no_map(host: &Host) -> String {
    let why = match guest::sign(host) {
        Some(sign) => format!(
            "this is a virtual machine ({sign}), whose physical addresses are not the memory \
             controller's: detect the map on the host, or with --trust-guest where the host gives \
             this machine its own addresses"
        ),
        None => "physical addresses were not told: detect the map as root".to_owned(),
    };
    format!("it holds conflict classes of the pages measured, no map; {why}")
}

/// Why conflict classes hold for seconds only on `host`; `None`: nothing is seen that
/// would make them.
#[must_use]
pub fn fleeting(host: &Host) -> Option<String> {
    guest::gives_free_pages_back(host).map(|how| {
        format!(
            "This machine gives free pages back to the host ({how}), those that were measured \
             too, now that they are free: within seconds their classes are worth nothing."
        )
    })
}
