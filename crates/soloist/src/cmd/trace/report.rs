//! What a trace says in the end.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_rt::time::Time;
use soloist_trace::measured::{Measured, Task};
use soloist_trace::observer::{cut, Record};

use super::who::{Asked, Who};
use crate::cmd::table;
use crate::Ctx;

/// Of a chart, in the longest period.
const PERIODS: u64 = 8;

/// What is told with `--json`.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    measured: Measured,
    /// Who was asked for and is not known to have kept a deadline: no job was seen.
    unseen: Vec<String>,
}

/// Prints it; the status to end with.
pub fn print(record: &Record, skip_ps: u64, asked: &Asked, ctx: &Ctx) -> Result<ExitCode> {
    let report = Measured::of(record, skip_ps);
    let (unseen, enough) = unseen(&report, asked);
    let missed = report.tasks.iter().any(|t| t.missed > 0);
    let partial = report.lost_events + report.unread_lines > 0;
    if ctx.json {
        let measured = report;
        ctx.print_json(&Told { measured, unseen })?;
    } else {
        say(&report)?;
        tell_unseen(&report, &unseen, enough);
    }
    Ok(ExitCode::from(u8::from(missed || partial || !enough)))
}

/// Who was asked for and not seen; is what was seen enough to speak of deadlines? Who
/// has none can't miss one.
fn unseen(report: &Measured, asked: &Asked) -> (Vec<String>, bool) {
    let shown = |task: &Task, timed: bool| task.jobs > 0 || !timed;
    let each = match asked {
        Asked::Somebody(timed) => {
            return (Vec::new(), report.tasks.iter().any(|t| shown(t, *timed)));
        }
        Asked::Each(each) => each,
    };
    let is = |who: &Who, task: &Task| match who {
        Who::Id(id) => task.pid == *id,
        Who::Name(name) => {
            let kept = cut(name);
            task.task == kept || task.task == format!("{kept}-{}", task.pid)
        }
    };
    let not_seen = |(who, timed): &&(Who, bool)| {
        let mut tasks = report.tasks.iter();
        !tasks.any(|task| is(who, task) && shown(task, *timed))
    };
    let (mut names, mut timed) = (Vec::new(), false);
    for (who, period) in each.iter().filter(not_seen) {
        names.push(match who {
            Who::Name(name) => name.clone(),
            Who::Id(id) => id.to_string(),
        });
        timed |= period;
    }
    let enough = !timed && names.len() < each.len();
    (names, enough)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, pid: u32, jobs: u64) -> Task {
        Task {
            task: name.to_owned(),
            pid,
            cores: vec![0],
            period_ns: None,
            deadline_ns: None,
            jobs,
            missed: 0,
            miss_rate: 0.0,
            response_p50_ns: None,
            response_p999_ns: None,
            response_worst_ns: None,
            worst_is_cut_off: false,
            execution_max_ns: 0,
            preempted: 0,
            yielded: 0,
            migrated: 0,
            throttled_ns: 0,
            held_ns: 0,
        }
    }

    fn seen(tasks: Vec<Task>, asked: &Asked) -> (Vec<String>, bool) {
        let report = Measured {
            length_ns: 1,
            lost_events: 0,
            unread_lines: 0,
            tasks,
        };
        unseen(&report, asked)
    }

    #[test]
    fn nothing_is_known_of_whom_nobody_saw() {
        let name = |name: &str, timed| (Who::Name(name.to_owned()), timed);
        let pair = Asked::Each(vec![name("control", true), name("logger", false)]);
        let said = |tasks| seen(tasks, &pair);
        assert_eq!(
            said(vec![]),
            (vec!["control".to_owned(), "logger".to_owned()], false)
        );
        // It ran, and no job of it is known from begin to end.
        assert!(!said(vec![task("control", 1, 0), task("logger", 2, 0)]).1);
        assert_eq!(
            said(vec![task("control", 1, 3)]),
            (vec!["logger".to_owned()], true)
        );
        assert!(said(vec![task("control-1", 1, 3), task("control-9", 9, 3)]).1);
        assert!(!said(vec![task("control-9", 1, 3)]).1);
        let long = Asked::Each(vec![name("a-name-of-twenty-two", true)]);
        assert!(seen(vec![task("a-name-of-twent", 1, 1)], &long).1);
        let ids = Asked::Each(vec![(Who::Id(7), false), (Who::Id(8), true)]);
        assert_eq!(
            seen(vec![task("x", 7, 0)], &ids),
            (vec!["8".to_owned()], false)
        );
        assert!(seen(vec![task("x", 7, 0), task("x", 8, 1)], &ids).1);
        assert!(!seen(vec![], &Asked::Somebody(false)).1);
        assert!(!seen(vec![task("sh", 1, 0)], &Asked::Somebody(true)).1);
        assert!(seen(vec![task("sh", 1, 0)], &Asked::Somebody(false)).1);
        // Who has no deadline is enough where nobody has.
        let free = Asked::Each(vec![name("a", false), name("b", false)]);
        assert!(seen(vec![task("a", 1, 0)], &free).1);
        assert!(!seen(vec![], &free).1);
    }
}
