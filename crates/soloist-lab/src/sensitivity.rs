//! What experiments' figures would be if what no document says were otherwise: of
//! their machines (`[memory.range]` of the machine's file) and of their own inputs
//! (`[range]`). Both ends of each, one value changed at a time, or two inputs.

pub mod change;
pub mod csv;
pub mod spread;

use serde::Serialize;

use crate::jobs::{run_all, Options, RunError};
use crate::judgement::table::{claims, ClaimLine};
use crate::judgement::ScenarioOutcome;
use crate::spec::Scenario;

pub use change::{keys, Change, Of};
pub use spread::{settings, spreads, Moved, Spread};

/// A claim with one change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// What becomes of the claim.
    #[serde(flatten)]
    pub claim: ClaimLine,
}

/// All claims of `scenarios` as shipped, and at both ends of every range (only of
/// `keys`, if there are any) that is not what the file has; with `pairs`, two inputs
/// of the experiment changed at once instead of one. A change with which an
/// experiment can't run has claims that are not judged.
///
/// # Errors
/// The first experiment that does not run as shipped.
pub fn table(
    scenarios: &[Scenario],
    keys: &[String],
    pairs: bool,
    options: Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Line>, RunError> {
    let options = Options {
        needed: true,
        ..options
    };
    let mut made = Vec::new();
    let mut jobs = Vec::new();
    for scenario in scenarios {
        made.push(Change::default());
        jobs.push((scenario.clone(), options));
        for (change, changed) in change::all(scenario, keys, pairs) {
            made.push(change);
            jobs.push((changed, options));
        }
    }
    let runs = jobs.iter().map(|(s, options)| options.runs(s)).sum();
    let mut judged: Vec<Vec<ClaimLine>> = vec![Vec::new(); jobs.len()];
    let mut failed = None;
    run_all(&jobs, &|| progress(runs), |job, cases| {
        let (scenario, options) = &jobs[job];
        let (cases, error) = match cases {
            Ok(cases) => (cases, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        judged[job] = claims(&[ScenarioOutcome::new(scenario.clone(), *options, cases)]);
        failed = error.filter(|_| made[job].of == Of::Nothing);
        failed.is_none()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let lines = made.into_iter().zip(judged).flat_map(|(change, claims)| {
        claims.into_iter().map(move |claim| Line {
            change: change.clone(),
            claim,
        })
    });
    Ok(lines.collect())
}
