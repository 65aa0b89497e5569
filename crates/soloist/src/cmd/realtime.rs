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
    /// Run under SCHED_FIFO with this priority, 1 to 99, its memory locked and
    /// faulted in, in its colours, before its first instruction.
    #[arg(long, value_name = "PRIO", value_parser = whole::<u32>(1..=99))]
    rt: Option<u32>,

    /// Or under SCHED_DEADLINE: processor time of a period, such as 2ms.
    #[arg(long, value_name = "TIME", requires = "period", conflicts_with = "rt")]
    budget: Option<Time>,

    /// Its period.
    #[arg(long, value_name = "TIME")]
    period: Option<Time>,

    /// Its deadline in a period; left out: the period.
    #[arg(long, value_name = "TIME")]
    deadline: Option<Time>,

    /// Leave its memory as it comes: a thread's whole stack is faulted in too
    /// otherwise (8 MiB, if the program doesn't say).
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
