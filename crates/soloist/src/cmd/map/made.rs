//! What commands that make a machine file share: reading, writing, and the status that
//! promises whether `soloist up` takes the file.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use soloist_machine::file::{read_text, text_from};
use soloist_machine::{About, Machine, Trust};

use soloist_cli::out::{self, put};
use soloist_cli::Ctx;

pub(super) fn read_input(path: &Path) -> Result<String> {
    if path.as_os_str() == "-" {
        return Ok(text_from(std::io::stdin().lock(), "standard input")?);
    }
    Ok(read_text(path)?.0)
}

pub(super) fn about(name: &str, trust: Trust, source: String) -> About {
    About {
        name: name.to_owned(),
        description: source.clone(),
        trust,
        source: vec![source],
    }
}

/// The file of an `--output` whose text standard output has otherwise: `-` is that too.
pub(super) fn file_of(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| path.as_os_str() != "-")
}

/// Checks a machine file by reading it back, and prints or writes it.
pub(super) fn emit(text: &str, output: Option<&Path>, ctx: &Ctx) -> Result<Machine> {
    let machine = Machine::parse(text, "the map that was found")?;
    match output {
        Some(path) => write_machine(path, text)?,
        None if ctx.json => {}
        None => put(text)?,
    }
    Ok(machine)
}

/// Writes a machine file. Its folder is made: nothing else makes that of the
/// administrator's.
pub(super) fn write_machine(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    out::write(file, text)
}

/// Says that a file was written, and at once whether `soloist up` takes it.
pub(super) fn wrote(path: &Path, refused: &[String]) {
    let path = path.display();
    match refused {
        [] => errln!("wrote {path}"),
        why => errln!(
            "wrote {path}, which `soloist up --machine {path}` refuses: {}",
            why.join("; ")
        ),
    }
}

/// Says what was written, where the rest was `printed`; the status: 0 promises that `soloist up`
/// takes the file.
pub(super) fn written(
    output: Option<&Path>,
    refused: &[String],
    printed: Result<()>,
    ctx: &Ctx,
) -> ExitCode {
    if let Some(path) = output.filter(|_| !ctx.json) {
        wrote(path, refused);
    }
    ctx.judged(printed, output.is_none() || refused.is_empty())
}
