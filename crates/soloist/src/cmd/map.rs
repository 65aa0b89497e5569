//! `soloist map`: every subcommand is a call into `soloist-map`.

mod classes;
mod detect;
mod sources;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use serde::Serialize;
use soloist_core::{AddrMap, Dram, PageSize};
use soloist_detect::choice::Listed;
use soloist_host::control::Control;
use soloist_host::machine::{cpu_name, Host};
use soloist_host::words::counted;
use soloist_machine::function::Term;
use soloist_machine::known::MACHINE_DIR;
use soloist_machine::{known, Machine};
use soloist_map::ruler::{field_list, show_list, Ruler, Summary};

use super::up;
use soloist_cli::complete;
use soloist_cli::machine::{self, named};
use soloist_cli::number::whole;
use soloist_cli::out::{self, put};
use soloist_cli::table;
use soloist_cli::{Ctx, Misuse};

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
    Show(Show),
    /// Decode physical addresses to places in DRAM.
    #[command(after_help = examples!["soloist map decode -m opteron-6128 0x10005d010"])]
    Decode(Decode),
    /// Encode a place in DRAM as a physical address.
    #[command(after_help = examples![
        "soloist map encode -m opteron-6128 --node 1 --bank 3 --row 7",
    ])]
    Encode(Encode),
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
    Check(tools::Check),
    /// Examine the last-level cache: set bits, and whether they are hashed.
    #[command(after_help = examples![
        status "0 done, 1 failed, or neither a hash nor page colours can be told; 2 misused";
        "soloist map llc",
    ])]
    Llc(tools::LlcArgs),
    /// Compute a map from a table of decoded addresses.
    #[command(after_help = examples!["soloist map solve decodes.txt -o machine.toml"])]
    Solve(tools::Solve),
    /// Read the map from the registers of an AMD Family 10h processor, or where memory
    /// lies from those of an Intel client's host bridge.
    #[command(hide = true)]
    Registers(tools::ReadRegisters),
    /// Convert maps of other tools to machine files and back.
    #[command(after_help = examples!["soloist map convert zen2 --from machine --to hex"])]
    Convert(tools::Convert),
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
        let name = loaded.name();
        let Err(error) = known::find(&name) else {
            return Ok(name);
        };
        match up::loaded_machine(&loaded) {
            Some((source, _)) => Ok(source),
            None => bail!(
                "{error}; Soloist does not find the file of the loaded map: name it (--machine FILE), \
                 or copy it to {MACHINE_DIR}/{name}.toml"
            ),
        }
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

/// Writes a machine file. Its folder is made: nothing else makes that of the
/// administrator's.
fn write_machine(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    out::write(file, text)
}

#[derive(Debug, clap::Args)]
pub struct Show {
    #[command(flatten)]
    pick: Pick,
    /// Show the colours for pages of 4K, 16K or 64K [default: this kernel's].
    #[arg(long, value_name = "SIZE")]
    page_size: Option<PageSize>,
    /// Print the map text that the kernel module takes.
    #[arg(long, conflicts_with = "svg")]
    text: bool,
    /// Write the bit ruler as an SVG picture (`-`: standard output).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Decode {
    #[command(flatten)]
    pick: Pick,
    /// Physical addresses, decimal or 0x hexadecimal.
    #[arg(required = true, value_parser = parse_address)]
    addresses: Vec<u64>,
}

