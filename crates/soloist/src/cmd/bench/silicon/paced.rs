//! Prints what co-runners cost against what they get.

use anyhow::Result;
use soloist_bench::paced::{Paced, Point};
use soloist_bench::statistics::Interval;
use soloist_cli::table;

/// A table of all paces of one curve.
pub(super) fn print(paced: &Paced) -> Result<()> {
    outln!(
        "{} banks, {}, paced: time of an access over alone (99 %), and MB/s of all co-runners:\n",
        paced.banks,
        paced.attack.neighbours(paced.neighbours)
    )?;
    let mut table = table(["PAUSE us", "SHARED", "MB/s", "PRIVATE", "MB/s"]);
    for point in &paced.points {
        table.add_row(row(point));
    }
    outln!("{table}\n")
}

fn row(point: &Point) -> [String; 5] {
    let over = |at: &Interval| format!("{:.2} ({:.2} to {:.2})", at.median, at.low, at.high);
    let rate = |bytes: f64| format!("{:.0}", bytes / 1e6);
    [
        format!("{}", f64::from(point.pause_ns) / 1e3),
        over(&point.shared),
        rate(point.shared_bytes_per_second),
        over(&point.private),
        rate(point.private_bytes_per_second),
    ]
}
