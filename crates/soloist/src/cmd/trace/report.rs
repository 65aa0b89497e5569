//! What a trace says in the end.

use std::process::ExitCode;

use anyhow::Result;
use soloist_rt::measured::{Measured, Task};
use soloist_rt::observe::Record;
use soloist_rt::time::Time;

use crate::cmd::table;
use crate::Ctx;

/// Of a chart, in the longest period.
const PERIODS: u64 = 8;

/// Prints it; the status to end with.
pub fn print(record: &Record, skip_ps: u64, ctx: &Ctx) -> Result<ExitCode> {
    let report = Measured::of(record, skip_ps);
    if ctx.json {
        ctx.print_json(&report)?;
    } else {
        say(&report)?;
    }
    let missed = report.tasks.iter().any(|t| t.missed > 0);
    let partial = report.lost_events + report.unread_lines > 0;
    Ok(ExitCode::from(u8::from(missed || partial)))
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

/// From when to when a chart shows something: around the first miss, if there is
/// one; all where nobody has a period.
pub fn part(record: &Record, skip_ps: u64) -> (u64, u64) {
    let end = record.timeline.end_ps;
    let periods = record.tasks.iter().filter_map(|t| t.timing);
    let Some(longest) = periods.map(|t| t.period_ps).max() else {
        return (0, end);
    };
    let jobs = record.timeline.jobs.iter();
    let counted = jobs.filter(|j| j.deadline_ps.is_some() && j.release_ps >= skip_ps);
    let mut counted = counted.peekable();
    let begin = counted.peek().map_or(0, |job| job.release_ps);
    let miss = counted.find(|job| job.missed());
    let from = miss.map_or(begin, |job| {
        job.release_ps.saturating_sub(longest).max(begin)
    });
    (from, (from + PERIODS * longest).min(end))
}
