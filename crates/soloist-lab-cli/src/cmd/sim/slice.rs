//! How `soloist sim replay --on-silicon` takes a slice of this machine's memory.

use anyhow::Result;
use soloist_cli::number::{memory, ns, whole};
use soloist_cli::{complete, Misuse};
use soloist_host::machine::{named_cpus, Host};

/// Options of `--on-silicon`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Play the accesses on this machine's own memory too, in a slice of few banks.
    #[arg(long)]
    pub on_silicon: bool,
    /// Banks of the slice.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "on_silicon", value_parser = whole::<u32>(4..=1024))]
    pub banks: u32,
    /// CPUs: the foreground's, then one for each co-runner [default: all that this
    /// process may use].
    #[arg(long, value_name = "LIST", requires = "on_silicon")]
    cpus: Option<String>,
    /// Time to play on silicon, after lines are found.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "on_silicon", value_parser = whole::<u64>(1..=86_400))]
    pub seconds: u64,
    /// Maximum number of pieces of the program to play under every policy.
    #[arg(long, value_name = "N", default_value_t = 60, requires = "on_silicon", value_parser = whole::<u32>(20..=10_000))]
    pub blocks: u32,
    /// Memory to find lines in.
    #[arg(long, value_parser = memory, value_name = "SIZE", default_value = "128M", requires = "on_silicon")]
    pub memory: u64,
    /// Give up looking for lines after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "on_silicon", value_parser = whole::<u64>(..))]
    pub deadline: u64,
    /// Play on a simulation of this machine's memory instead of silicon.
    #[arg(long, value_name = "MACHINE", requires = "on_silicon", conflicts_with_all = ["cpus", "memory"], add = complete::machines())]
    pub simulate: Option<String>,
    /// Simulated: time that a co-runner in the same bank adds to an access, ns.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 100.0,
        requires = "simulate",
        value_parser = ns
    )]
    pub same_bank: f64,
}

impl Options {
    /// A processor for each program, in the order that they are named in.
    pub fn cpus(&self, programs: usize) -> Result<Vec<usize>> {
        let cpus = named_cpus(&Host::live(), self.cpus.as_deref());
        let cpus = cpus.map_err(|e| Misuse(e.to_string()))?;
        if cpus.len() < programs {
            return Err(Misuse(format!(
                "{programs} programs need as many CPUs; there are {}: fewer co-runners, or --cpus",
                cpus.len()
            ))
            .into());
        }
        Ok(cpus[..programs].iter().map(|&cpu| cpu as usize).collect())
    }
}
