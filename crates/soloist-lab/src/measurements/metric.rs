//! The metrics that claims and plots may name.

use soloist_play::guard::Regulated;

use super::TaskResult;

/// Bytes of a line of every machine that is modelled.
const LINE: f64 = 64.0;

/// The metrics that claims and plots may name, and their units.
pub const METRICS: [(&str, &str); 13] = [
    ("time", "ms"),
    ("latency", "ns per access"),
    ("p99", "ns"),
    ("idle", "ms"),
    ("bandwidth", "MB/s"),
    ("ipns", "instructions per ns"),
    ("spilled", "pages"),
    ("remote", "per cent of pages"),
    ("reads", "MB/s"),
    ("writes", "MB/s"),
    ("underruns", "per cent of periods"),
    ("stopped", "per cent of time"),
    ("unevenness", ""),
];

/// What may follow a metric's name, see [`super::values()`].
pub const SUFFIXES: [&str; 7] = [
    "_min",
    "_max",
    "_std",
    "_runstd",
    "_runmin",
    "_runmax",
    "_runspread",
];

/// The value of `metric` for one task; `None`: there is no such metric.
pub fn metric(task: &TaskResult, metric: &str) -> Option<f64> {
    let time = task.time_ns.max(f64::MIN_POSITIVE);
    if let Some(value) = task.regulated.as_ref().and_then(|r| counted(r, metric)) {
        return Some(value);
    }
    Some(match metric {
        "time" => task.time_ns / 1e6,
        "latency" => task.time_ns / task.accesses.max(1) as f64,
        "p99" => task.p99_ns,
        "idle" => task.idle_ns / 1e6,
        "bandwidth" => task.memory_bytes as f64 / task.whole_ns.max(f64::MIN_POSITIVE) * 1e3,
        "ipns" => task.instructions as f64 / time,
        "spilled" => task.spilled as f64,
        "remote" => task.remote,
        _ => return None,
    })
}

/// Metrics of what was counted since all tasks had begun; no number where it was regulated and no
/// period was whole.
fn counted(r: &Regulated, metric: &str) -> Option<f64> {
    let time = match r.time_ns > 0.0 {
        true => r.time_ns,
        false => f64::NAN,
    };
    let rate = |lines: u64| lines as f64 * LINE / time * 1e3;
    Some(match metric {
        "ipns" => r.instructions as f64 / time,
        "reads" => rate(r.reads),
        "writes" => rate(r.writes),
        "underruns" if time.is_nan() => time,
        "underruns" => 100.0 * r.underruns as f64 / r.periods.max(1) as f64,
        "stopped" => 100.0 * r.stopped_ns / time,
        "unevenness" => r.unevenness.unwrap_or(f64::NAN),
        _ => return None,
    })
}
