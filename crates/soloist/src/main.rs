//! The command line: arguments in, a call into a library crate, text or JSON
//! out. One module per command in [`cmd`]; no logic lives here.
//!
//! Exit status: 0 done, 1 failed, 2 misused. `run` passes on the status of
//! the command that it ran.

mod cmd;
mod ctx;

use std::process::ExitCode;

use clap::Parser;

pub use ctx::{Ctx, Misuse};

/// Lets a task on a multicore machine run as though it ran alone.
///
/// Soloist colours memory: tasks of different colours share no DRAM bank, no
/// memory controller and, where asked, no cache set.
#[derive(Debug, Parser)]
#[command(name = "soloist", version, propagate_version = true)]
pub struct Cli {
    /// Print JSON instead of text.
    #[arg(long, global = true, display_order = 1000)]
    json: bool,

    #[command(subcommand)]
    command: cmd::Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ctx = Ctx::new(cli.json);
    match cli.command.run(&ctx) {
        Ok(code) => code,
        Err(error) => ctx.fail(&error),
    }
}
