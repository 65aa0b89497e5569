//! 95 per cent intervals over seeds, by the jackknife: what a figure would have
//! been without each of the seeds says how far it may be trusted. It serves
//! means, ratios of means and deviations alike.

use serde::{Deserialize, Serialize};
use soloist_core::statistics::{student_t, sum_of_squares};

/// A figure and how far it may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Over all seeds.
    pub value: f64,
    /// Half of the interval; `None`: there are too few seeds for one.
    pub half: Option<f64>,
}

impl Estimate {
    /// `value` over all seeds, `without` each of them.
    pub fn jackknife(value: f64, without: &[f64]) -> Self {
        let n = without.len();
        // Without a seed there may be nothing to compute it from.
        if n < 2 || !without.iter().all(|value| value.is_finite()) {
            return Self { value, half: None };
        }
        let error = (sum_of_squares(without) * (n - 1) as f64 / n as f64).sqrt();
        Self {
            value,
            half: Some(student_t(n - 1) * error),
        }
    }

    /// Its interval lies below that of `other`; `None`: one has none.
    pub fn below(self, other: Self) -> Option<bool> {
        Some(self.value + self.half? < other.value - other.half?)
    }

    /// Its whole interval is at most `allowed` from `value`; `None`: it has none, and
    /// the figure itself is so near.
    pub fn within(self, value: f64, allowed: f64) -> Option<bool> {
        let off = (self.value - value).abs();
        match self.half {
            Some(half) => Some(off + half <= allowed),
            None if off > allowed => Some(false),
            None => None,
        }
    }

    /// It is not above `other`: below it, or both alike to the last digit.
    pub fn at_most(self, other: Self) -> Option<bool> {
        Some(self.value + self.half? <= other.value - other.half?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a mean the jackknife is the usual interval.
    #[test]
    fn a_means_interval_is_students() {
        let seeds = [10.0, 12.0, 14.0];
        let without: Vec<f64> = (0..3).map(|i| (36.0 - seeds[i]) / 2.0).collect();
        let e = Estimate::jackknife(12.0, &without);
        // 4.303 * 2 / sqrt(3)
        assert!((e.half.unwrap_or(0.0) - 4.9687).abs() < 1e-3);
        assert_eq!(Estimate::jackknife(1.0, &[1.0]).half, None);
        assert_eq!(Estimate::jackknife(1.0, &[1.0, f64::NAN]).half, None);
    }

    #[test]
    fn orders_need_intervals_apart() {
        let e = |value, half| Estimate {
            value,
            half: Some(half),
        };
        assert_eq!(e(1.0, 0.1).below(e(1.3, 0.1)), Some(true));
        assert_eq!(e(1.0, 0.2).below(e(1.3, 0.2)), Some(false));
        let alone = Estimate {
            value: 2.0,
            half: None,
        };
        assert_eq!(e(1.0, 0.1).below(alone), None);
        // A count that is exactly its bound.
        assert_eq!(e(0.0, 0.0).at_most(e(0.0, 0.0)), Some(true));
    }
}
