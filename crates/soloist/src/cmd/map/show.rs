//! `soloist map show`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::{show_list, PageSize};
use soloist_machine::Machine;
use soloist_map::ruler::{field_list, Ruler};
use soloist_map::summary::Summary;

use super::{classes, Pick};
use soloist_cli::machine;
use soloist_cli::out::{self, put};
use soloist_cli::{terminal_width, Ctx, Misuse};

/// What `soloist map show` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
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

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
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
        out.push_str(&Ruler::new(&machine.map, index, summary.page_bytes).text(terminal_width()));
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
