//! An experiment of either kind: tasks of a scenario that do their work
//! ([`crate::spec`]), or a set of tasks with deadlines ([`crate::taskset`]). Both are
//! found by name or file, run in parts of one queue, and judged.

pub mod folder;

use rayon::prelude::*;
use serde::Serialize;
use soloist_machine::{FileError, FileText};
use soloist_rt::tasks::TaskSet;
use soloist_trace::timeline::Timeline;
use toml::de::{DeTable, DeValue};

use crate::jobs::{Options, Parts, Prepared, RunError};
use crate::judgement::{Judged, ScenarioOutcome};
use crate::spec::Scenario;
use crate::taskset::{self, ExperimentError, PreparedTaskSet, TaskSetOutcome, TaskSetSpec};
use crate::{known, measurements};

/// What an experiment's file says.
#[allow(clippy::large_enum_variant, reason = "there are some seventy at most")]
#[derive(Debug, Clone)]
pub enum Experiment {
    /// Tasks that do their work under policies.
    Scenario(Scenario),
    /// Tasks with deadlines.
    TaskSet(TaskSetSpec, TaskSet),
}

/// An experiment, as lists show it.
#[derive(Debug, Serialize)]
pub struct Listed<'a> {
    /// Its short name.
    pub name: &'a str,
    /// One line for people.
    pub title: &'a str,
    /// Where the printed figures stand.
    pub source: &'a str,
    /// The machine that it names; empty: none.
    pub machine: &'a str,
}

/// Names of all that are built in.
pub fn names() -> impl Iterator<Item = &'static str> {
    let scenarios = known::EXPERIMENTS.iter().map(|(name, _)| *name);
    scenarios.chain(taskset::EXPERIMENTS.iter().map(|(name, ..)| *name))
}

impl Experiment {
    /// By name, or by the path of its file.
    ///
    /// # Errors
    /// When there is none, or its file is wrong.
    pub fn find(name: &str) -> Result<Self, FileError> {
        if taskset::EXPERIMENTS.iter().any(|(id, ..)| *id == name) {
            let (spec, set) = taskset::find(name)?;
            return Ok(Self::TaskSet(spec, set));
        }
        let (text, file) = known::text(name)?;
        let place = FileText {
            file: &file,
            text: &text,
        };
        let table = DeTable::parse(&text).map_err(|e| place.toml(&e))?;
        // A task set stands in a file of its own.
        let tasks = table.get_ref().get("tasks").map(|tasks| tasks.get_ref());
        Ok(match tasks {
            Some(DeValue::String(_)) => {
                let (spec, set) = taskset::read(table.into(), place)?;
                Self::TaskSet(spec, set)
            }
            _ => Self::Scenario(known::read(table.into(), place)?),
        })
    }

    /// The experiment, as lists show it.
    #[must_use]
    pub fn listed(&self) -> Listed<'_> {
        match self {
            Self::Scenario(scenario) => Listed {
                name: &scenario.experiment.id,
                title: &scenario.experiment.title,
                source: &scenario.experiment.source,
                machine: &scenario.experiment.machine,
            },
            Self::TaskSet(spec, set) => Listed {
                name: &spec.id,
                title: &spec.title,
                source: &spec.source,
                machine: set.machine.as_deref().unwrap_or_default(),
            },
        }
    }

    /// How many claims it has.
    #[must_use]
    pub fn claims(&self) -> usize {
        match self {
            Self::Scenario(scenario) => scenario.claims.len(),
            Self::TaskSet(spec, _) => spec.claims.len(),
        }
    }

    /// Whether it would begin; how many cases it has.
    ///
    /// # Errors
    /// When a case can't be.
    pub fn check(&self, options: Options) -> Result<usize, FileError> {
        match self {
            Self::Scenario(scenario) => {
                crate::jobs::check(scenario, options).map_err(|e| e.in_file(scenario))
            }
            Self::TaskSet(spec, set) => {
                taskset::check(spec, set, options)?;
                Ok(spec.policies.len())
            }
        }
    }

    /// As [`Self::check`], but of machine and changes alone, which takes no time.
    ///
    /// # Errors
    /// When the machine can't be modelled.
    pub fn check_machine(&self, options: Options) -> Result<(), RunError> {
        match self {
            Self::Scenario(scenario) => crate::jobs::check_machine(scenario, options),
            Self::TaskSet(..) => Ok(()),
        }
    }

    /// Makes it ready to run.
    ///
    /// # Errors
    /// When a case can't be run.
    pub fn prepare(&self, options: Options) -> Result<PreparedExperiment<'_>, ExperimentError> {
        Ok(match self {
            Self::Scenario(scenario) => PreparedExperiment::Scenario {
                prepared: Prepared::new(scenario, options).map_err(|e| e.in_file(scenario))?,
                scenario,
                options,
            },
            Self::TaskSet(spec, set) => {
                let prepared = PreparedTaskSet::new(spec.clone(), set.clone(), options)?;
                PreparedExperiment::TaskSet(Box::new(prepared))
            }
        })
    }
}

