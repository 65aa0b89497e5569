//! The commands, one module each: `Args` and `run(args, ctx)`.

mod compare;
mod lab;
mod plan;
mod sim;
mod sweep;
mod trace;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};
use soloist_cli::{examples, man, Cli, Ctx};
use soloist_host::control::Control;
use soloist_host::machine::Host;

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
    Sweep(sweep::Args),
    Trace(Box<trace::Args>),
    #[command(hide = true)]
    Man(man::Args),
}

/// All commands, the help of each ending with exit status and examples.
pub fn commands() -> clap::Command {
    examples::gather(Cli::<Command>::command())
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
            Self::Sweep(args) => sweep::run(&args, ctx),
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
