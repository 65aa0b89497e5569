//! What stands beside `soloist lab run camc-tables-7-9 palloc-real-time`:
//!
//! `cargo run --release -p soloist-lab --example taskset DIR`: CAMC's figures 15
//! and 16 on the model, and figure 16 by the times that its text prints.
//! `... --example taskset variants [NAME]`: the experiments with one thing changed
//! at a time, one seed; PALLOC's beside a recorded desktop where `DIR` has one
//! (`... variants NAME DIR`, experiments/rt/desktop).
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::PathBuf;

use soloist_core::time::{Time, MS};
use soloist_lab::jobs::Options;
use soloist_lab::taskset::{find, run, Figure, TaskSetSpec};
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::ProgramKind;
use soloist_rt::model::policy::Policy;
use soloist_rt::tasks::{Behaviour, TaskSet};
use soloist_trace::gantt;

const ONE: Options = Options {
    seed: 1,
    seeds: Some(1),
    small: false,
    account: false,
    needed: false,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    if dir == "variants" {
        return variants();
    }
    std::fs::write(format!("{dir}/camc-figure-16-printed.svg"), printed()?)?;
    let (mut spec, set) = find("camc-tables-7-9")?;
    spec.policies = vec![Policy::DiffController, Policy::SameBank];
    let outcome = run(spec, set, ONE, &|| {})?;
    for ((policy, timeline), figure) in outcome.timelines.iter().zip(["15", "16"]) {
        let title = format!(
            "Table 6's tasks under {} (CAMC, figure {figure})",
            policy.name()
        );
        let svg = gantt::svg(timeline, &title, outcome.spec.scale);
        std::fs::write(format!("{dir}/camc-figure-{figure}.svg"), svg)?;
    }
    Ok(())
}

type Change = fn(&mut TaskSetSpec, &mut TaskSet);

fn others(set: &mut TaskSet, behaviour: Behaviour) {
    let others = set.tasks.iter_mut().filter(|t| t.release.is_none());
    others.for_each(|t| t.behaviour = behaviour);
}

fn program(kind: ProgramKind, ipc: f64, mpki: f64) -> Behaviour {
    Behaviour::Program {
        kind,
        ipc,
        mpki,
        writes: 0.3,
    }
}

/// Things of which the paper's text says nothing, each changed by itself. None is
/// chosen by what comes out.
const CHANGES: &[(&str, Change)] = &[
    ("as shipped", |_, _| {}),
    ("3 bank sets each", |m, _| m.bank_sets = Some((3, 3))),
    ("6 for tasks with deadlines", |m, _| {
        m.bank_sets = Some((6, 1))
    }),
    ("others: streamcluster", |_, s| {
        others(s, program(ProgramKind::Streamcluster, 0.0, 0.0));
    }),
    ("others: ipc 0.9, mpki 10", |_, s| {
        others(s, program(ProgramKind::Program, 0.9, 10.0));
    }),
    ("the same, 6 bank sets", |m, s| {
        m.bank_sets = Some((6, 1));
        others(s, program(ProgramKind::Program, 0.9, 10.0));
    }),
    ("synthetic: ipc 0.9, mpki 10", |_, s| {
        s.tasks[0].behaviour = program(ProgramKind::Program, 0.9, 10.0);
    }),
    ("alone as long as Table 6's C", |_, s| {
        // 90 and 60 ms: by Table 7 the first of them is same_bank's.
        (s.tasks[0].wcet, s.tasks[1].wcet) = (Time(90 * MS), Time(60 * MS));
    }),
    ("others on cores 4 to 6", |_, s| {
        let others = s.tasks.iter_mut().filter(|t| t.release.is_none());
        others.for_each(|t| t.core = t.core.map(|core| core + 3));
    }),
    ("deadlines: ipc 0.9, mpki 10", |_, s| {
        for task in s.tasks.iter_mut().filter(|t| t.release.is_some()) {
            task.behaviour = program(ProgramKind::Program, 0.9, 10.0);
        }
    }),
];

