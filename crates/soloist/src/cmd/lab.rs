//! `soloist lab`: experiments over the memory model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use soloist_lab::jobs::{run_all, Options};
use soloist_lab::judgement::compare::changes;
use soloist_lab::judgement::table::{claims_csv, values_csv};
use soloist_lab::judgement::{answers, Estimate, Outcome, Totals, Verdict};
use soloist_lab::known;
use soloist_lab::report::{estimate, figure, first_culprit, html, kind, word};
use soloist_lab::sensitivity;
use soloist_lab::spec::{Scenario, ScenarioError};

use super::table;
use crate::{Ctx, Misuse};

/// Try tasks and policies on a modelled machine; repeat the papers' tables.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Name the experiments that are built in.
    List,
    /// Check scenario files without running them.
    Check(Check),
    /// Run experiments or scenario files and judge their claims.
    Run(Run),
    /// Say which claims came out otherwise in another run.
    Compare(Compare),
    /// Show experiments at both ends of what no document says of the machine.
    Sensitivity(Sensitivity),
    /// Write one HTML page from what `run --out` left.
    Report(Report),
}

#[derive(Debug, clap::Args)]
pub struct Run {
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

    /// So many seeds, whatever the file says; one gives no intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,

    /// Another machine than the file names; it needs [memory] and [cache].
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Change the model of the machine: `model.controller.bank_queue=16`.
    #[arg(long, value_name = "model.KEY=VALUE")]
    set: Vec<String>,

    /// Also write each outcome to DIR/NAME.json, for `lab report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Take outcomes of the same scenario and seed that are in DIR as they are.
    #[arg(long, requires = "out")]
    resume: bool,

    /// Also write everything measured to FILE: a line for each task of each run.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write the claims and what became of them to FILE, as CSV.
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,

    /// Exit with 1 if a prediction or an order misses.
    #[arg(long)]
    strict: bool,
}

/// Files to check.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Scenario files, or experiments by name.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

/// Two folders to compare.
#[derive(Debug, clap::Args)]
pub struct Compare {
    /// Folder that `lab run --out` wrote.
    before: PathBuf,

