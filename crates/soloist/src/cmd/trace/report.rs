//! What a trace says in the end.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_rt::observe::Record;
use soloist_rt::time::Time;

use crate::cmd::table;
use crate::Ctx;

/// Of a chart, in the longest period.
const PERIODS: u64 = 8;

#[derive(Serialize)]
struct Report {
    length_ns: u64,
    /// Events that the kernel could not keep; what they would have changed is not
    /// known.
    lost_events: u64,
    /// Lines that were not understood.
    unread_lines: u64,
    tasks: Vec<Task>,
}

#[derive(Serialize)]
struct Task {
    task: String,
    pid: u32,
    cores: Vec<u32>,
    period_ns: Option<u64>,
    deadline_ns: Option<u64>,
    jobs: u64,
    missed: u64,
    miss_rate: f64,
    /// From release to completion; none: no job was completed.
    response_p50_ns: Option<u64>,
    response_p999_ns: Option<u64>,
    response_worst_ns: Option<u64>,
    /// The worst was not over when the record ended.
    worst_is_cut_off: bool,
    execution_max_ns: u64,
    preempted: u64,
    yielded: u64,
    migrated: u64,
    throttled_ns: u64,
    /// Of that, by its scheduling class.
    held_ns: u64,
}

/// Prints it; the status to end with.
pub fn print(record: &Record, skip_ps: u64, ctx: &Ctx) -> Result<ExitCode> {
    let report = report(record, skip_ps);
    if ctx.json {
        ctx.print_json(&report)?;
    } else {
        say(&report)?;
    }
    let missed = report.tasks.iter().any(|t| t.missed > 0);
    let partial = report.lost_events + report.unread_lines > 0;
    Ok(ExitCode::from(u8::from(missed || partial)))
}

fn report(record: &Record, skip_ps: u64) -> Report {
    let timeline = &record.timeline;
    let rows = timeline.rows.iter().zip(&record.tasks).enumerate();
    let tasks = rows.map(|(number, (row, seen))| {
        let figures = timeline.figures(number, skip_ps);
        let responses = timeline.responses(number, skip_ps);
        let throttled: u64 = row.throttled.iter().map(|t| t.1 - t.0).sum();
        Task {
            task: row.name.clone(),
            pid: seen.pid,
            cores: row.cores.clone(),
            period_ns: seen.timing.map(|t| t.period_ps / 1000),
            deadline_ns: seen.timing.map(|t| t.deadline_ps / 1000),
            jobs: figures.jobs,
            missed: figures.missed,
            miss_rate: figures.miss_rate(),
            response_p50_ns: responses.map(|r| r.p50_ns),
            response_p999_ns: responses.map(|r| r.p999_ns),
            response_worst_ns: responses.map(|r| r.worst_ns),
            worst_is_cut_off: responses.is_some_and(|r| r.worst_cut_off),
            execution_max_ns: figures.max_ps / 1000,
            preempted: seen.preempted,
            yielded: seen.yielded,
            migrated: seen.migrated,
            throttled_ns: throttled / 1000,
            held_ns: seen.held_ps / 1000,
        }
    });
    Report {
        length_ns: timeline.end_ps / 1000,
        lost_events: record.lost,
        unread_lines: record.unread,
        tasks: tasks.collect(),
    }
}

fn say(report: &Report) -> Result<()> {
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
