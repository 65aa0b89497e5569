//! Rates, and bandwidth that is reserved: as people write it, and as the kernel does.

use std::fmt;
use std::str::FromStr;

use soloist_core::cpu_list;

use crate::HostError;

/// A reservation: `500MB/s`, `500MB/s:write=200MB/s:reclaim=0`, `weight=3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    share: Share,
    write: Option<u64>,
    reclaim: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Rate(u64),
    Weight(u32),
}

impl Bandwidth {
    /// Reads what the kernel says of a reservation, `500000000 reclaim=1
    /// cpus=0-1`; `None`: nothing is reserved. With it the processors.
    pub(crate) fn of_kernel(text: &str) -> Option<(Self, Option<String>)> {
        let mut words = Vec::new();
        let mut cpus = None;
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("cpus", list)) => cpus = Some(list.to_owned()),
                Some(("group", _)) => {}
                // What is so unless one says otherwise.
                Some(("reclaim", "1")) => {}
                _ => words.push(word),
            }
        }
        let said: Self = words.join(":").parse().ok()?;
        let among = cpus.as_deref().and_then(|list| cpu_list(list).ok());
        Some((
            match among {
                Some(cpus) => said.among(cpus.len()),
                None => said,
            },
            cpus,
        ))
    }

    /// As a group's that has it on `cpus` processors: each gets an equal part in
    /// whole bytes, so what the kernel says of 100MB/s on three is 99999999. Of the
    /// rates that come to the same parts this is the roundest.
    pub(crate) fn among(self, cpus: u32) -> Self {
        let n = u64::from(cpus.max(1));
        let round = |rate: u64| roundest(rate / n * n, n);
        Self {
            share: match self.share {
                Share::Rate(rate) => Share::Rate(round(rate)),
                weight => weight,
            },
            write: self.write.map(round),
            ..self
        }
    }

    /// Bytes per second, reads and writes together; 0 for a weight.
    pub(crate) fn rate(&self) -> u64 {
        let reads = match self.share {
            Share::Rate(rate) => rate,
            Share::Weight(_) => 0,
        };
        reads + self.write.unwrap_or(0)
    }

    /// Bytes per second of reads (of all traffic, where writes are not counted apart)
    /// and of writes; 0 for a weight.
    pub(crate) fn rates(&self) -> [u64; 2] {
        let writes = self.write.unwrap_or(0);
        [self.rate() - writes, writes]
    }

    /// As people write it: `500MB/s:write=200MB/s`.
    pub fn for_people(&self) -> String {
        let rate = |rate: u64| match rate % 1_000_000 {
            0 => format!("{}MB/s", rate / 1_000_000),
            _ => rate.to_string(),
        };
        let mut text = match self.share {
            Share::Rate(bytes) => rate(bytes),
            Share::Weight(weight) => format!("weight={weight}"),
        };
        if let Some(bytes) = self.write {
            text += &format!(":write={}", rate(bytes));
        }
        if let Some(reclaim) = self.reclaim {
            text += &format!(":reclaim={}", u8::from(reclaim));
        }
        text
    }
}

/// The roundest number of `least` and the `n - 1` after it.
fn roundest(least: u64, n: u64) -> u64 {
    let tens = (0..19).rev().map(|exponent| 10u64.pow(exponent));
    let rounded = tens.map(|ten| least.div_ceil(ten).saturating_mul(ten));
    let mut within = rounded.filter(|&rate| rate - least < n);
    within.next().unwrap_or(least)
}

impl fmt::Display for Bandwidth {
    /// As the kernel takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share {
            Share::Rate(rate) => write!(f, "{rate}")?,
            Share::Weight(weight) => write!(f, "weight={weight}")?,
        }
        if let Some(rate) = self.write {
            write!(f, " write={rate}")?;
        }
        if let Some(reclaim) = self.reclaim {
            write!(f, " reclaim={}", u8::from(reclaim))?;
        }
        Ok(())
    }
}

