//! What becomes of the claims.

pub mod answer;
pub mod check;
pub mod compare;
pub mod comparison;
pub mod interval;
pub mod table;
pub mod totals;
pub mod verdict;

use serde::{Deserialize, Serialize};

pub use answer::{answers, Answer};
pub use interval::Estimate;
pub use totals::Totals;
pub use verdict::{judge, Verdict};

use crate::jobs::Options;
use crate::measurements::CaseResult;
use crate::spec::{Claim, Scenario};

/// An experiment as it came out: all that a report needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Repeats that were asked for instead of the scenario's.
    #[serde(default)]
    pub seeds: Option<u32>,
    /// The small version ran.
    pub small: bool,
    /// What was measured.
    pub cases: Vec<CaseResult>,
    /// The claims, judged.
    pub verdicts: Vec<Verdict>,
}

impl Outcome {
    /// Judges the scenario's claims by what was measured.
    pub fn new(scenario: Scenario, options: Options, cases: Vec<CaseResult>) -> Self {
        let verdicts = judge(&scenario, &cases);
        Self {
            scenario,
            seed: options.seed,
            seeds: options.seeds,
            small: options.small,
            cases,
            verdicts,
        }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let small = if self.small { " --small" } else { "" };
        let id = &self.scenario.experiment.id;
        let seeds = self
            .seeds
            .map_or_else(String::new, |n| format!(" --seeds {n}"));
        format!("soloist lab run {id} --seed {}{seeds}{small}", self.seed)
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
