//! `soloist map`.

use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::Ctx;

/// Address maps: list, show, decode and encode.
// Remove `hide` once the command does something.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args, _ctx: &Ctx) -> Result<ExitCode> {
    bail!("`soloist map` is not in this build")
}
