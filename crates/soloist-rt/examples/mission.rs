//! Repeats CAMC's Tables 7 to 9 and figures 15 and 16:
//! `cargo run --release -p soloist-rt --example mission [DIR]`; charts go to DIR.
#![allow(clippy::print_stdout, reason = "an example prints")]

use soloist_rt::mission::{estimate, find, run, Figure};
use soloist_rt::time::MS;
use soloist_rt::{gantt, policy::Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1);
    if let Some(dir) = &dir {
        std::fs::write(format!("{dir}/camc-figure-16-printed.svg"), printed()?)?;
    }
    for (name, _, _) in soloist_rt::mission::EXPERIMENTS {
        let outcome = run(find(name)?, &|_| {})?;
        println!("{}: {}", name, outcome.mission.title);
        for policy in &outcome.mission.policies {
            for task in ["synthetic", "is"] {
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
