//! `soloist completions` and `soloist man`: made from the same definitions
//! that parse the arguments.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

use super::commands;
use crate::{out, Ctx, Misuse};

/// Print a completion script for a shell.
///
/// It completes names too: of machines, kernels, groups, rules, experiments.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

/// Runs `completions`.
pub fn completions(args: CompletionsArgs, _ctx: &Ctx) -> Result<ExitCode> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell)
        .ok_or_else(|| Misuse(format!("{}: no such shell", args.shell)))?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "soloist", "soloist", "soloist", &mut script)?;
    out::put(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Print the manual page, or write one for every command into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Where to write soloist.1, soloist-run.1, soloist-map-show.1 and so on.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `man`.
pub fn man(args: ManArgs, _ctx: &Ctx) -> Result<ExitCode> {
    let Some(dir) = args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(commands()).render(&mut page)?;
        out::put(&String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    let there = || dir.display().to_string();
    fs::create_dir_all(&dir).with_context(there)?;
    let commands = commands().disable_help_subcommand(true);
    clap_mangen::generate_to(commands, &dir).with_context(there)?;
    Ok(ExitCode::SUCCESS)
}
