//! What a placement came to: means over the runs of all seeds.

use std::collections::BTreeSet;

use serde::Serialize;
use soloist_core::statistics;

use super::{Limit, PartResult, Placement, Replayed};

/// What a placement came to, means over the seeds.
#[derive(Debug, Serialize)]
pub struct Means {
    /// Its name.
    pub placement: String,
    /// The bandwidth of each core of the others; `None`: what the placement says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
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

/// Runs of one placement with pages lying alike, beside the others or alone.
fn of<'a>(
    runs: &'a [Replayed],
    placement: &'a str,
    limit: Option<Limit>,
    alone: bool,
) -> impl Iterator<Item = &'a Replayed> {
    runs.iter().filter(move |run| {
        run.placement == placement && run.limit == limit && (run.programs == 1) == alone
    })
}

/// The mean of what `get` gets of runs; `None`: there are none.
fn mean<'a>(
    runs: impl Iterator<Item = &'a Replayed>,
    get: impl Fn(&Replayed) -> f64,
) -> Option<f64> {
    let values: Vec<f64> = runs.map(get).collect();
    (!values.is_empty()).then(|| statistics::mean(&values))
}

fn ms(run: &Replayed) -> f64 {
    run.played[0].time_ns / 1e6
}

fn p99(run: &Replayed) -> f64 {
    run.played[0].latency_ns.p99
}

fn mpki(run: &Replayed) -> f64 {
    let foreground = &run.played[0];
    1000.0 * foreground.llc_misses as f64 / foreground.instructions.max(1) as f64
}

/// Of each placement the means of its runs, first as it is and then under each limit;
/// slowdowns are to the first placement.
pub fn means(placements: &[Placement], limits: &[Limit], runs: &[Replayed]) -> Vec<Means> {
    let first = placements.first().map(|p| p.name());
    let first = first.and_then(|name| mean(of(runs, &name, None, true), ms));
    let with = |placement: &Placement| {
        let name = placement.name();
        let limits = limits.iter().copied().map(Some);
        let all = std::iter::once(None).chain(limits);
        all.map(move |limit| of_condition(&name, limit, first, runs))
    };
    placements.iter().flat_map(with).collect()
}

/// Means of one placement under one limit. Nobody is limited alone.
fn of_condition(name: &str, limit: Option<Limit>, first: Option<f64>, runs: &[Replayed]) -> Means {
    let alone = || of(runs, name, None, true);
    let beside = || of(runs, name, limit, false);
    let alone_ms = mean(alone(), ms).unwrap_or(f64::NAN);
    let beside_ms = mean(beside(), ms);
    Means {
        placement: name.to_owned(),
        limit,
        alone_ms,
        beside_ms,
        slowdown: beside_ms.map(|ms| ms / alone_ms),
        slowdown_range: slowdown_range(name, limit, runs),
        slowdown_to_first: beside_ms.zip(first).map(|(ms, first)| ms / first),
        mpki: mean(alone(), mpki).unwrap_or(f64::NAN),
        p99_alone_ns: mean(alone(), p99).unwrap_or(f64::NAN),
        p99_beside_ns: mean(beside(), p99),
        others_gb_s: mean(beside(), others_gb_s),
        remote_percent: mean(alone(), |run| run.played[0].remote).unwrap_or(f64::NAN),
        spilled: mean(alone(), |run| run.played[0].spilled as f64).unwrap_or(0.0) as u64,
    }
}

/// How far the seeds of a condition are apart: each one's time beside the others
/// over its time alone.
fn slowdown_range(name: &str, limit: Option<Limit>, runs: &[Replayed]) -> Option<(f64, f64)> {
    let time = |seed: u64, limit: Option<Limit>, alone: bool| {
        let mut of_condition = of(runs, name, limit, alone);
        let run = of_condition.find(|run| run.seed == seed)?;
        Some(run.played[0].time_ns)
    };
    // One that was named twice has each seed twice.
    let seeds: BTreeSet<u64> = of(runs, name, limit, false).map(|run| run.seed).collect();
    let slowdowns: Vec<f64> = seeds
        .into_iter()
        .filter_map(|seed| Some(time(seed, limit, false)? / time(seed, None, true)?))
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
            limit: None,
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
        let all = means(&[placement], &[], &runs);
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
        let gb_s = means(&[placement], &[], &busy)[0].others_gb_s.unwrap();
        assert!((gb_s - 3.0 * 64.0).abs() < 1e-6, "{gb_s}");
        let one = means(&[placement], &[], &[runs[0].clone(), runs[3].clone()]);
        assert_eq!(one[0].slowdown_range, None);
        let twice = [0, 3, 0, 3].map(|run: usize| runs[run].clone());
        assert_eq!(
            means(&[placement, placement], &[], &twice)[0].slowdown_range,
            None
        );
        assert_eq!(means(&[placement], &[], &runs[..3])[0].slowdown_range, None);
    }

    #[test]
    fn a_limit_has_a_row_of_its_own_beside_the_same_alone() {
        let limit = Limit {
            bytes_per_second: 500_000_000,
            period_us: 100,
        };
        let limited = Replayed {
            limit: Some(limit),
            ..outcome(1, 4, 1.5)
        };
        let runs = [outcome(1, 1, 1.0), outcome(1, 4, 3.0), limited];
        let placement: Placement = "buddy".parse().unwrap();
        let rows = means(&[placement], &[limit], &runs);
        let slowdowns: Vec<_> = rows.iter().map(|row| (row.limit, row.slowdown)).collect();
        assert_eq!(slowdowns, [(None, Some(3.0)), (Some(limit), Some(1.5))]);
    }
}
