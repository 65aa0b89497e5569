//! How to detect: limits and the seed.

use std::time::Duration;

/// How to detect.
#[derive(Debug, Clone)]
pub struct Options {
    /// Stop after this; what was found until then is returned.
    pub deadline: Duration,
    /// Seed of the detector's random choices.
    pub seed: u64,
    /// Pages to sort into classes where addresses are not physical: huge ones
    /// with functions inside, else frames of 4 KiB.
    pub class_pages: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            seed: 1,
            class_pages: None,
        }
    }
}