    /// Another one.
    after: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Report {
    /// Folder that `lab run --out` wrote.
    dir: PathBuf,

    /// The page.
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Sensitivity {
    /// Experiments by name, or paths of scenario files.
    #[arg(required = true, value_name = "NAME|FILE")]
    names: Vec<String>,

    /// Only these of the machine's [memory.range]; all without.
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,

    /// The small version: less work, fewer repeats.
    #[arg(long)]
    small: bool,

    /// Seed of the first repeat.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// So many seeds, whatever the file says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::List => list(ctx),
        Args::Run(run) => run.run(ctx),
        Args::Check(check) => check.run(ctx),
        Args::Compare(compare) => compare.run(ctx),
        Args::Sensitivity(sensitivity) => sensitivity.run(ctx),
        Args::Report(report) => report.run(ctx),
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
        outln!("{table}")?;
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
            .map(|name| self.change(known::find(name).map_err(misuse)?))
            .collect::<Result<Vec<Scenario>>>()?;
        if let Some(dir) = &self.out {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        let began = Instant::now();
        let outcomes = self.all(&names, scenarios, ctx)?;
        self.write_tables(&outcomes)?;
        if ctx.json {
            ctx.print_json(&outcomes)?;
        } else {
            sum_up(&outcomes, began.elapsed())?;
        }
        let missed = |o: &Outcome| {
            let missed = |v: &Verdict| v.counts() && v.holds != Some(true);
            o.verdicts.iter().any(missed)
        };
        Ok(match self.strict && outcomes.iter().any(missed) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    /// Runs what is not there already; prints outcomes in their order, each as
    /// soon as those before it are there.
    fn all(&self, names: &[&str], scenarios: Vec<Scenario>, ctx: &Ctx) -> Result<Vec<Outcome>> {
        let mut outcomes: Vec<Option<Outcome>> = Vec::new();
        let mut jobs = Vec::new();
        let mut places = Vec::new();
        for (i, scenario) in scenarios.into_iter().enumerate() {
            let known = self.done_before(&scenario)?;
            if known.is_none() {
                places.push(i);
                let options = self.options(&scenario);
                jobs.push((scenario, options));
            }
            outcomes.push(known);
        }
        let bar = progress(ctx, &jobs)?;
        let mut printed = 0;
        let mut print_ready = |outcomes: &[Option<Outcome>]| -> Result<()> {
            while let Some(Some(outcome)) = outcomes.get(printed) {
                if !ctx.json {
                    bar.suspend(|| print(outcome, ctx))?;
                }
                printed += 1;
            }
            Ok(())
        };
        print_ready(&outcomes)?;
        let mut failed = None;
        run_all(&jobs, &|| bar.inc(1), |job, cases| {
            let (scenario, options) = &jobs[job];
            let place = places[job];
            let kept = cases
                .map_err(|e| misuse(known::locate(names[place], scenario, &e)))
                .and_then(|cases| {
                    let outcome = Outcome::new(scenario.clone(), *options, cases);
                    if let Some(dir) = &self.out {
                        write_outcome(dir, &outcome)?;
                    }
                    outcomes[place] = Some(outcome);
                    print_ready(&outcomes)
                });
            failed = kept.err();
            failed.is_none()
        });
        bar.finish_and_clear();
        match failed {
            Some(error) => Err(error),
            None => Ok(outcomes.into_iter().flatten().collect()),
        }
    }

    fn options(&self, scenario: &Scenario) -> Options {
        Options {
            seed: self.seed,
            seeds: self.seeds,
            small: self.small,
            account: scenario.claims.is_empty(),
        }
    }

    /// The tables that were asked for.
    fn write_tables(&self, outcomes: &[Outcome]) -> Result<()> {
        let write = |path: &Path, text: String| {
            fs::write(path, text).with_context(|| path.display().to_string())
        };
        if let Some(path) = &self.csv {
            write(path, values_csv(outcomes)?)?;
        }
        if let Some(path) = &self.verdicts {
            write(path, claims_csv(outcomes)?)?;
        }
        Ok(())
    }

    /// The scenario with what the command line changes of it.
    fn change(&self, mut scenario: Scenario) -> Result<Scenario> {
        if let Some(machine) = &self.machine {
            scenario.experiment.machine.clone_from(machine);
        }
        for change in &self.set {
            let wrong = || Misuse(format!("--set {change}: expected model.KEY=VALUE"));
            let (key, value) = change.split_once('=').ok_or_else(wrong)?;
            let key = key.strip_prefix("model.").ok_or_else(wrong)?;
            scenario.change_model(key, value).map_err(|_| wrong())?;
        }
        Ok(scenario)
    }

    /// With --resume, the outcome of the same that is there already.
    fn done_before(&self, scenario: &Scenario) -> Result<Option<Outcome>> {
        let Some(dir) = self.out.as_ref().filter(|_| self.resume) else {
            return Ok(None);
        };
        let path = dir.join(format!("{}.json", scenario.experiment.id));
        if !path.exists() {
            return Ok(None);
        }
        let known = read_outcome(&path)?;
        let same = known.seed == self.seed
            && known.seeds == self.seeds
            && known.small == self.small
            && serde_json::to_value(&known.scenario)? == serde_json::to_value(scenario)?;
        Ok(same.then_some(known))
    }
}

/// A scenario that can't be: what the user wrote is wrong.
fn misuse(e: ScenarioError) -> anyhow::Error {
    Misuse(e.to_string()).into()
}

/// A bar over all runs of all scenarios.
fn progress(ctx: &Ctx, jobs: &[(Scenario, Options)]) -> Result<ProgressBar> {
    if !ctx.progress {
        return Ok(ProgressBar::hidden());
    }
    let runs: usize = jobs.iter().map(|(s, options)| options.runs(s)).sum();
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed}")?;
    Ok(ProgressBar::new(runs as u64).with_style(style))
}

fn write_outcome(dir: &Path, outcome: &Outcome) -> Result<()> {
    let path = dir.join(format!("{}.json", outcome.scenario.experiment.id));
    let mut text = serde_json::to_string_pretty(outcome)?;
    text.push('\n');
    fs::write(&path, text).with_context(|| path.display().to_string())
}

fn print(outcome: &Outcome, ctx: &Ctx) -> Result<()> {
    let about = &outcome.scenario.experiment;
    let source = match about.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    };
    outln!("{}: {}{source}", about.id, about.title)?;
    outln!("{}: {}", about.machine, outcome.command())?;
    if outcome.verdicts.is_empty() {
        print_answers(outcome)?;
    } else {
        print_claims(outcome, ctx)?;
    }
    if !about.note.is_empty() {
        outln!("  {}", about.note)?;
    }
    outln!()?;
    Ok(())
}

fn print_claims(outcome: &Outcome, ctx: &Ctx) -> Result<()> {
    let mut table = table(["CLAIM", "KIND", "THEIRS", "OURS", "EFFECT", ""]);
    for v in &outcome.verdicts {
        let color = if v.holds == Some(true) { 32 } else { 31 };
        table.add_row([
            v.what.clone(),
            kind(v).to_owned(),
            figure(v.theirs, &v.unit),
            estimate(v.ours, &v.unit),
            figure(v.effect, ""),
            ctx.paint(color, &word(v)),
        ]);
    }
    outln!("{table}")?;
    Ok(())
}

/// A scenario without claims: what each policy does to each task.
fn print_answers(outcome: &Outcome) -> Result<()> {
    let mut table = table([
        "TASK",
        "POLICY",
        "TIME",
        "SLOWDOWN",
        "P99",
        "WAITS MOST FOR",
    ]);
    for a in answers(&outcome.cases) {
        table.add_row([
            a.task.clone(),
            a.case.clone(),
            figure(Some(a.time_ms), "ms"),
            estimate(Some(a.slowdown), ""),
            figure(Some(a.p99_ns), "ns"),
            first_culprit(&a),
        ]);
    }
    outln!("{table}")?;
    outln!("Slowdown: time over the task's time alone under Linux.")?;
    Ok(())
}

fn sum_up(outcomes: &[Outcome], took: Duration) -> Result<()> {
    let claims = || outcomes.iter().flat_map(|o| &o.verdicts);
    if outcomes.len() > 1 && claims().count() > 0 {
        let totals = Totals::of(claims());
        outln!(
            "{} experiments in {:.0} s: {}",
            outcomes.len(),
            took.as_secs_f64(),
            totals.sentence()
        )?;
    }
    Ok(())
}

impl Report {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let mut outcomes = judged_now(read_outcomes(&self.dir)?);
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
            outln!("{}: {} experiments", self.out.display(), outcomes.len())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What was measured, judged by what the built-in experiments claim now.
fn judged_now(outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let judge = |outcome: Outcome| {
        let id = outcome.scenario.experiment.id.clone();
        let known = known::EXPERIMENTS.iter().any(|(name, _)| *name == id);
        match known.then(|| known::find(&id)) {
            Some(Ok(known)) => outcome.judged_by(known.claims),
            _ => outcome,
        }
    };
    outcomes.into_iter().map(judge).collect()
}

/// All outcomes of a folder, in the order of their names.
fn read_outcomes(folder: &Path) -> Result<Vec<Outcome>> {
    let dir = || folder.display().to_string();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(dir)? {
        let path = entry.with_context(dir)?.path();
        if path.extension().is_some_and(|e| e == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut outcomes = Vec::new();
    for path in paths {
        outcomes.push(read_outcome(&path)?);
    }
    Ok(outcomes)
}

fn read_outcome(path: &Path) -> Result<Outcome> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: not an outcome of `lab run`", path.display()))
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
            let scenario = known::find(file).map_err(misuse)?;
            let cases = scenario.cases(1).map_err(|(_, what)| Misuse(what))?;
            all.push(Checked {
                file,
                cases: cases.len(),
                claims: scenario.claims.len(),
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
        let (before, after) = (read_outcomes(&self.before)?, read_outcomes(&self.after)?);
        let changes = changes(&before, &after);
        if ctx.json {
            ctx.print_json(&changes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = table(["EXPERIMENT", "CLAIM", "THEIRS", "BEFORE", "AFTER", ""]);
        for c in &changes {
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
        let totals = |o: &[Outcome]| Totals::of(o.iter().flat_map(|o| &o.verdicts)).sentence();
        outln!("before: {}", totals(&before))?;
        outln!("after:  {}", totals(&after))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Sensitivity {
    fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let scenarios = self.names.iter().map(|name| known::find(name));
        let scenarios = scenarios
            .collect::<Result<Vec<Scenario>, _>>()
            .map_err(misuse)?;
        let options = Options {
            seed: self.seed,
            seeds: self.seeds,
            small: self.small,
            account: false,
        };
        let bar = progress(ctx, &[])?;
        let lines = sensitivity::table(&scenarios, &self.key, options, &|runs| {
            bar.set_length(runs as u64);
            bar.inc(1);
        });
        bar.finish_and_clear();
        let lines = lines.map_err(|e| Misuse(e.to_string()))?;
        if lines.is_empty() {
            let what = "none of these claims a printed figure that nothing was fitted to";
            return Err(Misuse(what.to_owned()).into());
        }
        if ctx.json {
            ctx.print_json(&lines)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = table(["EXPERIMENT", "CLAIM", "THEIRS", "CHANGED", "OURS"]);
        for line in &lines {
            let shown = |(value, ours): &(String, Option<Estimate>)| match line.key.as_str() {
                "" => estimate(*ours, &line.unit),
                _ => format!("{value}: {}", estimate(*ours, &line.unit)),
            };
            let ours: Vec<String> = line.ends.iter().map(shown).collect();
            let key = if line.key.is_empty() {
                "nothing"
            } else {
                &line.key
            };
            table.add_row([
                line.experiment.clone(),
                line.claim.clone(),
                figure(line.theirs, &line.unit),
                key.to_owned(),
                ours.join("; "),
            ]);
        }
        outln!("{table}")?;
        Ok(ExitCode::SUCCESS)
    }
}
