//! The command line of a workstation: machines that are modelled, virtual, or
//! planned. `soloist` hands over to it what people type ([`soloist_cli::lab`]).

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "outln! and errln! do not panic on a closed pipe"
)]

#[macro_use]
extern crate soloist_cli;

mod cmd;

use std::process::ExitCode;

fn main() -> ExitCode {
    soloist_cli::run(cmd::commands, cmd::Command::run)
}
