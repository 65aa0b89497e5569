//! `soloist map detect --from registers`, of this machine or of a dump.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use soloist_host::machine::pci;
use soloist_host::machine::Host;
use soloist_machine::{write, MapSpec, Trust};
use soloist_map::formats::any::plain_topology;
use soloist_map::sources::{amd10h, registers};

use super::made::{about, emit, file_of, read_input, written};
use soloist_cli::complete;
use soloist_cli::{weigh, Ctx};

/// What `soloist map registers`, the old name of `map detect --from registers`, takes.
#[derive(Debug, clap::Args)]
pub struct ReadRegisters {
    #[command(flatten)]
    pub how: Registers,
    /// Write the machine file here instead of to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How registers are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "With --from registers")]
pub struct Registers {
    /// Read a dump (`lspci -xxxx`, or lines `18.1 0x40 0x3`), not this
    /// machine's /sys/bus/pci.
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Functions to use on an Intel client: those of this machine (a name or a file).
    /// Its host bridge says where memory lies, but nothing about banks.
    #[arg(long, value_name = "MACHINE", conflicts_with = "dump", add = complete::machines())]
    functions: Option<String>,
    /// Name of the machine [default: decoded].
    #[arg(long)]
    name: Option<String>,
}

impl Registers {
    /// Are other registers than this machine's asked for, or functions over them?
    pub fn is_asked(&self) -> bool {
        self.dump.is_some() || self.functions.is_some()
    }

    /// Is the map named?
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }
}

/// Reads them.
pub fn run(args: &Registers, output: Option<&Path>, ctx: &Ctx) -> Result<ExitCode> {
    let (map, trust, source) = match &args.functions {
        Some(name) => {
            let (map, source) = registers::over_bridge(&Host::live(), name)?;
            (map, Trust::Incomplete, source)
        }
        None => decoded(args.dump.as_deref())?,
    };
    let name = args.name.as_deref().unwrap_or("decoded");
    let about = about(name, trust, source);
    let text = write::machine_file(&about, &plain_topology(&map), &map, &[]);
    let output = file_of(output);
    let machine = emit(&text, output, ctx)?;
    let refused = match &args.dump {
        // A dump may be of another machine: whether it fits is asked there.
        Some(_) => weigh::incomplete(&machine).into_iter().collect(),
        None => weigh::objections(&machine).against,
    };
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "ranges": map.ranges,
            "text": machine.map_text(),
            "machine": text,
            "refused": refused,
        })),
        false => Ok(()),
    };
    Ok(written(output, &refused, printed, ctx))
}

/// The map in the registers of an AMD Family 10h processor, of this machine or a dump, how
/// far it can be trusted, and where it is from.
fn decoded(dump: Option<&Path>) -> Result<(MapSpec, Trust, String)> {
    let source = "decoded from AMD Family 10h registers";
    let Some(path) = dump else {
        let map = registers::decode(&Host::live())?;
        return Ok((map, Trust::Exact, source.into()));
    };
    let named = || path.display().to_string();
    let registers = pci::Registers::parse(&read_input(path)?).map_err(|e| e.of_file(named()))?;
    let map = amd10h::map(&registers)?;
    Ok(match amd10h::is_named(&registers)? {
        true => (map, Trust::Exact, source.into()),
        false => {
            let open = format!("{source}; the dump lacks F0x0 and F3xFC, which name the family");
            (map, Trust::Incomplete, open)
        }
    })
}
