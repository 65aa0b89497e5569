//! Several scenarios at once: their cases share all cores, so that none waits
//! for the longest run of another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rayon::prelude::*;

use super::{run, Options, RunError};
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
    let given_up = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            scenarios.par_iter().enumerate().for_each_with(
                sender,
                |sender, (i, (scenario, options))| {
                    if !given_up.load(Ordering::Relaxed) {
                        // Nobody listens any more where it was given up.
                        let _ = sender.send((i, run(scenario, *options, &|_| progress())));
                    }
                },
            );
        });
        for (i, cases) in receiver {
            if !given_up.load(Ordering::Relaxed) && !done(i, cases) {
                given_up.store(true, Ordering::Relaxed);
            }
        }
    });
}
