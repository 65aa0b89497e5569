//! Flags that say how a command runs in real time.

use soloist_core::time::Time;
use soloist_host::run::{Class, Realtime};

use soloist_cli::number::whole;
use soloist_cli::Misuse;

/// `--rt`, or `--budget` and what belongs to it.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Real time", group = clap::ArgGroup::new("real_time").args(["rt", "budget"]))]
pub struct RealtimeArgs {
    /// Run under SCHED_FIFO with this priority, 1 to 99. Its memory is locked and
    /// faulted in before its first instruction.
    #[arg(long, value_name = "PRIO", value_parser = whole::<u32>(1..=99))]
    rt: Option<u32>,

    /// Run under SCHED_DEADLINE with this CPU time in each period, such as 2ms.
    #[arg(long, value_name = "TIME", requires = "period", conflicts_with = "rt")]
    budget: Option<Time>,

    /// Period of `--budget`.
    #[arg(long, value_name = "TIME")]
    period: Option<Time>,

    /// Deadline of `--budget` [default: the period].
    #[arg(long, value_name = "TIME")]
    deadline: Option<Time>,

    /// Do not lock and fault in its memory. Otherwise each thread's whole stack is
    /// faulted in too (8 MiB, unless the program says otherwise).
    #[arg(long, requires = "real_time")]
    no_lock: bool,
}

impl RealtimeArgs {
    /// The kernel holds nobody but a task with a budget to a period.
    pub fn check(&self) -> Result<(), Misuse> {
        let word = match (self.budget, self.period, self.deadline) {
            (None, Some(_), _) => "--period",
            (None, None, Some(_)) => "--deadline",
            _ => return Ok(()),
        };
        Err(Misuse(format!("{word}: only SCHED_DEADLINE has one: give it --budget TIME too, or leave {word} out; `soloist trace --period` says whether a task of any class keeps its own")))
    }

    /// What was asked for; `None`: nothing.
    pub fn asked(&self) -> Option<Realtime> {
        let class = match (self.rt, self.budget, self.period) {
            (Some(priority), ..) => Class::Fifo(priority),
            (None, Some(budget), Some(period)) => Class::Deadline {
                budget,
                deadline: self.deadline.unwrap_or(period),
                period,
            },
            _ => return None,
        };
        Some(Realtime {
            class,
            lock: !self.no_lock,
        })
    }

    /// The kernel takes a task into SCHED_DEADLINE only if it may run everywhere.
    pub fn must_roam(&self) -> bool {
        self.budget.is_some()
    }
}
