//! Lengths of time as people write them: `"150 ms"`.
//!
//! Inside, everything is picoseconds, as in the memory model.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Picoseconds in a millisecond.
pub const MS: u64 = 1_000_000_000;
/// Picoseconds in a microsecond.
pub const US: u64 = 1_000_000;

/// Units, the longest name first where one begins as another.
const UNITS: [(&str, u64); 5] = [
    ("ns", 1_000),
    ("us", US),
    ("\u{b5}s", US),
    ("ms", MS),
    ("s", 1_000_000_000_000),
];

/// Longest time that is taken: an hour.
const LONGEST_PS: u64 = 3_600 * 1_000_000_000_000;

/// A length of time, picoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// An error: the text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// Neither number nor unit as expected.
    #[error("{0:?} is no time: expected a number and one of ns, us, ms, s, such as \"150 ms\"")]
    Syntax(String),
    /// `1 s 500 ms`.
    #[error("{0:?} has two units: write one number with one, such as \"1500 ms\"")]
    TwoUnits(String),
    /// More than an hour.
    #[error("{0:?} is more than an hour")]
    TooLong(String),
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let trimmed = text.trim();
        let syntax = || BadTime::Syntax(text.to_owned());
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(syntax)?;
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim();
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let again = UNITS.iter().any(|(name, _)| {
                let rest = unit.strip_prefix(name).unwrap_or_default();
                let next = rest.trim_start();
                let named = UNITS.iter().any(|(other, _)| next == *other);
                next.starts_with(|c: char| c.is_ascii_digit()) || named && next != rest
            });
            return Err(if again {
                BadTime::TwoUnits(text.to_owned())
            } else {
                syntax()
            });
        };
        let number: f64 = number.parse().map_err(|_| syntax())?;
        let ps = number * *scale as f64;
        if ps > LONGEST_PS as f64 {
            return Err(BadTime::TooLong(text.to_owned()));
        }
        Ok(Self(ps.round() as u64))
    }
}

/// Writes four digits and the unit that suits: `62.5 ms`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0 => return f.pad("0"),
            1..US => ("ns", 1_000),
            US..MS => ("us", US),
            MS.. => ("ms", MS),
        };
        let value = self.0 as f64 / scale as f64;
        let digits = match value {
            v if v >= 1000.0 => 0,
            v if v >= 100.0 => 1,
            v if v >= 10.0 => 2,
            _ => 3,
        };
        let mut text = format!("{value:.digits$}");
        if text.contains('.') {
            let kept = text.trim_end_matches('0').trim_end_matches('.').len();
            text.truncate(kept);
        }
        f.pad(&format!("{text} {unit}"))
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time with its unit, such as \"150 ms\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
        text.parse().map_err(|e: BadTime| E::custom(e))
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Time, E> {
        Err(E::custom(format!(
            "{n} has no unit: write it as \"{n} ms\", or with ns, us, s"
        )))
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Time, E> {
        Err(E::custom(format!(
            "{n} has no unit: write it as \"{n} ms\", or with ns, us, s"
        )))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TimeVisitor).map_err(D::Error::custom)
    }
}

/// Writes a number of nanoseconds.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0 as f64 / 1000.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, ps) in [
            ("150 ms", 150 * MS),
            ("33.3ms", 33_300 * US),
            (" 7 us ", 7 * US),
            ("2\u{b5}s", 2 * US),
            ("1 s", 1000 * MS),
            ("0 ns", 0),
        ] {
            assert_eq!(text.parse(), Ok(Time(ps)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_in_words() {
        for (text, words) in [
            ("1 s 500 ms", "two units"),
            ("1ms2us", "two units"),
            ("10 ms us", "two units"),
            ("10 ms  \u{b5}s", "two units"),
            ("150", "expected a number and one of"),
            ("ms", "expected a number"),
            ("-1 ms", "expected a number"),
            ("1 min", "expected a number"),
            ("1..2 ms", "expected a number"),
            ("99999999 s", "more than an hour"),
        ] {
            let error = text.parse::<Time>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_an_error(text in "[0-9a-z. \u{b5}]{0,12}") {
            let _ = text.parse::<Time>();
        }

        #[test]
        fn what_is_printed_is_read_again(ps in 0..LONGEST_PS) {
            let text = Time(ps).to_string();
            if ps > 0 {
                let back = text.parse::<Time>().unwrap().0;
                prop_assert!(back.abs_diff(ps) as f64 <= ps as f64 * 1e-3, "{text}");
            }
        }
    }
}
