//! Distribution of latencies: cycles, or picoseconds.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Collects latencies: exact sum and extremes, percentiles to 3 digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

/// Average, percentiles and maximum, in one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub average: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            // Never fails: three digits is in range.
            histogram: Histogram::new(3).expect("valid precision"),
            sum: 0,
            max: 0,
        }
    }
}

impl Latencies {
    /// Adds one latency.
    #[inline]
    pub fn add(&mut self, value: u64) {
        // Never fails: it grows by itself; its saturating_record() would clamp instead.
        self.histogram
            .record(value)
            .expect("auto-resizing histogram");
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        // Never fails: both resize by themselves.
        self.histogram
            .add(&other.histogram)
            .expect("auto-resizing histogram");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Summary, each figure multiplied by `scale` (1 for cycles, the period
    /// in ns for ns). All zero when empty.
    pub fn summary(&self, scale: f64) -> Summary {
        if self.count() == 0 {
            return Summary::default();
        }
        let quantile = |q: f64| self.histogram.value_at_quantile(q).min(self.max) as f64 * scale;
        Summary {
            average: self.sum as f64 / self.count() as f64 * scale,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: self.max as f64 * scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_latencies_are_not_clamped() {
        let mut latencies = Latencies::default();
        for ps in (0..1000).map(|i| 50_000 + 100 * i) {
            latencies.add(ps);
        }
        let s = latencies.summary(0.001);
        assert!((s.p50 - 100.0).abs() < 0.2, "{}", s.p50);
        assert!((s.p99 - 149.0).abs() < 0.2, "{}", s.p99);
        assert!((s.max - 149.9).abs() < 1e-9, "{}", s.max);
    }
}
