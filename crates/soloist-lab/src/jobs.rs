//! Runs a scenario: places pages, plays all tasks together, gathers results.
//!
//! A run is one case with one seed. Its pages come in the order
//! in which concurrent tasks would touch them first: one page at a time, whose
//! turn it is drawn from the seed. Initialisation itself is not timed, but the
//! tail of its memory is played before the measurement, so that caches begin
//! full, and as dirty as the task leaves them. Runs share nothing and
//! are spread over all cores; results don't depend on how many there are.

pub mod all;
pub mod error;
pub mod parts;
mod prepared;
mod testbed;

use std::collections::{BTreeSet, HashMap};

use soloist_memory::Platform;

pub use all::run_all;
pub use error::RunError;
pub use parts::{do_all, do_one, Parts};
pub use prepared::Prepared;
use soloist_play::placement::buddy::History;
use soloist_play::placement::memory::Exhaust;
use soloist_play::placement::FreeMemory;
use testbed::Testbed;

use crate::cases::{alone, Case};
use crate::claims::{self, needs};
use crate::measurements::CaseResult;
use crate::spec::{Exhausted, Point, Scenario};

/// How a scenario is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Seed of the first repeat; the next ones follow.
    pub seed: u64,
    /// So many repeats of each case; `None`: as many as the scenario says.
    pub seeds: Option<u32>,
    /// The small version: fewer repeats, less work.
    pub small: bool,
    /// Also note whom and what tasks wait for; halves the speed.
    pub account: bool,
    /// Only the cases that a claim is about.
    pub needed: bool,
}

impl Options {
    /// Runs of `scenario` by these options.
    pub fn runs(&self, scenario: &Scenario) -> usize {
        let cases = scenario.cases(1).map_or(0, |cases| {
            let cases = self.select(scenario, cases);
            cases.len()
        });
        cases * self.repeats(scenario) as usize
    }

    /// Of a scenario's cases those that are run, and what is run besides.
    fn select(&self, scenario: &Scenario, mut cases: Vec<Case>) -> Vec<Case> {
        if self.needed {
            cases.retain(|case| needs(scenario, case));
        }
        if self.account {
            cases.extend(alone(&cases));
        }
        cases
    }

    fn repeats(&self, scenario: &Scenario) -> u32 {
        let about = &scenario.experiment;
        self.seeds.unwrap_or(if self.small {
            about.small_repeats
        } else {
            about.repeats
        })
    }
}

/// Runs all cases and repeats. `progress` is told each time one is done, with
/// how many there are in all.
pub fn run(
    scenario: &Scenario,
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<CaseResult>, RunError> {
    run_cases(scenario, &cases(scenario, options)?, options, progress)
}

/// Whether [`run`] would begin: cases, machine, what is changed of it, and
/// programs that it can be fast enough for. Returns how many cases there are.
pub fn check(scenario: &Scenario, options: Options) -> Result<usize, RunError> {
    let cases = cases(scenario, options)?;
    benches(scenario, &cases, options)?;
    Ok(cases.len())
}

/// As [`check`], but of machine and changes alone, which takes no time.
pub fn check_machine(scenario: &Scenario, options: Options) -> Result<(), RunError> {
    let cases = cases(scenario, options)?;
    let keys: BTreeSet<Point> = cases.iter().map(|c| bench_key(scenario, c)).collect();
    keys.iter()
        .try_for_each(|key| platform(scenario, key).map(drop))
}

fn cases(scenario: &Scenario, options: Options) -> Result<Vec<Case>, RunError> {
    let about = &scenario.experiment;
    let divide = if options.small {
        about.small_divide.max(1)
    } else {
        1
    };
    let cases = scenario.cases(divide).map_err(|wrong| RunError::Wrong {
        case: about.id.clone(),
        wrong,
    })?;
    Ok(options.select(scenario, cases))
}

/// The scenario's machine with what it changes of the model.
fn platform(scenario: &Scenario, key: &Point) -> Result<Platform, RunError> {
    let about = &scenario.experiment;
    scenario
        .model_of(key)
        .map_err(soloist_memory::Error::Model)
        .and_then(|model| Platform::find_changed(&about.machine, &model))
        .map_err(|error| RunError::of_machine(scenario, &error))
}

/// As [`run`], the cases being given.
pub fn run_cases(
    scenario: &Scenario,
    cases: &[Case],
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<CaseResult>, RunError> {
    let prepared = Prepared::with_cases(scenario, cases.to_vec(), options)?;
    let runs = prepared.costs().len();
    do_one(&prepared, &|| progress(runs))
}

/// By which of its machine's models a case runs: one for all, unless the
/// scenario changes the model.
fn bench_key(scenario: &Scenario, case: &Case) -> Point {
    match scenario.model.is_empty() {
        true => Point::default(),
        false => case.point.clone(),
    }
}

fn benches(
    scenario: &Scenario,
    cases: &[Case],
    options: Options,
) -> Result<HashMap<Point, Testbed>, RunError> {
    let about = &scenario.experiment;
    let mut benches = HashMap::new();
    for case in cases {
        let key = bench_key(scenario, case);
        if let Some(known) = benches.get_mut(&key) {
            Testbed::learn(known, case)?;
            continue;
        }
        let platform = platform(scenario, &key)?;
        let mut bench = Testbed {
            platform,
            memory: FreeMemory {
                history: History {
                    used: about.used,
                    scatter: about.scatter,
                },
                exhaust: match about.exhausted {
                    Exhausted::Fail => Exhaust::Fail,
                    Exhausted::Spill => Exhaust::Spill,
                },
                as_the_module: false,
            },
            regulator: scenario.regulator.clone(),
            account: options.account,
            latencies: options.account || !options.needed || claims::name(scenario, "p99"),
            paces: Vec::new(),
        };
        bench.learn(case)?;
        benches.insert(key, bench);
    }
    Ok(benches)
}
