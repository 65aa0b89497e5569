//! `soloist lab run`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use soloist_lab::jobs::{self, do_all, prepare, Options, Parts};
use soloist_lab::judgement::table::{self, claims_csv, values_csv};
use soloist_lab::judgement::{answers, fingerprint, Judged, Outcome, Totals, Verdict};
use soloist_lab::known;
use soloist_lab::report::{estimate, figure, first_culprit};
use soloist_lab::spec::Scenario;
use soloist_rt::mission::{self, Mission, MissionError};
use soloist_rt::tasks::TaskSet;

use super::claims::print_claims;
use super::work::{wrong, Done, Work};
use super::{bar, misuse, read_outcome, realtime, Repeats};
use soloist_cli::table as columns;
use soloist_cli::{out, Ctx, Misuse};

#[derive(Debug, clap::Args)]
pub struct Run {
    /// Experiments by name, or paths of scenario files (docs/reference/lab.md).
    #[arg(required_unless_present = "all", value_name = "NAME|FILE")]
    names: Vec<String>,

    /// All experiments that are built in.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    #[command(flatten)]
    repeats: Repeats,

    /// Another machine than the file names; it needs [memory] and [cache].
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Change the model of the machine: `model.controller.bank_queue=16`.
    #[arg(long, value_name = "model.KEY=VALUE")]
    set: Vec<String>,

