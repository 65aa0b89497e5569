//! What a placement came to: means over the runs of all seeds.

use std::collections::BTreeSet;

use serde::Serialize;
use soloist_core::statistics;

use super::{PartResult, Placement, Replayed};

/// What a placement came to, means over the seeds.
#[derive(Debug, Serialize)]
pub struct Means {
    /// Its name.
    pub placement: String,
    /// The foreground alone, ms.
    pub alone_ms: f64,
    /// Beside the others, ms.
    pub beside_ms: Option<f64>,
    /// Beside the others over alone, pages lying alike.
    pub slowdown: Option<f64>,
    /// Beside the others over alone by the first placement of the list.
    pub slowdown_to_first: Option<f64>,
    /// Least and most slowdown of one seed; none of a single seed.
    pub slowdown_range: Option<(f64, f64)>,
    /// Misses of the last-level cache in 1000 instructions, alone.
    pub mpki: f64,
    /// 99th percentile of its lines' latency, alone.
    pub p99_alone_ns: f64,
    /// The same beside the others.
    pub p99_beside_ns: Option<f64>,
    /// What the others move to and from memory beside it, all together, GB/s.
    pub others_gb_s: Option<f64>,
    /// Pages on another node than its core, per cent.
    pub remote_percent: f64,
    /// Pages of user space that lie out of its colours.
    pub spilled: u64,
}

/// Bytes of a line.
const LINE: f64 = 64.0;

/// What all but the foreground move to and from memory, GB/s.
fn others_gb_s(run: &Replayed) -> f64 {
    let rate = |part: &PartResult| {
        (part.llc_misses + part.write_backs) as f64 * LINE / part.time_ns.max(1.0)
    };
    run.played[1..].iter().map(rate).sum()
}

/// Of each placement the means of its runs; slowdowns are to the first.
pub fn means(placements: &[Placement], runs: &[Replayed]) -> Vec<Means> {
    let mean = |placement: &Placement, alone: bool, of: fn(&Replayed) -> f64| {
        let name = placement.name();
        let wanted = |run: &&Replayed| run.placement == name && (run.programs == 1) == alone;
        let values: Vec<f64> = runs.iter().filter(wanted).map(of).collect();
        (!values.is_empty()).then(|| statistics::mean(&values))
    };
    let ms: fn(&Replayed) -> f64 = |run| run.played[0].time_ns / 1e6;
    let p99: fn(&Replayed) -> f64 = |run| run.played[0].latency_ns.p99;
    let first = placements.first().and_then(|p| mean(p, true, ms));
    placements
        .iter()
        .map(|p| {
            let alone_ms = mean(p, true, ms).unwrap_or(f64::NAN);
            let beside_ms = mean(p, false, ms);
            let mpki: fn(&Replayed) -> f64 = |run| {
                let foreground = &run.played[0];
                1000.0 * foreground.llc_misses as f64 / foreground.instructions.max(1) as f64
            };
            Means {
                placement: p.name(),
                alone_ms,
                beside_ms,
                slowdown: beside_ms.map(|ms| ms / alone_ms),
                slowdown_range: slowdown_range(&p.name(), runs),
                slowdown_to_first: beside_ms.zip(first).map(|(ms, first)| ms / first),
                mpki: mean(p, true, mpki).unwrap_or(f64::NAN),
                p99_alone_ns: mean(p, true, p99).unwrap_or(f64::NAN),
                p99_beside_ns: mean(p, false, p99),
                others_gb_s: mean(p, false, others_gb_s),
                remote_percent: mean(p, true, |run| run.played[0].remote).unwrap_or(f64::NAN),
                spilled: mean(p, true, |run| run.played[0].spilled as f64).unwrap_or(0.0) as u64,
            }
        })
        .collect()
}

/// How far the seeds of a placement are apart: each one's time beside the others
/// over its time alone.
fn slowdown_range(placement: &str, runs: &[Replayed]) -> Option<(f64, f64)> {
    let time = |seed: u64, alone: bool| {
        let wanted = |run: &&Replayed| {
            run.placement == placement && run.seed == seed && (run.programs == 1) == alone
        };
        runs.iter().find(wanted).map(|run| run.played[0].time_ns)
    };
    let beside = runs.iter();
    let beside = beside.filter(|run| run.placement == placement && run.programs > 1);
    // One that was named twice has each seed twice.
    let seeds: BTreeSet<u64> = beside.map(|run| run.seed).collect();
    let slowdowns: Vec<f64> = seeds
        .into_iter()
        .filter_map(|seed| Some(time(seed, false)? / time(seed, true)?))
        .collect();
    let least = slowdowns.iter().copied().reduce(f64::min)?;
    let most = slowdowns.iter().copied().reduce(f64::max)?;
    (slowdowns.len() > 1).then_some((least, most))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation should fail the test
mod tests {
    use super::*;

    fn outcome(seed: u64, programs: usize, ms: f64) -> Replayed {
        let played = PartResult {
            name: "walk".into(),
            time_ns: ms * 1e6,
            ..PartResult::default()
        };
        Replayed {
            placement: "buddy".into(),
            programs,
            seed,
            played: vec![played; programs],
        }
    }

    #[test]
    fn seeds_are_told_apart() {
        // Slowdowns of 2, 1.5 and 3; the means make it 6.5 over 3.
        let runs = [
            (1, 1, 1.0),
            (2, 1, 1.0),
            (3, 1, 1.0),
            (1, 4, 2.0),
            (2, 4, 1.5),
            (3, 4, 3.0),
        ]
        .map(|(seed, programs, ms)| outcome(seed, programs, ms));
        let placement: Placement = "buddy".parse().unwrap();
        let all = means(&[placement], &runs);
        assert_eq!(all[0].slowdown_range, Some((1.5, 3.0)));
        assert!((all[0].slowdown.unwrap() - 6.5 / 3.0).abs() < 1e-9);
        assert_eq!(all[0].others_gb_s, Some(0.0), "they did nothing");
        let mut busy = runs.clone();
        for run in &mut busy {
            // Each moves 64 bytes a nanosecond, and so do the three others.
            let lines = run.played[0].time_ns as u64 / 2;
            for part in &mut run.played {
                (part.llc_misses, part.write_backs) = (lines, lines);
            }
        }
        let gb_s = means(&[placement], &busy)[0].others_gb_s.unwrap();
        assert!((gb_s - 3.0 * 64.0).abs() < 1e-6, "{gb_s}");
        let one = means(&[placement], &[runs[0].clone(), runs[3].clone()]);
        assert_eq!(one[0].slowdown_range, None);
        let twice = [0, 3, 0, 3].map(|run: usize| runs[run].clone());
        assert_eq!(
            means(&[placement, placement], &twice)[0].slowdown_range,
            None
        );
        assert_eq!(means(&[placement], &runs[..3])[0].slowdown_range, None);
    }
}
