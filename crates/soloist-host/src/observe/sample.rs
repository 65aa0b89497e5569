//! Repeated measurements: what they come to, and whether they can be trusted.

use serde::Serialize;
use soloist_core::statistics::{quantile, Spread};

/// Runs below which a summary warns.
const FEW: usize = 10;
/// Standard deviation over mean above which a summary warns.
const NOISY: f64 = 0.05;
/// Standard deviations of the other runs that a run lies far outside them.
const FAR: f64 = 5.0;

/// What repeated measurements come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub runs: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the sample; 0 for one.
    pub stddev: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile, interpolated: with fewer than 100 runs near the largest.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Of at least one value; `None` for none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return None;
        }
        let spread = Spread::of(&sorted);
        Some(Self {
            runs: sorted.len(),
            mean: spread.mean,
            stddev: spread.deviation,
            min: spread.min,
            p50: quantile(&sorted, 0.50),
            p99: quantile(&sorted, 0.99),
            max: spread.max,
        })
    }

    /// Why the figures are to be taken with care; empty if they are not.
    pub fn warnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.runs < FEW {
            said.push(format!("only {} runs; {FEW} or more tell more", self.runs));
        }
        let noise = self.stddev / self.mean;
        if noise > NOISY {
            said.push(format!(
                "runs vary by {:.0} % (standard deviation)",
                100.0 * noise
            ));
        }
        if self.runs >= FEW && self.is_largest_far() {
            said.push("one run lies far outside the others".to_owned());
        }
        said
    }

    /// Whether the largest lies far outside the others: by their own mean and deviation,
    /// since it widens the sample's.
    fn is_largest_far(&self) -> bool {
        let all = self.runs as f64;
        let others = all - 1.0;
        let mean = (all * self.mean - self.max) / others;
        let squares = others * self.stddev.powi(2) - (self.max - self.mean).powi(2) * all / others;
        let deviation = (squares.max(0.0) / (others - 1.0)).sqrt();
        // Equal figures may differ by rounding.
        self.max - mean > FAR * deviation + self.mean.abs() * 1e-6
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_textbook() {
        let s = Summary::of(&[4.0, 2.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.mean, s.min, s.p50, s.max), (5.0, 2.0, 4.5, 9.0));
        assert!((s.stddev - 2.138).abs() < 0.001, "{}", s.stddev);
        assert!((s.p99 - 8.86).abs() < 0.001, "{}", s.p99);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0]).unwrap().stddev, 0.0);
    }

    #[test]
    fn warns_of_few_and_of_noisy_runs_only() {
        let said = |values: &[f64]| Summary::of(values).unwrap().warnings().len();
        assert_eq!(said(&[1.0; 12]), 0);
        assert_eq!(said(&[1.0; 3]), 1);
        let noisy: Vec<f64> = (0..12).map(|i| 1.0 + f64::from(i % 2)).collect();
        assert_eq!(said(&noisy), 1);
    }

    #[test]
    fn warns_of_one_run_far_outside_ten() {
        let far = |last: f64| {
            let mut runs: Vec<f64> = (0..9).map(|i| 1.0 + 0.001 * f64::from(i)).collect();
            runs.push(last);
            let said = Summary::of(&runs).unwrap().warnings();
            said.iter().any(|why| why.contains("far outside"))
        };
        assert!(far(1.1) && far(30.0));
        assert!(!far(1.009));
    }
}
