//! A timeline as Chrome's trace events, JSON, which Perfetto and chrome://tracing
//! open: a track for each task, with its executions, releases and misses.

use serde_json::{json, Value};

use crate::timeline::{Job, Timeline};

/// The whole file.
#[must_use]
pub fn json(timeline: &Timeline) -> Value {
    let mut events = Vec::new();
    for (task, row) in timeline.rows.iter().enumerate() {
        events.push(event(
            task,
            "M",
            "thread_name",
            None,
            json!({"name": row.name}),
        ));
        for &(from, to) in &row.throttled {
            events.push(span(task, "throttled", (from, to), json!({})));
        }
    }
    for job in &timeline.jobs {
        of_job(&mut events, job);
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

fn of_job(events: &mut Vec<Value>, job: &Job) {
    let about = json!({"job": job.number, "missed": job.missed()});
    for &run in &job.runs {
        events.push(span(job.task, "runs", run, about.clone()));
    }
    let mut instant = |name, at| {
        let mut one = event(job.task, "i", name, Some(at), about.clone());
        one["s"] = json!("t");
        events.push(one);
    };
    instant("release", job.release_ps);
    if let (Some(deadline), true) = (job.deadline_ps, job.missed()) {
        instant("missed deadline", deadline);
    }
}

fn span(task: usize, name: &str, (from, to): (u64, u64), about: Value) -> Value {
    let mut one = event(task, "X", name, Some(from), about);
    one["dur"] = json!(us(to - from));
    one
}

fn event(task: usize, phase: &str, name: &str, at: Option<u64>, about: Value) -> Value {
    let mut one = json!({"ph": phase, "name": name, "pid": 1, "tid": task + 1, "args": about});
    if let Some(at) = at {
        one["ts"] = json!(us(at));
    }
    one
}

/// The format's unit.
fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{End, Row};

    #[test]
    fn a_late_job_is_runs_a_release_and_a_missed_deadline() {
        let timeline = Timeline {
            rows: vec![Row {
                name: "control".to_owned(),
                throttled: vec![(5_000_000, 6_000_000)],
                ..Row::default()
            }],
            jobs: vec![Job {
                task: 0,
                number: 3,
                release_ps: 1_000_000,
                deadline_ps: Some(8_000_000),
                runs: vec![(2_500_000, 5_000_000), (6_000_000, 9_000_000)],
                end: End::Completed(9_000_000),
            }],
            end_ps: 10_000_000,
        };
        let made = json(&timeline);
        let seen: Vec<String> = made["traceEvents"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| format!("{} {} {} {}", e["ph"], e["name"], e["ts"], e["dur"]).replace('"', ""))
            .collect();
        assert_eq!(
            seen,
            [
                "M thread_name null null",
                "X throttled 5.0 1.0",
                "X runs 2.5 2.5",
                "X runs 6.0 3.0",
                "i release 1.0 null",
                "i missed deadline 8.0 null"
            ]
        );
    }
}
