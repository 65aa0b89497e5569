//! `soloist lab run`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use soloist_cli::complete;
use soloist_cli::table as columns;
use soloist_cli::{out, status, Ctx, Misuse};
use soloist_lab::experiment::{self, folder, prepare, Experiment, ExperimentOutcome};
use soloist_lab::jobs::{do_all, Options, Parts};
use soloist_lab::judgement::table::{self, claims_csv, values_csv};
use soloist_lab::judgement::{answers, Judged, ScenarioOutcome, Totals, Verdict};
use soloist_lab::known;
use soloist_lab::report::{estimate, figure, first_culprit};
use soloist_lab::spec::Scenario;
use soloist_lab::taskset::ExperimentError;

use super::claims::print_claims;
use super::{bar, experiment_names, realtime, refused, Repeats};

#[derive(Debug, clap::Args)]
pub struct Run {
    /// Experiments by name, or paths of scenario files (docs/reference/lab.md).
    #[arg(required_unless_present = "all", value_name = "NAME|FILE", add = complete::names_or_files(experiment_names))]
    names: Vec<String>,

    /// All built-in experiments.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    #[command(flatten)]
    repeats: Repeats,

    /// Machine [default: the file's]; it needs [memory] and [cache].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,

    /// Change the model of the machine (`model.controller.bank_queue=16`) or an input
    /// of the file (`sets=4`, `NAME.bytes=8M`).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Also write each result to DIR/NAME.json, for `lab report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Reuse results in DIR of the same version, scenario, recordings, machine and seed.
    #[arg(long, requires = "out")]
    resume: bool,

    /// Also write everything measured to FILE: a line for each task of each run.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write the claims and their verdicts to FILE, as CSV.
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,

    /// Exit with 1 if a claim of kind `predicted`, `order` or `silicon` misses, or is not
    /// judged. Claims that the papers contradict do not count.
    #[arg(long)]
    strict: bool,
}

impl Run {
    pub(super) fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let names: Vec<&str> = if self.all {
            experiment::names().collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        };
        soloist_cli::check_files(&[
            ("--csv", self.csv.as_deref()),
            ("--verdicts", self.verdicts.as_deref()),
        ])?;
        soloist_cli::check_folder("--out", self.out.as_deref())?;
        let (typed, experiments) = self.experiments(&names, ctx)?;
        if let Some(dir) = &self.out {
            check_distinct(experiments.iter().map(|one| one.listed().name))?;
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        let began = Instant::now();
        give_memory_back();
        let outcomes = self.all(&typed, &experiments, ctx)?;
        self.write_tables(&outcomes)?;
        let judged: Vec<Judged> = outcomes.iter().map(ExperimentOutcome::judged).collect();
        if ctx.json {
            ctx.print_json(&serde_json::to_value(&outcomes)?)?;
        } else {
            self.sum_up(&judged, began.elapsed())?;
        }
        let missed = |v: &Verdict| v.counts() && v.holds != Some(true);
        let any = judged.iter().any(|j| j.verdicts.iter().any(missed));
        Ok(status(!(self.strict && any)))
    }

    /// The names as they were typed, and their experiments, scenarios first.
    fn experiments<'a>(
        &self,
        names: &[&'a str],
        ctx: &Ctx,
    ) -> Result<(Vec<&'a str>, Vec<Experiment>)> {
        let (mut scenarios, mut tasks, mut first) = (Vec::new(), Vec::new(), None);
        for name in names {
            let found = Experiment::find(name).map_err(|e| Misuse(e.to_string()))?;
            match found {
                Experiment::Scenario(scenario) => {
                    scenarios.push((*name, self.change(scenario, ctx)?));
                }
                Experiment::TaskSet(..) => {
                    first.get_or_insert(*name);
                    tasks.push((*name, found));
                }
            }
        }
        if let (Some(option), Some(first)) = (self.not_for_task_sets(), first) {
            if !self.all {
                let what = format!("{option} is not for experiments on task sets, such as {first}");
                return Err(Misuse(what).into());
            }
            errln!("soloist: {option} is not for experiments on task sets: they are left out");
            tasks.clear();
        }
        scenarios.extend(tasks);
        Ok(scenarios.into_iter().unzip())
    }

