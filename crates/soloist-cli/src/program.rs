//! A program from its first to its last line: arguments, a command, its status.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, FromArgMatches, Parser, Subcommand};
use soloist_host::run::hear_of_children;

use crate::{complete, Ctx, Misuse};

/// Page colouring and memory bandwidth regulation for unmodified programs.
///
/// Soloist removes memory interference between tasks of a multicore machine. Tasks of
/// different colours share no DRAM bank, no memory controller and, on request, no cache
/// set. Bandwidth regulation limits co-runners. The help of every command ends with its
/// exit status and examples. docs/ is in the source tree, and share/doc/soloist in an
/// installation.
#[derive(Debug, Parser)]
#[command(
    name = "soloist",
    bin_name = "soloist",
    version,
    propagate_version = true
)]
pub struct Cli<Command: Subcommand> {
    /// Print JSON instead of text.
    #[arg(long, global = true, display_order = 1000)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// Parses this program's arguments by `commands`, runs the command that they name,
/// and says why it failed; the status to end with.
pub fn run<Command: Subcommand>(
    commands: fn() -> clap::Command,
    run: impl FnOnce(Command, &Ctx) -> Result<ExitCode>,
) -> ExitCode {
    // Answers a shell that completes a command line, and ends.
    complete::answer(commands);
    let parsed = with_negative_values(commands()).try_get_matches();
    let cli = match parsed.and_then(|found| Cli::<Command>::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(said) => return help(&said),
    };
    let ctx = Ctx::new(cli.json);
    hear_of_children();
    match run(cli.command, &ctx) {
        Ok(code) => code,
        Err(error) => ctx.fail(&error),
    }
}

/// Lets `--seed -1` be refused for its number: clap takes `-1` for an option that is unknown.
fn with_negative_values(command: clap::Command) -> clap::Command {
    let takes_a_value = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
    command
        .mut_args(|arg| match takes_a_value(&arg) {
            true => arg.allow_negative_numbers(true),
            false => arg,
        })
        .mut_subcommands(with_negative_values)
}

/// Returns whether the words before `--` ask for JSON, for what clap could not understand.
pub fn json_wanted() -> bool {
    let mut words = std::env::args_os().take_while(|word| word != "--");
    words.any(|word| word == "--json")
}

/// Prints what was asked for instead of a command (`--help`, `--version`), or
/// what is wrong with the arguments.
fn help(said: &clap::Error) -> ExitCode {
    if said.use_stderr() && json_wanted() {
        let words = said.render().to_string();
        let words = words
            .split("\n\n")
            .filter(|part| !part.starts_with("For more"));
        let words = words.map(|part| part.trim().replace("error: ", ""));
        return Ctx::new(true).fail(&Misuse(words.collect::<Vec<_>>().join("\n")).into());
    }
    let printed = said.print().and_then(|()| std::io::stdout().flush());
    match printed.context("standard output") {
        // Where standard error can't be written there is nobody to tell.
        Err(error) if !said.use_stderr() => Ctx::new(false).fail(&error),
        _ => ExitCode::from(said.exit_code() as u8),
    }
}