/// The same of PALLOC's.
const PALLOC: &[(&str, Change)] = &[
    ("as shipped", |_, _| {}),
    ("nobody beside", |m, s| {
        m.policies.retain(|p| *p != Policy::Single);
        s.tasks.truncate(1);
    }),
    ("deadline 20 ms", |_, s| deadline(s, 20)),
    ("deadline 20 ms, nobody beside", |m, s| {
        m.policies.retain(|p| *p != Policy::Single);
        s.tasks.truncate(1);
        deadline(s, 20);
    }),
    ("deadline 20 ms, program of ipc 0.9, mpki 10", |_, s| {
        deadline(s, 20);
        s.tasks[0].behaviour = program(ProgramKind::Program, 0.9, 10.0);
    }),
    (DESKTOP, |_, s| desktop(s)),
    ("desktop as recorded, deadline 20 ms", |_, s| {
        desktop(s);
        deadline(s, 20);
    }),
    ("desktop as recorded, deadline 20 ms, program", |_, s| {
        desktop(s);
        deadline(s, 20);
        s.tasks[0].behaviour = program(ProgramKind::Program, 0.9, 10.0);
    }),
];

const DESKTOP: &str = "desktop as recorded";

/// Where the recording of a desktop is, if it is named (experiments/rt/desktop).
fn recording() -> Option<PathBuf> {
    std::env::args().nth(3).map(PathBuf::from)
}

/// The X server is a recorded one.
fn desktop(set: &mut TaskSet) {
    let Some(dir) = recording() else { return };
    let found = Recorded::load(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let server = &mut set.tasks[1];
    server.behaviour = program(ProgramKind::Recorded, 0.0, 0.0);
    server.bytes = found.bytes();
    server.recorded = Some(found);
}

fn deadline(set: &mut TaskSet, ms: u64) {
    if let Some(release) = &mut set.tasks[0].release {
        release.deadline = Time(ms * MS);
    }
}

/// Times in ms, and what share of jobs missed.
fn variants() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(2).unwrap_or_default();
    let undivided = [("undivided", undivided as Change)];
    let camc = CHANGES.iter().chain(&undivided);
    let camc = camc.map(|change| ("camc-tables-7-9", change));
    let palloc = PALLOC.iter().map(|change| ("palloc-real-time", change));
    for (id, (name, change)) in camc.chain(palloc) {
        let lacks = name.starts_with(DESKTOP) && recording().is_none();
        if lacks || !format!("{id}: {name}").contains(&only) {
            continue;
        }
        let (mut spec, mut set) = find(id)?;
        change(&mut spec, &mut set);
        let outcome = match run(spec, set, ONE, &|| {}) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("{id}: {name}: {error}");
                continue;
            }
        };
        for (task, ..) in &outcome.tasks {
            print!("{id}: {name:30} {task:10}");
            for policy in &outcome.spec.policies {
                let shown = |figure| {
                    let value = outcome.figure(*policy, task, figure);
                    value.map_or("-".to_owned(), |e| format!("{:.1}", e.value))
                };
                let (mean, misses) = (shown(Figure::Mean), shown(Figure::Misses));
                print!("  {} {mean} ({misses} %)", policy.name());
            }
            println!();
        }
    }
    Ok(())
}

/// One hyperperiod as long as it is, without the others.
fn undivided(spec: &mut TaskSetSpec, _: &mut TaskSet) {
    (spec.scale, spec.warm, spec.hyperperiods) = (1, 0, 1);
    spec.policies = vec![Policy::Single];
}

/// Figure 16 by the execution times that the paper's text prints.
fn printed() -> Result<String, soloist_machine::FileError> {
    let text = "[[task]]\nname = \"synthetic\"\ncore = 0\nperiod = \"150 ms\"\nwcet = \"107 ms\"\n\
                [[task]]\nname = \"is\"\ncore = 0\nperiod = \"200 ms\"\nwcet = \"54 ms\"\n";
    let set = soloist_rt::tasks::file::parse(text, "figure 16")?;
    let timeline =
        soloist_rt::schedule::times::play(&set, 600 * MS, 0, &mut |task, job| match (task, job) {
            (0, 2) => 90 * MS,
            (0, _) => 107 * MS,
            _ => 87 * MS,
        });
    Ok(gantt::svg(
        &timeline,
        "CAMC, figure 16, by the times that its text prints",
        1,
    ))
}
