//! A timeline as Chrome's trace events, JSON, which Perfetto and chrome://tracing
//! open: a track for each task, with its executions, releases and misses, and one
//! for its throttled time, since what is in one track must not overlap.

use serde_json::{json, Value};

use crate::timeline::{Job, Timeline};

/// The whole file.
#[must_use]
pub fn json(timeline: &Timeline) -> Value {
    let mut events = Vec::new();
    let name = |track, name: &str| event(track, "M", "thread_name", None, json!({"name": name}));
    for (task, row) in timeline.rows.iter().enumerate() {
        events.push(name(2 * task, &row.name));
        if !row.throttled.is_empty() {
            events.push(name(2 * task + 1, &format!("{} throttled", row.name)));
        }
        for &(from, to) in &row.throttled {
            events.push(span(2 * task + 1, "throttled", from, to, json!({})));
        }
    }
    for job in &timeline.jobs {
        of_job(&mut events, job);
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

fn of_job(events: &mut Vec<Value>, job: &Job) {
    let about = json!({"job": job.number, "missed": job.missed()});
    for &(from, to) in &job.runs {
        events.push(span(2 * job.task, "runs", from, to, about.clone()));
    }
    let mut instant = |name, at| {
        let mut made = event(2 * job.task, "i", name, Some(at), about.clone());
        made["s"] = json!("t");
        events.push(made);
    };
    instant("release", job.release_ps);
    if let (Some(deadline), true) = (job.deadline_ps, job.missed()) {
        instant("missed deadline", deadline);
    }
}

fn span(track: usize, name: &str, from: u64, to: u64, about: Value) -> Value {
    let mut made = event(track, "X", name, Some(from), about);
    made["dur"] = json!(us(to - from));
    made
}

fn event(track: usize, phase: &str, name: &str, at: Option<u64>, about: Value) -> Value {
    let mut made = json!({"ph": phase, "name": name, "pid": 1, "tid": track + 1, "args": about});
    if let Some(at) = at {
        made["ts"] = json!(us(at));
    }
    made
}

/// The format's unit.
fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::timeline::{End, Row};

    /// Perfetto leaves out what overlaps in a track.
    fn no_track_overlaps(made: &Value) {
        let events = made["traceEvents"].as_array().unwrap();
        let mut ends = std::collections::BTreeMap::new();
        for one in events.iter().filter(|e| e["ph"] == "X") {
            let (at, length) = (one["ts"].as_f64().unwrap(), one["dur"].as_f64().unwrap());
            let end = ends.entry(one["tid"].as_u64().unwrap()).or_insert(0.0);
            assert!(at >= *end && length >= 0.0, "{one}");
            *end = at + length;
        }
        assert!(ends.len() > 1);
    }

    #[test]
    fn a_late_job_is_runs_a_release_and_a_missed_deadline() {
        let timeline = Timeline {
            rows: vec![Row {
                name: "control".to_owned(),
                // It was stopped before it began to run again.
                throttled: vec![(5_000_000, 7_000_000)],
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
        no_track_overlaps(&made);
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
                "M thread_name null null",
                "X throttled 5.0 2.0",
                "X runs 2.5 2.5",
                "X runs 6.0 3.0",
                "i release 1.0 null",
                "i missed deadline 8.0 null"
            ]
        );
    }
}
