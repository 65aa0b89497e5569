//! `soloist lab`: experiments over the memory model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use soloist_lab::experiment::{self, folder, Experiment, ExperimentOutcome, Listed};
use soloist_lab::jobs::Options;
use soloist_lab::judgement::compare::Comparison;
use soloist_lab::judgement::{Judged, ScenarioOutcome};
use soloist_lab::known;
use soloist_lab::report::{estimate, figure, html};
use soloist_lab::taskset::ExperimentError;
use soloist_machine::FileError;
use soloist_play::policy;

mod claims;
mod realtime;
mod run;
mod sensitivity;

use run::Run;
use sensitivity::Sensitivity;
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::{out, Ctx, Misuse};

/// Run experiments on a modelled machine, such as the papers' tables.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// List the built-in experiments, or the policies.
    #[command(after_help = examples!["soloist lab list", "soloist lab list --policies"])]
    List(List),
    /// Check scenario files without running them.
    #[command(after_help = examples!["soloist lab check my-scenario.toml"])]
    Check(Check),
    /// Run experiments or scenario files, and judge their claims.
    #[command(after_help = examples![
        status "0 done, 1 failed, or with --strict a claim that counts does not hold; 2 misused";
        "soloist lab run --all --small --out results",
    ])]
    Run(Run),
    /// Compare the claims of two runs.
    #[command(after_help = examples!["soloist lab compare results-before results-after"])]
    Compare(Compare),
    /// Vary undocumented parameters across their ranges.
    #[command(after_help = examples![
        "soloist lab sensitivity camc-table-4 --small --key core.prefetch",
    ])]
    Sensitivity(Sensitivity),
    /// Write an HTML page of the results of `lab run --out`.
    #[command(after_help = examples!["soloist lab report results --out report.html"])]
    Report(Report),
}

#[derive(Debug, clap::Args)]
pub struct List {
    /// List the policies of scenarios, `sim replay` and `vm record` instead.
    #[arg(long)]
    policies: bool,
}

impl List {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        if self.policies {
            list_policies(ctx)
        } else {
            list_experiments(ctx)
        }
    }
}

/// Of experiments that are built in.
fn experiment_names() -> Vec<String> {
    let known = known::EXPERIMENTS.iter();
    known.map(|(name, _)| (*name).to_owned()).collect()
}

/// Files to check.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Scenario files, or experiments by name.
    #[arg(required = true, value_name = "FILE", add = complete::names_or_files(experiment_names))]
    files: Vec<String>,
}

/// Two folders to compare.
#[derive(Debug, clap::Args)]
pub struct Compare {
    /// Directory that `lab run --out` wrote.
    before: PathBuf,

    /// Another such directory.
    after: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Report {
    /// Directory that `lab run --out` wrote.
    dir: PathBuf,

    /// The page to write.
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    out: PathBuf,
}

/// How much is run.
#[derive(Debug, clap::Args)]
struct Repeats {
    /// Run the small version: less work, fewer repeats.
    #[arg(long)]
    small: bool,

    /// Seed of the first repeat; the same seed gives the same figures.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,

    /// Number of seeds [default: the file's]; with one seed there are no intervals.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1000))]
    seeds: Option<u32>,
}

impl Repeats {
    fn options(&self, account: bool) -> Options {
        Options {
            seed: self.seed,
            seeds: self.seeds,
            small: self.small,
            account,
            needed: false,
        }
    }
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::List(list) => list.run(ctx),
        Args::Run(run) => run.run(ctx),
        Args::Check(check) => check.run(ctx),
        Args::Compare(compare) => compare.run(ctx),
        Args::Sensitivity(sensitivity) => sensitivity.run(ctx),
        Args::Report(report) => report.run(ctx),
    }
}

