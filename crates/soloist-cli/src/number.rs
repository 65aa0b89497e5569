//! Numbers as arguments: what is no number is told what is wanted.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use soloist_core::{parse_size, parse_whole};

/// A simulated neighbour adds at most this to an access, ns.
const MOST_NS: f64 = 100_000.0;

/// The least memory in which lines are found: two huge pages.
const LEAST_MEMORY: u64 = 4 << 20;

/// Takes the number of a process or thread; 0 is none.
pub fn pid<T: FromStr + PartialOrd + Default>(text: &str) -> Result<T, String> {
    match text.parse() {
        Ok(pid) if pid > T::default() => Ok(pid),
        _ => Err(
            "not the number of a process or thread, as `pidof NAME` and `ps -L` print it"
                .to_owned(),
        ),
    }
}

/// Takes a whole number within `range`.
pub fn whole<T>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Largest + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        Err(_) if is_digits(text) => Err(format!("not a whole number{}", words(&range, true))),
        _ => Err(format!("not a whole number{}", words(&range, false))),
    }
}

/// Takes a mask: hexadecimal after `0x`, else decimal.
pub fn mask(text: &str) -> Result<u64, String> {
    parse_whole(text).ok_or_else(|| "not a mask of 64 bits, such as 0x4000".to_owned())
}

/// Takes what a neighbour adds, ns: a number of its own kind, neither below 0 nor endless.
pub fn ns(text: &str) -> Result<f64, String> {
    let ns: Option<f64> = text.parse().ok();
    ns.filter(|ns| (0.0..=MOST_NS).contains(ns))
        .ok_or_else(|| format!("a number from 0 to {MOST_NS} is wanted"))
}

/// Takes memory that a huge page surely fits into.
pub fn memory(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|e| e.to_string())?;
    match bytes < LEAST_MEMORY {
        true => Err("4M or more is wanted".to_owned()),
        false => Ok(bytes),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The range; of what was `too_large` always with its end.
fn words<T: Display + Largest>(range: &impl RangeBounds<T>, too_large: bool) -> String {
    let from = match range.start_bound() {
        Bound::Included(from) => from.to_string(),
        _ => "0".to_owned(),
    };
    match range.end_bound() {
        Bound::Included(to) => format!(" from {from} to {to}"),
        _ if too_large => format!(" from {from} to {}", T::LARGEST),
        _ => format!(", {from} or more"),
    }
}

/// A number without a sign.
pub trait Largest {
    /// The largest of its type.
    const LARGEST: Self;
}

macro_rules! largest {
    ($($number:ty)*) => {
        $(impl Largest for $number {
            const LARGEST: Self = Self::MAX;
        })*
    };
}

largest!(u8 u32 u64 usize);
