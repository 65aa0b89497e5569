//! What share of random sets can be proved under no isolation, MemGuard, PALLOC,
//! CAMC and `soloist plan`, as utilisation grows.
//! `cargo run --release -p soloist-rt --example share DIR [SETS]` writes a table and
//! a picture for each machine, and a table for the Raspberry Pi with a cap on turns of the bus.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints"
)]

mod isolation;
mod limits;
mod picture;
mod random;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::isolation::{draw, proved_under, Draw, Isolation};
use rayon::prelude::*;
use soloist_memory::Platform;
use soloist_rt::analysis::ProfiledSet;

const MACHINES: [&str; 2] = ["opteron-6128", "raspberry-pi-4"];
/// What no document tells of the Raspberry Pi's controller.
const CAP: &str = "[controller]\ndirection_cap = 16";
/// Of utilisation; the last has half of all cores busy.
const STEPS: u64 = 20;
/// Those of which limits are looked into.
const LIMITED: [u64; 4] = [1, 4, 6, 10];

/// One utilisation, by isolation.
pub struct Point {
    /// Processor time of all tasks with deadlines, cores.
    pub utilisation: f64,
    /// Share of sets that are proved.
    pub proved: Vec<f64>,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| ".".to_owned());
    let sets: u64 = args.next().map_or(500, |n| n.parse().unwrap());
    for machine in MACHINES {
        let platform = Platform::find(machine).unwrap();
        let file = |end: &str| Path::new(&dir).join(format!("share-{machine}.{end}"));
        let points = points(&platform, sets);
        let text = csv(&points);
        println!("{machine}: {sets} sets each\n{text}");
        fs::write(file("csv"), text).unwrap();
        let title = format!("Random sets with all deadlines proved, {machine}");
        fs::write(file("svg"), picture::svg(&points, &title)).unwrap();
        let alike = LIMITED.map(|step| (drawn(&platform, step), step << 32));
        let text = limits::csv(&platform, &alike, sets);
        println!("{machine}, banks shared, cores without deadlines limited\n{text}");
        fs::write(file("limits.csv"), text).unwrap();
    }
    let capped = Platform::find_changed("raspberry-pi-4", &CAP.parse().unwrap()).unwrap();
    let text = csv(&points(&capped, sets));
    println!("raspberry-pi-4 with a cap of 16: {sets} sets each\n{text}");
    fs::write(
        Path::new(&dir).join("share-raspberry-pi-4.cap-16.csv"),
        text,
    )
    .unwrap();
}

fn points(platform: &Platform, sets: u64) -> Vec<Point> {
    (1..=STEPS).map(|s| point(platform, s, sets)).collect()
}

fn drawn(platform: &Platform, step: u64) -> Draw {
    let cores = platform.node_of_core.len();
    Draw {
        utilisation: cores as f64 / 2.0 * step as f64 / STEPS as f64,
        timed: cores / 2 + 1,
        others: cores / 4,
    }
}

/// Share of `sets`, drawn for a machine from a seed on, that are proved on
/// `platform`, by isolation.
fn shares(
    machine: &Platform,
    how: Draw,
    seed: u64,
    sets: u64,
    platform: &Platform,
    isolations: &[Isolation],
) -> Vec<f64> {
    let held: Vec<Vec<bool>> = (0..sets)
        .into_par_iter()
        .map(|n| {
            let (set, profiles) = draw(machine, how, seed | n);
            let tasks = ProfiledSet::new(&set, &profiles);
            proved_under(platform, tasks, isolations)
        })
        .collect();
    let share = |i: usize| held.iter().filter(|h| h[i]).count() as f64 / sets.max(1) as f64;
    (0..isolations.len()).map(share).collect()
}

/// The rest of a line of a table.
fn push_shares(text: &mut String, shares: &[f64]) {
    for share in shares {
        let _ = write!(text, ",{share:.3}");
    }
    text.push('\n');
}

fn point(platform: &Platform, step: u64, sets: u64) -> Point {
    let how = drawn(platform, step);
    Point {
        utilisation: how.utilisation,
        proved: shares(platform, how, step << 32, sets, platform, &Isolation::ALL),
    }
}

fn csv(points: &[Point]) -> String {
    let names = Isolation::ALL.map(Isolation::name);
    let mut text = format!("utilisation,{}\n", names.join(","));
    for p in points {
        let _ = write!(text, "{:.2}", p.utilisation);
        push_shares(&mut text, &p.proved);
    }
    text
}
