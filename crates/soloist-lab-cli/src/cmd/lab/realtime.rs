//! Experiments on task sets with deadlines in `soloist lab` (`experiments/rt`).

use anyhow::Result;
use soloist_lab::judgement::Estimate;
use soloist_lab::report::{estimate, figure, Other};
use soloist_lab::taskset::{Figure, TaskSetOutcome};
use soloist_trace::gantt;

use super::claims::print_claims;
use soloist_cli::table;
use soloist_cli::Ctx;

/// Of what each policy did to each task.
const HEAD: [&str; 7] = [
    "task",
    "policy",
    "mean",
    "max",
    "min",
    "std. dev.",
    "missed",
];

/// Prints it.
pub fn print(outcome: &TaskSetOutcome, ctx: &Ctx) -> Result<()> {
    let about = &outcome.spec;
    outln!("{}: {} ({})", about.id, about.title, about.source)?;
    outln!("{}: {}", outcome.machine, outcome.command())?;
    let mut shown = table(HEAD.map(str::to_uppercase).each_ref().map(String::as_str));
    for row in figures(outcome).iter().skip(1) {
        shown.add_row(row);
    }
    outln!("{shown}\n")?;
    print_claims(&outcome.verdicts, ctx)?;
    outln!()?;
    Ok(())
}

/// Its part of the page: what the tasks are, what came out, and when they ran.
pub fn section(outcome: &TaskSetOutcome) -> Other<'_> {
    let about = &outcome.spec;
    let charts = outcome.timelines.iter().map(|(policy, timeline)| {
        let title = format!("Under {}, one hyperperiod", policy.name());
        gantt::svg(timeline, &title, about.scale)
    });
    Other {
        judged: outcome.into(),
        title: &about.title,
        source: &about.source,
        machine: &outcome.machine,
        command: outcome.command(),
        tables: vec![tasks(outcome), figures(outcome)],
        pictures: charts.collect(),
    }
}

/// The tasks with deadlines.
fn tasks(outcome: &TaskSetOutcome) -> Vec<Vec<String>> {
    let head = ["task", "period", "alone", "utilisation"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, period, alone) in &outcome.tasks {
        rows.push(vec![
            name.clone(),
            figure(Some(*period), "ms"),
            figure(Some(*alone), "ms"),
            figure(Some(alone / period), ""),
        ]);
    }
    rows
}

/// What each policy did to each task.
fn figures(outcome: &TaskSetOutcome) -> Vec<Vec<String>> {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for (task, ..) in &outcome.tasks {
        for policy in &outcome.spec.policies {
            let figures = Figure::ALL.map(|f| {
                let value: Option<Estimate> = outcome.figure(*policy, task, f);
                estimate(value, f.unit())
            });
            let mut row = vec![task.clone(), policy.name().to_owned()];
            row.extend(figures);
            rows.push(row);
        }
    }
    rows
}
