//! What a task's time was spent on, and whose fault its waiting was.

use serde::{Deserialize, Serialize};
use soloist_memory::core::Account;

/// Time by what it was spent on, ns: the parts add up to the whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Instructions.
    pub compute_ns: f64,
    /// At barriers, and asleep.
    pub idle_ns: f64,
    /// For lines, by cause and culprit.
    pub shares: Vec<Share>,
    /// Latency of lines from the core's miss on, ns: median, 95th and 99th
    /// percentile, greatest; of several runs the mean of each.
    pub latency_ns: [f64; 4],
}

/// Waiting of one cause and culprit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Why, see [`soloist_memory::blame::Cause::name`]; `base`: what it takes with nobody in the way.
    pub cause: String,
    /// Task whose fault it is; `None`: nobody's.
    pub culprit: Option<String>,
    /// How long; below 0 in a difference.
    pub ns: f64,
}

impl Waits {
    /// Of a core's account; `name` gives the task on a core.
    pub fn of(account: &Account, name: impl Fn(usize) -> Option<String>) -> Self {
        let ns = |ps: u64| ps as f64 / 1000.0;
        let mut waits = Self {
            compute_ns: ns(account.compute_ps),
            idle_ns: ns(account.barrier_ps + account.slept_ps),
            ..Self::default()
        };
        for share in account.blame.shares() {
            let culprit = share.culprit.and_then(&name);
            waits.add(share.cause.name(), culprit, share.ps as f64 / 1000.0);
        }
        let latency = account.latency_ns();
        waits.latency_ns = [latency.p50, latency.p95, latency.p99, latency.max];
        waits
    }

    fn add(&mut self, cause: &str, culprit: Option<String>, ns: f64) {
        let same = |s: &&mut Share| s.cause == cause && s.culprit == culprit;
        match self.shares.iter_mut().find(same) {
            Some(share) => share.ns += ns,
            None => self.shares.push(Share {
                cause: cause.to_owned(),
                culprit,
                ns,
            }),
        }
    }

    /// Mean of several.
    pub fn mean(all: &[&Self]) -> Self {
        let n = all.len().max(1) as f64;
        let mut mean = Self::default();
        for waits in all {
            mean.compute_ns += waits.compute_ns / n;
            mean.idle_ns += waits.idle_ns / n;
            for share in &waits.shares {
                mean.add(&share.cause, share.culprit.clone(), share.ns / n);
            }
            for (mine, theirs) in mean.latency_ns.iter_mut().zip(waits.latency_ns) {
                *mine += theirs / n;
            }
        }
        mean
    }

    /// All of it, ns.
    pub fn total_ns(&self) -> f64 {
        self.compute_ns + self.idle_ns + self.shares.iter().map(|s| s.ns).sum::<f64>()
    }

    /// What is here beyond `alone`: by whom and why it took longer.
    pub fn less(&self, alone: &Self) -> Self {
        let mut beyond = self.clone();
        beyond.compute_ns -= alone.compute_ns;
        beyond.idle_ns -= alone.idle_ns;
        for share in &alone.shares {
            beyond.add(&share.cause, share.culprit.clone(), -share.ns);
        }
        beyond
    }

    /// Waiting that is a culprit's fault, ns.
    pub fn of_culprit(&self, culprit: &str) -> f64 {
        let theirs = |s: &&Share| s.culprit.as_deref() == Some(culprit);
        self.shares.iter().filter(theirs).map(|s| s.ns).sum()
    }

    /// Tasks that it waited for, the one it waited for longest first.
    pub fn culprits(&self) -> Vec<(String, f64)> {
        let mut names: Vec<String> = self
            .shares
            .iter()
            .filter_map(|s| s.culprit.clone())
            .collect();
        names.sort();
        names.dedup();
        let mut all: Vec<(String, f64)> = names
            .into_iter()
            .map(|name| {
                let ns = self.of_culprit(&name);
                (name, ns)
            })
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// The cause of most of a culprit's share.
    pub fn main_cause(&self, culprit: &str) -> Option<&str> {
        let theirs = self
            .shares
            .iter()
            .filter(|s| s.culprit.as_deref() == Some(culprit));
        let most = theirs.max_by(|a, b| a.ns.total_cmp(&b.ns));
        most.map(|s| s.cause.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 99th percentile of claims is a mean over runs, too.
    #[test]
    fn latencies_of_several_runs_are_their_means() {
        let run = |p99, max| Waits {
            latency_ns: [50.0, 80.0, p99, max],
            ..Waits::default()
        };
        let mean = Waits::mean(&[&run(100.0, 300.0), &run(200.0, 900.0)]);
        assert_eq!(mean.latency_ns, [50.0, 80.0, 150.0, 600.0]);
    }
}
