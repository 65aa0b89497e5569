//! Scenario files: which tasks run on which machine, under which policies,
//! and what is claimed of the outcome. The papers' experiments
//! (`experiments/*.toml`) and a user's own questions are the same kind of
//! file; docs/reference/lab.md describes it.
//!
//! Here is what a file says, word by word; what comes of it is in
//! [`crate::cases`] and [`crate::judgement`].

pub mod claim;
pub mod error;
pub mod number;
pub mod range;
pub mod regulator;
pub mod sweep;
pub mod task;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use soloist_machine::{FileError, FileText, KeyError};
use toml::de::{DeTable, Deserializer};

use number::resolve_sweep;

pub use claim::{Basis, Claim, ClaimKind, Over};
pub use error::{of_task, Source};
pub use number::Number;
pub use regulator::{Mode, RegulatorSpec, Reserve, ReserveSpec};
pub use sweep::{Point, Sweep, Sweeps};
pub use task::TaskSpec;

/// A scenario file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub experiment: About,
    /// Under which policies it runs.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Numbers that vary.
    #[serde(default)]
    pub sweep: Sweeps,
    /// What is changed of the machine file's `[memory]` table: an ablation.
    /// A value may be `"$sweep"`.
    #[serde(default)]
    pub model: toml::Table,
    /// Inputs that the source does not print, with the least and the greatest that
    /// each could be ([`range`]).
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub range: toml::Table,
    /// Bandwidth regulation, and the modes to run in.
    pub regulator: Option<RegulatorSpec>,
    /// Who runs.
    #[serde(rename = "task")]
    pub tasks: Vec<TaskSpec>,
    /// What is said of the outcome.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// How it is drawn.
    pub plot: Option<Plot>,
    /// Where it was read from.
    #[serde(skip)]
    pub source: Source,
}

/// `[experiment]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, also the file's.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// Where the printed figures stand, or nothing for one's own.
    #[serde(default)]
    pub source: String,
    /// Machine file by name.
    pub machine: String,
    /// Runs with different seeds.
    #[serde(default = "three")]
    pub repeats: u32,
    /// The same for the small version that `make check` runs.
    #[serde(default = "two")]
    pub small_repeats: u32,
    /// By what the accesses of every task are divided in the small version.
    #[serde(default = "eight")]
    pub small_divide: u64,
    /// Share of memory in use when it begins, and how scattered (see
    /// [`soloist_play::placement::buddy::History`]).
    #[serde(default = "used")]
    pub used: f64,
    /// See `used`.
    #[serde(default = "scatter")]
    pub scatter: f64,
    /// What a task gets when its colours have no page left.
    #[serde(default)]
    pub exhausted: Exhausted,
    /// Where its claims are from: only those of papers count as theirs.
    #[serde(default)]
    pub basis: Basis,
    /// What to know when reading the figures.
    #[serde(default)]
    pub note: String,
}

/// What a task gets when its colours have no page left, as groups/NAME/exhaust
/// of the kernel module has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exhausted {
    /// Nothing: the run fails.
    #[default]
    Fail,
    /// Any page, the local node first; metric `spilled` counts them.
    Spill,
}

/// Runs with different seeds, at most.
pub const MAX_REPEATS: u32 = 1000;

fn three() -> u32 {
    3
}

fn two() -> u32 {
    2
}

fn eight() -> u64 {
    8
}

fn used() -> f64 {
    0.1
}

fn scatter() -> f64 {
    0.3
}

/// `[plot]`: the paper's axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Task whose metric is drawn.
    pub task: String,
    /// The metric: `time`, `latency`, `idle`, `bandwidth`, ...
    pub metric: String,
    /// Label of the y axis, with the unit.
    pub y: String,
    /// Also draw least and greatest.
    #[serde(default)]
    pub range: bool,
    /// x axis: the repeats of each policy, instead of policy or sweep.
    #[serde(default)]
    pub by_repeat: bool,
    /// Figures that the source prints, by case; nothing else is drawn as
    /// theirs.
    #[serde(default)]
    pub printed: BTreeMap<String, f64>,
}

impl Scenario {
    /// Parses a file's text; `file` is for messages. What follows from it is
    /// checked by [`crate::known::parse`].
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let place = FileText { file, text };
        let table = DeTable::parse(text).map_err(|e| place.toml(&e))?;
        Self::read(table.into(), place)
    }

    /// The same of a file whose TOML has been parsed.
    pub fn read(table: Deserializer<'_>, place: FileText<'_>) -> Result<Self, FileError> {
        let mut scenario = Self::deserialize(table).map_err(|e| place.toml(&e))?;
        scenario.source = Source::new(place.file, place.text);
        Ok(scenario)
    }

    /// Numbers that can be.
    pub fn check(&self) -> Result<(), KeyError> {
        let about = &self.experiment;
        let wrong = |key: &str, what| KeyError::at(&["experiment", key], what);
        check_id(&about.id).map_err(|what| wrong("id", what))?;
        for (key, value, top) in [("used", about.used, 0.99), ("scatter", about.scatter, 1.0)] {
            if !(0.0..=top).contains(&value) {
                let what = format!("`{key}` {value}: expected a share from 0 to {top}");
                return Err(wrong(key, what));
            }
        }
        for (key, value) in [
            ("repeats", about.repeats),
            ("small_repeats", about.small_repeats),
        ] {
            if !(1..=MAX_REPEATS).contains(&value) {
                let what = format!("`{key}` {value}: expected 1 to {MAX_REPEATS}");
                return Err(wrong(key, what));
            }
        }
        if about.small_divide == 0 {
            let what = "`small_divide` 0: expected 1 or more".to_owned();
            return Err(wrong("small_divide", what));
        }
        self.regulator.as_ref().map_or(Ok(()), RegulatorSpec::check)
    }

    /// Changes the machine's model: `controller.bank_queue` to `16`.
    pub fn change_model(&mut self, key: &str, value: &str) -> Result<(), toml::de::Error> {
        let change: toml::Table = toml::from_str(&format!("{key} = {value}"))?;
        merge(&mut self.model, change);
        Ok(())
    }

    /// What is changed of the machine's model in cases at this point of the sweeps.
    pub fn model_of(&self, point: &Point) -> Result<toml::Table, String> {
        let mut model = self.model.clone();
        let sweep = self.named(point);
        for (_, value) in &mut model {
            resolve_sweep(value, &sweep)?;
        }
        Ok(model)
    }
}

/// `lab run --out` calls a file by an experiment's `id`.
///
/// # Errors
/// When no file can have that name.
pub fn check_id(id: &str) -> Result<(), String> {
    match id.is_empty() || id.starts_with('.') || id.contains('/') {
        true => Err(format!("`id` {id:?}: expected a file's name, without `/`")),
        false => Ok(()),
    }
}

fn merge(into: &mut toml::Table, change: toml::Table) {
    for (key, value) in change {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