impl FromStr for Bandwidth {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let mut words = text.split(':');
        let first = words.next().unwrap_or("");
        let share = match first.strip_prefix("weight=") {
            Some(weight) => Share::Weight(weight.parse().map_err(|_| {
                HostError::Request(format!("weight `{weight}`: expected 1 to 1000000"))
            })?),
            None => Share::Rate(parse_rate(first)?),
        };
        let mut this = Self {
            share,
            write: None,
            reclaim: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("write", rate)) => this.write = Some(parse_rate(rate)?),
                Some(("reclaim", "0")) => this.reclaim = Some(false),
                Some(("reclaim", "1")) => this.reclaim = Some(true),
                _ => {
                    return Err(HostError::Request(format!(
                        "`{word}` is none of write=RATE, reclaim=0, reclaim=1"
                    )))
                }
            }
        }
        Ok(this)
    }
}

/// Reads `500MB/s`, `1.2GB/s`, `800MiB/s` or plain bytes per second: KB, MB
/// and GB are powers of 1000, KiB, MiB and GiB of 1024. A small `b` means bits to many, so that
/// `500Mb/s` is refused.
///
/// ```
/// assert_eq!(soloist_host::control::parse_rate("1.2GB/s").ok(), Some(1_200_000_000));
/// ```
pub fn parse_rate(text: &str) -> Result<u64, HostError> {
    rate(text.trim()).ok_or_else(|| {
        HostError::Request(format!(
            "`{text}` is no rate: expected for instance 500MB/s, 1.2GB/s or bytes per second; B are bytes"
        ))
    })
}

fn rate(text: &str) -> Option<u64> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if text.ends_with('b') {
        return None;
    }
    let unit: u64 = match text[number.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" => 1_000,
        "M" | "MB" => 1_000_000,
        "G" | "GB" => 1_000_000_000,
        "KIB" => 1 << 10,
        "MIB" => 1 << 20,
        "GIB" => 1 << 30,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 15 && s.chars().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let tenths: u128 = part.parse().ok()?;
    let scale = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let bytes = whole.parse::<u128>().ok()? * u128::from(unit) + tenths * u128::from(unit) / scale;
    u64::try_from(bytes).ok().filter(|&b| b > 0)
}

/// `500 MB/s`, `1.2 MB/s`, `300 B/s`: MB are 10^6 bytes, at most one decimal.
pub fn format_rate(rate: u64) -> String {
    match rate {
        0..1_000 => format!("{rate} B/s"),
        1_000..100_000 => format!("{} kB/s", rate as f64 / 1e3),
        _ if rate % 1_000_000 == 0 => format!("{} MB/s", rate / 1_000_000),
        _ => format!("{:.1} MB/s", rate as f64 / 1e6),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(parse_rate("500MB/s").unwrap(), 500_000_000);
        assert_eq!(parse_rate("1.2GB/s").unwrap(), 1_200_000_000);
        assert_eq!(parse_rate("1MiB").unwrap(), 1 << 20);
        assert_eq!(parse_rate("4096").unwrap(), 4096);
        for bad in [
            "",
            "0",
            "-1",
            "1.",
            ".5",
            "1e9",
            "5 MB",
            "fast",
            "500Mb/s",
            "1gb",
            "99999999999999999GB/s",
        ] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rate_that_was_cut_into_equal_parts_is_told_as_it_was_asked_for() {
        let for_people = |text: &str| Bandwidth::of_kernel(text).unwrap().0.for_people();
        assert_eq!(for_people("99999999 reclaim=1 cpus=1-3"), "100MB/s");
        assert_eq!(
            for_people("1199999997 write=99999998 cpus=0-6"),
            "1200MB/s:write=100MB/s"
        );
        assert_eq!(for_people("100000000 reclaim=1 cpus=0-1"), "100MB/s");
        // Odd ones stay what they are.
        assert_eq!(for_people("99999998 cpus=0"), "99999998");
        assert_eq!(for_people("weight=3 cpus=0-2"), "weight=3");
    }

    #[test]
    fn bandwidths() {
        let text = |s: &str| s.parse::<Bandwidth>().map(|b| b.to_string());
        assert_eq!(text("500MB/s").unwrap(), "500000000");
        assert_eq!(
            text("500MB/s:write=200MB/s:reclaim=0").unwrap(),
            "500000000 write=200000000 reclaim=0"
        );
        assert_eq!(text("weight=3").unwrap(), "weight=3");
        for bad in [
            "",
            "weight=x",
            "1MB/s:read=2",
            "1MB/s:write=0",
            "1MB/s:reclaim=2",
        ] {
            assert!(text(bad).is_err(), "{bad}");
        }
    }
}
