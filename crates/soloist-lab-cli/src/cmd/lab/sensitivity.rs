//! `soloist lab sensitivity`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Result;
use soloist_lab::known;
use soloist_lab::report::figure;
use soloist_lab::sensitivity::spread::tsv;
use soloist_lab::sensitivity::{self, csv, keys, settings, spreads, Line, Of, Spread};
use soloist_lab::spec::{ClaimKind, Scenario};
use soloist_machine::file::read_text;

use super::{experiment_names, misuse, Repeats};
use soloist_cli::complete;
use soloist_cli::progress::Steps;
use soloist_cli::table;
use soloist_cli::{out, Ctx, Misuse};

#[derive(Debug, clap::Args)]
pub struct Sensitivity {
    /// Experiments by name, or paths of scenario files.
    #[arg(required_unless_present_any = ["all", "from"], value_name = "NAME|FILE", add = complete::names_or_files(experiment_names))]
    names: Vec<String>,

    /// All built-in experiments.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// Vary only these of the machine's [memory.range] and the experiment's [range]
    /// [default: all].
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,

    /// Only claims of this kind, and only the cases that they are about.
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<Kind>,

    /// Change two inputs of the experiment at once instead of one, or one and a constant
    /// of the machine that --key names.
    #[arg(long)]
    pairs: bool,

    /// Run nothing; summarise files that --csv wrote.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "all", "key", "pairs", "small", "seed", "seeds"])]
    from: Vec<PathBuf>,

    /// Also write each claim with each change to FILE.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write each claim's range to FILE, and the inputs that bracket the printed
    /// figure.
    #[arg(long, value_name = "FILE")]
    tsv: Option<PathBuf>,

    #[command(flatten)]
    repeats: Repeats,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Fitted,
    Predicted,
    Order,
}

impl From<Kind> for ClaimKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Fitted => Self::Fitted,
            Kind::Predicted => Self::Predicted,
            Kind::Order => Self::Order,
        }
    }
}

impl Sensitivity {
    pub(super) fn run(&self, ctx: &Ctx) -> Result<ExitCode> {
        soloist_cli::check_files(&[
            ("--csv", self.csv.as_deref()),
            ("--tsv", self.tsv.as_deref()),
        ])?;
        let lines = match self.from.is_empty() {
            true => self.play(ctx)?,
            false => self.read()?,
        };
        let spreads = spreads(&lines);
        if let Some(file) = &self.csv {
            out::write(file, csv::write(&lines)?)?;
        }
        if let Some(file) = &self.tsv {
            out::write(file, tsv(&spreads))?;
        }
        if ctx.json {
            ctx.print_json(&lines)?;
            return Ok(ExitCode::SUCCESS);
        }
        outln!("{}", claims_moved(&spreads))?;
        if lines.iter().any(|line| line.change.of == Of::Machine) {
            outln!("{}", machine_moved(&lines))?;
        }
        sum_up(&spreads)?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        for file in &self.from {
            let (text, name) = read_text(file)?;
            let read = csv::read(&text);
            let wrong = |e| Misuse(format!("{name}: not what --csv wrote: {e}"));
            lines.extend(read.map_err(wrong)?);
        }
        let kind = self.kind.map(|kind| match kind {
            Kind::Fitted => "fitted",
            Kind::Predicted => "predicted",
            Kind::Order => "order",
        });
        lines.retain(|line| kind.is_none_or(|kind| line.claim.kind == kind));
        Ok(lines)
    }

