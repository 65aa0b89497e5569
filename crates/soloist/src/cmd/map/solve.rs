//! `soloist map solve`: a map from decoded addresses.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use soloist_machine::{gf2, write, Trust};
use soloist_map::formats::any::plain_topology;
use soloist_map::solve;

use super::made::{about, emit, file_of, read_input, written};
use soloist_cli::{weigh, Ctx};

/// What `soloist map solve` takes.
#[derive(Debug, clap::Args)]
pub struct Solve {
    /// CSV with a header: address, node, channel, rank, bankgroup, bank, row, column
    /// (`-`: standard input).
    file: PathBuf,
    /// Write the machine file here instead of to standard output. Exits with 1 if the
    /// map is incomplete, which `up` refuses.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Name of the machine.
    #[arg(long, default_value = "solved")]
    name: String,
}

/// Runs the command.
pub fn run(args: &Solve, ctx: &Ctx) -> Result<ExitCode> {
    let named = || args.file.display().to_string();
    let given = read_input(&args.file)?;
    let rows = solve::parse_rows(&given).map_err(|e| e.of_file(named()))?;
    let solved = solve::solve(&rows).map_err(|e| e.of_file(named()))?;
    let open: Vec<String> = solved.open.iter().map(|&f| gf2::show(f)).collect();
    let mut notes = vec![format!("Solved from {} decodes.", solved.rows)];
    for unused in solved.unused(&given) {
        errln!("{}: {unused}", args.file.display());
        notes.push(unused);
    }
    notes.push(solved.shown());
    notes.extend(solved.notes.clone());
    if !open.is_empty() {
        notes.push(format!(
            "The rows don't say what these offset bits do (they never vary alone): {}",
            open.join(", ")
        ));
    }
    let trust = match solved.complete {
        true => Trust::Exact,
        false => Trust::Incomplete,
    };
    let about = about(
        &args.name,
        trust,
        format!("solved from {} decodes", solved.rows),
    );
    let text = write::machine_file(&about, &plain_topology(&solved.map), &solved.map, &notes);
    let output = file_of(args.output.as_deref());
    let machine = emit(&text, output, ctx)?;
    // Who solves a table is often not its machine: whether it fits is asked there.
    let refused: Vec<String> = weigh::incomplete(&machine).into_iter().collect();
    let printed = match ctx.json {
        true => ctx.print_json(&serde_json::json!({
            "rows": solved.rows,
            "left_out": solved.left_out,
            "trust": trust,
            "told": solved.told.iter().map(|&(bit, sets)| serde_json::json!({"bit": bit, "sets": sets})).collect::<Vec<_>>(),
            "undetermined": open,
            "notes": solved.notes,
            "ranges": solved.map.ranges,
            "text": machine.map_text(),
            "machine": text,
            "refused": refused,
        })),
        false => Ok(()),
    };
    Ok(written(output, &refused, printed, ctx))
}
