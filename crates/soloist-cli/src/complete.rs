//! What a shell may complete: beside options, the names of machines, groups and
//! rules that there are now, files that may stand for them, and the commands that
//! are run. Each argument says beside itself what it takes (`add = ...`).

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use soloist_host::control::{Control, ImplicitGroup};
use soloist_host::machine::Host;
use soloist_machine::known;

/// All commands of this program.
static COMMANDS: OnceLock<fn() -> Command> = OnceLock::new();

pub(crate) fn commands() -> Command {
    COMMANDS.get().map_or_else(Command::default, |all| all())
}

/// Answers a shell that completes a command line of `commands`, and ends; or
/// returns where no shell asks.
pub fn answer(commands: fn() -> Command) {
    COMMANDS.get_or_init(|| commands);
    CompleteEnv::with_factory(commands).complete();
}

/// Gives the names that there are now.
pub type Names = fn() -> Vec<String>;

/// Completes names.
pub fn names(names: Names) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| candidates(names(), current))
}

/// Completes names, and the paths of TOML files that may stand for them.
pub fn names_or_files(names: Names) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut all = candidates(names(), current);
        // Before anything is typed names are enough.
        if !current.is_empty() {
            let wanted = |path: &Path| path.extension().is_some_and(|end| end == "toml");
            all.extend(PathCompleter::any().filter(wanted).complete(current));
        }
        all
    })
}

/// Completes known machines, and machine files.
pub fn machines() -> ArgValueCompleter {
    names_or_files(|| {
        let known = known::all().into_iter().filter_map(Result::ok);
        known.map(|machine| machine.about.name).collect()
    })
}

/// Completes groups that were made by name.
pub fn groups() -> ArgValueCompleter {
    names(group_names)
}

/// Completes groups, those that rules made too.
pub fn shown_groups() -> ArgValueCompleter {
    names(|| {
        let implicit = Control::open(&Host::live())
            .and_then(|control| control.implicit_groups(&control.map()?))
            .unwrap_or_default();
        let labels = implicit.iter().map(ImplicitGroup::label);
        group_names().into_iter().chain(labels).collect()
    })
}

/// Completes rules.
pub fn rules() -> ArgValueCompleter {
    names(|| {
        let rules = Control::open(&Host::live()).and_then(|control| control.rules());
        let rules = rules.unwrap_or_default();
        rules.iter().map(|rule| rule.name().to_owned()).collect()
    })
}

/// Completes the words of a command that is run: a program, then most likely files.
pub fn command_line() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy();
        if typed.contains('/') || has_program(words_before()) {
            return PathCompleter::any().complete(current);
        }
        let programs = programs(&typed);
        programs.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Names of commands.
pub(crate) fn command_names() -> Vec<String> {
    let all = commands();
    let shown = all.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).collect()
}

fn candidates(mut names: Vec<String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    names.retain(|name| name.starts_with(&*typed));
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn group_names() -> Vec<String> {
    let groups = Control::open(&Host::live()).and_then(|control| control.groups());
    let groups = groups.unwrap_or_default();
    groups.iter().map(|group| group.name().to_owned()).collect()
}

/// The words on the command line so far, as the shells' scripts hand them over.
pub fn asked() -> Vec<OsString> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    words.collect()
}

/// The words before the one that is completed.
fn words_before() -> Vec<OsString> {
    let mut words = asked();
    let at = env::var("_CLAP_COMPLETE_INDEX").ok();
    let at = at.and_then(|at| at.parse().ok());
    words.truncate(at.unwrap_or(words.len().saturating_sub(1)));
    words
}

/// Do these words name the program to run already?
fn has_program(words: Vec<OsString>) -> bool {
    if words.last().is_some_and(|word| word == "--") {
        return false;
    }
    let mut command = commands();
    let Ok(mut found) = command.try_get_matches_from_mut(words) else {
        return false;
    };
    while let Some((name, below)) = found.remove_subcommand() {
        found = below;
        command = command.find_subcommand(name).cloned().unwrap_or_default();
    }
    let is_line = |arg: &&Arg| arg.is_last_set() || arg.is_trailing_var_arg_set();
    let mut lines = command.get_arguments().filter(is_line);
    lines.any(|arg| matches!(found.try_contains_id(arg.get_id().as_str()), Ok(true)))
}

/// Programs of PATH whose names begin so.
fn programs(begin: &str) -> BTreeSet<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let entries = env::split_paths(&path).filter_map(|dir| fs::read_dir(dir).ok());
    let runs = |entry: &fs::DirEntry| {
        let about = fs::metadata(entry.path());
        about.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    entries
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)))
        .filter(|(name, entry)| name.starts_with(begin) && runs(entry))
        .map(|(name, _)| name)
        .collect()
}
