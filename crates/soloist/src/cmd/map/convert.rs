//! `soloist map convert`: maps of other tools, and for them.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use soloist_core::parse_size;
use soloist_machine::{known, FileError, Machine, Trust};
use soloist_map::formats::any::{plain_topology, AnyFormat, ImportError, Imported};
use soloist_map::formats::found::Memory;

use super::made::{about, read_input};
use soloist_cli::machine::named;
use soloist_cli::out::put;
use soloist_cli::{Ctx, Misuse};

/// What `soloist map convert` takes.
#[derive(Debug, clap::Args)]
pub struct Convert {
    /// File to read (`-`: standard input), a machine with `--from machine`, or
    /// the order itself with `--from order`.
    input: String,
    /// Its format: bits (map.txt of IsolBench, DRAMA++, PALLOC), drama (Sudoku's
    /// log too), dare (ZenHammer), hex, palloc, trrespass, dramdig, blacksmith, order (RoRaBaCoCh
    /// of gem5, Ramulator 2 and DRAMsim3), or machine.
    #[arg(long)]
    from: String,
    /// Format to write: those, or text (the kernel's).
    #[arg(long)]
    to: String,
    /// Widths of an order's fields: channels, ranks, groups, banks, lines (of a row),
    /// such as channels=2,banks=16,lines=128 [default: 1 each].
    #[arg(long, value_name = "LIST")]
    geometry: Option<String>,
    /// Start of the hole below 4 GiB (the first PCI address of /proc/iomem). Memory
    /// behind it is remapped above; addresses skip the hole, as on AMD.
    #[arg(long, value_name = "ADDRESS", value_parser = super::parse_address, conflicts_with = "base")]
    hole: Option<u64>,
    /// First address of memory: 0x40000000 or 0x80000000 on many Arm boards [default: 0].
    #[arg(long, value_name = "ADDRESS", value_parser = super::parse_address, conflicts_with = "hole")]
    start: Option<u64>,
    /// Offset of the first byte of memory, to which the functions apply [default: its
    /// address].
    #[arg(long, value_name = "BYTES", value_parser = super::parse_address)]
    base: Option<u64>,
    /// Memory that the functions cover, for machine and text [default: the reach of the
    /// file's rows, at least 8G].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Name of the new machine [default: converted].
    #[arg(long)]
    name: Option<String>,
}

impl Convert {
    /// Why an option that is named would change nothing.
    fn idle(&self) -> Option<String> {
        let geometry = ("--geometry", self.geometry.is_some());
        let memory = [
            ("--hole", self.hole.is_some()),
            ("--start", self.start.is_some()),
            ("--base", self.base.is_some()),
            ("--name", self.name.is_some()),
            ("--memory", self.memory.is_some()),
        ];
        let named = |options: &[(&'static str, bool)]| {
            let mut named = options.iter().filter(|(_, is_named)| *is_named);
            named.next().map(|(option, _)| *option)
        };
        if self.from == "machine" {
            // Which says all of this itself.
            let option = named(&[geometry]).or(named(&memory))?;
            let input = &self.input;
            return Some(format!(
                "{option} is for other formats: --from machine takes all from {input}"
            ));
        }
        if let Some(option) = named(&[geometry]).filter(|_| self.from != "order") {
            let why = "which has no widths of its own: a file has them";
            return Some(format!("{option} is for --from order, {why}"));
        }
        let lists = matches!(self.to.parse(), Ok(AnyFormat::Functions(_)));
        // Where an order's rows end, memory says.
        let only_rows = self.from == "order";
        let option = named(&memory).filter(|of| lists && !(only_rows && *of == "--memory"))?;
        let to = &self.to;
        Some(format!(
            "{option} is for --to machine or text: {to} is a list of functions"
        ))
    }
}

/// Runs the command.
pub fn run(args: &Convert, ctx: &Ctx) -> Result<ExitCode> {
    if let Some(why) = args.idle() {
        return Err(Misuse(why).into());
    }
    if args.from == "machine" && args.to == "machine" {
        return print_whole(&args.input, ctx);
    }
    let (name, topology, mut imported) = match args.from.as_str() {
        "machine" => {
            let Machine {
                about,
                topology,
                map,
                ..
            } = named(&args.input)?;
            (about.name, topology, Imported::whole(map, about.trust))
        }
        _ => {
            let imported = import(args)?;
            let name = args.name.as_deref().unwrap_or("converted");
            (name.to_owned(), plain_topology(&imported.map), imported)
        }
    };
    if args.to == "machine" && !imported.notes.is_empty() {
        let incomplete = "Nothing has shown that, so the map is incomplete: `soloist up` takes it \
                          with --force only; `soloist map check` measures it.";
        imported.notes.push(incomplete.into());
    }
    let about = about(
        &name,
        imported.trust,
        format!("converted from {}", args.from),
    );
    let text = imported.write(&args.to, &about, &topology);
    let text = text.map_err(|error| said(error, &name))?;
    let notes = [imported.notes.clone(), imported.left_out(&args.to)].concat();
    print(&name, imported.trust, &notes, &text, ctx)
}

/// A machine's file as it is: it holds more than the map.
fn print_whole(name: &str, ctx: &Ctx) -> Result<ExitCode> {
    let misuse = |error: FileError| Misuse(error.to_string());
    let (text, file) = known::find_text(name).map_err(misuse)?;
    let about = Machine::parse(&text, &file).map_err(misuse)?.about;
    print(&about.name, about.trust, &[], &text, ctx)
}

fn print(name: &str, trust: Trust, notes: &[String], text: &str, ctx: &Ctx) -> Result<ExitCode> {
    for note in notes.iter().filter(|_| !ctx.json) {
        errln!("{name}: {note}");
    }
    match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "name": name,
            "trust": trust,
            "notes": notes,
            "text": text,
        }))?,
        false => put(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a format refuses, as the command ends: misused, or of that file.
fn said(error: ImportError, file: &str) -> anyhow::Error {
    match error {
        ImportError::Misuse(why) => Misuse(why).into(),
        ImportError::Format(wrong) => wrong.of_file(file).into(),
        ImportError::Unsaid(_) => error.into(),
        ImportError::Fill(_) => anyhow::Error::new(error).context(file.to_owned()),
    }
}

/// The map that another tool's file makes of the memory.
fn import(args: &Convert) -> Result<Imported> {
    let format: AnyFormat = args.from.parse().map_err(Misuse)?;
    let text = match format {
        AnyFormat::Order => args.input.clone(),
        _ => read_input(Path::new(&args.input))?,
    };
    let start = args.start.unwrap_or(0);
    let memory = Memory {
        bytes: args.memory,
        start,
        base: args.base.unwrap_or(start),
        hole: args.hole,
    };
    format
        .import(&text, args.geometry.as_deref().unwrap_or(""), &memory)
        .map_err(|error| said(error, &args.input))
}
