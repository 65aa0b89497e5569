//! What a trace says in the end.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_cli::table;
use soloist_cli::{out, Ctx};
use soloist_core::time::Time;
use soloist_trace::coverage::{Coverage, Expected};
use soloist_trace::measured::{Measured, Task};
use soloist_trace::observer::Record;

/// What is told with `--json`.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    measured: Measured,
    /// Who was asked for and is not known to have kept a deadline: no job was seen.
    unseen: Vec<String>,
}

/// Prints it, where its pictures were `drawn`; the status to end with.
pub fn print(
    record: &Record,
    skip_ps: u64,
    expected: &Expected,
    drawn: Result<()>,
    ctx: &Ctx,
) -> ExitCode {
    let report = Measured::of(record, skip_ps);
    let Coverage { unseen, enough } = report.coverage(expected);
    let missed = report.tasks.iter().any(|t| t.missed > 0);
    let partial = report.lost_events + report.unread_lines > 0;
    let printed = match ctx.json {
        true => {
            let measured = report;
            ctx.print_json(&Told { measured, unseen })
        }
        false => {
            let said = say(&report);
            tell_unseen(&report, &unseen, enough);
            said
        }
    };
    let is_good = !missed && !partial && enough;
    ctx.judged(out::both(printed, drawn), is_good)
}

fn tell_unseen(report: &Measured, unseen: &[String], enough: bool) {
    let length = time(report.length_ns);
    match unseen {
        [] if enough => {}
        [] => errln!("soloist: no job of anybody was seen in {length}: nothing is known of deadlines"),
        names => errln!(
            "soloist: {}: no job was seen in {length}: nothing is known of what it missed (is it running, under this name? a first job does not count)",
            names.join(", ")
        ),
    }
}

fn say(report: &Measured) -> Result<()> {
    if report.tasks.is_empty() {
        outln!("nobody who is watched ran in {}", time(report.length_ns))?;
    } else {
        let mut table = table([
            "task",
            "core",
            "period",
            "deadline",
            "jobs",
            "missed",
            "median",
            "p99.9",
            "worst",
            "executed",
            "preempted",
            "throttled",
        ]);
        for t in &report.tasks {
            table.add_row(row(t));
        }
        outln!("{}", table.trim_fmt())?;
    }
    if report.lost_events > 0 {
        errln!("soloist: {} events were lost: the kernel's buffers were full before they were read. Jobs may be missing or joined; watch fewer tasks", report.lost_events);
    }
    if report.unread_lines > 0 {
        errln!("soloist: {} lines of the trace were not understood (a task whose name has a newline?): jobs may be missing or joined", report.unread_lines);
    }
    Ok(())
}

fn row(t: &Task) -> [String; 12] {
    let cores: Vec<String> = t.cores.iter().map(u32::to_string).collect();
    let or_none = |ns: Option<u64>| ns.map_or("-".to_owned(), time);
    let over = if t.worst_is_cut_off { "> " } else { "" };
    [
        t.task.clone(),
        cores.join(","),
        or_none(t.period_ns),
        or_none(t.deadline_ns),
        t.jobs.to_string(),
        match t.deadline_ns {
            Some(_) => format!("{} ({:.1} %)", t.missed, t.miss_rate * 100.0),
            None => "-".to_owned(),
        },
        or_none(t.response_p50_ns),
        or_none(t.response_p999_ns),
        format!("{over}{}", or_none(t.response_worst_ns)),
        time(t.execution_max_ns),
        t.preempted.to_string(),
        time(t.throttled_ns),
    ]
}

fn time(ns: u64) -> String {
    Time(ns.saturating_mul(1000)).to_string()
}
