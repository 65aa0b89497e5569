//! `soloist map`: every subcommand is a call into `soloist-map`.

mod check;
mod classes;
mod convert;
mod detect;
mod list;
mod llc;
mod made;
mod place;
mod registers;
mod show;
mod solve;
mod sources;

use std::process::ExitCode;

use anyhow::{Context, Result};
use soloist_core::{AddrMap, PageSize};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_machine::Machine;

use super::up;
use soloist_cli::complete;
use soloist_cli::machine::{self, named};
use soloist_cli::Ctx;

/// Find and show address maps: how addresses select banks and cache sets.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// List known machines, and which of them fit this host.
    #[command(after_help = examples!["soloist map list"])]
    List,
    /// Draw a machine's map: bits, colours, capacities, impossible pairs.
    #[command(after_help = examples![
        "soloist map show",
        "soloist map show -m zen2 --svg zen2.svg",
    ])]
    Show(show::Args),
    /// Decode physical addresses to places in DRAM.
    #[command(after_help = examples!["soloist map decode -m opteron-6128 0x10005d010"])]
    Decode(place::Decode),
    /// Encode a place in DRAM as a physical address.
    #[command(after_help = examples![
        "soloist map encode -m opteron-6128 --node 1 --bank 3 --row 7",
    ])]
    Encode(place::Encode),
    /// Find this machine's map: known, from firmware, from registers or by timing.
    #[command(after_help = examples![
        status "0 a whole map, 1 part of one, none, or two that contradict each other; 2 misused";
        "soloist map detect -o /etc/soloist/machines/mine.toml",
        "soloist map detect --from firmware",
        "soloist map detect --from registers --dump registers.txt",
    ])]
    Detect(detect::Args),
    /// Check a map by timing.
    #[command(after_help = examples![
        status "0 the map fits, 1 it is contradicted or nothing is proved, 2 misused";
        "soloist map check -m skylake",
    ])]
    Check(check::Check),
    /// Examine the last-level cache: set bits, and whether they are hashed.
    #[command(after_help = examples![
        status "0 done, 1 failed, or neither a hash nor page colours can be told; 2 misused";
        "soloist map llc",
    ])]
    Llc(llc::Args),
    /// Compute a map from a table of decoded addresses.
    #[command(after_help = examples!["soloist map solve decodes.txt -o machine.toml"])]
    Solve(solve::Solve),
    /// Read the map from the registers of an AMD Family 10h processor, or where memory
    /// lies from those of an Intel client's host bridge.
    #[command(hide = true)]
    Registers(registers::ReadRegisters),
    /// Convert maps of other tools to machine files and back.
    #[command(after_help = examples!["soloist map convert zen2 --from machine --to hex"])]
    Convert(convert::Convert),
}

#[derive(Debug, clap::Args)]
struct Pick {
    /// Machine: a name from `soloist map list` or a machine file [default: that of
    /// the loaded map].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
}

impl Pick {
    /// The machine named, or the one whose map is loaded.
    fn name(&self) -> Result<String> {
        if let Some(name) = &self.machine {
            return Ok(name.clone());
        }
        let loaded = Control::open(&Host::live()).and_then(|control| control.map());
        let loaded = loaded.context("no machine was named (--machine NAME)")?;
        Ok(up::known_machine(&loaded)?.0)
    }

    /// The machine, and its map for pages of this size [default: this host's].
    fn load(&self, pages: Option<PageSize>) -> Result<(Machine, AddrMap)> {
        let machine = named(&self.name()?)?;
        let map = map_for(&machine, pages)?;
        Ok((machine, map))
    }
}

/// The machine's map for pages of this size [default: this host's].
pub(super) fn map_for(machine: &Machine, pages: Option<PageSize>) -> Result<AddrMap> {
    let pages = pages.unwrap_or_else(|| Host::live().page_size());
    let map = machine.addr_map().for_pages(pages);
    map.with_context(|| format!("{} with pages of {pages}", machine.about.name))
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::List => list::run(ctx),
        Args::Show(args) => show::run(&args, ctx),
        Args::Decode(args) => place::decode(&args, ctx),
        Args::Encode(args) => place::encode(&args, ctx),
        Args::Detect(args) => detect::run(&args, ctx),
        Args::Check(args) => match machine::classes(&args.machine)? {
            Some(map) => classes::check(&map, &args, ctx),
            None => check::run(&args, ctx),
        },
        Args::Llc(args) => llc::run(&args, ctx),
        Args::Solve(args) => solve::run(&args, ctx),
        Args::Registers(args) => registers::run(&args.how, args.output.as_deref(), ctx),
        Args::Convert(args) => convert::run(&args, ctx),
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    parsed.map_err(|_| format!("`{text}`: expected an address such as 0x10005d010"))
}

fn plain_table() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table
}
