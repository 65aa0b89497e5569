//! A group: a colour set, its policy, and the tasks that allocate by it.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_core::{AddrMap, ColorSet, NumList};

use crate::control::bandwidth::Bandwidth;
use crate::control::interface::{Control, KeyValues};
use crate::HostError;

/// A group of the control interface.
#[derive(Debug, Clone)]
pub struct Group {
    control: Control,
    name: String,
}

/// What happens when a group's colours have no page left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhaust {
    /// No page: the task gets a signal.
    Fail,
    /// Another free colour is taken.
    Grow,
    /// Any page of the node, counted.
    Spill,
}

/// Whether a group shares its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// With other shareable groups.
    Shareable,
    /// With nobody.
    Exclusive,
}

/// What becomes of file pages that a group only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Text {
    /// Those of programs and libraries: copies in its colours. Others stay in
    /// the page cache, for the task must see what is written to the file.
    Private,
    /// They stay in the page cache, shared with everybody.
    Shared,
    /// Copies in its colours, of whatever file is mapped privately.
    All,
}

/// An enum's values as the words of the control interface.
macro_rules! words {
    ($name:ident, $expected:literal, $($value:ident = $word:literal),*) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$value => $word),* })
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$value),)*
                    _ => Err(format!("{text:?}: {}", $expected)),
                }
            }
        }
    };
}

words!(
    Exhaust,
    "fail, grow or spill",
    Fail = "fail",
    Grow = "grow",
    Spill = "spill"
);
words!(
    Mode,
    "shareable or exclusive",
    Shareable = "shareable",
    Exclusive = "exclusive"
);
words!(
    Text,
    "private, shared or all",
    Private = "private",
    Shared = "shared",
    All = "all"
);

/// All that can be read of a group. Lists are as the kernel writes them.
#[derive(Debug, Clone, Serialize)]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: String,
    /// Made by a rule or an `mmap()` call: it has no directory, and what is of
    /// the directory (mode, exhaust, text, reserve, bandwidth, cgroups) is empty.
    pub implicit: bool,
    /// Bank colours of the sets it owns; empty: any.
    pub dram_bank: String,
    /// Bank sets it owns; empty: any.
    pub bank_set: String,
    /// LLC colours; empty: any.
    pub llc_color: String,
    /// Memory nodes that it was given whole; empty: none.
    pub node: String,
    /// Memory nodes that its bank sets are on; empty where that is unknown.
    pub on_nodes: String,
    /// `shareable` or `exclusive`.
    pub mode: String,
    /// `fail`, `grow` or `spill`.
    pub exhaust: String,
    /// `private` or `shared`.
    pub text: String,
    /// Bytes kept in the lists beforehand.
    pub reserve: String,
    /// What is reserved for it, and on which processors, or `off`.
    pub bandwidth: String,
    /// The cgroups that it is bound to.
    pub cgroups: Vec<String>,
    /// Thread ids.
    pub tasks: Vec<i32>,
    /// Counters.
    pub stats: KeyValues,
}

/// One of a group's lists of colours in words, where `other` is the other one.
///
/// A group without both does not colour: it has none yet. With one of them it is
/// free in the other.
pub fn limits<'a>(list: &'a str, other: &str) -> &'a str {
    match list {
        "" if other.is_empty() => "none yet",
        "" => "any",
        list => list,
    }
}

impl GroupView {
    /// The bandwidth reserved for it, and on which processors; `None`: none.
    pub fn reservation(&self) -> Option<(Bandwidth, String)> {
        let (bandwidth, cpus) = Bandwidth::of_kernel(&self.bandwidth)?;
        Some((bandwidth, cpus?))
    }
}

impl Control {
    /// All groups, by name.
    pub fn groups(&self) -> Result<Vec<Group>, HostError> {
        let names = self.names("groups")?;
        Ok(names
            .into_iter()
            .map(|name| Group::new(self.clone(), name))
            .collect())
    }