    /// Task sets' files say the machine, and nothing of its model can be changed.
    fn not_for_task_sets(&self) -> Option<&'static str> {
        let given = [
            ("--machine", self.machine.is_some()),
            ("--set", !self.set.is_empty()),
            ("--csv", self.csv.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }

    /// Runs what is not there already; prints outcomes in their order, each as
    /// soon as those before it are there.
    fn all(
        &self,
        typed: &[&str],
        experiments: &[Experiment],
        ctx: &Ctx,
    ) -> Result<Vec<ExperimentOutcome>> {
        let mut outcomes: Vec<Option<ExperimentOutcome>> = Vec::new();
        let (mut places, mut left) = (Vec::new(), Vec::new());
        for (name, experiment) in typed.iter().zip(experiments) {
            let known = self.done_before(experiment)?;
            let known = known.map(|known| known.typed(self.repeated(name)));
            if known.is_none() {
                places.push(outcomes.len());
                left.push((experiment, self.options(experiment, ctx)));
            }
            outcomes.push(known);
        }
        let works: Result<Vec<_>, ExperimentError> = prepare(&left).into_iter().collect();
        let works = works.map_err(refused)?;
        let bar = bar(ctx, works.iter().map(|work| work.costs().len()).sum())?;
        let mut printed = 0;
        let mut print_ready = |outcomes: &[Option<ExperimentOutcome>]| -> Result<()> {
            while let Some(Some(outcome)) = outcomes.get(printed) {
                if !ctx.json {
                    bar.suspend(|| match outcome {
                        ExperimentOutcome::Scenario(outcome) => print(outcome, ctx),
                        ExperimentOutcome::TaskSet(outcome) => realtime::print(outcome, ctx),
                    })?;
                }
                printed += 1;
            }
            Ok(())
        };
        print_ready(&outcomes)?;
        let mut failed = None;
        do_all(&works, &|| bar.inc(1), |work, done| {
            let kept = done.map_err(refused).and_then(|outcome| {
                let outcome = outcome.typed(self.repeated(typed[places[work]]));
                if let Some(dir) = &self.out {
                    write_outcome(dir, &outcome)?;
                }
                outcomes[places[work]] = Some(outcome);
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

    /// The totals of several experiments.
    fn sum_up(&self, judged: &[Judged], took: Duration) -> Result<()> {
        let claims = || judged.iter().flat_map(|j| j.verdicts);
        if judged.len() < 2 || claims().count() == 0 {
            return Ok(());
        }
        outln!(
            "{} experiments in {:.0} s: {}",
            judged.len(),
            took.as_secs_f64(),
            Totals::of(claims()).sentence()
        )?;
        if self.repeats.small {
            outln!("--small: less work and fewer seeds make wider intervals, so fewer claims hold than in full")?;
        }
        Ok(())
    }

    /// Where nothing but claims comes out, cases that no claim is about are left
    /// out.
    fn options(&self, experiment: &Experiment, ctx: &Ctx) -> Options {
        let kept = ctx.json || self.out.is_some() || self.csv.is_some();
        let claims = experiment.claims() > 0;
        Options {
            needed: claims && !kept,
            ..self.repeats.options(!claims)
        }
    }

    /// The tables that were asked for.
    fn write_tables(&self, outcomes: &[ExperimentOutcome]) -> Result<()> {
        if let Some(path) = &self.csv {
            out::write(
                path,
                values_csv(outcomes.iter().filter_map(ExperimentOutcome::scenario))?,
            )?;
        }
        if let Some(path) = &self.verdicts {
            let judged = outcomes.iter().map(ExperimentOutcome::judged);
            let lines = judged.flat_map(|j| table::lines(j.id, j.verdicts));
            out::write(path, claims_csv(&lines.collect::<Vec<_>>())?)?;
        }
        Ok(())
    }

    /// The scenario with what the command line changes of it.
    fn change(&self, mut scenario: Scenario, ctx: &Ctx) -> Result<Experiment> {
        if let Some(machine) = &self.machine {
            scenario.experiment.machine.clone_from(machine);
        }
        for change in &self.set {
            let expected = "expected model.KEY=VALUE, or INPUT=VALUE as [range] has inputs";
            scenario = scenario
                .with_change(change)
                .map_err(|e| Misuse(format!("--set {change}: {expected}: {e}")))?;
        }
        if self.machine.is_some() || !self.set.is_empty() {
            known::check(&scenario)
                .map_err(|e| Misuse(format!("{}: {}", self.changes(), e.message)))?;
            let experiment = Experiment::Scenario(scenario);
            let options = self.options(&experiment, ctx);
            experiment
                .check_machine(options)
                .map_err(|e| Misuse(format!("{}: {e}", self.changes())))?;
            return Ok(experiment);
        }
        Ok(Experiment::Scenario(scenario))
    }

    /// What the command line changes, as it was typed.
    fn changes(&self) -> String {
        let machine = self.machine.iter().map(|name| format!("--machine {name}"));
        let set = self.set.iter().map(|change| format!("--set {change}"));
        machine.chain(set).collect::<Vec<_>>().join(" ")
    }

    /// The arguments that repeat the experiment: `name`, as it was typed, and the changes.
    fn repeated(&self, name: &str) -> String {
        let changes = self.changes();
        format!("{name} {changes}").trim_end().to_owned()
    }

    /// With --resume, what is there already of the same experiment.
    fn done_before(&self, experiment: &Experiment) -> Result<Option<ExperimentOutcome>> {
        let Some(dir) = self.out.as_ref().filter(|_| self.resume) else {
            return Ok(None);
        };
        Ok(folder::known(dir, experiment, self.repeats.options(false))?)
    }
}

/// Has free() give memory back to the system at once. By default glibc keeps more of
/// it, the larger the blocks that were freed before.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number that malloc() reads.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

/// Of two outcomes of one name the first would be lost.
fn check_distinct<'a>(ids: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut ids = ids.filter(|id| !seen.insert(*id));
    ids.next().map_or(Ok(()), |id| {
        let what = format!("--out: two experiments have the `id` {id:?}, which names the file");
        Err(Misuse(what).into())
    })
}

/// Whole or not at all, for --resume after Ctrl-C.
fn write_outcome(dir: &Path, outcome: &ExperimentOutcome) -> Result<()> {
    let path = folder::file(dir, outcome.id());
    let text = serde_json::to_string_pretty(outcome)? + "\n";
    out::replace(&path, &text).with_context(|| path.display().to_string())
}

fn print(outcome: &ScenarioOutcome, ctx: &Ctx) -> Result<()> {
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
        print_claims(&outcome.verdicts, ctx)?;
    }
    if !about.note.is_empty() {
        outln!("  {}", about.note)?;
    }
    outln!()?;
    Ok(())
}

/// A scenario without claims: what each policy does to each task.
fn print_answers(outcome: &ScenarioOutcome) -> Result<()> {
    let mut table = columns([
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
