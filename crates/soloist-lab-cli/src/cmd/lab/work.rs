//! What `soloist lab run` runs: scenarios, and task sets with deadlines, of which
//! all runs go through one queue.

use anyhow::{Error, Result};
use soloist_lab::jobs::{Options, Parts, Prepared, RunError};
use soloist_lab::judgement::{Judged, Outcome};
use soloist_lab::known;
use soloist_lab::measurements;
use soloist_lab::spec::Scenario;
use soloist_rt::mission;
use soloist_trace::timeline::Timeline;

use super::{misuse, realtime};

/// An experiment as it came out.
#[allow(clippy::large_enum_variant, reason = "there are some seventy at most")]
pub(super) enum Done {
    Scenario(Outcome),
    Tasks(mission::Outcome),
}

impl Done {
    pub(super) fn id(&self) -> &str {
        self.judged().id
    }

    pub(super) fn judged(&self) -> Judged<'_> {
        match self {
            Self::Scenario(outcome) => outcome.into(),
            Self::Tasks(outcome) => realtime::judged(outcome),
        }
    }

    pub(super) fn json(&self) -> Result<serde_json::Value, serde_json::Error> {
        match self {
            Self::Scenario(outcome) => serde_json::to_value(outcome),
            Self::Tasks(outcome) => serde_json::to_value(outcome),
        }
    }

    /// As a file keeps it.
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Scenario(outcome) => serde_json::to_string_pretty(outcome),
            Self::Tasks(outcome) => serde_json::to_string_pretty(outcome),
        }
    }

    pub(super) fn scenario(&self) -> Option<&Outcome> {
        match self {
            Self::Scenario(outcome) => Some(outcome),
            Self::Tasks(_) => None,
        }
    }
}

/// An experiment that can run.
pub(super) enum Work<'a> {
    Scenario {
        /// As it was asked for.
        name: &'a str,
        job: &'a (Scenario, Options),
        prepared: Prepared<'a>,
    },
    Tasks(Box<mission::Prepared>),
}

/// What is wrong with a scenario, with its place in the file.
pub(super) fn wrong(name: &str, (scenario, _): &(Scenario, Options), e: &RunError) -> Error {
    misuse(known::locate(name, scenario, e))
}

/// A run of either.
pub(super) enum Part {
    Run(measurements::Run),
    Play(Timeline),
}

impl Parts for Work<'_> {
    type Part = Part;
    type Whole = Done;
    type Error = Error;

    fn costs(&self) -> Vec<u64> {
        match self {
            Self::Scenario { prepared, .. } => prepared.costs(),
            Self::Tasks(prepared) => prepared.costs(),
        }
    }

    fn part(&self, n: usize) -> Result<Part> {
        match self {
            Self::Scenario {
                name,
                job,
                prepared,
            } => {
                let run = prepared.part(n).map(Part::Run);
                run.map_err(|e| wrong(name, job, &e))
            }
            Self::Tasks(prepared) => Ok(Part::Play(prepared.part(n)?)),
        }
    }

    fn whole(&self, parts: Vec<Part>) -> Done {
        let (mut runs, mut plays) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Run(run) => runs.push(run),
                Part::Play(play) => plays.push(play),
            }
        }
        match self {
            Self::Scenario { job, prepared, .. } => {
                let (scenario, options) = job;
                let cases = prepared.whole(runs);
                Done::Scenario(Outcome::new(scenario.clone(), *options, cases))
            }
            Self::Tasks(prepared) => Done::Tasks(prepared.whole(plays)),
        }
    }
}
