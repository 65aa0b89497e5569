//! What a shell may complete: beside options, the names of machines, kernels,
//! groups, rules and experiments that there are now.

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use soloist_host::{Control, Host, ImplicitGroup};
#[cfg(feature = "lab")]
use soloist_lab::known as experiments;
use soloist_machine::known as machines;

/// Lets the arguments of `command`, and of all below it, complete names.
pub fn add(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    command
        .mut_subcommands(|sub| {
            let path = format!("{path} {}", sub.get_name());
            below(sub, path.trim_start())
        })
        .mut_args(|arg| match names(path, &arg) {
            Some(names) => arg.add(ArgValueCandidates::new(move || candidates(names()))),
            None => arg,
        })
}

type Names = fn() -> Vec<String>;

/// What the argument of the command at `path` names, if anything.
fn names(path: &str, arg: &Arg) -> Option<Names> {
    let (top, sub) = path.split_once(' ').unwrap_or((path, ""));
    match (top, sub, arg.get_id().as_str()) {
        (_, _, "machine") => Some(machine_names),
        #[cfg(feature = "lab")]
        ("vm", _, "kernel") => Some(kernel_names),
        ("run" | "trace", _, "group") => Some(group_names),
        ("bench", "", "name" | "corun") => Some(load_names),
        ("group", "show", "name") => Some(shown_group_names),
        ("group", "set" | "rm", "name" | "names") => Some(group_names),
        ("man", "", "words") => Some(command_names),
        ("rule", "set" | "rm" | "enable" | "disable", "name" | "names") => Some(rule_names),
        #[cfg(feature = "lab")]
        ("lab", _, "names" | "name") => Some(experiment_names),
        _ => None,
    }
}

fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn machine_names() -> Vec<String> {
    let known = machines::all().into_iter().filter_map(Result::ok);
    known.map(|machine| machine.about.name).collect()
}

#[cfg(feature = "lab")]
fn kernel_names() -> Vec<String> {
    let kernels = soloist_vm::kernel::list(soloist_vm::source_root().as_deref());
    kernels.iter().map(|kernel| kernel.name()).collect()
}

fn command_names() -> Vec<String> {
    let all = super::commands();
    let shown = all.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).collect()
}

fn load_names() -> Vec<String> {
    super::bench::names().map(str::to_owned).collect()
}

fn group_names() -> Vec<String> {
    let groups = Control::open(&Host::live()).and_then(|control| control.groups());
    let names = groups.unwrap_or_default();
    names.iter().map(|group| group.name().to_owned()).collect()
}

/// Those that rules made, too.
fn shown_group_names() -> Vec<String> {
    let implicit = Control::open(&Host::live())
        .and_then(|control| control.implicit_groups(&control.map()?))
        .unwrap_or_default();
    let labels = implicit.iter().map(ImplicitGroup::label);
    group_names().into_iter().chain(labels).collect()
}

fn rule_names() -> Vec<String> {
    let rules = Control::open(&Host::live()).and_then(|control| control.rules());
    let names = rules.unwrap_or_default();
    names.iter().map(|rule| rule.name().to_owned()).collect()
}

#[cfg(feature = "lab")]
fn experiment_names() -> Vec<String> {
    let known = experiments::EXPERIMENTS.iter();
    known.map(|(name, _)| (*name).to_owned()).collect()
}
