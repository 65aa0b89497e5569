//! `soloist man`: made from the same definitions that parse the arguments.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io, process};

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use soloist_machine::did_you_mean;

use crate::complete::{self, commands};
use crate::{examples, lab, out, Ctx, Misuse};

/// Print a manual page, or write all of them into a directory.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist man",
    "soloist man map show",
    "soloist man /usr/local/share/man/man1",
])]
pub struct Args {
    /// A command, such as `map show`; or a directory for soloist.1, soloist-run.1
    /// and so on.
    #[arg(value_name = "COMMAND|DIR", add = complete::names(complete::command_names))]
    pub words: Vec<String>,
}

/// Runs `man`.
pub fn run(args: Args, _ctx: &Ctx) -> Result<ExitCode> {
    let mut all = commands().disable_help_subcommand(true);
    all.build();
    let called = args
        .words
        .iter()
        .try_fold(&all, |command, word| command.find_subcommand(word));
    match (called, args.words.as_slice()) {
        (Some(command), _) => out::put(&String::from_utf8_lossy(&page(command)?))?,
        // A directory to be made has a slash: else it is a command, mistyped.
        (None, [dir]) if dir.contains('/') || Path::new(dir).is_dir() => {
            fs::create_dir_all(dir).with_context(|| dir.clone())?;
            write_all(&all, Path::new(dir))?;
        }
        (None, words) => {
            let first = words.first().map_or("", String::as_str);
            let like = did_you_mean(first, all.get_subcommands().map(Command::get_name));
            let words = words.join(" ");
            return Err(Misuse(format!(
                "no command '{words}'{like}; `soloist --help` names them, and a directory for all \
                 pages is one that is there or has a slash"
            ))
            .into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of this program, and has `soloist-lab` write its own.
fn write_all(all: &Command, dir: &Path) -> Result<()> {
    let named = || dir.display().to_string();
    let is_whole = !all.get_subcommands().any(lab::is_name_only);
    if is_whole {
        for sub in all.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            write_pages(sub, dir).with_context(named)?;
        }
        return Ok(());
    }
    write_pages(all, dir).with_context(named)?;
    if let Some(program) = lab::program() {
        let mut lab = process::Command::new(program);
        let status = lab.arg("man").arg(dir).status()?;
        anyhow::ensure!(status.success(), "soloist-lab man: {status}");
    }
    Ok(())
}

/// Writes the page of `command` and those of all below it.
fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let shown = |sub: &&Command| !sub.is_hide_set() && !lab::is_name_only(sub);
    for sub in command.get_subcommands().filter(shown) {
        write_pages(sub, dir)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(dir.join(format!("{name}.1")), page(command)?)
}

/// The page, with exit status and examples under headings of their own: what stands
/// after a help would be filled like any text.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let page = Man::new(command.clone())
        .source(concat!("soloist ", env!("CARGO_PKG_VERSION")))
        .manual("Soloist");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    if command.get_after_help().is_some() {
        text.extend(examples::sections(command).to_roff().into_bytes());
    }
    Ok(text)
}