#[derive(Debug, clap::Args)]
pub struct Encode {
    #[command(flatten)]
    pick: Pick,
    /// Node [default: the first with memory].
    #[arg(long, value_parser = whole::<u32>(..))]
    node: Option<u32>,
    /// Channel of the node.
    #[arg(long, default_value_t = 0, value_parser = whole::<u32>(..))]
    channel: u32,
    /// Rank as `decode` prints it: the chip select.
    #[arg(long, value_parser = whole::<u32>(..))]
    rank: Option<u32>,
    /// Bank of the rank.
    #[arg(long, default_value_t = 0, value_parser = whole::<u32>(..))]
    bank: u32,
    /// Row of the bank.
    #[arg(long, default_value_t = 0, value_parser = whole::<u32>(..))]
    row: u32,
    /// Column as `decode` prints it.
    #[arg(long, default_value_t = 0, value_parser = whole::<u32>(..))]
    column: u32,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::List => list(ctx),
        Args::Show(args) => show(&args, ctx),
        Args::Decode(args) => decode(&args, ctx),
        Args::Encode(args) => encode(&args, ctx),
        Args::Detect(args) => detect::run(&args, ctx),
        Args::Check(args) => match machine::classes(&args.machine)? {
            Some(map) => classes::check(&map, &args, ctx),
            None => tools::check(&args, ctx),
        },
        Args::Llc(args) => tools::llc(&args, ctx),
        Args::Solve(args) => tools::run_solve(&args, ctx),
        Args::Registers(args) => tools::read_registers(&args.how, args.output.as_deref(), ctx),
        Args::Convert(args) => tools::convert(&args, ctx),
    }
}

