//! `soloist up` and `soloist down`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;
use soloist_bench::advice::weaknesses::{hashed_cache, warnings, weaknesses};
use soloist_core::AddrMap;
use soloist_host::control::{load, unload, ModuleChoice};
use soloist_host::machine::{spinners, topology, Host};
use soloist_machine::known::{self, MACHINE_DIR};
use soloist_machine::Machine;

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::weigh::weigh;
use soloist_cli::{outln, Ctx};

/// The machine file that `up` takes where `--machine` names none.
pub(crate) const DEFAULT_MACHINE: &str = "/etc/soloist/machine.toml";

/// Load the module for the running kernel, and the machine's address map.
///
/// Uses an installed module, or one built before, or builds it from the source tree of
/// this program.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist up --machine opteron-6128",
    "soloist up --param mmap_abi=1",
])]
pub struct Args {
    /// Machine: a name from `soloist map list` or a machine file [default:
    /// /etc/soloist/machine.toml, if it exists].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,

    /// Load this module file.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,

    /// Parameter of the module, such as mmap_abi=1; may be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Use the machine's map even if it is incomplete or this host contradicts it.
    /// Then tasks with different colours may share banks.
    #[arg(long)]
    force: bool,
}

/// Runs `up`.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let machine = machine_of(args.machine.as_deref())?;
    if let Some(machine) = &machine {
        weigh(machine, args.force)?;
    }
    let map = machine.as_ref().map(Machine::addr_map);
    let module = ModuleChoice {
        file: args.module,
        params: args.params,
    };
    let report = load(&Host::live(), &module, map.as_ref(), &|step| ctx.step(step))?;
    if ctx.json {
        ctx.print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(map), Some(machine)) = (&map, &machine) {
        tell_weaknesses(map, machine)?;
    }
    match &report.module {
        Some(path) => outln!("module: loaded {}", path.display())?,
        None => outln!("module: was loaded already")?,
    }
    match &report.map {
        Some(name) => match machine.as_ref().filter(|m| m.about.name == *name) {
            Some(machine) => outln!("map:    {name}, {}", machine.about.trust)?,
            None => outln!("map:    {name}")?,
        },
        None => outln!(
            "map:    none yet; `soloist map list` shows known machines, then `soloist up --machine NAME`"
        )?,
    }
    if let Some(left) = &report.left {
        outln!("pages:  {left}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells all that is known to speak against colours of this machine's map.
fn tell_weaknesses(map: &AddrMap, machine: &Machine) -> Result<()> {
    let host = Host::live();
    let map = map.for_pages(host.page_size())?;
    let weak = weaknesses(&map, topology(&host).processors()).into_iter();
    let weak = weak.map(|weakness| weakness.says);
    for says in weak.chain(hashed_cache(map.n_llc(), machine)) {
        errln!("soloist: {says}");
    }
    Ok(())
}

/// Unload the module: remove groups and rules, and give every page back.
///
/// Fails if groups have tasks, and names the groups.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist down", "soloist down --force"])]
pub struct DownArgs {
    /// Move tasks out of their groups first; their new pages have no colour.
    #[arg(long)]
    force: bool,
}

/// Runs `down`.
pub fn run_down(args: DownArgs, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    if host.has("/sys/module/soloist") && host.is_root() {
        for spinner in spinners(&host) {
            errln!(
                "soloist: thread {} ({}) keeps CPU {} without a pause: the kernel unloads a module when each CPU has scheduled, so this waits for it",
                spinner.tid,
                spinner.command,
                spinner.cpu
            );
        }
    }
    let was_loaded = unload(&host, args.force)?;
    if ctx.json {
        ctx.print_json(&json!({ "was_loaded": was_loaded }))?;
    } else if was_loaded {
        outln!("module: unloaded")?;
    } else {
        outln!("module: was not loaded")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine whose map is loaded, and where its file is found: by the map's name, or as
/// the file that `up` takes without a name.
pub(super) fn loaded_machine(loaded: &AddrMap) -> Option<(String, Machine)> {
    let sources = [loaded.name(), DEFAULT_MACHINE.to_owned()];
    sources.into_iter().find_map(|source| {
        let machine = known::find(&source).ok()?;
        (machine.addr_map() == *loaded).then_some((source, machine))
    })
}

/// As [`loaded_machine`], for those who need it.
pub(super) fn known_machine(loaded: &AddrMap) -> Result<(String, Machine)> {
    let name = loaded.name();
    loaded_machine(loaded).with_context(|| {
        format!(
            "{name}: no machine file that is known has the loaded map: name it (--machine FILE), or \
             copy it to {MACHINE_DIR}/{name}.toml"
        )
    })
}

/// Tells those who colour what speaks against colours of the loaded map.
pub(super) fn warn(loaded: &AddrMap, host: &Host) {
    // Only a map with cache colours is asked whether its machine hashes them.
    let machine = (loaded.n_llc() > 1)
        .then(|| loaded_machine(loaded))
        .flatten();
    let machine = machine.as_ref().map(|(_, machine)| machine);
    for words in warnings(loaded, machine, host) {
        errln!("soloist: {words}");
    }
}

fn machine_of(name: Option<&str>) -> Result<Option<Machine>> {
    let machine = match name {
        Some(name) => named(name)?,
        None if Path::new(DEFAULT_MACHINE).is_file() => {
            Machine::read(Path::new(DEFAULT_MACHINE)).context("the default machine")?
        }
        None => return Ok(None),
    };
    Ok(Some(machine))
}
