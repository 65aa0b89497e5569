//! The groups that threads of a process are in, and their colours.

use serde::Serialize;
use soloist_core::{AddrMap, ColorSet, NumList};

use crate::control::{nodes_of, Control};
use crate::machine::{process_of, threads, Host};
use crate::HostError;

/// A group that threads of the process are in, and its colours.
#[derive(Debug, Clone, Serialize)]
pub struct GroupColors {
    /// Its name; of a rule's group, with its number.
    pub name: String,
    /// Its colours, in words.
    pub colors: String,
    /// Threads of the process in it.
    pub threads: usize,
    /// Page-table pages handed out in colour so far, to all its tasks.
    pub page_tables: Option<u64>,
    /// Pages of the process in these colours.
    pub pages: u64,
    /// File text that is only read stays in the page cache.
    pub shares_text: bool,
    /// Its colours; `None`: it has none yet, and does not colour.
    #[serde(skip)]
    pub set: Option<ColorSet>,
}

impl GroupColors {
    /// Colours given by hand, for a process in no group.
    pub fn by_hand(colors: ColorSet, threads: usize) -> Self {
        Self {
            name: "(as asked)".to_owned(),
            colors: colors.to_string(),
            threads,
            page_tables: None,
            pages: 0,
            shares_text: false,
            set: Some(colors),
        }
    }

    /// The groups that threads of process `pid` are in; of a thread that is not
    /// its process' first, the group of that thread alone.
    pub fn of_process(
        host: &Host,
        control: &Control,
        map: &AddrMap,
        pid: i32,
    ) -> Result<Vec<Self>, HostError> {
        let threads = judged_threads(host, pid)?;
        let named = control.each_group(|group| {
            let tasks = group.tasks()?;
            let n = threads.iter().filter(|&t| tasks.contains(t)).count();
            if n == 0 {
                return Ok(None);
            }
            let colors = group.colors(map)?;
            let set = (colors.sets().is_some() || colors.llc().is_some()).then_some(colors);
            let stats = group.stats()?;
            Ok(Some(Self {
                name: group.name().to_owned(),
                colors: set
                    .as_ref()
                    .map_or_else(|| "no colours yet".to_owned(), ColorSet::to_string),
                threads: n,
                page_tables: stats.get("page_tables").and_then(|v| v.parse().ok()),
                pages: 0,
                shares_text: group.shares_text()?,
                set,
            }))
        })?;
        let mut found: Vec<Self> = named.into_iter().flatten().collect();
        for group in control.implicit_groups(map)? {
            let n = threads.iter().filter(|&t| group.tasks.contains(t)).count();
            if n > 0 {
                found.push(Self {
                    name: group.label(),
                    colors: group.colors.to_string(),
                    threads: n,
                    page_tables: Some(group.page_tables),
                    pages: 0,
                    shares_text: false,
                    set: Some(group.colors),
                });
            }
        }
        Ok(found)
    }
}

/// The threads that `pid` means: all of a process, or one thread.
pub(super) fn judged_threads(host: &Host, pid: i32) -> Result<Vec<i32>, HostError> {
    let threads = threads(host, pid)?;
    Ok(match process_of(host, pid) == pid {
        true => threads,
        false => vec![pid],
    })
}

/// Memory nodes that the colours of `groups` are on.
pub(super) fn nodes_of_all(map: &AddrMap, groups: &[GroupColors]) -> NumList {
    let mut nodes = NumList::new(map.n_nodes());
    for set in groups.iter().filter_map(|group| group.set.as_ref()) {
        for node in nodes_of(map, set).iter() {
            nodes.insert(node);
        }
    }
    nodes
}
