//! Why recordings can't be played on silicon.

use soloist_play::stage::StageError;

/// Why nothing can be played.
#[derive(Debug, thiserror::Error)]
pub enum SiliconError {
    /// What was asked for does not fit the recording, the machine or the slice.
    #[error("{0}")]
    Misfit(String),
    /// The model could not place or play the programs of a policy.
    #[error("{0}: {1}")]
    Refused(String, #[source] StageError),
}
