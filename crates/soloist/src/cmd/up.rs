//! `soloist up` and `soloist down`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;
use soloist_core::AddrMap;
use soloist_host::{load, unload, Host, ModuleChoice};
use soloist_map::{known, Machine};

use crate::Ctx;

/// The machine file that `up` takes where `--machine` names none.
const DEFAULT_MACHINE: &str = "/etc/soloist/machine.toml";

/// Load the module for the running kernel, and the machine's address map.
///
/// Takes an installed module or one built before; otherwise builds it from the
/// source tree that this program lies in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The machine: a name from `soloist map list` or a machine file. Default:
    /// /etc/soloist/machine.toml where there is one.
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,

    /// Load this module file.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,

    /// A parameter of the module, such as mmap_abi=1; may be given several
    /// times.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
}

/// Runs `up`.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let map = machine_map(args.machine.as_deref())?;
    let say = |step: &str| {
        if ctx.progress {
            eprintln!("soloist: {step} ...");
        }
    };
    let module = ModuleChoice {
        file: args.module,
        params: args.params,
    };
    let report = load(&Host::live(), &module, map.as_ref(), &say)?;
    if ctx.json {
        ctx.print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    match &report.module {
        Some(path) => println!("module: loaded {}", path.display()),
        None => println!("module: was loaded already"),
    }
    match &report.map {
        Some(name) => println!("map:    {name}"),
        None => println!(
            "map:    none yet; `soloist map list` shows known machines, then `soloist up --machine NAME`"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Unload the module: every task leaves its group, every page goes back.
#[derive(Debug, clap::Args)]
pub struct DownArgs {}

/// Runs `down`.
pub fn run_down(_args: DownArgs, ctx: &Ctx) -> Result<ExitCode> {
    let was_loaded = unload(&Host::live())?;
    if ctx.json {
        ctx.print_json(&json!({ "was_loaded": was_loaded }))?;
    } else if was_loaded {
        println!("module: unloaded");
    } else {
        println!("module: was not loaded");
    }
    Ok(ExitCode::SUCCESS)
}

fn machine_map(name: Option<&str>) -> Result<Option<AddrMap>> {
    let machine = match name {
        Some(name) => known::find(name)?,
        None if Path::new(DEFAULT_MACHINE).is_file() => {
            Machine::read(Path::new(DEFAULT_MACHINE)).context("the default machine")?
        }
        None => return Ok(None),
    };
    Ok(Some(machine.addr_map()))
}
