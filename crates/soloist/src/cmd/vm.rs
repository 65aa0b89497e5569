//! `soloist vm`.

use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::Ctx;

/// Boot a stock kernel under QEMU with the module loaded.
// Remove `hide` once the command does something.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args, _ctx: &Ctx) -> Result<ExitCode> {
    bail!("`soloist vm` is not in this build")
}
