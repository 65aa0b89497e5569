//! Mean, extremes and deviation.

use serde::Serialize;
use soloist_core::statistics::{mean, sample_deviation};

/// Mean, least, greatest and standard deviation of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Standard deviation of the sample.
    pub std: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Self {
        Self {
            mean: mean(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            std: sample_deviation(values),
        }
    }
}
