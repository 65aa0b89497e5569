//! Who holds the memory of a group's colours.

use serde::Serialize;

use crate::control::group::{Group, Mode};
use crate::control::interface::KeyValues;
use crate::words::percent;
use crate::HostError;

/// The holders of a group's colours, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// The group itself: pages that it was handed out.
    pub own: u64,
    /// Other groups.
    pub groups: u64,
    /// Tasks: anonymous memory that no group handed out.
    pub anon: u64,
    /// Page cache that a task maps.
    pub mapped: u64,
    /// Page cache that no task maps.
    pub cache: u64,
    /// The kernel: slab, page tables, stacks, firmware.
    pub kernel: u64,
    /// Nobody: free, in the module's lists.
    pub listed: u64,
    /// Nobody: free, the kernel's.
    pub free: u64,
    /// Of anon, mapped and cache: pinned for a device.
    pub pinned: u64,
    /// Of anon, mapped and cache: locked in memory.
    pub unevictable: u64,
    /// One stretch of memory of so many was looked at. Beyond 1 all counts are
    /// estimates.
    pub one_of: u64,
    /// How long the look took, microseconds.
    pub took_us: u64,
}

impl Occupancy {
    fn of(text: &KeyValues) -> Self {
        let number = |key: &str| text.get(key).and_then(|v| v.parse().ok()).unwrap_or(0);
        Self {
            own: number("own"),
            groups: number("groups"),
            anon: number("anon"),
            mapped: number("mapped"),
            cache: number("cache"),
            kernel: number("kernel"),
            listed: number("listed"),
            free: number("free"),
            pinned: number("pinned"),
            unevictable: number("unevictable"),
            one_of: number("one_of"),
            took_us: number("took_us"),
        }
    }

    /// Each holder with its pages.
    pub fn holders(&self) -> [(&'static str, u64); 8] {
        [
            ("own", self.own),
            ("groups", self.groups),
            ("anon", self.anon),
            ("mapped", self.mapped),
            ("cache", self.cache),
            ("kernel", self.kernel),
            ("listed", self.listed),
            ("free", self.free),
        ]
    }

    /// All pages of the colours.
    pub fn all(&self) -> u64 {
        self.holders().iter().map(|(_, pages)| pages).sum()
    }

    /// Pages of others that an eviction may move: of other groups, tasks and files.
    pub fn others(&self) -> u64 {
        self.groups + self.anon + self.mapped + self.cache
    }

    /// The share of [`Occupancy::others`], 0 to 1; `None`: the group does not colour.
    pub fn share_of_others(&self) -> Option<f64> {
        (self.all() > 0).then(|| self.others() as f64 / self.all() as f64)
    }

    /// Shares of all that hold some, the group itself first.
    pub fn words(&self) -> String {
        let all = self.all().max(1) as f64;
        let share = |pages: u64| percent(pages as f64 / all);
        let held = self.holders().into_iter().filter(|(_, pages)| *pages > 0);
        let each: Vec<String> = held
            .map(|(name, pages)| format!("{} {}", holder(name), share(pages)))
            .collect();
        let sampled = match self.one_of {
            0 | 1 => String::new(),
            n => format!(" (estimated from one stretch of memory in {n})"),
        };
        format!("{}{sampled}", each.join(", "))
    }
}

/// A holder, for people.
fn holder(name: &str) -> &str {
    match name {
        "groups" => "other groups",
        "anon" => "tasks in no group",
        "mapped" => "mapped files",
        "cache" => "page cache",
        "kernel" => "the kernel",
        "listed" => "free in lists",
        name => name,
    }
}

impl Group {
    /// The holders of its colours; `None`: it does not colour, or the module
    /// does not tell. The kernel looks anew each time, for some 10 ns a page of the
    /// machine.
    pub fn occupancy(&self) -> Result<Option<Occupancy>, HostError> {
        self.occupancy_in("occupancy")
    }

    /// The same, with all frames looked at, however much memory the machine has: some
    /// 10 ns a page of it. The kernel looks while this waits.
    pub fn occupancy_of_all(&self) -> Result<Option<Occupancy>, HostError> {
        let file = self.file("occupancy_all");
        match self.control().write(&file, "1") {
            Err(error) if error.is_not_found() => return Ok(None),
            looked => looked?,
        }
        self.occupancy_in("occupancy_all")
    }

    fn occupancy_in(&self, file: &str) -> Result<Option<Occupancy>, HostError> {
        let text = match self.control().key_values(&self.file(file)) {
            Err(error) if error.is_not_found() => return Ok(None),
            text => text?,
        };
        let occupancy = Occupancy::of(&text);
        Ok((occupancy.all() > 0).then_some(occupancy))
    }

    /// Has it its colours for itself alone?
    pub fn is_exclusive(&self) -> Result<bool, HostError> {
        Ok(self.get("mode")? == Mode::Exclusive.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::interface::key_values;

    #[test]
    fn shares_are_of_all_pages() {
        let text = "own 50\ngroups 5\nanon 10\nmapped 0\ncache 10\nkernel 5\nlisted 15\nfree 5\none_of 1\n";
        let held = Occupancy::of(&key_values(text));
        assert_eq!((held.all(), held.others()), (100, 25));
        assert_eq!(held.share_of_others(), Some(0.25));
        assert_eq!(
            held.words(),
            "own 50.0 %, other groups 5.0 %, tasks in no group 10.0 %, page cache 10.0 %, \
             the kernel 5.0 %, free in lists 15.0 %, free 5.0 %"
        );
        let none = Occupancy::of(&key_values("own 0\n"));
        assert_eq!(none.share_of_others(), None);
        let sampled = Occupancy::of(&key_values("own 8\none_of 4\n"));
        assert!(sampled.words().contains("one stretch of memory in 4"));
    }
}
