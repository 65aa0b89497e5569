//! Groups without a directory: those that rules and the papers' `mmap()` calls
//! made, as the control interface's file `implicit` lists them.

use soloist_core::{AddrMap, ColorSet, NumList};
use soloist_machine::did_you_mean;

use crate::control::group::{colors_of, nodes_of, GroupView};
use crate::control::interface::{is_label, Control, KeyValues};
use crate::HostError;

/// A group that a rule or an `mmap()` call made.
#[derive(Debug, Clone)]
pub struct ImplicitGroup {
    /// Its number.
    pub id: u32,
    /// The rule's name, or `mmap`.
    pub name: String,
    /// Its colours.
    pub colors: ColorSet,
    /// Pages in use.
    pub pages: u64,
    /// Page-table pages handed out in colour so far.
    pub page_tables: u64,
    /// Its threads.
    pub tasks: Vec<i32>,
}

impl ImplicitGroup {
    /// Its name with its number, `x264#3`: a rule makes many groups.
    pub fn label(&self) -> String {
        format!("{}#{}", self.name, self.id)
    }

    /// What is read of it, as of a group with a directory.
    pub fn view(&self, map: &AddrMap) -> GroupView {
        let list = |list: Option<&NumList>| list.map(NumList::to_string).unwrap_or_default();
        let mut banks = NumList::new(map.n_colors());
        for set in self.colors.sets().into_iter().flat_map(NumList::iter) {
            for bank in map.colors_of_set(set) {
                banks.insert(bank);
            }
        }
        GroupView {
            name: self.label(),
            id: self.id.to_string(),
            implicit: true,
            dram_bank: banks.to_string(),
            bank_set: list(self.colors.sets()),
            llc_color: list(self.colors.llc()),
            node: String::new(),
            on_nodes: nodes_of(map, &self.colors).to_string(),
            mode: String::new(),
            exhaust: String::new(),
            text: String::new(),
            reserve: String::new(),
            bandwidth: String::new(),
            cgroups: Vec::new(),
            tasks: self.tasks.clone(),
            stats: KeyValues::from([
                ("pages".to_owned(), self.pages.to_string()),
                ("page_tables".to_owned(), self.page_tables.to_string()),
            ]),
        }
    }
}

impl Control {
    /// All that can be read of the group `name`, which may be one that a rule
    /// made: `RULE#NUMBER`.
    pub fn group_view(&self, name: &str) -> Result<GroupView, HostError> {
        if !is_label(name) {
            return self.group(name)?.view();
        }
        // Before there is a map no rule made any.
        let implicit = match self.map() {
            Err(HostError::NoMap) => Vec::new(),
            map => {
                let map = map?;
                let groups = self.implicit_groups(&map)?;
                groups.iter().map(|group| group.view(&map)).collect()
            }
        };
        let like = did_you_mean(name, implicit.iter().map(|view| view.name.as_str()));
        let found = implicit.into_iter().find(|view| view.name == name);
        found.ok_or_else(|| HostError::NoSuch {
            kind: "group",
            name: name.to_owned(),
            like,
        })
    }

    /// The groups that have no directory, by number.
    pub fn implicit_groups(&self, map: &AddrMap) -> Result<Vec<ImplicitGroup>, HostError> {
        parse(&self.read("implicit")?, map)
            .map_err(|text| HostError::unexpected(&self.path("implicit"), text))
    }
}

fn parse(text: &str, map: &AddrMap) -> Result<Vec<ImplicitGroup>, String> {
    let mut groups: Vec<ImplicitGroup> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let unexpected = || line.to_owned();
        if let Some(rest) = line.strip_prefix("group ") {
            groups.push(group(rest, map).ok_or_else(unexpected)?);
        } else {
            let (tid, id) = task(line).ok_or_else(unexpected)?;
            let at = groups.binary_search_by_key(&id, |group| group.id);
            groups[at.map_err(|_| unexpected())?].tasks.push(tid);
        }
    }
    Ok(groups)
}

fn group(line: &str, map: &AddrMap) -> Option<ImplicitGroup> {
    // The name comes last: it may hold blanks.
    let mut words = line.splitn(6, ' ');
    let mut word = || words.next();
    let id = word()?.parse().ok()?;
    let sets = word()?;
    let llc = word()?;
    Some(ImplicitGroup {
        id,
        colors: colors_of(map, restriction(sets), restriction(llc)).ok()?,
        pages: word()?.parse().ok()?,
        page_tables: word()?.parse().ok()?,
        name: word()?.to_owned(),
        tasks: Vec::new(),
    })
}

/// A list of colours; empty where all are allowed.
fn restriction(list: &str) -> &str {
    if list == "any" {
        ""
    } else {
        list
    }
}

fn task(line: &str) -> Option<(i32, u32)> {
    let (tid, id) = line.strip_prefix("task ")?.split_once(' ')?;
    Some((tid.parse().ok()?, id.parse().ok()?))
}
