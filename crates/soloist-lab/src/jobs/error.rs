//! Why a scenario could not be run.

use soloist_core::Refusal;
use soloist_memory::system;
use soloist_play::placement::memory::Exhausted;
use soloist_play::stage::StageError;

use crate::spec::Scenario;

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

    /// The word of the scenario's file that it is about.
    pub fn word(&self, scenario: &Scenario) -> String {
        match self {
            Self::Machine {
                source: soloist_memory::Error::Model(_),
                ..
            } => "[model".to_owned(),
            Self::Machine { .. } => format!("\"{}\"", scenario.experiment.machine),
            Self::Task { task, .. } | Self::Memory { task, .. } => format!("\"{task}\""),
            Self::Colors { .. } => "policies".to_owned(),
            Self::Regulator { .. } => "[regulator]".to_owned(),
            Self::Model { .. } => "[experiment]".to_owned(),
        }
    }
}
