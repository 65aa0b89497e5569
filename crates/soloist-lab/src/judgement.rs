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
            machine: fingerprint_of(&scenario.experiment.machine),
            recordings: fingerprints(scenario.tasks.iter().map(|task| &task.recorded)),
            cases,
            verdicts,
            scenario,
        }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        self.command_as(&self.scenario.experiment.id)
    }

    /// The command that repeats what was typed as `name`: a file, and what was changed of it.
    #[must_use]
    pub fn command_as(&self, name: &str) -> String {
        let small = if self.small { " --small" } else { "" };
        let seeds = self
            .seeds
            .map_or_else(String::new, |n| format!(" --seeds {n}"));
        format!("soloist lab run {name} --seed {}{seeds}{small}", self.seed)
    }

    /// Whether it is what these options give, by the same file, recordings and model.
    #[must_use]
    pub fn is_of(&self, scenario: &Scenario, options: Options) -> bool {
        let recorded = scenario.tasks.iter().map(|task| &task.recorded);
        let file = |scenario: &Scenario| serde_json::to_value(scenario).ok();
        (self.seed, self.seeds, self.small) == (options.seed, options.seeds, options.small)
            && self.machine == fingerprint_of(&scenario.experiment.machine)
            && self.recordings == fingerprints(recorded)
            && file(&self.scenario) == file(scenario)
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
