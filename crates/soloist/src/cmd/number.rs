//! Numbers as arguments: what is no number is told what is wanted.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::any::TypeId;

    use clap::{Arg, Command, CommandFactory};

    use crate::Cli;

    fn is_number(arg: &Arg) -> bool {
        let of = arg.get_value_parser().type_id();
        let numbers = [
            TypeId::of::<u8>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i32>(),
        ];
        arg.get_action().takes_values() && numbers.iter().any(|number| of == *number)
    }

    /// What is said of `--option text` of each command from `command` down.
    fn refusals(command: &Command, path: &[&str], text: &str, all: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            refusals(sub, &[path, &[sub.get_name()]].concat(), text, all);
        }
        for arg in command.get_arguments().filter(|arg| is_number(arg)) {
            let long = arg.get_long().map(|long| format!("--{long}={text}"));
            let last = long.as_deref().map_or(vec!["--", text], |long| vec![long]);
            let words = [path, &last].concat();
            let refused = Cli::command().try_get_matches_from(words).unwrap_err();
            all.push(format!("{}: {refused}", path.join(" ")));
        }
    }

    #[test]
    fn a_bad_number_is_told_in_one_way_everywhere() {
        for text in ["x", "-1", "99999999999999999999"] {
            let mut all = Vec::new();
            refusals(&Cli::command(), &["soloist"], text, &mut all);
            assert!(all.len() > 30, "{all:?}");
            let own = |said: &&String| {
                let others = ["digit found", "number too", "is not in"];
                said.contains("invalid value") && !others.iter().any(|words| said.contains(words))
            };
            let other: Vec<_> = all.iter().filter(|said| !own(said)).collect();
            assert!(other.is_empty(), "{other:#?}");
        }
    }
}
