//! The commands, one module each: `Args` and `run(args, ctx)`.

mod compare;
mod lab;
mod plan;
mod sim;
mod trace;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, CommandFactory, Subcommand};
use soloist_cli::complete::{self, Names};
use soloist_cli::{examples, man, Cli, Ctx};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_lab::known;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(hide = true)]
    Compare(Box<soloist_cli::compare::Args>),
    #[command(subcommand)]
    Vm(vm::Args),
    #[command(subcommand)]
    Sim(sim::Args),
    #[command(subcommand)]
    Lab(lab::Args),
    Plan(plan::Args),
    Trace(Box<trace::Args>),
    #[command(hide = true)]
    Man(man::Args),
}

/// All commands with what is not written beside their arguments: examples, and
/// the names that a shell may complete.
pub fn commands() -> clap::Command {
    complete::add(examples::add(Cli::<Command>::command()), names)
}

/// What the argument of the command at `path` names, if anything.
fn names(path: &str, arg: &Arg) -> Option<Names> {
    let (top, _) = path.split_once(' ').unwrap_or((path, ""));
    match (top, arg.get_id().as_str()) {
        (_, "machine") => Some(complete::machine_names),
        ("vm", "kernel") => Some(kernel_names),
        ("trace", "group") => Some(complete::group_names),
        ("man", "words") => Some(complete::command_names),
        ("lab", "names" | "files") => Some(experiment_names),
        _ => None,
    }
}

fn kernel_names() -> Vec<String> {
    let kernels = soloist_vm::kernel::list(soloist_vm::source_root().as_deref());
    kernels.iter().map(|kernel| kernel.name()).collect()
}

fn experiment_names() -> Vec<String> {
    let known = known::EXPERIMENTS.iter();
    known.map(|(name, _)| (*name).to_owned()).collect()
}

impl Command {
    /// Runs it; the exit status to end with.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        match self {
            Self::Compare(args) => {
                if let Ok(control) = Control::open(&Host::live()) {
                    control.sweep();
                }
                compare::run(&args, ctx)
            }
            Self::Vm(args) => vm::run(args, ctx),
            Self::Sim(args) => sim::run(args, ctx),
            Self::Lab(args) => lab::run(args, ctx),
            Self::Plan(args) => plan::run(args, ctx),
            Self::Trace(args) => trace::run(*args, ctx),
            Self::Man(args) => man::run(args, ctx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_keeps_its_rules() {
        let broken = soloist_cli::rules::broken(&commands());
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
