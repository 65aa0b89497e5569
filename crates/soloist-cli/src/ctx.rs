//! What every command is told: how to print.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_host::HostError;

/// The way in which this run prints; every command gets it.
#[derive(Debug, Clone, Copy)]
pub struct Ctx {
    /// Print JSON on standard output.
    pub json: bool,
    /// Standard output takes colour: a terminal, `NO_COLOR` not set.
    pub color: bool,
    /// Standard error is a terminal: show progress there, beside JSON too.
    pub progress: bool,
}

impl Ctx {
    /// Looks at the terminal and the environment.
    pub fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            json,
            color: !json && !plain && io::stdout().is_terminal(),
            progress: io::stderr().is_terminal(),
        }
    }

    /// Prints `value` as one JSON document and a newline.
    pub fn print_json<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        // As text first: serde_json's errors hide that a pipe was closed.
        outln!("{}", serde_json::to_string_pretty(value)?)
    }

    /// Prints `text` in the ANSI colour `code` (31 red, 32 green, 33 yellow)
    /// where the terminal takes it.
    pub fn paint(&self, code: u8, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Says on a terminal what takes time now.
    pub fn step(&self, step: &str) {
        if self.progress {
            errln!("soloist: {step} ...");
        }
    }

    /// The status of a command that judged something and printed that, if it could. A pipe's
    /// reader that goes early (`| head`) is no failure, but makes nothing good either.
    pub fn judged(&self, printed: Result<()>, is_good: bool) -> ExitCode {
        let printed = printed.map_or_else(|error| self.fail(&error), |()| ExitCode::SUCCESS);
        match is_good {
            true => printed,
            false => status(false),
        }
    }

    /// Reports the error that ended the run; the exit status to end with.
    pub fn fail(&self, error: &anyhow::Error) -> ExitCode {
        let broken_pipe = error.chain().any(|e| {
            e.downcast_ref::<io::Error>()
                .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        });
        if broken_pipe {
            return ExitCode::SUCCESS;
        }
        let words = tame(&words(error));
        if self.json {
            errln!("{}", serde_json::json!({ "error": words }));
        } else {
            errln!("soloist: {words}");
        }
        if error.chain().any(is_misuse) {
            ExitCode::from(2)
        } else {
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes in one line; a cause that was told already, as
/// part of the error that it caused, is left out.
fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// `text` without what would move a terminal's cursor: it may repeat what a file has.
fn tame(text: &str) -> String {
    let one = |c: char| match c.is_control() && c != '\n' {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// Was it the user's doing?
fn is_misuse(error: &(dyn Error + 'static)) -> bool {
    let refused = error.downcast_ref::<HostError>();
    error.is::<Misuse>()
        || matches!(
            refused,
            Some(HostError::Request(_) | HostError::Key(_) | HostError::BadName(_))
        )
}

/// The status of a command that was done: 0, or 1 where what it looked at is not as it should be.
pub fn status(is_good: bool) -> ExitCode {
    ExitCode::from(u8::from(!is_good))
}

/// The command was used wrongly: exit status 2.
#[derive(Debug)]
pub struct Misuse(pub String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Misuse {}

/// Refuses files that can't be written, before the minutes that it takes to know what
/// comes into them; each with its option. `-` names no file: where standard output has the
/// command's answer, a second text would spoil both.
///
/// # Errors
/// That one has no directory, or is one, or is `-`.
pub fn check_files(files: &[(&str, Option<&Path>)]) -> Result<()> {
    for (option, file) in files {
        let Some(file) = file else { continue };
        let dir = file.parent().unwrap_or(Path::new(""));
        let why = match (dir.as_os_str().is_empty() || dir.is_dir(), file.is_dir()) {
            _ if file.as_os_str() == "-" => {
                format!("{option} -: standard output has this command's answer: name a file")
            }
            (false, _) => format!("{option}: no directory {}", dir.display()),
            (true, true) => format!("{option}: {} is a directory", file.display()),
            (true, false) => continue,
        };
        return Err(Misuse(why).into());
    }
    Ok(())
}

/// Refuses a directory of results that could not be made, before the minutes that they take.
///
/// # Errors
/// That something else has its name, or that of a directory above it.
pub fn check_folder(option: &str, dir: Option<&Path>) -> Result<()> {
    let there = dir.and_then(|dir| dir.ancestors().find(|one| one.exists()));
    match there.filter(|there| !there.is_dir()) {
        None => Ok(()),
        Some(file) => {
            let file = file.display();
            let why = format!("{option}: {file} is no directory: name another place");
            Err(Misuse(why).into())
        }
    }
}
