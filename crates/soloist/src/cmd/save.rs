//! `soloist save` and `soloist apply`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::{load, plan, Config, Control, Host, ModuleChoice, Steps};
use soloist_machine::known;

use crate::{out, Ctx};

/// Where what shall survive a reboot is kept.
const FILE: &str = "/etc/soloist/soloist.toml";

/// Write down machine, groups, rules and reservations as they are now.
///
/// `soloist apply` makes them so again; the unit soloist.service does it early
/// in boot. Groups that `soloist run` made for one command are left out.
#[derive(Debug, clap::Args)]
pub struct SaveArgs {
    /// The file; `-`: standard output.
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,
}

/// Make machine, groups, rules and reservations what a file says.
///
/// Loads the module and the map where they are not yet. Does all of it or
/// nothing; what is so already stays as it is.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// The file (docs/config.md).
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,

    /// Print what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Remove groups and rules that the file does not name.
    #[arg(long)]
    prune: bool,
}

/// Runs `save`.
pub fn save(args: SaveArgs, ctx: &Ctx) -> Result<ExitCode> {
    let config = Config::now(&Control::open(&Host::live())?)?;
    if ctx.json {
        ctx.print_json(&config)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = config.text()?;
    if args.file.as_os_str() == "-" {
        out::put(&text)?;
    } else {
        replace(&args.file, &text).with_context(|| args.file.display().to_string())?;
        outln!(
            "{}: {} groups, {} rules",
            args.file.display(),
            config.groups.len(),
            config.rules.len()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file whole: a power cut leaves the old one or the new one.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let new = file.with_extension("toml.new");
    let mut out = fs::File::create(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, file)
}

#[derive(Serialize)]
struct Report<'a> {
    dry_run: bool,
    #[serde(flatten)]
    plan: &'a Steps,
}

/// Runs `apply`.
pub fn apply(args: ApplyArgs, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let config = Config::read(&args.file)?;
    let map = match &config.machine {
        Some(name) => Some(known::find(name)?.addr_map()),
        None => None,
    };
    let steps = match Control::open(&host) {
        Ok(control) if args.dry_run => against(&control, &config, map.as_ref(), args.prune)?,
        Err(_) if args.dry_run => {
            outln!(
                "+ module and map of {}",
                config.machine.as_deref().unwrap_or("no machine")
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            let say = |step: &str| {
                if ctx.progress {
                    errln!("soloist: {step} ...");
                }
            };
            load(&host, &ModuleChoice::default(), map.as_ref(), &say)?;
            let control = Control::open(&host)?;
            let steps = against(&control, &config, map.as_ref(), args.prune)?;
            steps
                .apply(&control)
                .context("no group, rule or reservation was changed")?;
            steps
        }
    };
    if ctx.json {
        let dry_run = args.dry_run;
        ctx.print_json(&Report {
            dry_run,
            plan: &steps,
        })?;
    } else {
        say(&steps)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The steps to `config` from what holds now.
fn against(
    control: &Control,
    config: &Config,
    map: Option<&AddrMap>,
    prune: bool,
) -> Result<Steps> {
    let loaded = control.map();
    let map = match (map, &loaded) {
        (Some(map), _) => map,
        (None, Ok(loaded)) => loaded,
        (None, Err(_)) => return Err(loaded.err().context("no map")?.into()),
    };
    Ok(plan(config, control, map, prune)?)
}

fn say(plan: &Steps) -> Result<()> {
    for step in &plan.steps {
        outln!("{step}")?;
    }
    if plan.steps.is_empty() {
        outln!("nothing to change")?;
    }
    if !plan.others.is_empty() {
        outln!(
            "not in the file, left as they are (--prune removes them): {}",
            plan.others.join(", ")
        )?;
    }
    Ok(())
}
