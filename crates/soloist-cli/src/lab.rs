//! What `soloist` hands over to `soloist-lab`, a program of a package of its own:
//! `soloist lab list` is `soloist-lab lab list`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{bail, Context, Result};

/// The program.
const PROGRAM: &str = "soloist-lab";

/// The commands that only it has.
pub const COMMANDS: [&str; 6] = ["vm", "sim", "lab", "sweep", "plan", "trace"];

/// The command among `words`, which follow the program's name, if it is one that
/// `soloist-lab` has; `help` and `man` are about one.
pub fn command(words: &[OsString]) -> Option<&'static str> {
    let mut words = words
        .iter()
        .filter_map(|word| word.to_str())
        .filter(|word| !word.starts_with('-'));
    let first = match words.next()? {
        "help" | "man" => words.next()?,
        first => first,
    };
    COMMANDS.into_iter().find(|command| *command == first)
}

/// Is it only the name of a command that `soloist-lab` has?
pub fn is_name_only(command: &clap::Command) -> bool {
    // A command that has been built has arguments for these.
    let own = |arg: &&clap::Arg| {
        !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help" | "version")
    };
    COMMANDS.contains(&command.get_name())
        && !command.has_subcommands()
        && command.get_arguments().filter(own).count() == 0
}

/// Finds the program beside this one, or in PATH.
pub fn program() -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.and_then(|own| own.parent().map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs = beside.into_iter().chain(env::split_paths(&path));
    dirs.find_map(|dir| Some(dir.join(PROGRAM)).filter(|file| file.is_file()))
}

/// Becomes `soloist-lab` with this program's arguments; returns only where that is
/// not installed. `command` is named then.
pub fn hand_over(command: &str) -> Result<ExitCode> {
    let Some(program) = program() else {
        bail!(
            "`soloist {command}` is in the package soloist-lab, which is not installed here: \
             `apt install soloist-lab`, or `make install` in the source tree"
        );
    };
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    Err(error).with_context(|| program.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_lab_are_told_from_others() {
        for (line, found) in [
            ("lab run x", Some("lab")),
            ("--json vm list", Some("vm")),
            ("help sim replay", Some("sim")),
            ("man plan", Some("plan")),
            ("run -- lab", None),
            ("compare --model", None),
            ("--help", None),
            ("man", None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(command(&words), found, "{line}");
        }
    }
}