    fn play(&self, ctx: &Ctx) -> Result<Vec<Line>> {
        let scenarios = self.scenarios()?;
        let known = keys(&scenarios);
        if let Some(key) = self.key.iter().find(|key| !known.contains(*key)) {
            let known: Vec<String> = known.into_iter().collect();
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            let what = format!(
                "--key {key}: not in [memory.range] of these machines or in [range] of these \
                 experiments, which have {known}"
            );
            return Err(Misuse(what).into());
        }
        let options = self.repeats.options(false);
        // The library tells how many runs there are when they begin.
        let steps = OnceLock::new();
        let lines = sensitivity::table(&scenarios, &self.key, self.pairs, options, &|runs| {
            let steps = steps.get_or_init(|| Steps::new(ctx, runs, "runs done"));
            steps.step();
        });
        steps.get().map(Steps::finish);
        lines.map_err(|e| Misuse(e.to_string()).into())
    }

    /// Those that were asked for, with the claims that were.
    fn scenarios(&self) -> Result<Vec<Scenario>> {
        let names: Vec<&str> = match self.all {
            true => known::EXPERIMENTS.iter().map(|(name, _)| *name).collect(),
            false => self.names.iter().map(String::as_str).collect(),
        };
        let scenarios = names.iter().map(|name| known::find(name));
        let mut scenarios = scenarios
            .collect::<Result<Vec<Scenario>, _>>()
            .map_err(misuse)?;
        if let Some(kind) = self.kind.map(ClaimKind::from) {
            for scenario in &mut scenarios {
                let basis = scenario.experiment.basis;
                let counts = |c: &soloist_lab::spec::Claim| {
                    c.kind(basis) == kind && c.contradicted.is_none()
                };
                scenario.claims.retain(counts);
            }
            scenarios.retain(|s| !s.claims.is_empty());
        }
        Ok(scenarios)
    }
}

/// What decides the printed effects that miss.
fn sum_up(spreads: &[Spread]) -> Result<()> {
    let printed = spreads.iter().filter(|s| s.shipped.kind == "predicted");
    let missed: Vec<&Spread> = printed.filter(|s| s.shipped.verdict == "misses").collect();
    let by = |of: Of| {
        let bracketed = missed.iter().filter(|s| s.brackets.contains_key(&of));
        bracketed.count()
    };
    let nothing = missed.iter().filter(|s| s.brackets.is_empty()).count();
    outln!(
        "of {} printed effects that miss, {} are bracketed by an input that the paper does not print, \
         {} by two at once, {} by a constant of the machine, {nothing} by nothing",
        missed.len(),
        by(Of::Experiment),
        by(Of::Pair),
        by(Of::Machine),
    )?;
    Ok(())
}

/// Each claim: as shipped, between what it lies, and what brackets what is printed.
fn claims_moved(spreads: &[Spread]) -> soloist_cli::Table {
    let mut table = table([
        "EXPERIMENT",
        "CLAIM",
        "THEIRS",
        "OURS",
        "FROM",
        "TO",
        "VERDICT",
        "BRACKETED BY",
    ]);
    let number = |value: Option<f64>| figure(value, "");
    for s in spreads {
        table.add_row([
            s.shipped.experiment.clone(),
            s.shipped.claim.clone(),
            number(s.shipped.theirs),
            number(s.shipped.ours),
            format!("{} {}", number(s.least.value), s.least.at),
            format!("{} {}", number(s.most.value), s.most.at),
            s.shipped.verdict.clone(),
            match s.shipped.theirs {
                Some(_) => s.bracketed(),
                None => String::new(),
            },
        ]);
    }
    table
}

/// Each change of the machine: how many claims of each kind hold with it.
fn machine_moved(lines: &[Line]) -> soloist_cli::Table {
    let mut table = table([
        "CHANGED",
        "TO",
        "KIND",
        "OF",
        "HOLD",
        "AS SHIPPED",
        "WON",
        "LOST",
    ]);
    for kind in ["predicted", "order", "fitted"] {
        for m in settings(lines, kind) {
            table.add_row([
                m.change.key,
                m.change.value,
                kind.to_owned(),
                m.of_claims.to_string(),
                m.hold.to_string(),
                m.shipped.to_string(),
                m.won.to_string(),
                m.lost.to_string(),
            ]);
        }
    }
    table
}