/// Makes all of `experiments` ready to run.
#[must_use]
pub fn prepare<'a>(
    experiments: &[(&'a Experiment, Options)],
) -> Vec<Result<PreparedExperiment<'a>, ExperimentError>> {
    let prepare = |&(experiment, options): &(&'a Experiment, Options)| experiment.prepare(options);
    experiments.par_iter().map(prepare).collect()
}

/// An experiment that can run.
pub enum PreparedExperiment<'a> {
    /// A part is a run of a case.
    Scenario {
        /// The scenario.
        scenario: &'a Scenario,
        /// How it is run.
        options: Options,
        /// What runs.
        prepared: Prepared<'a>,
    },
    /// A part is a play of a policy with a seed.
    TaskSet(Box<PreparedTaskSet>),
}

/// A part of an experiment.
#[allow(clippy::large_enum_variant, reason = "one of each kind's many")]
pub enum Part {
    /// A run of a case.
    Run(measurements::Run),
    /// A play of a task set.
    Play(Timeline),
}

impl Parts for PreparedExperiment<'_> {
    type Part = Part;
    type Whole = ExperimentOutcome;
    type Error = ExperimentError;

    fn costs(&self) -> Vec<u64> {
        match self {
            Self::Scenario { prepared, .. } => prepared.costs(),
            Self::TaskSet(prepared) => prepared.costs(),
        }
    }

    fn part(&self, n: usize) -> Result<Part, ExperimentError> {
        match self {
            Self::Scenario {
                scenario, prepared, ..
            } => {
                let run = prepared.part(n).map(Part::Run);
                run.map_err(|e| e.in_file(scenario).into())
            }
            Self::TaskSet(prepared) => Ok(Part::Play(prepared.part(n)?)),
        }
    }

    fn whole(&self, parts: Vec<Part>) -> ExperimentOutcome {
        let (mut runs, mut plays) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Run(run) => runs.push(run),
                Part::Play(play) => plays.push(play),
            }
        }
        match self {
            Self::Scenario {
                scenario,
                options,
                prepared,
            } => {
                let cases = prepared.whole(runs);
                let outcome = ScenarioOutcome::new((*scenario).clone(), *options, cases);
                ExperimentOutcome::Scenario(outcome)
            }
            Self::TaskSet(prepared) => ExperimentOutcome::TaskSet(prepared.whole(plays)),
        }
    }
}

/// An experiment as it came out.
#[allow(clippy::large_enum_variant, reason = "there are some seventy at most")]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ExperimentOutcome {
    /// Of a scenario.
    Scenario(ScenarioOutcome),
    /// Of a task set.
    TaskSet(TaskSetOutcome),
}

impl ExperimentOutcome {
    /// What [`Serialize`] wrote.
    ///
    /// # Errors
    /// When it is no outcome.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Which {
            mission: Option<serde::de::IgnoredAny>,
        }
        let which: Which = serde_json::from_str(text)?;
        match which.mission {
            Some(_) => serde_json::from_str(text).map(Self::TaskSet),
            None => serde_json::from_str(text).map(Self::Scenario),
        }
    }

    /// The experiment's short name.
    #[must_use]
    pub fn id(&self) -> &str {
        self.judged().id
    }

    /// What came of a scenario.
    #[must_use]
    pub fn scenario(&self) -> Option<&ScenarioOutcome> {
        match self {
            Self::Scenario(outcome) => Some(outcome),
            Self::TaskSet(_) => None,
        }
    }

    /// Its claims.
    #[must_use]
    pub fn judged(&self) -> Judged<'_> {
        match self {
            Self::Scenario(outcome) => outcome.into(),
            Self::TaskSet(outcome) => outcome.into(),
        }
    }

    /// Whether it is what these options give, by the same file and the same model.
    #[must_use]
    pub fn is_of(&self, experiment: &Experiment, options: Options) -> bool {
        match (self, experiment) {
            (Self::Scenario(outcome), Experiment::Scenario(scenario)) => {
                outcome.is_of(scenario, options)
            }
            (Self::TaskSet(outcome), Experiment::TaskSet(spec, set)) => {
                outcome.is_of(spec, set, options)
            }
            _ => false,
        }
    }

    /// As what these arguments of the command line named: a name or file, and changes.
    #[must_use]
    pub fn typed(mut self, arguments: String) -> Self {
        match &mut self {
            Self::Scenario(outcome) => outcome.arguments = arguments,
            Self::TaskSet(outcome) => outcome.arguments = arguments,
        }
        self
    }

    /// Judged by what the built-in experiment that it is of claims now.
    #[must_use]
    pub fn judged_now(self) -> Self {
        match self {
            Self::Scenario(outcome) => {
                let id = outcome.scenario.experiment.id.clone();
                let known = known::EXPERIMENTS.iter().any(|(name, _)| *name == id);
                Self::Scenario(match known.then(|| known::find(&id)) {
                    Some(Ok(known)) => outcome.judged_as(known),
                    _ => outcome,
                })
            }
            Self::TaskSet(outcome) => Self::TaskSet(match taskset::find(&outcome.spec.id) {
                Ok((known, set)) => outcome.judged_as(known, &set),
                Err(_) => outcome,
            }),
        }
    }
}
