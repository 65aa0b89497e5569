//! What a shell may complete: beside options, the names of machines, kernels,
//! groups, rules and experiments that there are now, files that may stand for
//! them, and the commands that are run.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use soloist_host::control::{Control, ImplicitGroup};
use soloist_host::machine::Host;
use soloist_machine::known as machines;

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

/// What names the argument of the command at a path takes, if any.
pub type NamesOf = fn(&str, &Arg) -> Option<Names>;

/// Lets the arguments of `command`, and of all below it, complete names.
pub fn add(command: Command, names: NamesOf) -> Command {
    below(command, "", names)
}

fn below(command: Command, path: &str, names: NamesOf) -> Command {
    command
        .mut_subcommands(|sub| {
            let path = format!("{path} {}", sub.get_name());
            below(sub, path.trim_start(), names)
        })
        .mut_args(|arg| match (names(path, &arg), arg.get_id().as_str()) {
            (Some(names), _) if takes_file(&arg) => {
                arg.add(ArgValueCompleter::new(NameOrFile(names)))
            }
            (Some(names), _) => arg.add(ArgValueCandidates::new(move || candidates(names()))),
            (None, id) if COMMAND_LINES.contains(&id) => {
                arg.add(ArgValueCompleter::new(CommandLine))
            }
            (None, _) => arg,
        })
}

/// May a TOML file stand for a name?
fn takes_file(arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    let says = arg.get_value_names().unwrap_or_default();
    id == "machine" || says.iter().any(|name| name.ends_with("FILE"))
}

/// A name, or the path of a TOML file.
struct NameOrFile(Names);

impl ValueCompleter for NameOrFile {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let typed = current.to_string_lossy();
        let mut all = (self.0)();
        all.retain(|name| name.starts_with(&*typed));
        let mut all = candidates(all);
        // Before anything is typed names are enough.
        if !typed.is_empty() {
            let wanted = |path: &Path| path.extension().is_some_and(|end| end == "toml");
            all.extend(PathCompleter::any().filter(wanted).complete(current));
        }
        all
    }
}

/// The words of a command that is run: a program, then most likely files.
struct CommandLine;

impl ValueCompleter for CommandLine {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let typed = current.to_string_lossy();
        if typed.contains('/') || has_program(words_before()) {
            return PathCompleter::any().complete(current);
        }
        candidates(programs(&typed).into_iter().collect())
    }
}

/// What was typed, as the shells' scripts hand it over.
pub fn asked() -> Vec<OsString> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    words.collect()
}

/// What was typed before the word that is completed.
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
    let Ok(mut found) = commands().try_get_matches_from(words) else {
        return false;
    };
    while let Some((_, below)) = found.remove_subcommand() {
        found = below;
    }
    COMMAND_LINES
        .iter()
        .any(|id| matches!(found.try_contains_id(id), Ok(true)))
}

/// What arguments are called that are a command and its own arguments.
const COMMAND_LINES: [&str; 3] = ["command", "argv", "words"];

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

/// Gives the names that there are now.
pub type Names = fn() -> Vec<String>;

fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Of known machines.
pub fn machine_names() -> Vec<String> {
    let known = machines::all().into_iter().filter_map(Result::ok);
    known.map(|machine| machine.about.name).collect()
}

/// Of commands.
pub fn command_names() -> Vec<String> {
    let all = commands();
    let shown = all.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).collect()
}

/// Of groups that were made by name.
pub fn group_names() -> Vec<String> {
    let groups = Control::open(&Host::live()).and_then(|control| control.groups());
    let names = groups.unwrap_or_default();
    names.iter().map(|group| group.name().to_owned()).collect()
}

/// Those that rules made, too.
pub fn shown_group_names() -> Vec<String> {
    let implicit = Control::open(&Host::live())
        .and_then(|control| control.implicit_groups(&control.map()?))
        .unwrap_or_default();
    let labels = implicit.iter().map(ImplicitGroup::label);
    group_names().into_iter().chain(labels).collect()
}

/// Of rules.
pub fn rule_names() -> Vec<String> {
    let rules = Control::open(&Host::live()).and_then(|control| control.rules());
    let names = rules.unwrap_or_default();
    names.iter().map(|rule| rule.name().to_owned()).collect()
}
