//! A scenario that can run: its cases, the machine's models that they run by, and
//! the paces of its programs.

use std::collections::HashMap;

use super::error::RunError;
use super::parts::Parts;
use super::testbed::Testbed;
use super::{bench_key, benches, cases, Options};
use crate::cases::Case;
use crate::measurements::{CaseResult, Run};
use crate::spec::{Point, Scenario};

/// Accesses that a task costs before it begins: caches are filled.
const BEFORE: u64 = 200_000;

/// A scenario that can run; a part is a run of a case.
pub struct Prepared<'a> {
    scenario: &'a Scenario,
    cases: Vec<Case>,
    benches: HashMap<Point, Testbed>,
    seed: u64,
    repeats: usize,
}

impl<'a> Prepared<'a> {
    /// By these options.
    ///
    /// # Errors
    /// When a case can't be run.
    pub fn new(scenario: &'a Scenario, options: Options) -> Result<Self, RunError> {
        Self::with_cases(scenario, cases(scenario, options)?, options)
    }

    pub(super) fn with_cases(
        scenario: &'a Scenario,
        cases: Vec<Case>,
        options: Options,
    ) -> Result<Self, RunError> {
        Ok(Self {
            benches: benches(scenario, &cases, options)?,
            scenario,
            cases,
            seed: options.seed,
            repeats: options.repeats(scenario) as usize,
        })
    }
}

impl Parts for Prepared<'_> {
    type Part = Run;
    type Whole = Vec<CaseResult>;
    type Error = RunError;

    /// All tasks run for as long as the longest that is waited for.
    fn costs(&self) -> Vec<u64> {
        let cost = |case: &Case| {
            let waited = case.tasks.iter().filter(|t| !t.is_background());
            let most = waited.map(|t| t.program.work).max().unwrap_or(0);
            most.saturating_add(BEFORE)
                .saturating_mul(case.tasks.len() as u64)
        };
        let repeats = |case| std::iter::repeat_n(cost(case), self.repeats);
        self.cases.iter().flat_map(repeats).collect()
    }

    fn part(&self, n: usize) -> Result<Run, RunError> {
        let case = &self.cases[n / self.repeats];
        let seed = self.seed.wrapping_add((n % self.repeats) as u64);
        self.benches[&bench_key(self.scenario, case)].run(case, seed)
    }

    fn whole(&self, runs: Vec<Run>) -> Vec<CaseResult> {
        let mut runs = runs.into_iter();
        let result = |case: &Case| CaseResult {
            case: case.name.clone(),
            policy: case.policy.name().to_owned(),
            value: case.point.first(),
            others: case.point.0.iter().skip(1).copied().collect(),
            runs: runs.by_ref().take(self.repeats).collect(),
        };
        self.cases.iter().map(result).collect()
    }
}