/// Says that a file was written, and at once whether `soloist up` takes it.
fn wrote(path: &Path, refused: &[String]) {
    let path = path.display();
    match refused {
        [] => errln!("wrote {path}"),
        why => errln!(
            "wrote {path}, which `soloist up --machine {path}` refuses: {}",
            why.join("; ")
        ),
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

/// A decoded address as it is printed.
#[derive(Serialize)]
struct Place {
    addr: String,
    node: u32,
    channel: u32,
    /// As the machine numbers it: its chip select.
    rank: u32,
    /// From 0, as bank colours count it.
    rank_index: u32,
    bank: u32,
    row: u32,
    column: u32,
    color: u32,
    bank_set: u32,
    llc_color: u32,
}

impl Place {
    fn new(map: &AddrMap, addr: u64) -> Result<Self> {
        let dram = map.decode(addr)?;
        let frame = map
            .color_of_frame(addr >> map.page_size().shift())
            .context("the frame lies in a hole")?;
        Ok(Self {
            addr: format!("{addr:#x}"),
            node: dram.node,
            channel: dram.channel,
            rank: dram.chip_select,
            rank_index: dram.rank,
            bank: dram.bank,
            row: dram.row,
            column: dram.column,
            color: dram.color,
            bank_set: frame.bank_set,
            llc_color: frame.llc,
        })
    }
}

fn decode(args: &Decode, ctx: &Ctx) -> Result<ExitCode> {
    if let Some(map) = machine::classes(&args.pick.name()?)? {
        return classes::decode(&map, &args.addresses, ctx);
    }
    let (_, map) = args.pick.load(None)?;
    let places = args
        .addresses
        .iter()
        .map(|&addr| Place::new(&map, addr))
        .collect::<Result<Vec<_>>>()?;
    if ctx.json {
        ctx.print_json(&places)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = plain_table();
    table.set_header([
        "address", "node", "channel", "rank", "bank", "row", "column", "color", "bank set", "LLC",
    ]);
    for place in &places {
        table.add_row([
            place.addr.clone(),
            place.node.to_string(),
            place.channel.to_string(),
            place.rank.to_string(),
            place.bank.to_string(),
            place.row.to_string(),
            place.column.to_string(),
            place.color.to_string(),
            place.bank_set.to_string(),
            place.llc_color.to_string(),
        ]);
    }
    put(&format!("{table}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn encode(args: &Encode, ctx: &Ctx) -> Result<ExitCode> {
    let (machine, map) = args.pick.load(None)?;
    let place = args.place(&machine, &map)?;
    let addr = map.encode(&place)?;
    if ctx.json {
        ctx.print_json(&Place::new(&map, addr)?)?;
    } else {
        put(&format!("{addr:#x}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Encode {
    /// The place, whose fields exist on its node.
    fn place(&self, machine: &Machine, map: &AddrMap) -> Result<Dram> {
        let name = &machine.about.name;
        let nodes = map.memory_nodes();
        let node = self.node.unwrap_or(nodes[0]);
        in_range("node", node, map.n_nodes(), 0, name)?;
        if !nodes.contains(&node) {
            let nodes = show_list(&nodes);
            let what = format!("--node {node}: {name} has no memory there, but on nodes {nodes}");
            return Err(Misuse(what).into());
        }
        let first = first_rank(machine, node)?;
        let rank = self.rank.unwrap_or(first).checked_sub(first);
        let rank = rank.ok_or_else(|| {
            let named = self.rank.unwrap_or(0);
            Misuse(format!(
                "--rank {named}: the ranks of {name} on node {node} are numbered from {first}"
            ))
        })?;
        for (field, value, number, first) in [
            ("channel", self.channel, map.n_channels(), 0),
            ("rank", rank, map.n_ranks(), first),
            ("bank", self.bank, map.n_banks(), 0),
        ] {
            in_range(field, value, number, first, name)?;
        }
        printed_fit(machine, node, self)?;
        Ok(Dram {
            node,
            channel: self.channel,
            rank,
            chip_select: 0,
            bank: self.bank,
            row: self.row,
            column: self.column,
            color: 0,
        })
    }
}

/// Whether `value`, counted from 0, is one of `number`.
fn in_range(field: &str, value: u32, number: u32, first: u32, name: &str) -> Result<(), Misuse> {
    if value < number {
        return Ok(());
    }
    Err(Misuse(format!(
        "--{field} {}: {name} has {}, numbered from {first}",
        value + first,
        counted(number.into(), field)
    )))
}

/// Whether row and column have only bits that those of the node's layouts have.
fn printed_fit(machine: &Machine, node: u32, asked: &Encode) -> Result<(), Misuse> {
    let ranges = machine.map.ranges.iter();
    let of_node = ranges.filter(|range| u32::from(range.node) == node);
    let layouts: Vec<_> = of_node
        .map(|range| &machine.map.layouts[range.layout])
        .collect();
    let rows: Vec<Term> = layouts.iter().flat_map(|of| of.row.clone()).collect();
    let columns: Vec<Term> = layouts.iter().flat_map(|of| of.column.clone()).collect();
    for (field, value, terms) in [("row", asked.row, rows), ("column", asked.column, columns)] {
        let mask = terms.iter().fold(0_u64, |mask, term| mask | 1 << term.at);
        if u64::from(value) & !mask != 0 {
            let name = &machine.about.name;
            let of = format!("the {field}s of {name} on node {node} are within mask {mask:#x}");
            return Err(Misuse(format!("--{field} {value}: {of}")));
        }
    }
    Ok(())
}

/// What the ranks of a node are numbered from, where its layouts agree.
fn first_rank(machine: &Machine, node: u32) -> Result<u32, Misuse> {
    let ranges = machine.map.ranges.iter();
    let of_node = ranges.filter(|range| u32::from(range.node) == node);
    let mut firsts: Vec<u32> = of_node
        .map(|range| u32::from(machine.map.layouts[range.layout].chip_select))
        .collect();
    firsts.dedup();
    match *firsts.as_slice() {
        [first] => Ok(first),
        _ => Err(Misuse(format!(
            "{}: the layouts of node {node} number its ranks from {}, so that a rank names no \
             place: `map decode` tells it of an address",
            machine.about.name,
            show_list(&firsts)
        ))),
    }
}

fn list(ctx: &Ctx) -> Result<ExitCode> {
    let loaded = Control::open(&Host::live()).and_then(|control| control.map());
    let loaded = loaded.ok();
    let mut listed = Vec::new();
    for machine in known::all() {
        match machine {
            Ok(machine) => listed.push(Listed::new(&Host::live(), &machine, loaded.as_ref())),
            Err(error) => errln!("soloist: {error}"),
        }
    }
    if ctx.json {
        ctx.print_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    put(&list_text(&listed))?;
    Ok(ExitCode::SUCCESS)
}

fn list_text(listed: &[Listed]) -> String {
    let mut table = table(["MACHINE", "MAP", "HOST", "DESCRIPTION"]);
    for machine in listed {
        let host = match (machine.loaded, machine.fits) {
            (true, _) => "loaded",
            (false, true) => "fits",
            (false, false) => "-",
        };
        table.add_row([&machine.name, &machine.trust, host, &machine.description]);
    }
    let table = table.trim_fmt();
    let cpu = cpu_name(&Host::live()).unwrap_or_else(|| "not known".into());
    let mut out = format!("{table}\n\nThis host: {cpu}\n");
    for machine in listed.iter().filter(|machine| machine.fits) {
        out.push_str(&format!(
            "{} fits: {}. Make sure: soloist map check --machine {}\n",
            machine.name,
            machine.reasons.join("; "),
            machine.name
        ));
    }
    if !listed.iter().any(|machine| machine.fits || machine.loaded) {
        out.push_str("None of them fits it; `soloist map detect` finds the map by timing.\n");
    }
    out
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    description: &'a str,
    trust: String,
    source: &'a [String],
    layouts: Vec<serde_json::Value>,
    llc: Vec<u64>,
    ranges: &'a [soloist_machine::MapRange],
    colors: Summary,
    text: String,
}

fn show(args: &Show, ctx: &Ctx) -> Result<ExitCode> {
    if let Some(map) = machine::classes(&args.pick.name()?)? {
        return match args.text || args.svg.is_some() {
            true => classes::refuse_drawing(),
            false => classes::show(&map, ctx),
        };
    }
    let to_file = args.svg.as_deref().filter(|path| path.as_os_str() != "-");
    if ctx.json && (args.text || args.svg.is_some() && to_file.is_none()) {
        let why = "--json prints a document of its own, which has the map's text: leave out \
                   --text, and give --svg a file";
        return Err(Misuse(why.to_owned()).into());
    }
    let (machine, map) = args.pick.load(args.page_size)?;
    if args.text {
        put(&machine.map_text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let summary = Summary::new(&machine, &map);
    if args.svg.is_some() {
        let svg = Ruler::new(&machine.map, 0, map.page_size())
            .svg(&machine.about.description, &summary.sentences());
        match to_file {
            Some(path) => out::write(path, &svg)?,
            None => put(&svg)?,
        }
        if !ctx.json {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if ctx.json {
        let layouts = machine.map.layouts.iter().map(|layout| {
            serde_json::json!({
                "name": layout.name,
                "channel": layout.channel,
                "rank": layout.rank,
                "bank": layout.bank,
                "row": layout.row_masks(),
                "column": layout.column.iter().map(|term| term.mask).collect::<Vec<_>>(),
                "chip_select": layout.chip_select,
            })
        });
        ctx.print_json(&Shown {
            name: &machine.about.name,
            description: &machine.about.description,
            trust: machine.about.trust.to_string(),
            source: &machine.about.source,
            layouts: layouts.collect(),
            llc: machine.map.llc.clone(),
            ranges: &machine.map.ranges,
            colors: summary,
            text: machine.map_text(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    put(&drawing(&machine, &summary))?;
    Ok(ExitCode::SUCCESS)
}

/// The text of `map show`.
fn drawing(machine: &Machine, summary: &Summary) -> String {
    let about = &machine.about;
    let mut out = format!(
        "{}: {}\nThe map is {}.\n\n",
        about.name, about.description, about.trust
    );
    for index in 0..machine.map.layouts.len() {
        let layout = &machine.map.layouts[index];
        if !layout.name.is_empty() {
            out.push_str(&format!("layout {}\n", layout.name));
        }
        out.push_str(&Ruler::new(&machine.map, index, summary.page_bytes).text());
        out.push('\n');
        for (field, functions) in field_list(&machine.map, index) {
            out.push_str(&format!("{field:8} {functions}\n"));
        }
        out.push('\n');
    }
    for range in &machine.map.ranges {
        let layout = match machine.map.layouts[range.layout].name.as_str() {
            "" => String::new(),
            name => format!(", layout {name}"),
        };
        out.push_str(&format!(
            "{:#13x} to {:#13x}  node {}, offset {:#x}{layout}\n",
            range.start,
            range.end - 1,
            range.node,
            range.base
        ));
    }
    out.push('\n');
    for sentence in summary.sentences() {
        out.push_str(&format!("{sentence}\n"));
    }
    if summary.cells < summary.pairs {
        let node = summary.first_node;
        out.push_str(&format!("\nOn node {node} these pairs exist:\n"));
        for (sets, llc) in &summary.pairing {
            out.push_str(&format!(
                "  bank sets {} with LLC colours {}\n",
                show_list(sets),
                show_list(llc)
            ));
        }
    }
    out
}

fn plain_table() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table
}
