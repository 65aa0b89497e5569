//! Numbers as arguments: what is no number is told what is wanted.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

/// Takes the number of a process or thread; 0 is none.
pub fn pid(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
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
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("not a whole number{}", words(&range))),
    }
}

fn words<T: Display>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(from), Bound::Included(to)) => format!(" from {from} to {to}"),
        (Bound::Included(from), _) => format!(", {from} or more"),
        _ => String::new(),
    }
}
