//! What is not a row conflict in a simulated timing: noise of several kinds,
//! each alone or together.

use std::fmt;
use std::str::FromStr;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Samples of one turn of the drift.
const DRIFT_PERIOD: f64 = 60_000.0;
/// What a refresh adds to the access that meets it, cycles.
const REFRESH: f64 = 420.0;
/// What a burst adds to every reading, cycles.
const BURST: f64 = 90.0;
/// Readings of one turn of bursts and calm.
const BURST_PERIOD: u64 = 3_000;
/// Most that another guest's access adds, cycles.
const OTHER_GUEST: f64 = 160.0;

/// How noisy the simulated memory is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of every reading, cycles.
    pub sigma: f64,
    /// Amplitude of a slow drift, cycles.
    pub drift: f64,
    /// Share of readings that meet a refresh.
    pub refresh: f64,
    /// Share of readings that say nothing: uniform from 70 % to 300 %.
    pub outliers: f64,
    /// Share of the time in which all readings are 90 cycles slower.
    pub burst: f64,
    /// Share of readings that another guest makes up to 160 cycles slower, in
    /// the half of the time in which it runs.
    pub guest: f64,
    /// What a pair in two banks of one group adds, cycles.
    pub group: f64,
    /// What a pair in two ranks adds, cycles.
    pub rank: f64,
    /// What a pair in one row saves, cycles.
    pub hit: f64,
    /// The controller closes rows after every access: a pair in one row is as
    /// slow as a conflict.
    pub closed: bool,
    /// Step of the clock, cycles; 1: none.
    pub step: f64,
    /// Pairs of accesses in one reading, which is in steps of the clock where these are
    /// several: how a clock is read whose step is longer than an access, as Arm's
    /// (`cpu::time_pair`).
    pub rounds: u32,
    /// Pairs whose first-level ways a hash makes one are as slow as a
    /// conflict, and nothing tells which.
    pub aliases: bool,
}

/// The kinds by name, for `--noise` and for tables.
pub const KINDS: &[(&str, Noise)] = &[
    ("none", Noise::NONE),
    ("low", Noise::LOW),
    ("high", Noise::HIGH),
    (
        "drift",
        Noise {
            drift: 80.0,
            ..Noise::LOW
        },
    ),
    (
        "outliers",
        Noise {
            outliers: 0.3,
            ..Noise::LOW
        },
    ),
    (
        "bursts",
        Noise {
            burst: 0.33,
            ..Noise::LOW
        },
    ),
    (
        "levels",
        Noise {
            group: 14.0,
            rank: 9.0,
            hit: 20.0,
            ..Noise::LOW
        },
    ),
    (
        "closed",
        Noise {
            closed: true,
            ..Noise::LOW
        },
    ),
    (
        "clock25",
        Noise {
            step: 25.0,
            ..Noise::LOW
        },
    ),
    (
        "clock40",
        Noise {
            step: 40.0,
            ..Noise::LOW
        },
    ),
    // Arm's counter at 19.2 and 54 MHz, where a cycle is a nanosecond.
    (
        "arm19",
        Noise {
            step: 52.0,
            rounds: 32,
            ..Noise::LOW
        },
    ),
    (
        "arm54",
        Noise {
            step: 18.5,
            rounds: 32,
            ..Noise::LOW
        },
    ),
    (
        "aliases",
        Noise {
            aliases: true,
            ..Noise::LOW
        },
    ),
    (
        "guest",
        Noise {
            guest: 0.3,
            ..Noise::LOW
        },
    ),
    (
        "all",
        Noise {
            sigma: 10.0,
            drift: 40.0,
            refresh: 0.05,
            outliers: 0.1,
            burst: 0.33,
            guest: 0.2,
            group: 14.0,
            rank: 9.0,
            hit: 20.0,
            closed: false,
            step: 25.0,
            rounds: 1,
            aliases: true,
        },
    ),
];

impl Noise {
    /// None at all.
    pub const NONE: Self = Self {
        sigma: 0.0,
        drift: 0.0,
        refresh: 0.0,
        outliers: 0.0,
        burst: 0.0,
        guest: 0.0,
        group: 0.0,
        rank: 0.0,
        hit: 0.0,
        closed: false,
        step: 1.0,
        rounds: 1,
        aliases: false,
    };
    /// A quiet machine.
    pub const LOW: Self = Self {
        sigma: 6.0,
        drift: 8.0,
        refresh: 0.02,
        outliers: 0.02,
        ..Self::NONE
    };
    /// A busy virtual machine.
    pub const HIGH: Self = Self {
        sigma: 14.0,
        drift: 40.0,
        refresh: 0.05,
        outliers: 0.2,
        ..Self::NONE
    };

    /// A reading of what takes `time` cycles without noise: the `count`th.
    /// `fast` is what a pair without a conflict takes.
    pub fn reading(&self, time: f64, fast: f64, count: u64, rng: &mut ChaCha8Rng) -> u32 {
        let step = self.step.max(1.0);
        if self.rounds <= 1 {
            let time = self.once(time, fast, count, rng).max(1.0);
            return ((time / step).floor() * step) as u32;
        }
        // The clock goes on between two readings of it.
        let rounds = (0..self.rounds).map(|_| self.once(time, fast, count, rng).max(1.0));
        let all: f64 = rounds.sum();
        ((all / step) + rng.gen::<f64>()).floor() as u32
    }

