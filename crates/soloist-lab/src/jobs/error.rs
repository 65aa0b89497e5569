//! Why a scenario could not be run.

use std::fmt::Display;

use soloist_machine::{FileError, KeyError};
use soloist_memory::Error;
use soloist_play::placement::memory::Lack;
use soloist_play::stage::StageError;

use crate::spec::{of_task, Scenario};

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What the scenario says can't be, or its machine, its policy or the model refuses.
    #[error("{case}: {}", wrong.message)]
    Wrong {
        /// Name of the scenario, or of the case.
        case: String,
        /// What is wrong.
        wrong: KeyError,
    },
    /// A task's place or size can't be.
    #[error("{case}: task `{task}`: {what}")]
    Task {
        /// Name of the case.
        case: String,
        /// Name of the task.
        task: String,
        /// What is wrong, and what was expected.
        what: String,
    },
}

impl RunError {
    /// What stands where `path` leads is wrong.
    fn at(case: String, path: &[&str], what: impl Display) -> Self {
        let wrong = KeyError::at(path, what.to_string());
        Self::Wrong { case, wrong }
    }

    /// Of a scenario whose machine can't be modelled.
    pub(super) fn of_machine(scenario: &Scenario, error: &Error) -> Self {
        let path: &[&str] = match error {
            Error::Model(_) => &["model"],
            _ => &["experiment", "machine"],
        };
        Self::at(scenario.experiment.id.clone(), path, error)
    }

    /// Of a case that can't be played; `task` names that of a seat.
    pub(super) fn of_stage(
        case: String,
        task: impl Fn(usize) -> String,
        error: StageError,
    ) -> Self {
        match error {
            StageError::Colors(refusal) => Self::at(case, &["policies"], refusal),
            StageError::Memory { seat, source, .. } => Self::Task {
                case,
                task: task(seat),
                what: match source.lack {
                    Lack::Colors => format!("{source}; give it more `sets` or fewer `bytes`"),
                    Lack::Node(_) | Lack::Memory => format!("{source}; give it fewer `bytes`"),
                },
            },
            StageError::Regulator(refusal) => {
                Self::at(case, &["regulator"], format!("[regulator]: {refusal}"))
            }
            StageError::Model(error) => Self::at(case, &["experiment"], error),
        }
    }

    /// The same with its place in the file that the scenario was read from.
    #[must_use]
    pub fn in_file(&self, scenario: &Scenario) -> FileError {
        let place = match self {
            Self::Wrong { wrong, .. } => wrong.clone(),
            Self::Task { task, .. } => {
                let number = scenario.tasks.iter().position(|t| t.name == *task);
                of_task(number.unwrap_or(0), "")
            }
        };
        scenario.source.error(KeyError {
            message: self.to_string(),
            ..place
        })
    }
}
