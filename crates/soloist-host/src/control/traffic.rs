//! What the guard's events count (kernel/guard/counter.c) of the lines that a
//! processor moves: a limit holds back no more than that.

use soloist_machine::{did_you_mean, KeyError};

use crate::machine::{lacking_event, Host};
use crate::HostError;

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Each line at least once.
    Lines,
    /// Those that instructions ask for, not those that a prefetcher fetches.
    Asked,
    /// Those of one kind.
    Some,
    /// Whatever the number says.
    Raw,
    /// No lines.
    Nothing,
}

/// Names that the kernel knows.
const KNOWN: [(&str, Counts); 19] = [
    ("LLC-misses", Counts::Asked),
    ("LLC-load-misses", Counts::Some),
    ("LLC-store-misses", Counts::Some),
    // Data that is read: no instructions, no lines that stores ask for.
    ("offcore-reads", Counts::Some),
    // Lines that AMD's first level of data gets from DRAM: no instructions, and nothing that
    // the prefetcher of the L2 has brought near.
    ("dram-fills", Counts::Some),
    ("bus-accesses", Counts::Lines),
    // Stores may go round the caches.
    ("bus-reads", Counts::Some),
    ("bus-writes", Counts::Some),
    ("L2-refills", Counts::Some),
    ("L2-writebacks", Counts::Some),
    // By Arm's names. Refills are of reads alone on cores with an L3; each store is a
    // write access, and each line that is read for it is none.
    ("L2D_CACHE_REFILL", Counts::Some),
    ("L3D_CACHE_REFILL", Counts::Some),
    ("LL_CACHE_MISS_RD", Counts::Some),
    ("BUS_ACCESS", Counts::Lines),
    ("MEM_ACCESS_WR", Counts::Some),
    ("page-faults", Counts::Nothing),
    ("context-switches", Counts::Nothing),
    // No line takes less than a nanosecond, or than a cycle.
    ("cpu-clock", Counts::Lines),
    ("cpu-cycles", Counts::Lines),
];

fn find(event: &str) -> Option<Counts> {
    let known = KNOWN.iter().find(|(name, _)| *name == event);
    let raw = event.strip_prefix('r').is_some_and(|digits| {
        !digits.is_empty() && digits.len() <= 16 && digits.chars().all(|c| c.is_ascii_hexdigit())
    });
    known
        .map(|(_, counts)| *counts)
        .or(raw.then_some(Counts::Raw))
}

/// Refuses what is no event's name.
///
/// # Errors
/// With what it may have been meant to be.
pub fn check_event(event: &str) -> Result<(), HostError> {
    if find(event).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
    let like = did_you_mean(event, names.iter().copied());
    Err(HostError::Request(format!(
        "{event}: no such event{like}: expected {} or rHEX, a raw one",
        names.join(", ")
    )))
}

/// Refuses settings of the guard whose event no core of `host` counts, as far as is known.
///
/// # Errors
/// With the cores that lack it, and what they have.
pub(crate) fn check_events_here<'a>(
    host: &Host,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), HostError> {
    let events = settings
        .into_iter()
        .filter(|(key, _)| ["event", "write_event"].contains(key));
    for (key, event) in events {
        if let Some(why) = lacking_event(host, event) {
            return Err(KeyError::of(&["guard"], key, format!(": {why}")).into());
        }
    }
    Ok(())
}

/// Why a limit that is counted by `event` may not hold back all that a processor
/// moves; `None`: it does. `prefetches`: the machine has a prefetcher.
#[must_use]
pub fn objection(event: &str, prefetches: bool) -> Option<String> {
    let why = match find(event)? {
        Counts::Lines | Counts::Raw => return None,
        Counts::Asked if !prefetches => return None,
        Counts::Asked => "does not count lines that a prefetcher fetches, and this machine has one",
        Counts::Some => "counts some kinds of lines only",
        Counts::Nothing => "counts no lines, so that it never stops a stream",
    };
    Some(format!("{event} {why}"))
}

/// What remains to be known of `event` where nothing is said against it.
#[must_use]
pub fn proviso(event: &str) -> Option<&'static str> {
    match find(event)? {
        Counts::Raw => Some("that it counts every line, prefetched ones too, is for you to know"),
        Counts::Asked => Some("it does not count prefetched lines: no prefetcher may be on"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_count_all_lines_is_objected_to() {
        for (event, prefetches, fits) in [
            ("bus-accesses", true, true),
            ("BUS_ACCESS", true, true),
            ("L3D_CACHE_REFILL", true, false),
            ("MEM_ACCESS_WR", false, false),
            ("cpu-clock", true, true),
            ("r80b0", true, true),
            ("LLC-misses", false, true),
            ("LLC-misses", true, false),
            ("offcore-reads", false, false),
            ("dram-fills", false, false),
            ("page-faults", false, false),
            ("context-switches", false, false),
        ] {
            assert_eq!(objection(event, prefetches).is_none(), fits, "{event}");
            assert!(check_event(event).is_ok(), "{event}");
        }
        assert!(proviso("r80b0").is_some());
        for bad in ["", "r", "rxyz", "LLC-mises", "page faults"] {
            assert!(check_event(bad).is_err(), "{bad}");
        }
        let said = check_event("LLC-mises").map_err(|e| e.to_string());
        assert!(said.is_err_and(|said| said.contains("LLC-misses")));
    }
}
