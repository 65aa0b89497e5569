//! What a live view shows of a group: two looks at it, and what its tasks have
//! in memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use soloist_core::AddrMap;

use crate::control::{Control, Occupancy};
use crate::machine::{process_of, Host};
use crate::observe::verify::{verify, GroupColors, Reason};
use crate::observe::watch::{GroupSample, Snapshot};

/// The pages of a group's processes are looked at while there are no more: a
/// look at a million takes about a tenth of a second.
const MOST_PAGES: u64 = 2_000_000;

/// It is looked who holds the colours of so many groups: each look costs some 10 ns a
/// page of the machine.
const MOST_GROUPS: usize = 16;

/// A group between two looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GroupRates {
    /// Its name.
    pub name: String,
    /// Made by a rule or an mmap() call.
    pub implicit: bool,
    /// Its bank sets; empty: any, or none yet.
    pub bank_sets: String,
    /// Its LLC colours; empty: any, or none yet.
    pub llc: String,
    /// Threads.
    pub tasks: u64,
    /// Pages in its colours.
    pub pages: u64,
    /// Share of its processes' own pages that is in colour, 0 to 1; `None`:
    /// there are none, too many, or they may not be seen.
    pub in_color: Option<f64>,
    /// Own pages of its processes; 0 where `in_color` is `None`.
    pub own: u64,
    /// Of these, in colour.
    pub own_in_color: u64,
    /// Own pages out of colour, by reason.
    pub not_in_color: BTreeMap<Reason, u64>,
    /// The holders of its colours; `None`: it can't be seen, or there are too
    /// many groups.
    pub occupancy: Option<Occupancy>,
    /// Pages per second handed out from lists; `None` at the first look.
    pub hits: Option<f64>,
    /// Fillings of lists per second.
    pub refills: Option<f64>,
    /// Pages out of colour per second.
    pub spilled: Option<f64>,
    /// Requests per second that found no page.
    pub exhausted: Option<f64>,
    /// Bytes per second used on its processors.
    pub used: Option<f64>,
    /// Bytes per second reserved; 0: none.
    pub reserved: u64,
    /// Share of time that its processors stood still, 0 to 1.
    pub stopped: Option<f64>,
}

/// Every group between `before` and `now`.
pub fn rates(
    host: &Host,
    control: &Control,
    before: Option<&Snapshot>,
    now: &Snapshot,
) -> Vec<GroupRates> {
    let map = control.map().ok();
    now.groups
        .iter()
        .map(|group| {
            let mut rates = GroupRates::between(before, now, group);
            if let Some(map) = &map {
                rates.look(host, control, map, group);
            }
            if now.groups.len() <= MOST_GROUPS {
                rates.occupancy = occupancy(control, group);
            }
            rates
        })
        .collect()
}

/// A rule's group does not tell, nor does the kernel tell who is not root.
fn occupancy(control: &Control, group: &GroupSample) -> Option<Occupancy> {
    if group.implicit {
        return None;
    }
    control.group(&group.name).ok()?.occupancy().ok()?
}

impl Snapshot {
    /// Looks at the pages of the groups' processes too, where that is allowed and
    /// they are not too many: their share in colour, and why the others are not.
    pub fn look(&mut self, host: &Host, control: &Control) {
        for rates in rates(host, control, None, self) {
            let Some(group) = self.groups.iter_mut().find(|g| g.name == rates.name) else {
                continue;
            };
            group.occupancy = rates.occupancy;
            if rates.in_color.is_some() {
                group.figures.insert("own", rates.own);
                group.figures.insert("own_in_color", rates.own_in_color);
                group.not_in_color = rates.not_in_color;
            }
        }
    }
}

impl GroupRates {
    fn between(before: Option<&Snapshot>, now: &Snapshot, group: &GroupSample) -> Self {
        let seconds = before.map_or(0.0, |old| (now.at - old.at).as_secs_f64());
        let old = before.and_then(|old| old.group(&group.name));
        let per_second = |old: u64, now: u64| now.saturating_sub(old) as f64 / seconds;
        let rate = |key| old.map(|old| per_second(old.figure(key), group.figure(key)));
        let of_cpus = |key| {
            let old = before.filter(|_| !group.cpus.is_empty())?;
            let sum = |s: &Snapshot| s.sum_of_cpus(&group.cpus, key);
            Some(per_second(sum(old), sum(now)))
        };
        let both = |reads, writes| Some(of_cpus(reads)? + of_cpus(writes)?);
        let cpus = group.cpus.len() as f64;
        Self {
            name: group.name.clone(),
            implicit: group.implicit,
            bank_sets: group.bank_sets.clone(),
            llc: group.llc.clone(),
            tasks: group.figure("tasks"),
            pages: group.figure("pages"),
            in_color: None,
            own: 0,
            own_in_color: 0,
            not_in_color: BTreeMap::new(),
            occupancy: None,
            hits: rate("hits"),
            refills: rate("refills"),
            spilled: rate("spilled"),
            exhausted: rate("exhausted"),
            used: both("used_bytes", "used_write_bytes"),
            reserved: group.reserved,
            stopped: of_cpus("stopped_ns").map(|ns| ns / 1e9 / cpus),
        }
    }

    /// Looks at the pages of the group's processes.
    fn look(&mut self, host: &Host, control: &Control, map: &AddrMap, group: &GroupSample) {
        if self.pages > MOST_PAGES {
            return;
        }
        let mut judged = false;
        for pid in processes(host, &group.tasks) {
            // A process may end while we look.
            let Ok(groups) = GroupColors::of_process(host, control, map, pid) else {
                continue;
            };
            let Ok(report) = verify(host, pid, map, groups) else {
                continue;
            };
            judged |= report.is_colored();
            self.own += report.own.present;
            self.own_in_color += report.own.in_color;
            for (reason, n) in report.own.not_in_color {
                *self.not_in_color.entry(reason).or_default() += n;
            }
        }
        self.in_color =
            (judged && self.own > 0).then(|| self.own_in_color as f64 / self.own as f64);
    }
}

/// The processes that threads belong to.
fn processes(host: &Host, threads: &[i32]) -> BTreeSet<i32> {
    threads.iter().map(|&tid| process_of(host, tid)).collect()
}
