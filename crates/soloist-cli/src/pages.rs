//! The commands that README.md and docs/ print: a program must understand those that are
//! its own, which [`crate::rules`] asks [`refused`].
//!
//! A command is a line of a code block that begins with `soloist` (after `$ ` or
//! `sudo `), up to what a shell takes for itself or to two spaces; or a piece of
//! `code` in a sentence, which may leave out what the command needs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::Command;

use crate::lab;

/// Words of the pages for a process, and for a user that no other machine has.
const NUMBERS: [&str; 2] = ["PID", "ann"];

/// A command as a page prints it.
struct Printed {
    /// The page and the line, as `docs/tutorial.md:12`.
    place: String,
    words: Vec<String>,
    /// It stands in a sentence.
    is_named_only: bool,
}

/// The commands of the pages under `top` that `commands` does not understand: a
/// sentence each, and how many it looked at. Commands of the other program are left out.
pub(crate) fn refused(commands: &Command, top: &Path) -> (usize, Vec<String>) {
    let printed = pages(top).into_iter().flat_map(|page| printed(top, &page));
    let own: Vec<Printed> = printed.filter(|one| is_own(commands, one)).collect();
    let all = own.iter().filter_map(|one| refusal(commands, one));
    (own.len(), all.collect())
}

fn is_own(commands: &Command, printed: &Printed) -> bool {
    let first = printed.words.get(1).map_or("", String::as_str);
    match commands.find_subcommand(first) {
        Some(found) => !lab::is_name_only(found),
        None => !lab::COMMANDS.contains(&first) && commands.find_subcommand("doctor").is_some(),
    }
}

fn refusal(commands: &Command, printed: &Printed) -> Option<String> {
    let refused = commands
        .clone()
        .try_get_matches_from(&printed.words)
        .err()?;
    let is_wrong = matches!(
        refused.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    );
    if printed.is_named_only && !is_wrong {
        return None;
    }
    Some(format!(
        "{}: {}: {refused}",
        printed.place,
        printed.words.join(" ")
    ))
}

/// README.md and all pages under docs/.
fn pages(top: &Path) -> Vec<PathBuf> {
    let mut all = vec![top.join("README.md")];
    let mut folders = vec![top.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                all.push(path);
            }
        }
    }
    all
}

fn printed(top: &Path, page: &Path) -> Vec<Printed> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let name = page.strip_prefix(top).unwrap_or(page).display();
    let mut all = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let lines = if is_code { vec![line] } else { pieces(line) };
        all.extend(lines.into_iter().filter_map(|line| {
            Some(Printed {
                place: format!("{name}:{number}"),
                words: words(line, !is_code)?,
                is_named_only: !is_code,
            })
        }));
    }
    all
}

/// The text between pairs of backquotes.
fn pieces(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The words of the command in `line`, if it is one of ours; what a shell puts in for
/// `$...` and what stands for a number is a 1. A command that leaves something out (` ... `) is none.
fn words(line: &str, is_named_only: bool) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let is_ours = line.starts_with("soloist ") || line.starts_with("soloist-lab ");
    if !is_ours || line.contains(" ... ") {
        return None;
    }
    let mut line = without_substitutions(line);
    if is_named_only {
        line.truncate(line.find("; ").unwrap_or(line.len()));
    } else {
        for end in ["  ", " | ", " >", "; ", " && ", " #", " &"] {
            line.truncate(line.find(end).unwrap_or(line.len()));
        }
    }
    let words = shlex::split(line.trim_end())?;
    let is_number = |word: &str| NUMBERS.contains(&word) || word.starts_with('$');
    let number = |word: String| if is_number(&word) { "1".into() } else { word };
    Some(words.into_iter().map(number).collect())
}

fn without_substitutions(line: &str) -> String {
    let mut parts = line.split("$(");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push('1');
        all.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_where_the_shell_takes_over() {
        let read = |line| words(line, false).map(|words| words.join(" "));
        assert_eq!(read("$ soloist top | less"), Some("soloist top".into()));
        assert_eq!(read("soloist top   # live"), Some("soloist top".into()));
        let verify = Some("soloist verify 1 --summary".into());
        assert_eq!(
            read("sudo soloist verify $(pidof -s tail) --summary"),
            verify
        );
        assert_eq!(read("soloist plan ... --apply"), None);
        assert_eq!(read("cargo build"), None);
    }

    #[test]
    fn a_sentence_may_leave_out_what_the_command_needs() {
        assert_eq!(pieces("first `a b` then `c`."), ["a b", "c"]);
        assert!(words("soloist recolor PID|GROUP", true).is_some_and(|all| all.len() == 3));
    }
}
