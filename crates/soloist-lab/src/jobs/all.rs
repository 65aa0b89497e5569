//! Several scenarios at once.

use rayon::prelude::*;

use super::parts::do_all;
use super::prepared::Prepared;
use super::{Options, RunError};
use crate::measurements::CaseResult;
use crate::spec::Scenario;

/// What became of one scenario.
pub type Done = Result<Vec<CaseResult>, RunError>;

/// Runs all of `scenarios`. `done` gets each with its index as it ends, in
/// whatever order, on the caller's thread; false: the rest is given up.
/// `progress` is told each time one of a scenario's runs is done.
pub fn run_all(
    scenarios: &[(Scenario, Options)],
    progress: &(dyn Fn() + Sync),
    mut done: impl FnMut(usize, Done) -> bool,
) {
    let prepared: Vec<_> = scenarios
        .par_iter()
        .map(|(scenario, options)| Prepared::new(scenario, *options))
        .collect();
    let mut works = Vec::new();
    let mut places = Vec::new();
    for (i, prepared) in prepared.into_iter().enumerate() {
        match prepared {
            Ok(work) => {
                works.push(work);
                places.push(i);
            }
            Err(error) => {
                if !done(i, Err(error)) {
                    return;
                }
            }
        }
    }
    do_all(&works, progress, |work, cases| done(places[work], cases));
}
