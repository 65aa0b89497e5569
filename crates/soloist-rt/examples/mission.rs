//! Repeats CAMC's Tables 7 to 9 and figures 15 and 16, and PALLOC's real-time
//! task beside an X server: `cargo run --release -p soloist-rt --example mission
//! [DIR]`; charts go to DIR.
//! `... --example mission variants`: the same with one thing changed at a time.
#![allow(clippy::print_stdout, reason = "an example prints")]

use soloist_lab::spec::ProgramKind;
use soloist_rt::mission::{estimate, find, run, Figure, Mission};
use soloist_rt::task::{Behaviour, TaskSet};
use soloist_rt::time::{Time, MS};
use soloist_rt::{gantt, policy::Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1);
    if dir.as_deref() == Some("variants") {
        return variants();
    }
    if let Some(dir) = &dir {
        std::fs::write(format!("{dir}/camc-figure-16-printed.svg"), printed()?)?;
    }
    for (name, _, _) in soloist_rt::mission::EXPERIMENTS {
        let (mission, set) = find(name)?;
        let timed = set.tasks.iter().filter(|t| t.release.is_some());
        let timed: Vec<String> = timed.map(|t| t.name.clone()).collect();
        let outcome = run((mission, set), &|_| {})?;
        println!("{}: {}", name, outcome.mission.title);
        for policy in &outcome.mission.policies {
            for task in &timed {
                let of = |figure| estimate(&outcome.rows, *policy, task, figure).value;
                println!(
                    "  {:16} {:10} mean {:7.1} max {:7.1} min {:7.1} std {:6.2} ms, {:5.1} % missed",
                    policy.name(),
                    task,
                    of(Figure::Mean),
                    of(Figure::Max),
                    of(Figure::Min),
                    of(Figure::Std),
                    of(Figure::Misses)
                );
            }
        }
        for v in &outcome.verdicts {
            let holds = v
                .holds
                .map_or("cannot be said", |h| if h { "holds" } else { "MISSES" });
            let half = v.ours.half.unwrap_or(f64::NAN);
            println!(
                "  {:55} {:?}: theirs {:.1}, ours {:.1} +- {half:.1}: {holds}",
                v.what, v.kind, v.theirs, v.ours.value
            );
        }
        for (policy, timeline) in &outcome.timelines {
            let Some(dir) = &dir else { continue };
            let figure = match policy {
                _ if *name != "camc-tables-7-9" => continue,
                Policy::DiffController => "camc-figure-15",
                Policy::SameBank => "camc-figure-16",
                _ => continue,
            };
            let title = format!(
                "Table 6's tasks under {} (CAMC, figure {})",
                policy.name(),
                &figure[12..]
            );
            let path = format!("{dir}/{figure}.svg");
            std::fs::write(&path, gantt::svg(timeline, &title, outcome.mission.scale))?;
            println!("  {path}");
        }
    }
    Ok(())
}

type Change = fn(&mut Mission, &mut TaskSet);

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

/// One seed of each change: times in ms, and what share of jobs missed.
fn variants() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(2);
    for (name, change) in CHANGES.iter().chain(&[("undivided", undivided as Change)]) {
        if only
            .as_ref()
            .is_some_and(|only| !name.contains(only.as_str()))
        {
            continue;
        }
        let (mut mission, mut set) = find("camc-tables-7-9")?;
        mission.seeds = 1;
        change(&mut mission, &mut set);
        let outcome = match run((mission, set), &|_| {}) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("{name}: {error}");
                continue;
            }
        };
        for task in ["synthetic", "is"] {
            print!("{name:30} {task:10}");
            for policy in &outcome.mission.policies {
                let of = |figure| estimate(&outcome.rows, *policy, task, figure).value;
                let (mean, misses) = (of(Figure::Mean), of(Figure::Misses));
                print!("  {} {mean:.1} ({misses:.0} %)", policy.name());
            }
            println!();
        }
    }
    Ok(())
}

/// One hyperperiod as long as it is, without the others.
fn undivided(mission: &mut Mission, _: &mut TaskSet) {
    (mission.scale, mission.warm, mission.hyperperiods) = (1, 0, 1);
    mission.policies = vec![Policy::Single];
}

/// Figure 16 by the execution times that the paper's text prints.
fn printed() -> Result<String, soloist_machine::FileError> {
    let text = "[[task]]\nname = \"synthetic\"\ncore = 0\nperiod = \"150 ms\"\nwcet = \"107 ms\"\n\
                [[task]]\nname = \"is\"\ncore = 0\nperiod = \"200 ms\"\nwcet = \"54 ms\"\n";
    let set = soloist_rt::file::parse(text, "figure 16")?;
    let timeline = soloist_rt::times::play(&set, 600 * MS, 0, &mut |task, job| match (task, job) {
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
