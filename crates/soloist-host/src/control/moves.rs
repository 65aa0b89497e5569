//! Migrations that a user asks for: others' pages out of a group's colours, and a
//! running task's pages into them.

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::control::group::Group;
use crate::control::interface::{Control, KeyValues};
use crate::machine::{process_of, Host};
use crate::HostError;

/// How a migration goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoveHow {
    /// Bytes a second at most; `None`: no limit.
    pub rate: Option<u64>,
    /// Isolated CPUs may be interrupted.
    pub isolated: bool,
}

impl MoveHow {
    /// `first`, and the words for the kernel.
    fn after(&self, first: &str) -> String {
        let mut words = first.to_owned();
        if let Some(rate) = self.rate {
            words += &format!(" rate={rate}");
        }
        if self.isolated {
            words += " isolated";
        }
        words
    }
}

/// The report of a migration. All counts are of small pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MoveReport {
    /// `none`, `runs`, `done`, or `ended` before it was done.
    pub state: String,
    /// Looked at, in the last pass.
    pub seen: u64,
    /// Of these, already where they shall be.
    pub in_place: u64,
    /// Migrated.
    pub moved: u64,
    /// Clean page cache that was dropped.
    pub dropped: u64,
    /// Of files, unmapped: the next access copies them.
    pub unmapped: u64,
    /// Frames that came into the group's lists.
    pub listed: u64,
    /// Pages that stayed, by cause.
    pub stays: Vec<Stay>,
    /// No page stood still longer, microseconds.
    pub longest_us: u64,
    /// How many pages stood still how long.
    pub stood: Vec<Stood>,
    /// How long it took, microseconds.
    pub took_us: u64,
}

/// Pages that stayed where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stay {
    /// The kernel's word for the cause.
    pub cause: &'static str,
    /// Pages.
    pub pages: u64,
}

/// Pages that stood still for a time while they moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stood {
    /// Less than so long, nanoseconds, and not less than half of it; `None`: longer than all others.
    pub below_ns: Option<u64>,
    /// Pages.
    pub pages: u64,
}

/// Causes, and what they mean.
const CAUSES: [(&str, &str); 9] = [
    ("pinned", "pinned for a device"),
    (
        "unevictable",
        "locked in memory (eviction moves them while vm.compact_unevictable_allowed is 1)",
    ),
    ("groups", "another group's"),
    ("kernel", "the kernel's"),
    (
        "shared",
        "shared with another process since a fork, until either writes",
    ),
    (
        "isolated",
        "a task on an isolated CPU may have them mapped (--isolated moves them all the same)",
    ),
    ("huge", "in huge pages that can't be split now"),
    ("busy", "in use just now"),
    ("no_room", "without a place to go"),
];

impl MoveReport {
    fn of(text: &KeyValues) -> Self {
        let number = |key: &str| text.get(key).and_then(|v| v.parse().ok()).unwrap_or(0);
        let stay = |&(cause, _): &(&'static str, &str)| Stay {
            cause,
            pages: number(cause),
        };
        Self {
            state: text.get("state").cloned().unwrap_or_default(),
            seen: number("seen"),
            in_place: number("in_place"),
            moved: number("moved"),
            dropped: number("dropped"),
            unmapped: number("unmapped"),
            listed: number("listed"),
            stays: CAUSES.iter().map(stay).filter(|s| s.pages > 0).collect(),
            longest_us: number("longest_us"),
            stood: histogram(text),
            took_us: number("took_us"),
        }
    }

    /// `1234 pages moved, 12 dropped; no page stood still longer than 0.3 ms`.
    pub fn words(&self) -> String {
        let mut words = format!("{} pages moved", self.moved);
        if self.dropped > 0 {
            words += &format!(", {} of page cache dropped", self.dropped);
        }
        if self.unmapped > 0 {
            words += &format!(
                ", {} of files unmapped (the next access copies them)",
                self.unmapped
            );
        }
        if self.moved > 0 {
            let ms = self.longest_us as f64 / 1000.0;
            words += &format!("; none stood still longer than {ms:.1} ms");
        }
        words
    }

    /// A line for each cause that kept pages where they are.
    pub fn stays_in_words(&self) -> Vec<String> {
        let meaning = |cause: &str| {
            let found = CAUSES.iter().find(|(name, _)| *name == cause);
            found.map_or("", |(_, words)| words)
        };
        let line = |s: &Stay| format!("{} stayed: {}", s.pages, meaning(s.cause));
        self.stays.iter().map(line).collect()
    }
}

