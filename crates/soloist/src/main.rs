//! The command line of a target: arguments in, a call into a library crate, text
//! or JSON out. One module per command in [`cmd`]; no logic lives here. What a
//! workstation has beyond it is handed over to `soloist-lab`.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "outln! and errln! do not panic on a closed pipe"
)]

#[macro_use]
extern crate soloist_cli;

mod cmd;

use std::env;
use std::process::ExitCode;

use soloist_cli::{complete, lab, Ctx};

fn main() -> ExitCode {
    let shell_asks = env::var_os("COMPLETE").is_some();
    let words = match shell_asks {
        true => complete::asked(),
        false => env::args_os().collect(),
    };
    if let Some(command) = lab::command(words.get(1..).unwrap_or_default()) {
        // Without soloist-lab this program completes what it knows.
        if let (false, Err(error)) = (shell_asks, lab::hand_over(command)) {
            return Ctx::new(soloist_cli::json_wanted()).fail(&error);
        }
    }
    soloist_cli::run(cmd::commands, cmd::Command::run)
}