    /// What `look` sees of each group, by name. One that is removed meanwhile is
    /// passed over; one that is just being made is waited for.
    pub fn each_group<T>(
        &self,
        mut look: impl FnMut(&Group) -> Result<T, HostError>,
    ) -> Result<Vec<T>, HostError> {
        let mut all = Vec::new();
        for group in self.groups()? {
            let mut tries = 20;
            let seen = loop {
                match look(&group) {
                    Err(error) if error.is_not_found() && group.exists() && tries > 0 => {
                        tries -= 1;
                        sleep(Duration::from_millis(1));
                    }
                    seen => break seen,
                }
            };
            match seen {
                Err(_) if !group.exists() => {}
                seen => all.push(seen?),
            }
        }
        Ok(all)
    }

    /// The group `name`.
    pub fn group(&self, name: &str) -> Result<Group, HostError> {
        self.find("group", name)?;
        Ok(Group::new(self.clone(), name.to_owned()))
    }

    /// Makes the group `name`; it does not colour yet.
    pub fn create_group(&self, name: &str) -> Result<Group, HostError> {
        self.mkdir("group", name)?;
        Ok(Group::new(self.clone(), name.to_owned()))
    }
}

impl Group {
    pub(crate) fn new(control: Control, name: String) -> Self {
        Self { control, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Is it there still?
    pub fn exists(&self) -> bool {
        let dir = format!("groups/{}", self.name);
        self.control.path(&dir).is_dir()
    }

    pub(crate) fn members_path(&self) -> PathBuf {
        self.control.path(&self.file("members"))
    }

    /// Reads everything.
    pub fn view(&self) -> Result<GroupView, HostError> {
        let map = self.control.map().ok();
        Ok(GroupView {
            on_nodes: map.map_or(Ok(String::new()), |map| {
                self.nodes(&map).map(|nodes| nodes.to_string())
            })?,
            name: self.name.clone(),
            id: self.get("id")?,
            implicit: false,
            dram_bank: self.get("dram_bank")?,
            bank_set: self.get("bank_set")?,
            llc_color: self.get("llc_color")?,
            node: self.get("node")?,
            mode: self.get("mode")?,
            exhaust: self.get("exhaust")?,
            text: self.get("text")?,
            reserve: self.get("reserve")?,
            bandwidth: self.get_if_there("bandwidth")?.unwrap_or_default(),
            cgroups: self.cgroups()?,
            tasks: self.tasks()?,
            stats: self.stats()?,
        })
    }

    /// Its colours.
    pub fn colors(&self, map: &AddrMap) -> Result<ColorSet, HostError> {
        colors_of(map, &self.get("bank_set")?, &self.get("llc_color")?)
            .map_err(|text| HostError::unexpected(&self.control.path(&self.file("bank_set")), text))
    }

    /// Memory nodes that its colours are on.
    pub fn nodes(&self, map: &AddrMap) -> Result<NumList, HostError> {
        Ok(nodes_of(map, &self.colors(map)?))
    }

    /// Thread ids in it.
    pub fn tasks(&self) -> Result<Vec<i32>, HostError> {
        // `tasks` shows at most 4096 bytes, `members` all.
        let text = self.control.read(&self.file("members"))?;
        Ok(text
            .split_whitespace()
            .filter_map(|t| t.parse().ok())
            .collect())
    }

    /// Threads in it that [`Group::tasks`] does not list: they are of other pid
    /// namespaces. The kernel counts a thread for a moment after it ended.
    pub(crate) fn hidden_tasks(&self) -> Result<u64, HostError> {
        let mut hidden = 0;
        for _ in 0..20 {
            let stats = self.stats()?;
            let counted: u64 = stats.get("tasks").and_then(|n| n.parse().ok()).unwrap_or(0);
            hidden = counted.saturating_sub(self.tasks()?.len() as u64);
            if hidden == 0 {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        Ok(hidden)
    }

    /// What happens when its colours have no page left.
    pub fn exhaust(&self) -> Result<Exhaust, HostError> {
        let text = self.get("exhaust")?;
        text.parse().map_err(|text: String| {
            HostError::unexpected(&self.control.path(&self.file("exhaust")), text)
        })
    }

    /// Does file text that is only read stay in the page cache for it?
    pub fn shares_text(&self) -> Result<bool, HostError> {
        Ok(self.get("text")?.trim() == "shared")
    }

    /// Its counters.
    pub fn stats(&self) -> Result<KeyValues, HostError> {
        self.control.key_values(&self.file("stats"))
    }

    /// Restricts it to bank sets, a list; empty: any.
    pub fn set_bank_set(&self, list: &str) -> Result<(), HostError> {
        self.set("bank_set", list)
    }

    /// Restricts it to LLC colours, a list; empty: any.
    pub fn set_llc_color(&self, list: &str) -> Result<(), HostError> {
        self.set("llc_color", list)
    }

    /// Restricts it to all bank sets of these nodes.
    pub fn set_node(&self, list: &str) -> Result<(), HostError> {
        self.set("node", list)
    }

    /// Gives it free colours: `N [node=LIST] [llc=M] [realtime]`.
    pub fn set_auto(&self, want: &str) -> Result<(), HostError> {
        self.set("auto", want)
    }

    /// Shares it or not.
    pub fn set_mode(&self, mode: Mode) -> Result<(), HostError> {
        self.set("mode", &mode.to_string())
    }

    /// Sets what happens when its colours have no page left.
    pub fn set_exhaust(&self, exhaust: Exhaust) -> Result<(), HostError> {
        self.set("exhaust", &exhaust.to_string())
    }

    /// Sets what becomes of file pages that it only reads.
    pub fn set_text(&self, text: Text) -> Result<(), HostError> {
        self.set("text", &text.to_string())
    }

    /// Lets it go with its last task, if this module can; its directory stays.
    pub fn set_ephemeral(&self) -> Result<(), HostError> {
        match self.set("ephemeral", "1") {
            Err(error) if error.is_not_found() => Ok(()),
            set => set,
        }
    }

    /// Does it go with its last task?
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.get("ephemeral").is_ok_and(|state| state == "1")
    }

    /// Does it stay without a task? `false`: it does not, or this module can't tell.
    pub(crate) fn lasts(&self) -> bool {
        self.get("ephemeral").is_ok_and(|state| state == "0")
    }

    /// Only its directory is left: its last task went, and it with it.
    pub fn is_gone(&self) -> bool {
        self.get("ephemeral").is_ok_and(|state| state == "gone")
    }

    /// Has it neither colours nor a reservation, and nobody in it? So is one whose maker was
    /// killed at once.
    pub(crate) fn is_bare(&self) -> Result<bool, HostError> {
        let any = |value: String| !matches!(value.trim(), "" | "0" | "off");
        for file in ["bank_set", "llc_color", "reserve"] {
            if any(self.get(file)?) {
                return Ok(false);
            }
        }
        let bandwidth = self.get_if_there("bandwidth")?;
        Ok(!bandwidth.is_some_and(any) && self.cgroups()?.is_empty() && self.is_empty()?)
    }

    /// Has it no task, in no pid namespace?
    pub(crate) fn is_empty(&self) -> Result<bool, HostError> {
        // Tasks of another namespace are counted, but not listed.
        let stats = self.stats()?;
        let none = stats.get("tasks").is_none_or(|n| n == "0");
        Ok(none && self.tasks()?.is_empty())
    }

    /// Keeps `bytes` in its lists beforehand, known to be zero.
    pub fn set_reserve(&self, bytes: u64) -> Result<(), HostError> {
        self.set("reserve", &bytes.to_string())
    }

    /// Whether so many bytes are free in its colours: they are put into its
    /// lists, where a fault finds them, but no more are kept from others than before.
    pub fn try_reserve(&self, bytes: u64) -> Result<(), HostError> {
        let before = self.get("reserve")?;
        let free = self.set_reserve(bytes);
        self.set("reserve", &before)?;
        free
    }

    /// Its reservation, as the kernel says it.
    pub(crate) fn bandwidth(&self) -> Result<String, HostError> {
        self.get("bandwidth")
    }

    /// The cgroups whose tasks are in it, in order.
    pub fn cgroups(&self) -> Result<Vec<String>, HostError> {
        let text = self.get_if_there("cgroup")?.unwrap_or_default();
        let mut paths: Vec<String> = text.lines().map(str::to_owned).collect();
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        Ok(paths)
    }

    /// Binds it to these cgroups, and to no others any more: what runs there, and joins
    /// them, is in the group.
    pub fn set_cgroups(&self, paths: &[String]) -> Result<(), HostError> {
        self.set("cgroup", &paths.join("\n"))
    }

    /// Moves all threads of the process in.
    pub fn add_process(&self, pid: i32) -> Result<(), HostError> {
        self.set("procs", &pid.to_string())
    }

    /// Moves one thread in.
    pub fn add_thread(&self, tid: i32) -> Result<(), HostError> {
        self.set("tasks", &tid.to_string())
    }

    /// Opens `tasks`, for a child to put itself in before execve.
    pub(crate) fn open_tasks(&self) -> Result<fs::File, HostError> {
        let file = self.file("tasks");
        let path = self.control.path(&file);
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(|e| self.control.refusal(&file, &path, e))
    }

    /// Removes it. Its tasks leave it first and colour no more; pages keep
    /// their frames until they are freed.
    pub fn remove(&self) -> Result<(), HostError> {
        self.control.rmdir(&format!("groups/{}", self.name))
    }

    /// What an error of a command on this group means.
    pub(crate) fn refusal(&self, what: &str, error: std::io::Error) -> HostError {
        let path = self.control.path(&self.file("tasks"));
        self.control.refusal(what, &path, error)
    }

    pub(crate) fn file(&self, attribute: &str) -> String {
        format!("groups/{}/{attribute}", self.name)
    }

    pub(crate) fn get(&self, attribute: &str) -> Result<String, HostError> {
        Ok(self.control.read(&self.file(attribute))?.trim().to_owned())
    }

    /// None where the module has no such attribute.
    fn get_if_there(&self, attribute: &str) -> Result<Option<String>, HostError> {
        match self.get(attribute) {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        }
    }

    pub(crate) fn set(&self, attribute: &str, value: &str) -> Result<(), HostError> {
        self.control.write(&self.file(attribute), value)
    }
}

/// Memory nodes that colours are on.
pub(crate) fn nodes_of(map: &AddrMap, colors: &ColorSet) -> NumList {
    let mut nodes = NumList::new(map.n_nodes());
    let holds = |set: &u32| colors.sets().is_none_or(|c| c.contains(*set));
    for node in map.memory_nodes() {
        if map.sets_of_node(node).any(|set| holds(&set)) {
            nodes.insert(node);
        }
    }
    nodes
}

/// A colour set from two lists; an empty one: any.
pub(crate) fn colors_of(map: &AddrMap, sets: &str, llc: &str) -> Result<ColorSet, String> {
    let read = |text: &str, limit, what: &str| {
        NumList::parse(text, limit).map_err(|e| format!("{what} {text:?}: {e}"))
    };
    let mut colors = ColorSet::any(map);
    if !sets.is_empty() {
        colors = colors.with_sets(read(sets, map.n_bank_sets(), "bank sets")?.iter());
    }
    if !llc.is_empty() {
        colors = colors.with_llc(read(llc, map.n_llc(), "LLC colours")?.iter());
    }
    Ok(colors)
}
