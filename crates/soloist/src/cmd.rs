//! The commands, one module each: `Args` and `run(args, ctx)`.

mod advise;
mod bench;
mod colors;
mod compare;
mod doctor;
mod events;
mod group;
mod guard;
mod map;
mod metrics;
mod moves;
mod realtime;
mod recolor;
mod rule;
mod run;
mod save;
mod top;
mod up;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};
use soloist_cli::{completions, examples, lab, man, Cli, Ctx};
use soloist_host::control::Control;
use soloist_host::machine::Host;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Doctor(doctor::Args),
    Advise(advise::Args),
    Up(up::Args),
    Down(up::DownArgs),
    Run(run::Args),
    Compare(Box<soloist_cli::compare::Args>),
    Bench(bench::Args),
    #[command(subcommand)]
    Group(group::Args),
    #[command(subcommand)]
    Rule(rule::Args),
    #[command(subcommand)]
    Guard(guard::Args),
    Verify(verify::Args),
    Recolor(recolor::Args),
    Save(save::SaveArgs),
    Apply(save::ApplyArgs),
    Top(top::Args),
    Metrics(metrics::MetricsArgs),
    Events(events::Args),
    #[command(subcommand)]
    Map(map::Args),
    /// Boot a stock Debian kernel in QEMU with the module loaded.
    Vm,
    /// Simulate memory traces and recorded programs on a modelled machine.
    Sim,
    /// Run experiments on a modelled machine, such as the papers' tables.
    Lab,
    /// Run a scenario at every point of a grid, on all CPUs or a cluster.
    Sweep,
    /// Plan cores, colours and bandwidth so that tasks meet their deadlines.
    Plan,
    /// Trace when tasks run, and which deadlines they miss.
    Trace,
    #[command(hide = true)]
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

/// All commands, the help of each ending with exit status and examples.
pub fn commands() -> clap::Command {
    let all = Cli::<Command>::command();
    all.mut_subcommands(examples::gather).after_help(examples![
        "soloist doctor",
        "soloist up --machine opteron-6128",
        "soloist run --mem 512M -- ./my-task",
        "soloist verify 1234",
        "soloist down",
    ])
}

impl Command {
    /// Does it look at groups, or want colours? What killed runs left goes first.
    fn sweeps(&self) -> bool {
        match self {
            // `soloist-lab`, to which it hands over what it models, sweeps.
            Self::Compare(args) => !args.is_modelled(),
            Self::Doctor(_)
            | Self::Up(_)
            | Self::Down(_)
            | Self::Run(_)
            | Self::Bench(_)
            | Self::Group(_)
            | Self::Verify(_)
            | Self::Recolor(_)
            | Self::Save(_)
            | Self::Apply(_)
            | Self::Top(_) => true,
            _ => false,
        }
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
            Self::Advise(args) => advise::run(&args, ctx),
            Self::Up(args) => up::run(args, ctx),
            Self::Down(args) => up::run_down(args, ctx),
            Self::Run(args) => run::run(args, ctx),
            Self::Compare(args) => compare::run(*args, ctx),
            Self::Bench(args) => bench::run(args, ctx),
            Self::Group(args) => group::run(args, ctx),
            Self::Rule(args) => rule::run(args, ctx),
            Self::Verify(args) => verify::run(args, ctx),
            Self::Recolor(args) => recolor::run(args, ctx),
            Self::Save(args) => save::save(args, ctx),
            Self::Apply(args) => save::apply(args, ctx),
            Self::Top(args) => top::run(args, ctx),
            Self::Metrics(args) => metrics::metrics(args, ctx),
            Self::Events(args) => events::run(args, ctx),
            Self::Map(args) => map::run(args, ctx),
            Self::Guard(args) => guard::run(args, ctx),
            Self::Vm => lab::hand_over("vm"),
            Self::Sim => lab::hand_over("sim"),
            Self::Lab => lab::hand_over("lab"),
            Self::Sweep => lab::hand_over("sweep"),
            Self::Plan => lab::hand_over("plan"),
            Self::Trace => lab::hand_over("trace"),
            Self::Completions(args) => completions::run(args, ctx),
            Self::Man(args) => man::run(args, ctx),
        }
    }
}

/// Each of `names` once, in their order.
fn distinct(names: &[String]) -> impl Iterator<Item = &String> {
    let is_first = |&(at, name): &(usize, &String)| !names[..at].contains(name);
    let first = names.iter().enumerate().filter(is_first);
    first.map(|(_, name)| name)
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
