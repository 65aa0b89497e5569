//! What happened between two looks, in words.
//!
//! Counters are compared. Of a group that was removed in between the module tells
//! its last ones ([`Removed`]), so nothing is missed of groups that live shortly.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use serde::Serialize;

use crate::observe::watch::{GroupSample, Sample, Snapshot};
use crate::words::counted;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it was seen, seconds since 1970.
    pub seconds: u64,
    /// The group, processor or rule.
    pub of: String,
    /// What: `exhausted`, `spilled`, `moved`, `grown`, `made`, `gone`, `stopped`,
    /// `refused`.
    pub what: &'static str,
    /// How often; pages where pages are counted.
    pub count: u64,
    text: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = self.seconds % 86_400;
        let (hours, minutes, seconds) = (day / 3600, day / 60 % 60, day % 60);
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}Z ")?;
        write!(f, "{}: {}", self.of, self.text)
    }
}

/// Figures of groups whose growth is an event.
const OF_GROUPS: [(&str, &str, &str); 4] = [
    ("exhausted", "request", "found no page in its colours"),
    ("spilled", "page", "handed out of colour"),
    ("grown", "colour", "taken beyond its own"),
    ("moved", "page", "moved out of its colours"),
];

/// A group that was removed, and what it had counted until then.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    /// When, in seconds of the trace's clock.
    pub at: f64,
    name: String,
    figures: BTreeMap<String, u64>,
}

impl Removed {
    /// The tracepoint that tells of it.
    pub const TRACEPOINT: &str = "soloist_group_removed";

    /// From a line of the kernel's trace; `None`: it tells of something else.
    pub fn of_line(line: &str) -> Option<Self> {
        let (begin, fields) = line.split_once(&format!(": {}: ", Self::TRACEPOINT))?;
        let at = begin.rsplit(' ').next()?.parse().ok()?;
        // The name comes last: it may have blanks.
        let (fields, name) = fields.split_once(" name=")?;
        let pairs = fields
            .split(' ')
            .filter_map(|field| field.split_once('='))
            .filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
        let figures: BTreeMap<String, u64> = pairs.collect();
        let name = match figures.get("implicit")? {
            0 => name.to_owned(),
            _ => format!("{name}#{}", figures.get("group")?),
        };
        Some(Self { at, name, figures })
    }

    /// Was it this one, or one of the same name? The module cuts long ones.
    pub fn is(&self, group: &GroupSample) -> bool {
        const CUT: usize = 63;
        match self.name.len() {
            CUT.. => group.name.starts_with(&self.name),
            _ => group.name == self.name,
        }
    }
}

/// What happened from `before` to `now`, between which the `removed` went.
pub fn events(before: &Snapshot, now: &Snapshot, removed: &[Removed]) -> Vec<Event> {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut found = Found {
        seconds: seconds.map_or(0, |time| time.as_secs()),
        events: Vec::new(),
    };
    for (at, last) in removed.iter().enumerate() {
        // Names come again: only the first was there before.
        let known = before.groups.iter().find(|group| last.is(group));
        let first = !removed[..at].iter().any(|r| r.name == last.name);
        found.removed(known.filter(|_| first), last);
    }
    let was_removed = |group: &GroupSample| removed.iter().any(|last| last.is(group));
    for group in &now.groups {
        match before.group(&group.name).filter(|old| !was_removed(old)) {
            None => {
                let text = format!("made, {}", colors(group));
                found.add(&group.name, "made", 1, text);
                // What it has counted since then is as new as the group.
                found.grown(&group.name, |key| (0, group.figure(key)));
            }
            Some(old) => found.group(old, group),
        }
    }
    for old in before
        .groups
        .iter()
        .filter(|g| now.group(&g.name).is_none() && !was_removed(g))
    {
        found.add(&old.name, "gone", 1, "gone".to_owned());
    }
    for cpu in &now.cpus {
        let number = cpu.name.parse().map_or_else(|_| Vec::new(), |n| vec![n]);
        let grown = |key| {
            growth(
                before.sum_of_cpus(&number, key),
                now.sum_of_cpus(&number, key),
            )
        };
        if let Some(stops) = grown("stops") {
            let ms = grown("stopped_ns").unwrap_or(0) as f64 / 1e6;
            let text = format!("stopped {}, {ms:.1} ms in all", counted(stops, "time"));
            found.add(&format!("cpu {}", cpu.name), "stopped", stops, text);
        }
    }
    for rule in &now.rules {
        let old = before.rules.iter().find(|old| old.name == rule.name);
        let grown = |key| {
            let figure = |s: &Sample| s.figures.get(key).copied().unwrap_or(0);
            growth(old.map_or(0, figure), figure(rule))
        };
        if let Some(n) = grown("refused") {
            // A limit that stopped growth is counted there too.
            let limit = grown("limited").map_or("", |_| "a limit was reached, or ");
            let text = format!(
                "{} ran uncoloured: {limit}no colours were free",
                counted(n, "program")
            );
            found.add(&format!("rule {}", rule.name), "refused", n, text);
        }
    }
    // The module counts each of them for its group, too. Only those of groups that are gone
    // are told here.
    let moved = |s: &Snapshot| s.system.get("moved").copied().unwrap_or(0);
    let told = found.events.iter().filter(|event| event.what == "moved");
    let told: u64 = told.map(|event| event.count).sum();
    if let Some(n) = growth(moved(before) + told, moved(now)) {
        found.add(
            "system",
            "moved",
            n,
            format!("{} moved out of colour", counted(n, "page")),
        );
    }
    found.events
}

struct Found {
    seconds: u64,
    events: Vec<Event>,
}

impl Found {
    fn add(&mut self, of: &str, what: &'static str, count: u64, text: String) {
        self.events.push(Event {
            seconds: self.seconds,
            of: of.to_owned(),
            what,
            count,
            text,
        });
    }

    fn group(&mut self, old: &GroupSample, now: &GroupSample) {
        self.grown(&now.name, |key| (old.figure(key), now.figure(key)));
    }

    /// `old`: as it was last seen; `None`: it came and went.
    fn removed(&mut self, old: Option<&GroupSample>, last: &Removed) {
        self.grown(&last.name, |key| {
            let before = old.map_or(0, |group| group.figure(key));
            (before, last.figures.get(key).copied().unwrap_or(0))
        });
        let text = old.map_or("made and gone", |_| "gone");
        self.add(&last.name, "gone", 1, text.to_owned());
    }

    /// `of`: a figure before and now.
    fn grown(&mut self, name: &str, of: impl Fn(&str) -> (u64, u64)) {
        for (key, one, words) in OF_GROUPS {
            let (before, now) = of(key);
            if let Some(n) = growth(before, now) {
                self.add(name, key, n, format!("{} {words}", counted(n, one)));
            }
        }
    }
}

/// A group's colours in words.
fn colors(group: &GroupSample) -> String {
    let lists = [("bank sets", &group.bank_sets), ("LLC colours", &group.llc)];
    let named = lists.iter().filter(|(_, list)| !list.is_empty());
    let named: Vec<String> = named.map(|(of, list)| format!("{of} {list}")).collect();
    match named.is_empty() {
        true => "no colours yet".to_owned(),
        false => named.join(", "),
    }
}

/// `None` where it did not grow; a group made anew under the old name begins
/// at 0 again.
fn growth(before: u64, now: u64) -> Option<u64> {
    now.checked_sub(before).filter(|&n| n > 0)
}
