//! What a scenario says of bandwidth regulation: `[regulator]` and the
//! `reserve` of a task.
//!
//! A mode is one way of running the same tasks, and a case is a policy in a
//! mode: nothing regulated (`vanilla`), or MemGuard's four. Words behind a `+`
//! add to a mode, and `@NAME` leaves only the task of that name, which is what
//! the paper normalises to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use soloist_core::{Regulation, Regulator, Reservation, Sharing, TRAFFICS};
use soloist_machine::KeyError;
use soloist_play::guard::{EWMA, PERIOD_US};

use super::number::Number;

/// Bytes of a line, before the machine is known.
const LINE: u32 = 64;

/// Bytes per second of 1 MB/s.
const MEGA: u64 = 1_000_000;

/// `[regulator]`; rates in MB/s (10^6 bytes per second).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegulatorSpec {
    /// Modes to run in, see [`Mode`].
    pub modes: Vec<String>,
    /// Length of a period, microseconds.
    #[serde(default = "millisecond")]
    pub period_us: u32,
    /// Guaranteed bandwidth: the most that can be reserved. Reads, or reads
    /// and writes together where only one counter is kept.
    pub r_min: u64,
    /// The same of writes, in modes with `+writes`.
    #[serde(default)]
    pub r_min_writes: u64,
    /// Peak bandwidth.
    pub peak: u64,
    /// Weight of the newest period in the prediction, in 1/256 (180: the
    /// paper's example needs more than two thirds).
    #[serde(default = "ewma")]
    pub ewma: u16,
}

fn millisecond() -> u32 {
    PERIOD_US
}

fn ewma() -> u16 {
    EWMA
}

/// `reserve` of a task, MB/s; a task without it is not regulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReserveSpec {
    /// Reads.
    pub reads: Option<Number>,
    /// Writes, in modes with `+writes`.
    pub writes: Option<Number>,
    /// A share of what is left of `r_min`, instead.
    pub weight: Option<u32>,
    /// Neither gives nor takes: hard real time.
    #[serde(default)]
    pub hard: bool,
}

/// A task's reservation with its numbers resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reserve {
    /// MB/s of reads and writes.
    pub rate: [u64; TRAFFICS],
    /// 0: `rate` counts.
    pub weight: u32,
    /// Neither gives nor takes.
    pub hard: bool,
}

/// One way of running the tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    name: String,
    /// Somebody is regulated.
    pub regulated: bool,
    /// Unused budget is given and taken.
    pub reclaim: bool,
    /// Best effort.
    pub sharing: Sharing,
    /// Writes have budgets, too.
    pub writes: bool,
    /// Only cores that share banks are charged to each other.
    pub per_bank: bool,
    /// The only task that runs.
    pub only: Option<String>,
}

/// There is no such mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no mode `{0}`; there are vanilla, ro, br, br+ss and br+ps, each with +writes, +banks \
     (per bank set) and @TASK (that task alone) behind it"
)]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let unknown = || UnknownMode(name.to_owned());
        let (words, only) = match name.split_once('@') {
            Some((words, task)) => (words, Some(task.to_owned())),
            None => (name, None),
        };
        let mut words = words.split('+');
        let base = words.next().unwrap_or_default();
        let mut mode = Self {
            name: name.to_owned(),
            regulated: base != "vanilla",
            reclaim: base == "br",
            sharing: Sharing::None,
            writes: false,
            per_bank: false,
            only,
        };
        if !["vanilla", "ro", "br"].contains(&base) {
            return Err(unknown());
        }
        for word in words {
            match word {
                "ss" if mode.reclaim => mode.sharing = Sharing::Spare,
                "ps" if mode.reclaim => mode.sharing = Sharing::Proportional,
                "writes" if mode.regulated => mode.writes = true,
                "banks" if mode.regulated => mode.per_bank = true,
                _ => return Err(unknown()),
            }
        }
        Ok(mode)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl RegulatorSpec {
    /// Settings of a regulator in `mode`, for lines of so many bytes.
    pub fn settings(&self, mode: &Mode, line: u32) -> Regulation {
        let writes = if mode.writes { self.r_min_writes } else { 0 };
        Regulation {
            period_us: self.period_us,
            line,
            r_min: [self.r_min, writes].map(|rate| rate.saturating_mul(MEGA)),
            peak: self.peak.saturating_mul(MEGA),
            q_min: 0,
            ewma: self.ewma,
            sharing: mode.sharing,
        }
    }

    /// Numbers that a regulator takes, where nobody is regulated too: periods are counted.
    pub fn check(&self) -> Result<(), KeyError> {
        for mode in self.modes()? {
            Regulator::new(&self.settings(&mode, LINE), 1).map_err(|refusal| {
                KeyError::at(&["regulator"], format!("[regulator]: {refusal}"))
            })?;
        }
        Ok(())
    }

    /// The modes.
    pub fn modes(&self) -> Result<Vec<Mode>, KeyError> {
        const PATH: [&str; 2] = ["regulator", "modes"];
        if self.modes.is_empty() {
            let what = "`modes` needs at least one, such as [\"vanilla\", \"ro\"]";
            return Err(KeyError::at(&PATH, what));
        }
        let parse = |(number, name): (usize, &String)| {
            name.parse().map_err(|e: UnknownMode| {
                let [table, key] = PATH;
                KeyError::at(&[table, key, &number.to_string()], e.to_string())
            })
        };
        self.modes.iter().enumerate().map(parse).collect()
    }
}

impl ReserveSpec {
    /// With numbers from the sweep.
    pub fn resolve(&self, sweep: &[(&str, u64)]) -> Result<Reserve, String> {
        if self.weight.is_some() && (self.reads.is_some() || self.writes.is_some()) {
            let what = "`reserve` has `weight`, which is instead of `reads` and `writes`";
            return Err(what.to_owned());
        }
        let get = |n: &Option<Number>| n.as_ref().map_or(Ok(0), |n| n.resolve(sweep));
        Ok(Reserve {
            rate: [get(&self.reads)?, get(&self.writes)?],
            weight: self.weight.unwrap_or(0),
            hard: self.hard,
        })
    }
}

impl Reserve {
    /// As the regulator takes it.
    pub fn in_mode(&self, mode: &Mode) -> Reservation {
        Reservation {
            rate: self.rate.map(|r| r.saturating_mul(MEGA)),
            weight: self.weight,
            reclaim: mode.reclaim && !self.hard,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn modes_are_words() {
        let mode: Mode = "br+ps+writes@subject".parse().unwrap();
        assert!(mode.regulated && mode.reclaim && mode.writes && !mode.per_bank);
        assert_eq!(mode.sharing, Sharing::Proportional);
        assert_eq!(mode.only.as_deref(), Some("subject"));
        assert_eq!(mode.to_string(), "br+ps+writes@subject");
        assert!(!"vanilla".parse::<Mode>().unwrap().regulated);
        for wrong in ["", "rw", "ro+ss", "vanilla+writes", "br+", "br+sp"] {
            let error = wrong.parse::<Mode>().unwrap_err().to_string();
            assert!(error.contains("br+ps"), "{error}");
        }
    }
}
