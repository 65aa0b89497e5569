//! Means, deviations and quantiles: one definition of each for all crates.
//!
//! `statrs` is not used. It sums in another order and takes quantiles by another
//! definition (type 8 of Hyndman and Fan), and the figures of experiments are compared
//! with those of earlier runs to their last digit.

/// The arithmetic mean; 0 of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The sum of the squared distances from the mean.
#[must_use]
pub fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The standard deviation of what `values` are a sample of; 0 of fewer than two.
#[must_use]
pub fn sample_deviation(values: &[f64]) -> f64 {
    match values.len() {
        0 | 1 => 0.0,
        n => (sum_of_squares(values) / (n - 1) as f64).sqrt(),
    }
}

/// The standard deviation of `values` themselves; 0 of nothing.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    (sum_of_squares(values) / values.len().max(1) as f64).sqrt()
}

/// The median: of an even number of values, the mean of the middle two; NaN of
/// nothing. Reorders the values.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let middle = values.len() / 2;
    let even = values.len() % 2 == 0;
    let (below, &mut high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match even {
        true => (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + high) / 2.0,
        false => high,
    }
}

/// The median that is one of the values: of an even number, the greater of the middle
/// two; NaN of nothing. Reorders the values.
pub fn high_median(values: &mut [f64]) -> f64 {
    match values.len() {
        0 => f64::NAN,
        n => *values.select_nth_unstable_by(n / 2, f64::total_cmp).1,
    }
}

/// The quantile at `share`, 0 to 1, of ascending values: linear between the two
/// nearest (type 7); NaN of nothing.
#[must_use]
pub fn quantile(ascending: &[f64], share: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    ascending[low] + (ascending[high] - ascending[low]) * (at - low as f64)
}

/// The smallest of the values that more than `share`, 0 to 1, of them do not exceed, where
/// [`quantile`] interpolates between two; 0 of nothing. Sorts the values.
#[must_use]
pub fn ranked_quantile(values: &mut [f32], share: f64) -> f64 {
    values.sort_unstable_by(f32::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values
        .get(at.min(values.len().saturating_sub(1)))
        .copied()
        .map_or(0.0, f64::from)
}

/// Mean, extremes and deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Standard deviation of what the values are a sample of.
    pub deviation: f64,
}

impl Spread {
    /// Of at least one value, summed in their order.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self {
            mean: mean(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: sample_deviation(values),
        }
    }
}

/// The 97.5 per cent quantile of Student's t to three digits behind the point, for at least one
/// degree of freedom: to 10 degrees from a table, beyond from the normal distribution's by the
/// expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
#[must_use]
pub fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    // The normal distribution's, and the expansion's four terms there.
    const NORMAL: f64 = 1.959_964;
    const TERMS: [f64; 4] = [2.372_271, 2.822_499, 2.555_849, 1.589_535];
    let freedom = freedom.max(1);
    let each = 1.0 / freedom as f64;
    let more = TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| (sum + term) * each);
    TABLE.get(freedom - 1).copied().unwrap_or(NORMAL + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_textbook() {
        let mut values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!((mean(&values), deviation(&values)), (5.0, 2.0));
        assert!((sample_deviation(&values) - 2.138).abs() < 0.001);
        assert_eq!((quantile(&values, 0.5), quantile(&values, 1.0)), (4.5, 9.0));
        assert!((quantile(&values, 0.99) - 8.86).abs() < 0.001);
        assert_eq!((median(&mut values), high_median(&mut values)), (4.5, 5.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0]), 3.0);
        for (freedom, t) in [
            (2, 4.303),
            (10, 2.228),
            (11, 2.201),
            (12, 2.179),
            (13, 2.160),
            (15, 2.131),
            (17, 2.110),
            (20, 2.086),
            (25, 2.060),
            (30, 2.042),
            (40, 2.021),
            (60, 2.000),
            (120, 1.980),
        ] {
            assert!(
                (student_t(freedom) - t).abs() <= 0.0005,
                "{freedom}: {}",
                student_t(freedom)
            );
        }
    }

    #[test]
    fn a_ranked_quantile_is_one_of_the_values() {
        let mut values: Vec<f32> = (0..1000u16).rev().map(f32::from).collect();
        assert_eq!(ranked_quantile(&mut values, 0.99), 990.0);
        assert_eq!(ranked_quantile(&mut [], 0.5), 0.0);
    }

    #[test]
    fn nothing_and_one_are_no_accident() {
        assert_eq!((mean(&[]), deviation(&[])), (0.0, 0.0));
        for nothing in [median(&mut []), high_median(&mut []), quantile(&[], 0.5)] {
            assert!(nothing.is_nan());
        }
        assert_eq!(
            (sample_deviation(&[]), sample_deviation(&[3.0])),
            (0.0, 0.0)
        );
    }
}