    /// Also write each outcome to DIR/NAME.json, for `lab report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Take outcomes of the same scenario, machine and seed that are in DIR as they are.
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

impl Run {
    pub(super) fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        let names: Vec<&str> = if self.all {
            let known = known::EXPERIMENTS.iter().map(|(name, _)| *name);
            let tasks = mission::EXPERIMENTS.iter().map(|(name, ..)| *name);
            known.chain(tasks).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        };
        let (tasks, names): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| mission::is_one(name));
        let scenarios = names
            .iter()
            .map(|name| self.change(known::find(name).map_err(misuse)?, ctx))
            .collect::<Result<Vec<Scenario>>>()?;
        let missions = self.missions(&tasks)?;
        if let Some(dir) = &self.out {
            let ids = scenarios.iter().map(|scenario| &scenario.experiment.id);
            check_distinct(ids.chain(missions.iter().map(|(mission, _)| &mission.id)))?;
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        let began = Instant::now();
        give_memory_back();
        let outcomes = self.all((&names, scenarios), missions, ctx)?;
        self.write_tables(&outcomes)?;
        let judged: Vec<Judged> = outcomes.iter().map(Done::judged).collect();
        if ctx.json {
            let all = outcomes.iter().map(Done::json);
            ctx.print_json(&all.collect::<Result<Vec<_>, _>>()?)?;
        } else {
            sum_up(&judged, began.elapsed())?;
        }
        let missed = |v: &Verdict| v.counts() && v.holds != Some(true);
        let any = judged.iter().any(|j| j.verdicts.iter().any(missed));
        Ok(match self.strict && any {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    /// Experiments on task sets: their files say the machine, and nothing of its
    /// model can be changed.
    fn missions(&self, names: &[&str]) -> Result<Vec<(Mission, TaskSet)>> {
        let Some(first) = names.first() else {
            return Ok(Vec::new());
        };
        let given = [
            ("--machine", self.machine.is_some()),
            ("--set", !self.set.is_empty()),
            ("--csv", self.csv.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        match given {
            Some((option, _)) if self.all => {
                errln!("soloist: {option} is not for experiments on task sets: they are left out");
                return Ok(Vec::new());
            }
            Some((option, _)) => {
                let what = format!("{option} is not for experiments on task sets, such as {first}");
                return Err(Misuse(what).into());
            }
            None => {}
        }
        let found = names.iter().map(|name| mission::find(name));
        let found: Result<Vec<_>, MissionError> = found.collect();
        found.map_err(|e| Misuse(e.to_string()).into())
    }

    /// Runs what is not there already; prints outcomes in their order, each as
    /// soon as those before it are there.
    fn all(
        &self,
        (names, scenarios): (&[&str], Vec<Scenario>),
        missions: Vec<(Mission, TaskSet)>,
        ctx: &Ctx,
    ) -> Result<Vec<Done>> {
        let mut outcomes: Vec<Option<Done>> = Vec::new();
        let mut places = Vec::new();
        let mut jobs = Vec::new();
        for scenario in scenarios {
            let known = self.done_before(&scenario)?;
            if known.is_none() {
                places.push(outcomes.len());
                let options = self.options(&scenario, ctx);
                jobs.push((scenario, options));
            }
            outcomes.push(known.map(Done::Scenario));
        }
        let mut works = Vec::new();
        for ((job, prepared), &place) in jobs.iter().zip(prepare(&jobs)).zip(&places) {
            let name = names[place];
            let prepared = prepared.map_err(|e| wrong(name, job, &e))?;
            works.push(Work::Scenario {
                name,
                job,
                prepared,
            });
        }
        let options = mission::Options {
            seed: self.repeats.seed,
            seeds: self.repeats.seeds,
            small: self.repeats.small,
        };
        for (mission, set) in missions {
            let known = self.played_before(&mission, &set, options)?;
            if known.is_none() {
                places.push(outcomes.len());
                let prepared = mission::Prepared::new((mission, set), options)?;
                works.push(Work::Tasks(Box::new(prepared)));
            }
            outcomes.push(known.map(Done::Tasks));
        }
        let bar = bar(ctx, works.iter().map(|work| work.costs().len()).sum())?;
        let mut printed = 0;
        let mut print_ready = |outcomes: &[Option<Done>]| -> Result<()> {
            while let Some(Some(outcome)) = outcomes.get(printed) {
                if !ctx.json {
                    bar.suspend(|| match outcome {
                        Done::Scenario(outcome) => print(outcome, ctx),
                        Done::Tasks(outcome) => realtime::print(outcome, ctx),
                    })?;
                }
                printed += 1;
            }
            Ok(())
        };
        print_ready(&outcomes)?;
        let mut failed = None;
        do_all(&works, &|| bar.inc(1), |work, done| {
            let kept = done.and_then(|outcome| {
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

    /// Where nothing but claims comes out, cases that no claim is about are left
    /// out.
    fn options(&self, scenario: &Scenario, ctx: &Ctx) -> Options {
        let kept = ctx.json || self.out.is_some() || self.csv.is_some();
        let claims = !scenario.claims.is_empty();
        Options {
            needed: claims && !kept,
            ..self.repeats.options(!claims)
        }
    }

    /// The tables that were asked for.
    fn write_tables(&self, outcomes: &[Done]) -> Result<()> {
        let write = |path: &Path, text: String| {
            fs::write(path, text).with_context(|| path.display().to_string())
        };
        if let Some(path) = &self.csv {
            write(
                path,
                values_csv(outcomes.iter().filter_map(Done::scenario))?,
            )?;
        }
        if let Some(path) = &self.verdicts {
            let judged = outcomes.iter().map(Done::judged);
            let lines = judged.flat_map(|j| table::lines(j.id, j.verdicts));
            write(path, claims_csv(&lines.collect::<Vec<_>>())?)?;
        }
        Ok(())
    }

    /// The scenario with what the command line changes of it.
    fn change(&self, mut scenario: Scenario, ctx: &Ctx) -> Result<Scenario> {
        if let Some(machine) = &self.machine {
            scenario.experiment.machine.clone_from(machine);
        }
        for change in &self.set {
            let wrong = || Misuse(format!("--set {change}: expected model.KEY=VALUE"));
            let (key, value) = change.split_once('=').ok_or_else(wrong)?;
            let key = key.strip_prefix("model.").ok_or_else(wrong)?;
            // What is no TOML is a word: `order=oldest` needs no quotes.
            scenario
                .change_model(key, value)
                .or_else(|_| scenario.change_model(key, &format!("{value:?}")))
                .map_err(|_| wrong())?;
        }
        if self.machine.is_some() || !self.set.is_empty() {
            jobs::check_machine(&scenario, self.options(&scenario, ctx))
                .map_err(|e| Misuse(format!("{}: {e}", self.changes())))?;
        }
        Ok(scenario)
    }

    /// What the command line changes, as it was typed.
    fn changes(&self) -> String {
        let machine = self.machine.iter().map(|name| format!("--machine {name}"));
        let set = self.set.iter().map(|change| format!("--set {change}"));
        machine.chain(set).collect::<Vec<_>>().join(" ")
    }

    /// With --resume, what is there already of that name.
    fn kept<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>> {
        let Some(dir) = self.out.as_ref().filter(|_| self.resume) else {
            return Ok(None);
        };
        let path = dir.join(format!("{id}.json"));
        match path.exists() {
            true => read_outcome(&path).map(Some),
            false => Ok(None),
        }
    }

    /// Of the same scenario.
    fn done_before(&self, scenario: &Scenario) -> Result<Option<Outcome>> {
        let Some(known) = self.kept::<Outcome>(&scenario.experiment.id)? else {
            return Ok(None);
        };
        let same = known.seed == self.repeats.seed
            && known.seeds == self.repeats.seeds
            && known.small == self.repeats.small
            && known.machine == fingerprint(&scenario.experiment.machine)
            && serde_json::to_value(&known.scenario)? == serde_json::to_value(scenario)?;
        Ok(same.then_some(known))
    }

    /// Of the same task set.
    fn played_before(
        &self,
        mission: &Mission,
        set: &TaskSet,
        options: mission::Options,
    ) -> Result<Option<mission::Outcome>> {
        let known: Option<mission::Outcome> = self.kept(&mission.id)?;
        Ok(known.filter(|known| known.is_of(mission, set, options)))
    }
}

/// What a run no longer needs goes back to the system at once: of its own accord
/// glibc keeps more, the larger what was freed before.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number that malloc() reads.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

/// Of two outcomes of one name the first would be lost.
fn check_distinct<'a>(ids: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut ids = ids.filter(|id| !seen.insert(*id));
    ids.next().map_or(Ok(()), |id| {
        let what = format!("--out: two experiments have the `id` {id:?}, which names the file");
        Err(Misuse(what).into())
    })
}

/// Whole or not at all, for --resume after Ctrl-C.
fn write_outcome(dir: &Path, outcome: &Done) -> Result<()> {
    let path = dir.join(format!("{}.json", outcome.id()));
    let text = outcome.text()? + "\n";
    out::replace(&path, &text).with_context(|| path.display().to_string())
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
        print_claims(&outcome.verdicts, ctx)?;
    }
    if !about.note.is_empty() {
        outln!("  {}", about.note)?;
    }
    outln!()?;
    Ok(())
}

/// A scenario without claims: what each policy does to each task.
fn print_answers(outcome: &Outcome) -> Result<()> {
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

fn sum_up(judged: &[Judged], took: Duration) -> Result<()> {
    let claims = || judged.iter().flat_map(|j| j.verdicts);
    if judged.len() > 1 && claims().count() > 0 {
        let totals = Totals::of(claims());
        outln!(
            "{} experiments in {:.0} s: {}",
            judged.len(),
            took.as_secs_f64(),
            totals.sentence()
        )?;
    }
    Ok(())
}
