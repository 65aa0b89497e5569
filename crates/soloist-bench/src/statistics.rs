//! How sure a difference is: signed ranks, and an interval of the median.

pub mod difference;

use std::f64::consts::{LN_2, PI};

use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;

/// Chance that the interval of a median misses it.
const MISSES: f64 = 0.01;

/// A median, and where it lies in 99 of 100 cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Between two of the values, exactly: a median has as many values below it as a coin
    /// shows heads. Fewer than eight values don't suffice; their interval is that of all.
    #[must_use]
    pub fn of_median(values: &[f64]) -> Self {
        let Some(last) = values.len().checked_sub(1) else {
            return Self::default();
        };
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let left_out = left_out(sorted.len());
        let (low, high) = (sorted[left_out], sorted[last - left_out]);
        Self {
            median: median(&mut sorted),
            low,
            high,
        }
    }
}

/// Values of so many that lie below the interval of the median, and as many above it.
fn left_out(values: usize) -> usize {
    // Chance of exactly `heads` heads, as a logarithm, and of so many or fewer.
    let (mut exactly, mut chance) = (-(values as f64) * LN_2, 0.0);
    for heads in 0..values / 2 {
        chance += exactly.exp();
        if 2.0 * chance > MISSES {
            return heads.saturating_sub(1);
        }
        exactly += ((values - heads) as f64 / (heads + 1) as f64).ln();
    }
    0
}

/// Values of which all choices of signs are counted: their number grows with the third power.
const MOST_COUNTED: usize = 200;

/// Chance that values whose signs are luck lie as far above 0: Wilcoxon's signed ranks, of up to
/// [`MOST_COUNTED`] exactly, by counting the choices of signs that give each sum.
#[must_use]
pub fn chance(values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    // Twice the ranks that are above 0; a value of 0 is half above.
    let seen: usize = order
        .iter()
        .zip(1..)
        .map(|(&i, rank)| match values[i] {
            v if v > 0.0 => 2 * rank,
            v if v < 0.0 => 0,
            _ => rank,
        })
        .sum();
    let seen = seen.div_ceil(2);
    match values.len() <= MOST_COUNTED {
        true => counted(values.len(), seen),
        false => normal(values.len(), seen),
    }
}

/// Chance that so many signs give a sum of ranks of `seen` or more, by counting.
fn counted(values: usize, seen: usize) -> f64 {
    let most = values * (values + 1) / 2;
    // Share of the choices with each sum of ranks above 0.
    let mut share = vec![0.0f64; most + 1];
    share[0] = 1.0;
    for rank in 1..=values {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { share[sum - rank] } else { 0.0 };
            share[sum] = (share[sum] + with) / 2.0;
        }
    }
    share[seen..].iter().sum::<f64>().min(1.0)
}

/// The same where they are many: sums are nearly normal then.
fn normal(values: usize, seen: usize) -> f64 {
    let n = values as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    above((seen as f64 - 0.5 - mean) / deviation)
}

/// Share of a normal distribution above so many deviations, by Simpson's rule: far out, too, all
/// of its digits count.
fn above(deviations: f64) -> f64 {
    const STEPS: u32 = 1000;
    let x = deviations.abs();
    // Behind this there is nothing left.
    let step = f64::min(10.0, 40.0 / x) / f64::from(STEPS);
    let height = |at: f64| (-x * at - at * at / 2.0).exp();
    let weight = |i: u32| match i {
        0 | STEPS => 1.0,
        i if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS)
        .map(|i| weight(i) * height(f64::from(i) * step))
        .sum();
    let density = (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
    let tail = density * sum * step / 3.0;
    match deviations < 0.0 {
        true => 1.0 - tail,
        false => tail,
    }
}

/// Holm's procedure: which of these chances are below `limit` all together.
#[must_use]
pub fn shown(chances: &[f64], limit: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_unstable_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let mut shown = vec![false; chances.len()];
    for (turn, i) in order.into_iter().enumerate() {
        if chances[i] >= limit / (chances.len() - turn) as f64 {
            break;
        }
        shown[i] = true;
    }
    shown
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

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
        let low = (0..400).filter(|_| chance(&noise(0.0)) < 0.01).count();
        assert!((1..=10).contains(&low), "{low}");
        let shifted = noise(8.0);
        assert!(chance(&shifted) < 0.01);
        assert!(Interval::of_median(&shifted).low > 0.0);
        // No difference at all is no effect.
        assert!(chance(&[0.0; 40]) > 0.3);
    }

    /// The median of skewed values lies in its interval in 99 of 100 cases, of few values, too.
    #[test]
    fn intervals_hold_the_median() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for blocks in [8, 12, 20, 60] {
            let mut missed = 0;
            for _ in 0..2_000 {
                let values: Vec<f64> = (0..blocks).map(|_| -rng.gen::<f64>().ln()).collect();
                let found = Interval::of_median(&values);
                missed += usize::from(!(found.low..=found.high).contains(&2.0f64.ln()));
            }
            assert!(missed <= 30, "{missed} of 2000 with {blocks} blocks");
        }
        assert_eq!(Interval::of_median(&[3.0]).high, 3.0);
        // Of eight none can be left out; of 10,000 half less 2.58 times 50.
        assert_eq!([7, 8, 11, 10_000].map(left_out), [0, 0, 0, 4_870]);
    }

    /// Exact: of 2^4 signs of four values that are all above 0, one gives as much.
    #[test]
    fn the_chance_of_four_signs_is_a_sixteenth() {
        let found = chance(&[3.0, 1.0, 2.0, 9.0]);
        assert!((found - 1.0 / 16.0).abs() < 0.01, "{found}");
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [4.0, 1.0, 3.0]), 3.0);
    }

    /// Where values are too many to count all signs, the normal distribution says the same.
    #[test]
    fn many_signs_are_judged_as_few_are() {
        let most = MOST_COUNTED * (MOST_COUNTED + 1) / 2;
        for seen in [
            most / 4,
            most / 2,
            most * 11 / 20,
            most * 3 / 5,
            most * 13 / 20,
        ] {
            let (exact, nearly) = (counted(MOST_COUNTED, seen), normal(MOST_COUNTED, seen));
            // Far out it says less, never more.
            assert!(
                (0.99..1.2).contains(&(nearly / exact)),
                "{seen} of {most}: {nearly} for {exact}"
            );
        }
        for (deviations, share) in [
            (0.0, 0.5),
            (2.5758, 0.005),
            (-1.0, 0.841_345),
            (6.0, 9.866e-10),
        ] {
            assert!(
                (above(deviations) / share - 1.0).abs() < 1e-4,
                "{deviations}"
            );
        }
        // As many blocks as may be asked for, in no time.
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i % 100) - 49.0).collect();
        assert!(
            (1e-9..0.05).contains(&chance(&values)),
            "{}",
            chance(&values)
        );
    }

    /// The smallest of four must lie below a quarter of the limit, the next below a third.
    #[test]
    fn many_chances_are_judged_together() {
        assert_eq!(
            shown(&[0.02, 0.0024, 0.5, 0.003], 0.01),
            [false, true, false, true]
        );
        assert_eq!(shown(&[0.004, 0.004, 0.004], 0.01), [false; 3]);
    }
}
