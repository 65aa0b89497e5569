//! The commands, one module each: `Args` and `run(args, ctx)`.

mod bench;
mod colors;
mod compare;
mod complete;
mod completions;
mod docs;
mod doctor;
mod events;
mod examples;
mod group;
mod guard;
#[cfg(feature = "lab")]
mod lab;
mod map;
mod metrics;
mod number;
#[cfg(feature = "lab")]
mod plan;
mod progress;
mod realtime;
mod rule;
mod run;
mod save;
#[cfg(feature = "lab")]
mod sim;
mod top;
#[cfg(feature = "lab")]
mod trace;
mod up;
mod verify;
#[cfg(feature = "lab")]
mod vm;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};
use comfy_table::{presets, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table};
use soloist_host::control::Control;
use soloist_host::machine::Host;

use crate::Ctx;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Doctor(doctor::Args),
    Up(up::Args),
    Down(up::DownArgs),
    Run(run::Args),
    Compare(Box<compare::Args>),
    Bench(bench::Args),
    #[command(subcommand)]
    Group(group::Args),
    #[command(subcommand)]
    Rule(rule::Args),
    Verify(verify::Args),
    Save(save::SaveArgs),
    Apply(save::ApplyArgs),
    Top(top::Args),
    Metrics(metrics::MetricsArgs),
    Events(events::Args),
    #[command(subcommand)]
    Map(map::Args),
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Vm(vm::Args),
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Sim(sim::Args),
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(lab::Args),
    #[cfg(feature = "lab")]
    Plan(plan::Args),
    #[cfg(feature = "lab")]
    Trace(Box<trace::Args>),
    #[command(subcommand)]
    Guard(guard::Args),
    Completions(completions::Args),
    Man(docs::ManArgs),
}

/// All commands with what is not written beside their arguments: examples, and
/// the names that a shell may complete.
pub fn commands() -> clap::Command {
    complete::add(examples::add(crate::Cli::command()))
}

impl Command {
    /// Does it look at groups, or want colours? What killed runs left goes first.
    fn sweeps(&self) -> bool {
        matches!(
            self,
            Self::Doctor(_)
                | Self::Up(_)
                | Self::Down(_)
                | Self::Run(_)
                | Self::Compare(_)
                | Self::Bench(_)
                | Self::Group(_)
                | Self::Verify(_)
                | Self::Save(_)
                | Self::Apply(_)
                | Self::Top(_)
        )
    }

    /// Runs it; the exit status to end with.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        if self.sweeps() {
            if let Ok(control) = Control::open(&Host::live()) {
                control.sweep();
            }
        }
        match self {
            Self::Doctor(args) => doctor::run(args, ctx),
            Self::Up(args) => up::run(args, ctx),
            Self::Down(args) => up::run_down(args, ctx),
            Self::Run(args) => run::run(args, ctx),
            Self::Compare(args) => compare::run(*args, ctx),
            Self::Bench(args) => bench::run(args, ctx),
            Self::Group(args) => group::run(args, ctx),
            Self::Rule(args) => rule::run(args, ctx),
            Self::Verify(args) => verify::run(args, ctx),
            Self::Save(args) => save::save(args, ctx),
            Self::Apply(args) => save::apply(args, ctx),
            Self::Top(args) => top::run(args, ctx),
            Self::Metrics(args) => metrics::metrics(args, ctx),
            Self::Events(args) => events::run(args, ctx),
            Self::Map(args) => map::run(args, ctx),
            #[cfg(feature = "lab")]
            Self::Vm(args) => vm::run(args, ctx),
            #[cfg(feature = "lab")]
            Self::Sim(args) => sim::run(args, ctx),
            #[cfg(feature = "lab")]
            Self::Lab(args) => lab::run(args, ctx),
            #[cfg(feature = "lab")]
            Self::Plan(args) => plan::run(args, ctx),
            #[cfg(feature = "lab")]
            Self::Trace(args) => trace::run(*args, ctx),
            Self::Guard(args) => guard::run(args, ctx),
            Self::Completions(args) => completions::run(args, ctx),
            Self::Man(args) => docs::man(args, ctx),
        }
    }
}

/// A plain table: columns under their heads, no lines. On a terminal it is no
/// wider than that; elsewhere, and on one of no known width such as a serial line,
/// as wide as its text. The first column, names mostly, is never broken.
fn table<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heads.into_iter().map(Cell::new));
    if std::io::stdout().is_terminal() && table.width() != Some(0) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for column in table.column_iter_mut() {
        column
            .set_padding((0, 2))
            .set_cell_alignment(CellAlignment::Left);
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are copied from it.
    #[test]
    fn names_stay_whole_on_a_narrow_terminal() {
        let mut table = table(["EXPERIMENT", "WHAT"]);
        let name = "tintmalloc-blackscholes-compact";
        table.add_row([
            name,
            "a parallel loop of four threads on one node, eight on two",
        ]);
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(60);
        let text = table.trim_fmt();
        assert!(text.contains(name), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
    }
}
