//! How sure a difference is: signed ranks, and a bootstrap of the median.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use soloist_core::statistics::median;

/// Draws of signs, and of samples.
const DRAWS: usize = 20_000;
/// Share of the draws that lies below the interval, and above it.
const TAIL: f64 = 0.005;

/// A median, and where it lies in 99 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// By the bootstrap: medians of samples drawn from the values.
    #[must_use]
    pub fn of_median(values: &[f64], seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut drawn = vec![0.0; values.len()];
        let mut medians: Vec<f64> = (0..DRAWS / 10)
            .map(|_| {
                for slot in &mut drawn {
                    *slot = values[rng.gen_range(0..values.len())];
                }
                median(&mut drawn)
            })
            .collect();
        medians.sort_unstable_by(f64::total_cmp);
        let tail = (medians.len() as f64 * TAIL) as usize;
        Self {
            median: median(&mut values.to_vec()),
            low: medians[tail],
            high: medians[medians.len() - 1 - tail],
        }
    }
}

/// Chance that values whose signs are luck lie as far above 0: Wilcoxon's signed
/// ranks, held against those of signs drawn anew.
#[must_use]
pub fn chance(values: &[f64], seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    let ranked = || order.iter().zip(1u32..);
    let seen: i64 = ranked()
        .map(|(&i, rank)| match values[i] {
            v if v > 0.0 => i64::from(rank),
            v if v < 0.0 => -i64::from(rank),
            _ => 0,
        })
        .sum();
    let as_far = (0..DRAWS)
        .filter(|_| {
            let mut signs = 0u64;
            let mut drawn = 0;
            for (i, rank) in (1..).take(values.len()).enumerate() {
                signs = match i % 64 {
                    0 => rng.gen(),
                    _ => signs >> 1,
                };
                drawn += if signs & 1 == 1 { rank } else { -rank };
            }
            drawn >= seen
        })
        .count();
    (as_far + 1) as f64 / (DRAWS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_are_luck_are_told_from_those_that_are_not() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut noise = |shift: f64| -> Vec<f64> {
            (0..40)
                .map(|_| shift + rng.gen_range(-1.0f64..1.0).powi(3) * 50.0)
                .collect()
        };
        // Of 400 samples without a shift about 4 fall below 1 %.
        let low = (0..400).filter(|&s| chance(&noise(0.0), s) < 0.01).count();
        assert!((1..=10).contains(&low), "{low}");
        let shifted = noise(8.0);
        assert!(chance(&shifted, 1) < 0.01);
        assert!(Interval::of_median(&shifted, 1).low > 0.0);
        // No difference at all is no effect.
        assert!(chance(&[0.0; 40], 1) > 0.3);
    }

    /// Exact: of 2^4 signs of four values that are all above 0, one gives as much.
    #[test]
    fn the_chance_of_four_signs_is_a_sixteenth() {
        let found = chance(&[3.0, 1.0, 2.0, 9.0], 7);
        assert!((found - 1.0 / 16.0).abs() < 0.01, "{found}");
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [4.0, 1.0, 3.0]), 3.0);
    }
}
