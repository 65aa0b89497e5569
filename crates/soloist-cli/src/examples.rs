//! Exit status and examples: what each command's help and manual page show last.
//! They stand beside the command's arguments, as [`examples!`](crate::examples!).

use clap::Command;
use clap_mangen::roff::{roman, Roff};

/// What a command's help shows last, for `after_help`: its exit status, which is
/// `0 done, 1 failed, 2 misused` unless `status "...";` comes first, and examples.
#[macro_export]
macro_rules! examples {
    (status $status:literal; $first:literal $(, $more:literal)* $(,)?) => {
        concat!("Exit status: ", $status, "\n\nExamples:\n  ", $first $(, "\n  ", $more)*)
    };
    ($($all:literal),+ $(,)?) => {
        $crate::examples![status "0 done, 1 failed, 2 misused"; $($all),+]
    };
}

/// Between exit status and examples.
const HEAD: &str = "\n\nExamples:\n";

/// The exit status and the lines of examples that `command`'s help shows last.
pub fn parts(command: &Command) -> (String, Vec<String>) {
    let last = command.get_after_help().map(ToString::to_string);
    let last = last.unwrap_or_default();
    let (status, lines) = last.split_once(HEAD).unwrap_or((&last, ""));
    let status = status.strip_prefix("Exit status: ").unwrap_or_default();
    let lines = lines.lines().map(|line| line.trim_start().to_owned());
    (status.to_owned(), lines.collect())
}

/// Has the help of `command`, and of each below it that has commands of its own,
/// show the first example of each of those too.
pub fn gather(command: Command) -> Command {
    let command = command.mut_subcommands(gather);
    if !command.has_subcommands() {
        return command;
    }
    let (status, mut lines) = parts(&command);
    let below = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .filter_map(|sub| parts(sub).1.into_iter().next());
    lines.extend(below);
    let status = match status.as_str() {
        "" => "0 done, 1 failed, 2 misused",
        own => own,
    };
    let lines = lines.join("\n  ");
    command.after_help(format!("Exit status: {status}{HEAD}  {lines}"))
}

/// The same for a manual page: two sections.
pub(crate) fn sections(command: &Command) -> Roff {
    let (status, lines) = parts(command);
    let mut page = Roff::new();
    page.control("SH", ["EXIT STATUS"]);
    page.text([roman(status)]);
    if !lines.is_empty() {
        page.control("SH", ["EXAMPLES"]);
        page.control("nf", []);
        for line in lines {
            page.text([roman(line)]);
        }
        page.control("fi", []);
    }
    page
}
