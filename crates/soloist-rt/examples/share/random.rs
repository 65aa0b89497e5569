//! Random task sets: utilisations by UUniFast (Bini and Buttazzo, 2005), periods
//! drawn evenly on a logarithmic scale (Emberson et al., 2010).

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Shares of a core that add up to `total`, evenly among all such.
pub fn utilisations(rng: &mut ChaCha8Rng, n: usize, total: f64) -> Vec<f64> {
    let mut left = total;
    let mut all: Vec<f64> = (1..n)
        .map(|i| {
            let next = left * rng.gen_range(0.0f64..1.0).powf(1.0 / (n - i) as f64);
            std::mem::replace(&mut left, next) - next
        })
        .collect();
    all.push(left);
    all
}

/// A period between two, ps.
pub fn period(rng: &mut ChaCha8Rng, least: u64, most: u64) -> u64 {
    let log = rng.gen_range((least as f64).ln()..(most as f64).ln());
    log.exp() as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn shares_add_up() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n in 1..9 {
            let all = utilisations(&mut rng, n, 0.8);
            assert_eq!(all.len(), n);
            assert!((all.iter().sum::<f64>() - 0.8).abs() < 1e-9);
            assert!(all.iter().all(|&u| u >= 0.0));
        }
    }
}
