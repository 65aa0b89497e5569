//! `soloist map decode|encode`: addresses and places in DRAM.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use soloist_core::{show_list, AddrMap, Dram};
use soloist_host::words::counted;
use soloist_machine::function::Term;
use soloist_machine::Machine;

use super::{classes, parse_address, plain_table, Pick};
use soloist_cli::machine;
use soloist_cli::number::whole;
use soloist_cli::out::put;
use soloist_cli::{Ctx, Misuse};

/// What `soloist map decode` takes.
#[derive(Debug, clap::Args)]
pub struct Decode {
    #[command(flatten)]
    pick: Pick,
    /// Physical addresses, decimal or 0x hexadecimal.
    #[arg(required = true, value_parser = parse_address)]
    addresses: Vec<u64>,
}

/// What `soloist map encode` takes.
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

/// Runs `decode`.
pub fn decode(args: &Decode, ctx: &Ctx) -> Result<ExitCode> {
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

/// Runs `encode`.
pub fn encode(args: &Encode, ctx: &Ctx) -> Result<ExitCode> {
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