/// Those buckets of the report's histogram that hold pages, the shortest time first.
fn histogram(text: &KeyValues) -> Vec<Stood> {
    let bucket = |(key, value): (&String, &String)| {
        let below_ns = match key.strip_prefix("stood_")? {
            "more" => None,
            below => Some(below.strip_prefix("lt_")?.parse().ok()?),
        };
        let pages = value.parse().ok().filter(|&pages| pages > 0)?;
        Some(Stood { below_ns, pages })
    };
    let mut stood: Vec<Stood> = text.iter().filter_map(bucket).collect();
    stood.sort_by_key(|s| s.below_ns.unwrap_or(u64::MAX));
    stood
}

impl Group {
    /// Moves others' pages out of its colours. Lasts as long as that takes; a signal that
    /// ends this process ends it, too. `so_far` hears each second how far it is.
    pub fn evict(
        &self,
        how: MoveHow,
        so_far: impl Fn(&MoveReport) + Send,
    ) -> Result<MoveReport, HostError> {
        let (file, control) = (self.file("evict"), self.control());
        control.evict_by(&file, &how.after("1"), so_far)
    }

    /// Moves the present pages of process `pid` (`None`: of all its tasks) into its
    /// colours.
    pub fn recolor(&self, pid: Option<i32>, how: MoveHow) -> Result<MoveReport, HostError> {
        self.set("recolor", &how.after(&pid.unwrap_or(0).to_string()))?;
        let text = self.control().key_values(&self.file("recolor"))?;
        Ok(MoveReport::of(&text))
    }
}

impl Control {
    /// As [`Group::evict`], for the group with number `id`. It may be one that a rule made.
    pub fn evict_number(
        &self,
        id: u32,
        how: MoveHow,
        so_far: impl Fn(&MoveReport) + Send,
    ) -> Result<MoveReport, HostError> {
        self.evict_by("evict", &how.after(&id.to_string()), so_far)
    }

    /// Evicts by writing `words` to `file`, which has the report.
    fn evict_by(
        &self,
        file: &str,
        words: &str,
        so_far: impl Fn(&MoveReport) + Send,
    ) -> Result<MoveReport, HostError> {
        let report = || Ok(MoveReport::of(&self.key_values(file)?));
        let (end, ended) = channel::<()>();
        let each_second =
            move || ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout);
        thread::scope(|scope| {
            scope.spawn(move || {
                while each_second() {
                    // The eviction itself tells what went wrong.
                    if let Ok(now) = report() {
                        so_far(&now);
                    }
                }
            });
            let evicted = self.write(file, words);
            drop(end);
            evicted
        })?;
        report()
    }

    /// Moves the present pages of all tasks of the group with number `id` into its colours.
    /// It may be one that a rule made.
    pub fn recolor_number(&self, id: u32, how: MoveHow) -> Result<MoveReport, HostError> {
        self.write("recolor", &how.after(&id.to_string()))?;
        Ok(MoveReport::of(&self.key_values("recolor")?))
    }

    /// The group with a directory that process `pid` is in, and its memory with it.
    pub fn group_of_process(&self, host: &Host, pid: i32) -> Result<Group, HostError> {
        if !host.has(&format!("/proc/{pid}")) {
            return Err(HostError::NoProcess(pid));
        }
        let leader = process_of(host, pid);
        if leader != pid {
            return Err(HostError::Request(format!(
                "{pid} is a thread of process {leader}, whose memory all its threads share: `soloist recolor {leader}`"
            )));
        }
        let holds = self.each_group(|group| {
            let tasks = group.tasks()?;
            Ok(tasks.contains(&pid).then(|| group.clone()))
        })?;
        holds.into_iter().flatten().next().ok_or_else(|| {
            HostError::Request(format!(
                "process {pid} is in no group that has a directory: `soloist group set NAME --pid {pid} --move` puts it into one"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::interface::key_values;

    #[test]
    fn what_stayed_is_said_by_cause() {
        let text = "state done\nstood_lt_1024 0\nstood_more 1\nstood_lt_16384 4\nstood_lt_2048 2\nmoved 7\ndropped 2\npinned 3\nkernel 0\nbusy 1\nlongest_us 1500\n";
        let report = MoveReport::of(&key_values(text));
        assert_eq!(
            report.words(),
            "7 pages moved, 2 of page cache dropped; none stood still longer than 1.5 ms"
        );
        assert_eq!(
            report.stays_in_words(),
            ["3 stayed: pinned for a device", "1 stayed: in use just now"]
        );
        let stood: Vec<_> = report.stood.iter().map(|s| (s.below_ns, s.pages)).collect();
        assert_eq!(stood, [(Some(2048), 2), (Some(16384), 4), (None, 1)]);
    }

    #[test]
    fn only_what_was_asked_for_is_written() {
        assert_eq!(MoveHow::default().after("0"), "0");
        let how = MoveHow {
            rate: Some(5),
            isolated: true,
        };
        assert_eq!(how.after("1"), "1 rate=5 isolated");
    }
}
