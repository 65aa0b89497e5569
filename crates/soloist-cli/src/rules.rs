//! What holds of every command line of ours; each program's tests ask [`broken`].

use std::any::TypeId;
use std::path::Path;

use clap::{Arg, Command};

use crate::{examples, lab, pages};

/// How `commands`, a whole command line, breaks the rules: a sentence each.
///
/// Every command says its exit status and has examples, also in its parent's help;
/// every example, and every command that a page prints, is understood; a number that is
/// none is refused in our words.
pub fn broken(commands: &Command) -> Vec<String> {
    let mut all = Vec::new();
    says_status_and_examples(commands, "soloist", &mut all);
    understands_examples(commands, commands, "soloist", &mut all);
    understands_pages(commands, &mut all);
    for text in ["x", "-1", "99999999999999999999"] {
        let tried = refuses_in_our_words(commands, commands, &["soloist"], text, &mut all);
        if tried < 10 {
            all.push(format!(
                "only {tried} options that take a number were found"
            ));
        }
    }
    all
}

/// This program's own commands; those that are here in name only are `soloist-lab`'s.
fn own(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !lab::is_name_only(sub))
}

/// Old spellings, which go on to work without a help of their own.
fn is_old_spelling(command: &Command) -> bool {
    command.is_hide_set() && command.get_after_help().is_none()
}

fn says_status_and_examples(command: &Command, path: &str, all: &mut Vec<String>) {
    let (status, lines) = examples::parts(command);
    if status.is_empty() {
        all.push(format!("`{path}` does not say its exit status"));
    }
    if lines.is_empty() {
        all.push(format!("`{path}` has no example"));
    }
    for sub in own(command).filter(|sub| !is_old_spelling(sub)) {
        let path = format!("{path} {}", sub.get_name());
        let is_told = path.matches(' ').count() > 1 && !sub.is_hide_set();
        if is_told && !names(&lines, &path) {
            all.push(format!("no example of `{path}` in its parent's help"));
        }
        if !names(&examples::parts(sub).1, &path) {
            all.push(format!("no example of `{path}` in its own help"));
        }
        says_status_and_examples(sub, &path, all);
    }
}

fn names(lines: &[String], path: &str) -> bool {
    lines.iter().any(|line| line.contains(path))
}

fn understands_examples(top: &Command, command: &Command, path: &str, all: &mut Vec<String>) {
    for line in examples::parts(command).1 {
        let words = line.split(" >").next().unwrap_or_default();
        let words = words.trim().split(' ').map(|word| word.trim_matches('\''));
        if let Err(refused) = top.clone().try_get_matches_from(words) {
            all.push(format!("{path}: {line}: {refused}"));
        }
    }
    for sub in own(command) {
        understands_examples(top, sub, &format!("{path} {}", sub.get_name()), all);
    }
}

fn understands_pages(commands: &Command, all: &mut Vec<String>) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (looked, refused) = pages::refused(commands, &top);
    if looked <= 20 {
        all.push(format!("only {looked} commands were found in the pages"));
    }
    all.extend(refused);
}

fn is_number(arg: &Arg) -> bool {
    let of = arg.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<u8>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i32>(),
    ];
    arg.get_action().takes_values() && numbers.iter().any(|number| of == *number)
}

/// Is `--option text` refused so by each command from `command` down? Tells how many
/// options it tried.
fn refuses_in_our_words(
    top: &Command,
    command: &Command,
    path: &[&str],
    text: &str,
    all: &mut Vec<String>,
) -> usize {
    let mut tried = 0;
    for sub in own(command) {
        let path = [path, &[sub.get_name()]].concat();
        tried += refuses_in_our_words(top, sub, &path, text, all);
    }
    for arg in command.get_arguments().filter(|arg| is_number(arg)) {
        let long = arg.get_long().map(|long| format!("--{long}={text}"));
        let last = long.as_deref().map_or(vec!["--", text], |long| vec![long]);
        let words = [path, &last].concat();
        let said = match top.clone().try_get_matches_from(&words) {
            Ok(_) => "is taken".to_owned(),
            Err(refused) => refused.to_string(),
        };
        let others = ["digit found", "number too", "is not in"];
        if !said.contains("invalid value") || others.iter().any(|words| said.contains(words)) {
            all.push(format!("{}: {said}", words.join(" ")));
        }
        tried += 1;
    }
    tried
}
