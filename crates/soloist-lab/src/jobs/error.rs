//! Why a scenario could not be run.

use soloist_core::Refusal;
use soloist_machine::FileError;
use soloist_memory::system;
use soloist_play::placement::memory::Exhausted;
use soloist_play::stage::StageError;

use crate::spec::{Scenario, Wrong};

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine can't be modelled.
    #[error("{id}: {source}")]
    Machine {
        /// Of the scenario.
        id: String,
        /// The reason.
        source: soloist_memory::Error,
    },
    /// What the scenario says can't be.
    #[error("{case}: {}", wrong.message)]
    Wrong {
        /// Name of the scenario.
        case: String,
        /// What is wrong.
        wrong: Wrong,
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
    /// The machine has not enough colours for the policy.
    #[error("{case}: {source}")]
    Colors {
        /// Name of the case.
        case: String,
        /// The palette's reason.
        source: Refusal,
    },
    /// A task's colours or node ran out of pages.
    #[error("{case}: task `{task}`: {source}; give it more `sets` or fewer `bytes`")]
    Memory {
        /// Name of the case.
        case: String,
        /// Name of the task.
        task: String,
        /// How far it came.
        source: Exhausted,
    },
    /// The regulator refused a reservation or a setting.
    #[error("{case}: [regulator]: {source}")]
    Regulator {
        /// Name of the case.
        case: String,
        /// Its reason.
        source: Refusal,
    },
    /// The model refused.
    #[error("{case}: {source}")]
    Model {
        /// Name of the case.
        case: String,
        /// The reason.
        source: system::RunError,
    },
}

impl RunError {
    /// Of a case that can't be played; `task` names that of a seat.
    pub(super) fn of_stage(
        case: String,
        task: impl Fn(usize) -> String,
        error: StageError,
    ) -> Self {
        match error {
            StageError::Colors(source) => Self::Colors { case, source },
            StageError::Memory { seat, source, .. } => Self::Memory {
                case,
                task: task(seat),
                source,
            },
            StageError::Regulator(source) => Self::Regulator { case, source },
            StageError::Model(source) => Self::Model { case, source },
        }
    }

    /// The keys of the scenario's file that it is about.
    fn path(&self, scenario: &Scenario) -> Vec<String> {
        let path: &[&str] = match self {
            Self::Machine {
                source: soloist_memory::Error::Model(_),
                ..
            } => &["model"],
            Self::Machine { .. } => &["experiment", "machine"],
            Self::Task { task, .. } | Self::Memory { task, .. } => {
                let number = scenario.tasks.iter().position(|t| t.name == *task);
                return Wrong::of_task(number.unwrap_or(0), "").path;
            }
            Self::Wrong { wrong, .. } => return wrong.path.clone(),
            Self::Colors { .. } => &["policies"],
            Self::Regulator { .. } => &["regulator"],
            Self::Model { .. } => &["experiment"],
        };
        path.iter().map(|&key| key.to_owned()).collect()
    }

    /// The same with its place in the file that the scenario was read from.
    #[must_use]
    pub fn in_file(&self, scenario: &Scenario) -> FileError {
        scenario.source.error(Wrong {
            path: self.path(scenario),
            message: self.to_string(),
        })
    }
}
