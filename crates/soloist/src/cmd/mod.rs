//! The commands, one module each: `Args` and `run(args, ctx)`.

mod colors;
mod docs;
mod doctor;
mod group;
mod guard;
mod lab;
mod map;
mod rule;
mod run;
mod sim;
mod top;
mod up;
mod verify;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use comfy_table::{presets, Cell, CellAlignment, ContentArrangement, Table};

use crate::Ctx;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Doctor(doctor::Args),
    Up(up::Args),
    Down(up::DownArgs),
    Run(run::Args),
    Group(group::Args),
    Rule(rule::Args),
    Verify(verify::Args),
    Top(top::Args),
    Map(map::Args),
    Vm(vm::Args),
    Sim(sim::Args),
    Lab(lab::Args),
    Guard(guard::Args),
    Completions(docs::CompletionsArgs),
    Man(docs::ManArgs),
}

impl Command {
    /// Runs it; the exit status to end with.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        match self {
            Self::Doctor(args) => doctor::run(args, ctx),
            Self::Up(args) => up::run(args, ctx),
            Self::Down(args) => up::run_down(args, ctx),
            Self::Run(args) => run::run(args, ctx),
            Self::Group(args) => group::run(args, ctx),
            Self::Rule(args) => rule::run(args, ctx),
            Self::Verify(args) => verify::run(args, ctx),
            Self::Top(args) => top::run(args, ctx),
            Self::Map(args) => map::run(args, ctx),
            Self::Vm(args) => vm::run(args, ctx),
            Self::Sim(args) => sim::run(args, ctx),
            Self::Lab(args) => lab::run(args, ctx),
            Self::Guard(args) => guard::run(args, ctx),
            Self::Completions(args) => docs::completions(args, ctx),
            Self::Man(args) => docs::man(args, ctx),
        }
    }
}

/// A plain table: columns under their heads, no lines; as wide as its text.
fn table<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heads.into_iter().map(Cell::new));
    for column in table.column_iter_mut() {
        column
            .set_padding((0, 2))
            .set_cell_alignment(CellAlignment::Left);
    }
    table
}
