//! `soloist save` and `soloist apply`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::config::{Config, Steps, Transaction, Wanted};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_host::words::counted;
use soloist_host::HostError;
use soloist_machine::{known, FileError, KeyError, Machine};

use super::up;
use soloist_cli::weigh;
use soloist_cli::{out, status, Ctx, Misuse};

/// Where what shall survive a reboot is kept.
const FILE: &str = "/etc/soloist/soloist.toml";

/// Save machine, groups, rules and reservations to a configuration file.
///
/// `soloist apply` restores them; soloist.service does so early in boot. `save` leaves
/// out groups that `soloist run` made for one command.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 done, 1 failed, or `soloist apply` would refuse the file; 2 misused";
    "soloist save",
    "soloist save -",
])]
pub struct SaveArgs {
    /// The file; `-`: standard output.
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,
}

/// Apply a configuration file: machine, groups, rules and reservations.
///
/// Loads the module and the map if needed. Applies the whole file or nothing, and
/// changes only what differs.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist apply --dry-run",
    "soloist apply /etc/soloist/soloist.toml",
])]
pub struct ApplyArgs {
    /// The file (docs/reference/config.md); `-`: standard input.
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,

    /// Print the changes without making them.
    #[arg(long)]
    dry_run: bool,

    /// Remove groups, rules and CPUs' reservations that the file does not name. Fails
    /// if such a group has tasks, and names the groups.
    #[arg(long)]
    prune: bool,

    /// Use the machine's map even if it is incomplete or this host contradicts it, as
    /// `force = true` in the file does. Let --prune remove groups that have tasks;
    /// their new pages then have no colour.
    #[arg(long)]
    force: bool,
}

/// Runs `save`.
pub fn save(args: SaveArgs, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    let mut config = {
        // Others than root can't hold anybody off; they may save all the same.
        let _alone = match control.alone() {
            Err(HostError::NeedsRoot(_)) => None,
            alone => Some(alone?),
        };
        Config::now(&control)?
    };
    config.note_later(&Host::live());
    let is_whole = match control.map() {
        Ok(loaded) => name_machine(&mut config, &loaded),
        Err(_) if !config.needs_map() => true,
        Err(error) => {
            errln!(
                "soloist: the file names no machine, so `soloist apply` refuses it where no map is \
                 loaded: {error}"
            );
            false
        }
    };
    let text = config.text()?;
    let is_printed = args.file.as_os_str() == "-";
    if !is_printed {
        write(&args.file, &text)?;
    }
    if ctx.json {
        ctx.print_json(&config)?;
    } else if is_printed {
        out::put(&text)?;
    } else {
        outln!(
            "{}: {}, {}",
            args.file.display(),
            counted(config.groups.len() as u64, "group"),
            counted(config.rules.len() as u64, "rule")
        )?;
    }
    Ok(status(is_whole))
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    out::replace(file, text).with_context(|| file.display().to_string())
}

/// Names the machine so that `apply` finds the `loaded` map again; whether there is one. What was
/// forced once stays forced.
fn name_machine(config: &mut Config, loaded: &AddrMap) -> bool {
    let Some((source, machine)) = up::loaded_machine(loaded) else {
        errln!(
            "soloist: no known machine has the map that is loaded, {}, so `soloist apply` refuses \
             this file: write the path of the machine's file at `machine =`, or copy that to {} and \
             save again",
            loaded.name(),
            up::DEFAULT_MACHINE
        );
        return false;
    };
    config.machine = Some(source);
    config.force = !weigh::objections(&machine).against.is_empty();
    true
}

#[derive(Serialize)]
struct Report<'a> {
    dry_run: bool,
    /// The map that is loaded first, with the module where that is not there.
    loads: Option<&'a str>,
    #[serde(flatten)]
    plan: &'a Steps,
}

/// A wrong file is a misuse: the user can mend it.
fn in_file(error: HostError) -> anyhow::Error {
    match error {
        HostError::File(error) if error.line > 0 => Misuse(error.to_string()).into(),
        error => error.into(),
    }
}

/// The machine that the file names.
fn machine_of(config: &Config, name: &str) -> Result<Machine, HostError> {
    let wrong = |e: FileError| config.located(KeyError::at(&["machine"], e.to_string()).into());
    known::find(name).map_err(wrong)
}

/// Runs `apply`.
pub fn apply(args: ApplyArgs, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let path = match args.file.as_os_str() == "-" {
        true => Path::new("/dev/stdin"),
        false => &args.file,
    };
    let file = path.display();
    if matches!(path.try_exists(), Ok(false)) {
        bail!("{file}: no such file; `soloist save {file}` writes it from what is set now");
    }
    let mut config = Config::read(path).map_err(in_file)?;
    let later = config.find_cgroups(&host);
    for note in later.map_err(|error| config.located(error))? {
        errln!("soloist: {note}");
    }
    let force = args.force || config.force;
    let of_machine = |name: &String| map_of(&machine_of(&config, name)?, force, &host);
    let wanted = Wanted {
        config: &config,
        map: config.machine.as_ref().map(of_machine).transpose()?,
        prune: args.prune,
        force: args.force,
    };
    let transaction = Transaction::new(wanted, &host)?;
    if config.needs_map() && transaction.map().is_none() {
        return Err(Misuse(format!(
            "{file} has colours and names no machine, and no map is loaded: write `machine = \"NAME\"` into it \
             (`soloist map list` shows the known ones)"
        ))
        .into());
    }
    let (loads, first) = (transaction.loads(), transaction.first());
    // What can't be is found before anything is loaded.
    let mut steps = transaction.plan()?;
    if !args.dry_run {
        steps = transaction.apply(&|step| ctx.step(step))?;
    }
    if ctx.json {
        let dry_run = args.dry_run;
        ctx.print_json(&Report {
            dry_run,
            loads: loads.as_deref(),
            plan: &steps,
        })?;
    } else {
        let first = first.filter(|_| args.dry_run);
        if let Some(first) = &first {
            outln!("+ {first}")?;
        }
        say(&steps, first.is_some())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine's map, weighed against the host as `up` does unless it is loaded.
fn map_of(machine: &Machine, force: bool, host: &Host) -> Result<AddrMap> {
    let map = machine.addr_map().for_pages(host.page_size())?;
    let loaded = Control::open(host).and_then(|control| control.map());
    if loaded.ok().as_ref() != Some(&map) {
        weigh::weigh(machine, force)?;
    }
    Ok(map)
}

/// `more`: something was told of before.
fn say(plan: &Steps, more: bool) -> Result<()> {
    for step in &plan.steps {
        outln!("{step}")?;
    }
    if plan.steps.is_empty() && !more {
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