    /// The time of one pair.
    fn once(&self, time: f64, fast: f64, count: u64, rng: &mut ChaCha8Rng) -> f64 {
        let mut time = time;
        if self.drift > 0.0 {
            let turn = count as f64 / DRIFT_PERIOD * std::f64::consts::TAU;
            time += self.drift * (turn.sin() + 0.3 * (turn * 3.7).sin());
        }
        if self.sigma > 0.0 {
            // Sum of uniforms: close to normal, cheap, bounded.
            let sum: f64 = (0..6).map(|_| rng.gen::<f64>()).sum();
            time += self.sigma * (sum - 3.0) * std::f64::consts::SQRT_2;
        }
        if self.refresh > 0.0 && rng.gen::<f64>() < self.refresh {
            time += REFRESH * rng.gen::<f64>();
        }
        let part = (count % BURST_PERIOD) as f64 / BURST_PERIOD as f64;
        if part < self.burst {
            time += BURST;
        }
        if self.guest > 0.0 && (count / 1_700) % 2 == 0 && rng.gen::<f64>() < self.guest {
            time += OTHER_GUEST * rng.gen::<f64>();
        }
        if self.outliers > 0.0 && rng.gen::<f64>() < self.outliers {
            time = fast * rng.gen_range(0.7..3.0);
        }
        time
    }

    fn set(&mut self, part: &str) -> Result<(), String> {
        let wrong = || {
            let kinds: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            format!(
                "`{part}`: expected {}, or one of sigma=, drift=, group=, rank=, hit=, step= \
                 (cycles), rounds=, refresh=, outliers=, burst=, guest= (0 to 1), closed=, aliases= (0 or 1)",
                kinds.join(", ")
            )
        };
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let key = key.trim();
        if let "closed" | "aliases" = key {
            let on = value == 1.0;
            if !on && value != 0.0 {
                return Err(format!("`{part}`: expected 0 or 1"));
            }
            match key {
                "closed" => self.closed = on,
                _ => self.aliases = on,
            }
            return Ok(());
        }
        let (slot, max) = match key {
            "sigma" => (&mut self.sigma, 1000.0),
            "drift" => (&mut self.drift, 1000.0),
            "group" => (&mut self.group, 1000.0),
            "rank" => (&mut self.rank, 1000.0),
            "hit" => (&mut self.hit, 200.0),
            "step" => (&mut self.step, 1000.0),
            "rounds" => {
                let whole = (1.0..=1000.0).contains(&value) && value.fract() == 0.0;
                self.rounds = value as u32;
                return match whole {
                    true => Ok(()),
                    false => Err(format!("`{part}`: expected 1 to 1000")),
                };
            }
            "refresh" => (&mut self.refresh, 1.0),
            "outliers" => (&mut self.outliers, 1.0),
            "burst" => (&mut self.burst, 1.0),
            "guest" => (&mut self.guest, 1.0),
            _ => return Err(wrong()),
        };
        if !(0.0..=max).contains(&value) {
            return Err(format!("`{part}`: expected 0 to {max}"));
        }
        *slot = value;
        Ok(())
    }
}

impl Default for Noise {
    fn default() -> Self {
        Self::LOW
    }
}

/// The kind's name, or all values.
impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = KINDS.iter().find(|(_, kind)| kind == self) {
            return f.write_str(name);
        }
        write!(
            f,
            "sigma={},drift={},refresh={},outliers={},burst={},guest={},group={},rank={},hit={},\
             closed={},step={},rounds={},aliases={}",
            self.sigma,
            self.drift,
            self.refresh,
            self.outliers,
            self.burst,
            self.guest,
            self.group,
            self.rank,
            self.hit,
            u8::from(self.closed),
            self.step,
            self.rounds,
            u8::from(self.aliases)
        )
    }
}

impl FromStr for Noise {
    type Err = String;

    /// The name of one of the [`KINDS`], and `sigma=14,drift=40,closed=1` and
    /// so on; what is not named is as in the kind, or in `low`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut noise = Self::LOW;
        for part in text.split(',').map(str::trim) {
            match KINDS.iter().find(|(name, _)| *name == part) {
                Some((_, kind)) => noise = *kind,
                None => noise.set(part)?,
            }
        }
        Ok(noise)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn every_kind_is_read_back_and_changes_the_readings() {
        let readings = |noise: &Noise| -> Vec<u32> {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            (0..10_000)
                .map(|i| noise.reading(260.0, 260.0, i, &mut rng))
                .collect()
        };
        for (name, kind) in KINDS {
            assert_eq!(name.parse::<Noise>().unwrap(), *kind);
            assert_eq!(kind.to_string(), *name);
            // Those that depend on the pair, not on the reading.
            let of_pair = ["low", "levels", "closed", "aliases"].contains(name);
            assert_eq!(readings(kind) == readings(&Noise::LOW), of_pair, "{name}");
        }
        let own: Noise = "high,burst=0.5".parse().unwrap();
        assert_eq!(own.to_string().parse::<Noise>().unwrap(), own);
        assert!("loud".parse::<Noise>().unwrap_err().contains("bursts"));
        assert!("closed=2".parse::<Noise>().unwrap_err().contains("0 or 1"));
    }
}
