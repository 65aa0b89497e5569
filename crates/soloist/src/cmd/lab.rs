//! `soloist lab`: experiments over the memory model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use soloist_lab::known;
use soloist_lab::outcome::Outcome;
use soloist_lab::report::{figure, html};
use soloist_lab::run::{run as run_scenario, Options};
use soloist_lab::scenario::{Scenario, ScenarioError};

use super::table;
use crate::{Ctx, Misuse};

/// Try tasks and policies on a modelled machine; repeat the papers' tables.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Name the experiments that are built in.
    List,
    /// Run experiments or scenario files and judge their claims.
    Run(Run),
    /// Write one HTML page from what `run --out` left.
    Report(Report),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Experiments by name, or paths of scenario files (docs/lab.md).
    #[arg(required_unless_present = "all", value_name = "NAME|FILE")]
    names: Vec<String>,

    /// All experiments that are built in.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// The small version: less work, fewer repeats.
    #[arg(long)]
    small: bool,

    /// Seed of the first repeat; the same seed gives the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Also write each outcome to DIR/NAME.json, for `lab report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Report {
    /// Folder that `lab run --out` wrote.
    dir: PathBuf,

    /// The page.
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args.command {
        Command::List => list(ctx),
        Command::Run(run) => run.run(ctx),
        Command::Report(report) => report.run(ctx),
    }
}

#[derive(Serialize)]
struct Listed {
    name: String,
    title: String,
    source: String,
    machine: String,
}

fn list(ctx: &Ctx) -> Result<ExitCode> {
    let mut listed = Vec::new();
    for (name, _) in known::EXPERIMENTS {
        let about = known::find(name)?.experiment;
        listed.push(Listed {
            name: (*name).to_owned(),
            title: about.title,
            source: about.source,
            machine: about.machine,
        });
    }
    if ctx.json {
        ctx.print_json(&listed)?;
    } else {
        let mut table = table(["NAME", "SOURCE", "TITLE"]);
        for l in &listed {
            table.add_row([&l.name, &l.source, &l.title]);
        }
        println!("{table}");
    }
    Ok(ExitCode::SUCCESS)
}

