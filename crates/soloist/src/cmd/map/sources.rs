//! Where `soloist map detect` takes the map from: what needs no timing first.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Result};
use serde::Serialize;
use soloist_detect::choice::{choose, search, Chosen, Finding, Source};
use soloist_host::machine::Host;
use soloist_machine::Trust;

use super::made::{write_machine, wrote};
use soloist_cli::out::put;
use soloist_cli::{status, weigh, Ctx};

/// One place that maps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// A machine of `soloist map list` whose file agrees with this host.
    Known,
    /// The firmware's address translation (Intel servers; module loaded, root).
    Firmware,
    /// Registers of AMD Family 10h (root). On Intel's clients, registers only say where
    /// memory lies, and the other sources use them.
    Registers,
    /// Timing of row conflicts.
    Timing,
}

impl From<Place> for Source {
    fn from(place: Place) -> Self {
        match place {
            Place::Known => Self::Known,
            Place::Firmware => Self::Firmware,
            Place::Registers => Self::Registers,
            Place::Timing => Self::Timing,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    from: Source,
    machine: &'a str,
    trust: Trust,
    tried: &'a [Finding],
    /// What the other sources say of this map.
    checks: &'a [String],
    ranges: &'a [soloist_machine::MapRange],
    text: String,
    /// Why `soloist up` does not take the file that is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

/// What the user asked for.
pub struct Wanted<'a> {
    pub from: Option<Source>,
    pub seed: u64,
    pub deadline: Duration,
    pub output: Option<&'a Path>,
}

/// Tries what needs no timing. `None`: nothing was found, timing must; what
/// was tried is said either way.
pub fn run(wanted: &Wanted, ctx: &Ctx) -> Result<(Option<ExitCode>, Vec<Finding>)> {
    let host = Host::live();
    let tried = search(&host, wanted.from, wanted.seed);
    let say = || {
        for one in tried.iter().filter(|_| !ctx.json) {
            errln!("{}: {}", one.from, one.found);
        }
    };
    // What was asked for by name says why it has none when it ends with that.
    let is_alone = wanted.from.is_some_and(|from| from != Source::Timing);
    if !is_alone {
        say();
    }
    let chosen = choose(&host, &tried, wanted.seed, wanted.deadline)?;
    if is_alone && chosen.is_some() {
        say();
    }
    match (chosen, wanted.from) {
        (Some(chosen), _) => {
            let status = finish(&chosen, &tried, wanted, ctx)?;
            Ok((Some(status), tried))
        }
        (None, Some(from)) if from != Source::Timing => bail!(
            "no map from {from}: {}",
            tried.first().map_or("nothing to ask", |one| &one.found)
        ),
        (None, _) => Ok((None, tried)),
    }
}

/// Writes the map, and says what it is.
fn finish(chosen: &Chosen, tried: &[Finding], wanted: &Wanted, ctx: &Ctx) -> Result<ExitCode> {
    let (machine, about) = (&chosen.machine, &chosen.machine.about);
    if let Some(path) = wanted.output {
        write_machine(path, &chosen.text)?;
    }
    let refused = weigh::objections(machine).against;
    let is_good = wanted.output.is_none() || refused.is_empty();
    if ctx.json {
        let printed = ctx.print_json(&Report {
            from: chosen.from,
            machine: &about.name,
            trust: about.trust,
            tried,
            checks: &chosen.checks,
            ranges: &machine.map.ranges,
            text: machine.map_text(),
            refused,
        });
        return Ok(ctx.judged(printed, is_good));
    }
    errln!("taken: {}, {}", chosen.from, about.trust);
    for check in &chosen.checks {
        errln!("  {check}");
    }
    match wanted.output {
        Some(path) => wrote(path, &refused),
        None => put(&chosen.text)?,
    }
    Ok(status(is_good))
}
