//! What becomes of the claims.

pub mod answer;
pub mod compare;
pub mod interval;
pub mod table;
pub mod totals;
pub mod verdict;

use serde::{Deserialize, Serialize};
use soloist_memory::Platform;
use soloist_play::programs::recorded::Recorded;

pub use answer::{alone_ms, answers, Answer};
pub use interval::Estimate;
pub use totals::Totals;
pub use verdict::{judge, Verdict};

use crate::jobs::Options;
use crate::measurements::CaseResult;
use crate::spec::{Claim, Scenario};

/// An experiment as it came out: all that a report needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScenarioOutcome {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Repeats that were asked for instead of the scenario's.
    #[serde(default)]
    pub seeds: Option<u32>,
    /// The small version ran.
    pub small: bool,
    /// Name or file, and changes, as they were typed; empty: that is not known.
    #[serde(default)]
    pub arguments: String,
    /// Version of the program that ran it; empty: that is not known.
    #[serde(default)]
    pub version: String,
    /// Fingerprint of the machine's model as its file had it then; empty in
    /// outcomes of older versions.
    #[serde(default)]
    pub machine: String,
    /// Fingerprints of the recordings as they were then, of the tasks that play one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<String>,
    /// What was measured.
    pub cases: Vec<CaseResult>,
    /// The claims, judged.
    pub verdicts: Vec<Verdict>,
}

/// An experiment's claims: all that totals and comparisons need of it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Name of the experiment.
    pub id: &'a str,
    /// Its claims.
    pub verdicts: &'a [Verdict],
}

impl<'a> From<&'a ScenarioOutcome> for Judged<'a> {
    fn from(outcome: &'a ScenarioOutcome) -> Self {
        Self {
            id: &outcome.scenario.experiment.id,
            verdicts: &outcome.verdicts,
        }
    }
}

impl ScenarioOutcome {
    /// Judges the scenario's claims by what was measured.
    pub fn new(scenario: Scenario, options: Options, cases: Vec<CaseResult>) -> Self {
        let verdicts = judge(&scenario, &cases);
        Self {
            seed: options.seed,
            seeds: options.seeds,
            small: options.small,
            arguments: String::new(),
            version: VERSION.to_owned(),
            machine: fingerprint_of(&scenario.experiment.machine),
            recordings: fingerprints(scenario.tasks.iter().map(|task| &task.recorded)),
            cases,
            verdicts,
            scenario,
        }
    }

    /// The command that repeats it.
    #[must_use]
    pub fn command(&self) -> String {
        let how = (self.seed, self.seeds, self.small);
        command(&self.arguments, &self.scenario.experiment.id, how)
    }

    /// Whether it is what these options give, by the same program, file, recordings and model.
    #[must_use]
    pub fn is_of(&self, scenario: &Scenario, options: Options) -> bool {
        let recorded = scenario.tasks.iter().map(|task| &task.recorded);
        self.version == VERSION
            && (self.seed, self.seeds, self.small) == (options.seed, options.seeds, options.small)
            && self.machine == fingerprint_of(&scenario.experiment.machine)
            && self.recordings == fingerprints(recorded)
            && same(&self.scenario, scenario)
    }

    /// Judged by the claims of `known`, the built-in experiment of its name, if the user typed
    /// that name and it still measures the same. A copy of its file keeps its own claims.
    #[must_use]
    pub fn judged_as(self, known: Scenario) -> Self {
        let unclaimed = |scenario: &Scenario| Scenario {
            claims: Vec::new(),
            plot: None,
            ..scenario.clone()
        };
        let is_it = was_typed(&self.arguments, &known.experiment.id)
            && same(&unclaimed(&self.scenario), &unclaimed(&known));
        match is_it {
            true => self.judged_by(known.claims),
            false => self,
        }
    }

    /// Whether all figures had come to rest; `None`: none can say.
    pub fn converged(&self) -> Option<bool> {
        let said = self.verdicts.iter().filter_map(Verdict::converged);
        said.reduce(|a, b| a && b)
    }

    /// Judges again, by other claims.
    pub fn judged_by(mut self, claims: Vec<Claim>) -> Self {
        self.scenario.claims = claims;
        self.verdicts = judge(&self.scenario, &self.cases);
        self
    }
}

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command that repeats what was typed as `arguments`, or the experiment `id` where they are
/// not known, with these seed and seeds, and whether small.
pub(crate) fn command(
    arguments: &str,
    id: &str,
    (seed, seeds, small): (u64, Option<u32>, bool),
) -> String {
    let typed = if arguments.is_empty() { id } else { arguments };
    let seeds = seeds.map_or_else(String::new, |n| format!(" --seeds {n}"));
    let small = if small { " --small" } else { "" };
    format!("soloist lab run {typed} --seed {seed}{seeds}{small}")
}

/// Whether the built-in experiment `id` was typed, and nothing changed of it. Where it is not known
/// what was typed, it may have been.
pub(crate) fn was_typed(arguments: &str, id: &str) -> bool {
    arguments.is_empty() || arguments == id
}

/// Whether two files say the same.
pub(crate) fn same<T: Serialize>(a: &T, b: &T) -> bool {
    serde_json::to_value(a).ok() == serde_json::to_value(b).ok()
}

/// What tells one model of a machine from another: FNV-1a of all that its files
/// say of it, hexadecimal.
#[must_use]
pub fn fingerprint(platform: &Platform) -> String {
    let map = platform.memory.map.to_string();
    let all = format!("{platform:?}{map}");
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", all.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The same of the recordings that tasks play.
pub fn fingerprints<'a>(recorded: impl Iterator<Item = &'a Option<Recorded>>) -> Vec<String> {
    let recorded = recorded.flatten();
    recorded
        .map(|recorded| format!("{:016x}", recorded.fingerprint()))
        .collect()
}

/// The same of the machine of this name; empty where there is none.
#[must_use]
pub fn fingerprint_of(machine: &str) -> String {
    Platform::find(machine).map_or_else(|_| String::new(), |platform| fingerprint(&platform))
}
