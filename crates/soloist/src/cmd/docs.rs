//! `soloist completions` and `soloist man`: made from the same definitions
//! that parse the arguments.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::{Cli, Ctx};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Runs `completions`.
pub fn completions(args: CompletionsArgs, _ctx: &Ctx) -> Result<ExitCode> {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "soloist",
        &mut io::stdout(),
    );
    Ok(ExitCode::SUCCESS)
}

/// Print the manual page, or write one for every command into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Where to write soloist.1, soloist-run.1 and so on.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `man`.
pub fn man(args: ManArgs, _ctx: &Ctx) -> Result<ExitCode> {
    let Some(dir) = args.dir else {
        clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let mut cli = Cli::command();
    cli.build();
    let pages = std::iter::once(("soloist".to_owned(), cli.clone())).chain(
        cli.get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| (format!("soloist-{}", command.get_name()), command.clone())),
    );
    for (name, command) in pages {
        let path = dir.join(format!("{name}.1"));
        let mut file = File::create(&path).with_context(|| path.display().to_string())?;
        clap_mangen::Man::new(command.display_name(name)).render(&mut file)?;
    }
    Ok(ExitCode::SUCCESS)
}