fn list_experiments(ctx: &Ctx) -> Result<ExitCode> {
    let all = experiment::names().map(Experiment::find);
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let listed: Vec<Listed> = all.iter().map(Experiment::listed).collect();
    if ctx.json {
        ctx.print_json(&listed)?;
    } else {
        let mut table = table(["NAME", "SOURCE", "TITLE"]);
        for l in &listed {
            table.add_row([l.name, l.source, l.title]);
        }
        outln!("{table}")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct ListedPolicy {
    name: &'static str,
    title: &'static str,
}

fn list_policies(ctx: &Ctx) -> Result<ExitCode> {
    let listed: Vec<ListedPolicy> = policy::all()
        .map(|policy| ListedPolicy {
            name: policy.name(),
            title: policy.title(),
        })
        .collect();
    if ctx.json {
        ctx.print_json(&listed)?;
    } else {
        let mut table = table(["NAME", "POLICY"]);
        for l in &listed {
            table.add_row([l.name, l.title]);
        }
        outln!("{table}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A scenario that can't be: what the user wrote is wrong.
fn misuse(e: FileError) -> anyhow::Error {
    Misuse(e.to_string()).into()
}

/// An experiment that can't run.
fn refused(e: ExperimentError) -> anyhow::Error {
    match e {
        ExperimentError::File(e) => misuse(e),
        other => other.into(),
    }
}

/// A bar over so many runs.
fn bar(ctx: &Ctx, runs: usize) -> Result<ProgressBar> {
    if !ctx.progress {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed}")?;
    Ok(ProgressBar::new(runs as u64).with_style(style))
}

impl Report {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        soloist_cli::check_files(&[("--out", Some(&self.out))])?;
        let outcomes = outcomes(&self.dir)?;
        let all = outcomes.len();
        let (mut scenarios, mut tasks) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome.judged_now() {
                ExperimentOutcome::Scenario(outcome) => scenarios.push(outcome),
                ExperimentOutcome::TaskSet(outcome) => tasks.push(outcome),
            }
        }
        let rank = |o: &ScenarioOutcome| {
            let id = o.scenario.experiment.id.as_str();
            known::EXPERIMENTS.iter().position(|(name, _)| *name == id)
        };
        scenarios.sort_by_key(|o| rank(o).unwrap_or(usize::MAX));
        let sections: Vec<_> = tasks.iter().map(realtime::section).collect();
        let page = html(&scenarios, &sections)?;
        out::write(&self.out, page)?;
        if ctx.json {
            ctx.print_json(&serde_json::json!({ "report": self.out }))?;
        } else {
            outln!("{}: {all} experiments", self.out.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the outcomes of a folder, which must have some.
fn outcomes(folder: &Path) -> Result<Vec<ExperimentOutcome>> {
    let outcomes = folder::read(folder)?;
    if outcomes.is_empty() {
        let name = folder.display();
        let what = format!("{name}: no outcomes; `soloist lab run --all --out {name}` writes them");
        return Err(Misuse(what).into());
    }
    Ok(outcomes)
}

fn judged(outcomes: &[ExperimentOutcome]) -> Vec<Judged<'_>> {
    outcomes.iter().map(ExperimentOutcome::judged).collect()
}

impl Check {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        #[derive(Serialize)]
        struct Checked<'a> {
            file: &'a str,
            cases: usize,
            claims: usize,
        }
        let mut all = Vec::new();
        for file in &self.files {
            let found = Experiment::find(file).map_err(misuse)?;
            all.push(Checked {
                file,
                cases: found.check(Options::default()).map_err(misuse)?,
                claims: found.claims(),
            });
        }
        if ctx.json {
            ctx.print_json(&all)?;
            return Ok(ExitCode::SUCCESS);
        }
        for c in all {
            outln!("{}: fine, {} cases, {} claims", c.file, c.cases, c.claims)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Compare {
    /// Claims whose verdict or figure differs.
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let (before, after) = (outcomes(&self.before)?, outcomes(&self.after)?);
        let compared = Comparison::new(&judged(&before), &judged(&after));
        if ctx.json {
            ctx.print_json(&compared)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = table(["EXPERIMENT", "CLAIM", "THEIRS", "BEFORE", "AFTER", ""]);
        for c in &compared.changes {
            let verdict = match (c.held, c.holds) {
                (a, b) if a == b => "",
                (_, Some(true)) => "now holds",
                (_, Some(false)) => "now misses",
                (_, None) => "no longer judged",
            };
            table.add_row([
                c.experiment.clone(),
                c.what.clone(),
                figure(c.theirs, &c.unit),
                estimate(c.before, &c.unit),
                estimate(c.after, &c.unit),
                verdict.to_owned(),
            ]);
        }
        outln!("{table}")?;
        outln!(
            "of {} claims that both have, {} came out otherwise",
            compared.common,
            compared.changes.len()
        )?;
        outln!("before: {}", compared.before.sentence())?;
        outln!("after:  {}", compared.after.sentence())?;
        for (which, only) in [
            (&self.before, &compared.only_before),
            (&self.after, &compared.only_after),
        ] {
            if !only.is_empty() {
                outln!("only in {}: {}", which.display(), only.join("; "))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
