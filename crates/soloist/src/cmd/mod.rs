//! The commands, one module each: `Args` and `run(args, ctx)`.

pub mod guard;
pub mod lab;
pub mod map;
pub mod sim;
pub mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::Ctx;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Map(map::Args),
    Vm(vm::Args),
    Sim(sim::Args),
    Lab(lab::Args),
    Guard(guard::Args),
}

impl Command {
    /// Runs it; the exit status to end with.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        match self {
            Self::Map(args) => map::run(args, ctx),
            Self::Vm(args) => vm::run(args, ctx),
            Self::Sim(args) => sim::run(args, ctx),
            Self::Lab(args) => lab::run(args, ctx),
            Self::Guard(args) => guard::run(args, ctx),
        }
    }
}
