//! Why recordings can't be played on silicon.

use soloist_bench::banks::sets::SetsError;
use soloist_detect::timing::hardware::HardwareError;
use soloist_play::stage::StageError;

/// Why nothing can be played.
#[derive(Debug, thiserror::Error)]
pub enum SiliconError {
    /// What was asked for does not fit the recording, the machine or the slice.
    #[error("{0}")]
    Misfit(String),
    /// Memory that is looked through holds lines of too few banks.
    #[error("--banks {wanted}: lines of {there} banks were found")]
    FewBanks {
        /// Banks of the slice.
        wanted: usize,
        /// Banks that were found.
        there: usize,
    },
    /// Lines of one bank can't be told from others.
    #[error(transparent)]
    Sets(#[from] SetsError),
    /// There is no memory to look through.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The caller can't be bound to its processor.
    #[error(transparent)]
    Bind(#[from] std::io::Error),
    /// The model could not place or play the programs of a policy.
    #[error("{0}: {1}")]
    Refused(String, #[source] StageError),
}