impl Run {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let names: Vec<&str> = if self.all {
            known::EXPERIMENTS.iter().map(|(name, _)| *name).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        };
        let scenarios = names
            .iter()
            .map(|name| known::find(name).map_err(misuse))
            .collect::<Result<Vec<Scenario>>>()?;
        if let Some(dir) = &self.out {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        let mut outcomes = Vec::new();
        for (name, scenario) in names.iter().zip(scenarios) {
            let began = Instant::now();
            let outcome = self.one(name, scenario, ctx)?;
            if let Some(dir) = &self.out {
                write_outcome(dir, &outcome)?;
            }
            if !ctx.json {
                print(&outcome, began.elapsed().as_secs_f64(), ctx);
            }
            outcomes.push(outcome);
        }
        if ctx.json {
            ctx.print_json(&outcomes)?;
        } else {
            sum_up(&outcomes);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn one(&self, name: &str, scenario: Scenario, ctx: &Ctx) -> Result<Outcome> {
        let bar = progress(ctx, &scenario.experiment.id)?;
        let options = Options {
            seed: self.seed,
            small: self.small,
        };
        let done = |of: usize| {
            bar.set_length(of as u64);
            bar.inc(1);
        };
        let cases = run_scenario(&scenario, options, &done)
            .map_err(|e| misuse(known::locate(name, &scenario, &e)))?;
        bar.finish_and_clear();
        Ok(Outcome::new(scenario, self.seed, self.small, cases))
    }
}

/// A scenario that can't be: what the user wrote is wrong.
fn misuse(e: ScenarioError) -> anyhow::Error {
    Misuse(e.to_string()).into()
}

fn progress(ctx: &Ctx, id: &str) -> Result<ProgressBar> {
    if !ctx.progress {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} runs, {elapsed}")?;
    Ok(ProgressBar::new(0)
        .with_style(style)
        .with_message(id.to_owned()))
}

fn write_outcome(dir: &Path, outcome: &Outcome) -> Result<()> {
    let path = dir.join(format!("{}.json", outcome.scenario.experiment.id));
    let mut text = serde_json::to_string_pretty(outcome)?;
    text.push('\n');
    fs::write(&path, text).with_context(|| path.display().to_string())
}

fn print(outcome: &Outcome, seconds: f64, ctx: &Ctx) {
    let about = &outcome.scenario.experiment;
    let source = match about.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    };
    println!("{}: {}{source}", about.id, about.title);
    println!("{}, {seconds:.1} s: {}", about.machine, outcome.command());
    if outcome.verdicts.is_empty() {
        print_values(outcome);
    } else {
        print_claims(outcome, ctx);
    }
    if !about.note.is_empty() {
        println!("  {}", about.note);
    }
    println!();
}

fn print_claims(outcome: &Outcome, ctx: &Ctx) {
    let mut table = table(["CLAIM", "THEIRS", "OURS", "RATIO", ""]);
    for v in &outcome.verdicts {
        let word = match (v.holds, &v.error) {
            (Some(true), _) => ctx.paint(32, "holds"),
            (Some(false), _) => ctx.paint(31, "misses"),
            (None, Some(error)) => ctx.paint(31, &format!("not judged: {error}")),
            (None, None) => "nothing to compare with".to_owned(),
        };
        table.add_row([
            v.what.clone(),
            figure(v.theirs, &v.unit),
            figure(v.ours, &v.unit),
            figure(v.ratio, ""),
            word,
        ]);
    }
    println!("{table}");
}

/// A scenario without claims: what its tasks took.
fn print_values(outcome: &Outcome) {
    let mut table = table([
        "CASE",
        "TASK",
        "TIME",
        "LEAST",
        "GREATEST",
        "NS PER ACCESS",
        "REMOTE",
    ]);
    for case in &outcome.cases {
        let mut names: Vec<&str> = Vec::new();
        for task in &outcome.scenario.tasks {
            if !names.contains(&task.name.as_str()) {
                names.push(&task.name);
            }
        }
        for name in names {
            let spread = |metric| case.spread(name, metric);
            let Some(time) = spread("time") else { continue };
            table.add_row([
                case.case.clone(),
                name.to_owned(),
                figure(Some(time.mean), "ms"),
                figure(Some(time.min), "ms"),
                figure(Some(time.max), "ms"),
                figure(spread("latency").map(|s| s.mean), ""),
                figure(spread("remote").map(|s| s.mean), "%"),
            ]);
        }
    }
    println!("{table}");
}

fn sum_up(outcomes: &[Outcome]) {
    let claims = || outcomes.iter().flat_map(|o| &o.verdicts);
    if outcomes.len() > 1 && claims().count() > 0 {
        let holds = claims().filter(|v| v.holds == Some(true)).count();
        println!(
            "{} experiments: {holds} of {} claims hold",
            outcomes.len(),
            claims().count()
        );
    }
}

impl Report {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let mut outcomes = self.read()?;
        if outcomes.is_empty() {
            let what = format!(
                "{}: no outcomes; `soloist lab run --all --out {}` writes them",
                self.dir.display(),
                self.dir.display()
            );
            return Err(Misuse(what).into());
        }
        let rank = |o: &Outcome| {
            let id = o.scenario.experiment.id.as_str();
            known::EXPERIMENTS.iter().position(|(name, _)| *name == id)
        };
        outcomes.sort_by_key(|o| rank(o).unwrap_or(usize::MAX));
        let page = html(&outcomes)?;
        fs::write(&self.out, page).with_context(|| self.out.display().to_string())?;
        if ctx.json {
            ctx.print_json(&serde_json::json!({ "report": self.out }))?;
        } else {
            println!("{}: {} experiments", self.out.display(), outcomes.len());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<Vec<Outcome>> {
        let dir = || self.dir.display().to_string();
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.dir).with_context(dir)? {
            let path = entry.with_context(dir)?.path();
            if path.extension().is_some_and(|e| e == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let parse = |path: PathBuf| {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            serde_json::from_str(&text)
                .with_context(|| format!("{}: not an outcome of `lab run`", path.display()))
        };
        paths.into_iter().map(parse).collect()
    }
}
