//! Where the pages of a program's processes are.

use std::collections::BTreeMap;

use procfs::process::Stat;
use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_host::observe::{verify, GroupColors, Report};

/// Pages of all processes of a program, 4 KiB each. A page that two of them
/// share counts twice.
#[derive(Debug, Default, Serialize)]
pub struct Placement {
    /// Present.
    pub pages: u64,
    /// Of these, in colour.
    pub in_color: u64,
    /// Of these, not in colour, by reason.
    pub not_in_color: BTreeMap<&'static str, u64>,
    /// By node.
    pub by_node: BTreeMap<u32, u64>,
    /// By bank set.
    pub by_bank_set: BTreeMap<u32, u64>,
    /// Processes and threads seen.
    pub processes: usize,
    /// Threads of all these.
    pub threads: usize,
    /// Pages of private mappings that are neither in colour nor excused by
    /// being the kernel's or the page cache's.
    pub stray: u64,
}

impl Placement {
    /// What the processes of process group `group` have now. A process that
    /// ends meanwhile counts as far as it was seen.
    pub fn of_process_group(host: &Host, map: &AddrMap, group: u32) -> Self {
        let mut all = Self::default();
        for stat in processes(group) {
            if let Ok(report) = look(host, map, stat.pid) {
                all.add(&report);
            }
        }
        all
    }

    /// Share in colour of the pages that can be, per cent.
    pub fn share(&self) -> f64 {
        100.0 * self.in_color as f64 / ((self.in_color + self.stray).max(1)) as f64
    }

    fn add(&mut self, report: &Report) {
        self.processes += 1;
        self.threads += report.threads;
        self.pages += report.total.present;
        self.in_color += report.total.in_color;
        for (reason, pages) in &report.total.not_in_color {
            *self.not_in_color.entry(reason.text()).or_default() += pages;
        }
        self.stray += report.own.present - report.own.in_color;
        for (node, pages) in &report.by_node {
            *self.by_node.entry(*node).or_default() += pages;
        }
        for (set, pages) in &report.by_bank_set {
            *self.by_bank_set.entry(*set).or_default() += pages;
        }
    }
}

/// How large a program is, cheaply.
#[derive(Debug, Default)]
pub struct Size {
    pages: u64,
    threads: i64,
}

impl Size {
    /// Of the processes of process group `group`.
    pub fn of_process_group(group: u32) -> Self {
        processes(group).fold(Self::default(), |size, stat| Self {
            pages: size.pages + stat.rss,
            threads: size.threads + stat.num_threads,
        })
    }

    /// Whether it is so much larger than `last` that it is worth a look.
    pub fn outgrew(&self, last: &Self) -> bool {
        self.pages > last.pages + last.pages / 10
            || (self.threads > last.threads && self.pages >= last.pages)
    }
}

/// The program's own processes in process group `group`, not `soloist run`.
fn processes(group: u32) -> impl Iterator<Item = Stat> {
    procfs::process::all_processes()
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|process| process.stat().ok())
        .filter(move |stat| stat.pgrp as u32 == group && stat.comm != "soloist")
}

fn look(host: &Host, map: &AddrMap, pid: i32) -> Result<Report, soloist_host::HostError> {
    let control = Control::open(host)?;
    let groups = GroupColors::of_process(host, &control, map, pid)?;
    verify(host, pid, map, groups)
}

/// The bank sets of each node, ascending.
pub fn sets_of_nodes(map: &AddrMap) -> Vec<Vec<u32>> {
    (0..map.n_nodes())
        .map(|node| map.sets_of_node(node).collect())
        .collect()
}
