//! Prints what was played, for people.

use anyhow::Result;
use soloist_host::control::format_rate;
use soloist_memory::Platform;
use soloist_play::replay::{Means, Part, Replayed};

use soloist_cli::table;

/// A row for each placement.
pub(super) fn means(machine: &str, parts: &[Part], rows: &[Means]) -> Result<()> {
    let names: Vec<&str> = parts[1..].iter().map(|p| p.name.as_str()).collect();
    match names.as_slice() {
        [] => outln!("{} alone, modelled on {machine}", parts[0].name)?,
        names => outln!(
            "{} beside {}, modelled on {machine}",
            parts[0].name,
            names.join(", ")
        )?,
    }
    let mut table = table([
        "PLACEMENT",
        "ALONE ms",
        "BESIDE ms",
        "SLOWDOWN",
        "TO FIRST",
        "MISSES/1000",
        "P99 ALONE ns",
        "P99 BESIDE ns",
        "OTHERS GB/s",
        "REMOTE %",
        "SPILLED",
    ]);
    let maybe = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
    };
    for row in rows {
        table.add_row([
            match row.limit {
                Some(limit) => {
                    let rate = format_rate(limit.bytes_per_second);
                    format!("{}, {rate} each", row.placement)
                }
                None => row.placement.clone(),
            },
            format!("{:.3}", row.alone_ms),
            maybe(row.beside_ms, 3),
            match row.slowdown_range {
                Some((least, most)) => {
                    format!("{} ({least:.3} to {most:.3})", maybe(row.slowdown, 3))
                }
                None => maybe(row.slowdown, 3),
            },
            maybe(row.slowdown_to_first, 3),
            format!("{:.2}", row.mpki),
            format!("{:.0}", row.p99_alone_ns),
            maybe(row.p99_beside_ns, 0),
            maybe(row.others_gb_s, 1),
            format!("{:.0}", row.remote_percent),
            row.spilled.to_string(),
        ]);
    }
    outln!("{}", table)
}

/// How many lines the foreground wants of a cache that begins empty: few find it so all along,
/// and their changes never come to memory.
pub(super) fn last_level(platform: &Platform, run: &Replayed) -> Result<()> {
    let foreground = &run.played[0];
    let shape = platform.llc.shape;
    outln!(
        "The last-level cache begins empty and holds {} lines; {} asks it for {}.",
        shape.sets * shape.ways as u64,
        foreground.name,
        foreground.llc_hits + foreground.llc_misses
    )
}

/// Whom the foreground waited for.
pub(super) fn blame(runs: &[Replayed]) -> Result<()> {
    for run in runs.iter().filter(|run| !run.played[0].blame.is_empty()) {
        let foreground = &run.played[0];
        outln!(
            "\n{} waited {:.3} ms, {}:",
            foreground.name,
            foreground.stall_ns / 1e6,
            run.placement
        )?;
        for share in foreground.blame.iter().take(8) {
            let culprit = share.culprit.as_deref().unwrap_or("nobody");
            outln!("  {:>9.3} ms  {culprit}, {}", share.ns / 1e6, share.cause)?;
        }
    }
    Ok(())
}

/// How long each thread of a program of several waited for another of them.
pub(super) fn idle(runs: &[Replayed]) -> Result<()> {
    let is_told = |run: &&Replayed| run.seed == 1 && run.limit.is_none();
    for run in runs.iter().filter(is_told) {
        for played in run.played.iter().filter(|p| p.idle_ns.len() > 1) {
            let when = match run.programs {
                1 => "alone".to_owned(),
                n => format!("beside {}", n - 1),
            };
            let idle: Vec<String> = played
                .idle_ns
                .iter()
                .map(|ns| format!("{:.3}", ns / 1e6))
                .collect();
            outln!(
                "{}, {}, {when}: threads waited for each other {} ms",
                played.name,
                run.placement,
                idle.join(", ")
            )?;
        }
    }
    Ok(())
}
