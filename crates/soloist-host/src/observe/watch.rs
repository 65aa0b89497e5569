//! What is watched: every figure that the module counts, once, with its unit and
//! what it means. The live view, JSON and OpenMetrics all read it from here.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use soloist_core::{cpu_list, AddrMap};

use crate::control::{Bandwidth, Control, Group, Guard, KeyValues, Occupancy};
use crate::observe::verify::Reason;
use crate::HostError;

/// How a figure goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, from when the thing was made.
    Counter,
    /// It is as it is now.
    Gauge,
}

/// A figure: a line of a `stats` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its key in `stats`.
    pub key: &'static str,
    /// How it goes.
    pub kind: Kind,
    /// What it counts, a sentence without a full stop.
    pub help: &'static str,
}

const fn counter(key: &'static str, help: &'static str) -> Field {
    let kind = Kind::Counter;
    Field { key, kind, help }
}

const fn gauge(key: &'static str, help: &'static str) -> Field {
    let kind = Kind::Gauge;
    Field { key, kind, help }
}

/// Figures of a group.
pub const GROUP: &[Field] = &[
    gauge("tasks", "Threads in the group"),
    gauge("pages", "Pages that it has in its colours"),
    gauge("capacity", "Bytes that its colours hold"),
    gauge("reserved", "Bytes per second that are reserved for it"),
    gauge(
        "own",
        "Pages of its processes' private mappings, where they may be seen; a process with threads in several groups counts in each",
    ),
    gauge("own_in_color", "Of these, in its colours"),
    gauge("listed", "Pages that its lists hold, free"),
    counter("hits", "Pages handed out from its lists"),
    counter("refills", "Times that its lists were filled"),
    counter("zeroed", "Pages handed out that were known to be zero"),
    counter("grown", "Colours that it took beyond its own"),
    counter("spilled", "Pages handed out of colour since none was left"),
    counter("exhausted", "Requests that found no page in its colours"),
    counter("page_tables", "Page tables handed out in colour"),
    counter("moved", "Pages that left their colours"),
    counter("freed", "Pages that came back"),
    counter("large", "Huge pages asked for"),
];

/// A group's own pages out of colour, by reason.
pub const OUT_OF_COLOR: Field = gauge("own_out_of_color", "Of these, out of colour, by reason");

/// Pages of a group's colours, by who holds them.
pub const OCCUPANCY: Field = gauge(
    "occupancy",
    "Pages of its colours by who holds them, where that may be seen",
);

/// Figures of a processor under the guard.
pub const CPU: &[Field] = &[
    gauge("reserved", "Bytes per second that are reserved on it"),
    gauge("stopped", "1 while the CPU is stopped"),
    gauge(
        "unregulated",
        "1 while it has a reservation and runs without limit",
    ),
    counter("used_bytes", "Bytes read or, with one counter, moved"),
    counter("used_write_bytes", "Bytes written, where counted apart"),
    counter("donated_bytes", "Budget given to others"),
    counter("donated_write_bytes", "Budget for writes given to others"),
    counter("reclaimed_bytes", "Budget taken from others"),
    counter(
        "reclaimed_write_bytes",
        "Budget for writes taken from others",
    ),
    counter("beyond_bytes", "Bytes used above the budget"),
    counter("beyond_write_bytes", "Bytes written above the budget"),
    counter("periods", "Periods begun"),
    counter("stops", "Times that the CPU was stopped"),
    counter("stopped_ns", "Nanoseconds that it stood still"),
    counter("underruns", "Periods with a reclaim under-run error"),
    counter("overflows", "Interrupts by counters"),
    counter("interrupts", "Interrupts by the timer and other CPUs"),
];

/// Whether there are figures.
pub const UP: Field = gauge("up", "The module is loaded and tells its figures");

/// Figures of the whole system.
pub const SYSTEM: &[Field] = &[
    gauge("groups", "Groups with a directory"),
    gauge("implicit", "Groups that rules and mmap() calls made"),
    gauge("removed", "Groups without tasks that still have pages"),
    gauge("listed", "Pages in lists, free"),
    gauge("used", "Pages handed out in colour"),
    counter("lost", "Pages that came back and could not be listed"),
    counter(
        "kept",
        "Pages that the kernel wanted to move and that stayed",
    ),
    counter("replaced", "Pages moved to another of the same colour"),
    counter("moved", "Pages moved out of their colour"),
    counter("swapped", "Coloured pages swapped out"),
];

/// Figures of a rule.
pub const RULE: &[Field] = &[
    counter("matched", "Programs that it coloured"),
    counter(
        "refused",
        "Programs that it could not, for want of colours or by a limit",
    ),
    counter(
        "limited",
        "Times that a limit refused a program or its growth",
    ),
];

/// A group, as seen once.
#[derive(Debug, Clone, Serialize)]
pub struct GroupSample {
    /// Its name; a rule's group has the rule's name and the group's number.
    pub name: String,
    /// Made by a rule or an mmap() call.
    pub implicit: bool,
    /// Its bank sets; empty: any, or none yet.
    pub bank_sets: String,
    /// Its LLC colours; empty: any, or none yet.
    pub llc: String,
    /// Threads.
    pub tasks: Vec<i32>,
    /// Bandwidth reserved for it, bytes per second; 0: none.
    pub reserved: u64,
    /// Processors that it is reserved on.
    pub cpus: Vec<u32>,
    /// Figures, of [`GROUP`].
    pub figures: BTreeMap<&'static str, u64>,
    /// Its processes' own pages out of colour, by reason; see [`Snapshot::look`].
    pub not_in_color: BTreeMap<Reason, u64>,
    /// The holders of its colours; see [`Snapshot::look`].
    pub occupancy: Option<Occupancy>,
}

/// Anything else that has figures.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// A processor's number, a rule's name.
    pub name: String,
    /// Figures.
    pub figures: BTreeMap<&'static str, u64>,
}

/// All figures, as seen once.
#[derive(Debug, Clone, Serialize)]
pub struct Snapshot {
    /// When.
    #[serde(skip)]
    pub at: Instant,
    /// Groups by name, the implicit ones too.
    pub groups: Vec<GroupSample>,
    /// Processors that have or had a reservation.
    pub cpus: Vec<Sample>,
    /// Rules.
    pub rules: Vec<Sample>,
    /// The whole.
    pub system: BTreeMap<&'static str, u64>,
}

impl Snapshot {
    /// Looks at everything once.
    pub fn take(control: &Control) -> Result<Self, HostError> {
        let map = readable(control.map())?;
        let mut groups = Vec::new();
        // Of some only the directory is left.
        for group in control.groups()?.iter().filter(|group| !group.is_gone()) {
            groups.extend(readable(GroupSample::named(group))?);
        }
        if let Some(map) = &map {
            groups.extend(implicit(control, map)?);
        }
        let rules = control.rules()?.into_iter().filter_map(|rule| {
            let view = rule.view().ok()?;
            Some(Sample {
                figures: figures(RULE, &view.stats),
                name: view.name,
            })
        });
        Ok(Self {
            at: Instant::now(),
            groups,
            cpus: cpus(control),
            rules: rules.collect(),
            system: figures(SYSTEM, &control.stats()?),
        })
    }

    /// The group `name`.
    pub fn group(&self, name: &str) -> Option<&GroupSample> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Of processors `cpus` the sum of figure `key`.
    pub fn sum_of_cpus(&self, cpus: &[u32], key: &str) -> u64 {
        let sample_of = |cpu: &u32| self.cpus.iter().find(|s| s.name == cpu.to_string());
        let figure = |sample: &Sample| sample.figures.get(key).copied().unwrap_or(0);
        cpus.iter().filter_map(sample_of).map(figure).sum()
    }
}

/// Nothing where a group went while we looked, or there is no map; but who may
/// not look is told so.
fn readable<T>(seen: Result<T, HostError>) -> Result<Option<T>, HostError> {
    match seen {
        Err(error @ HostError::NeedsRoot(_)) => Err(error),
        seen => Ok(seen.ok()),
    }
}

impl GroupSample {
    fn named(group: &Group) -> Result<Self, HostError> {
        let view = group.view()?;
        let reserved = group.bandwidth().unwrap_or_default();
        let (reserved, cpus) = match Bandwidth::of_kernel(&reserved) {
            Some((bandwidth, cpus)) => (bandwidth.rate(), cpus),
            None => (0, None),
        };
        let cpus = cpus.and_then(|list| cpu_list(&list).ok());
        let mut figures = figures(GROUP, &view.stats);
        figures.insert("tasks", view.tasks.len() as u64);
        figures.insert("reserved", reserved);
        Ok(Self {
            name: view.name,
            implicit: false,
            bank_sets: view.bank_set,
            llc: view.llc_color,
            tasks: view.tasks,
            reserved,
            cpus: cpus.map_or_else(Vec::new, |list| list.iter().collect()),
            figures,
            not_in_color: BTreeMap::new(),
            occupancy: None,
        })
    }

    /// A figure; 0 where the module does not say it.
    pub fn figure(&self, key: &str) -> u64 {
        self.figures.get(key).copied().unwrap_or(0)
    }
}

/// Groups that rules and mmap() calls made: of these less is counted.
fn implicit(
    control: &Control,
    map: &AddrMap,
) -> Result<impl Iterator<Item = GroupSample>, HostError> {
    Ok(control.implicit_groups(map)?.into_iter().map(|group| {
        let sets = group.colors.sets().map(ToString::to_string);
        let llc = group.colors.llc().map(ToString::to_string);
        GroupSample {
            name: group.label(),
            implicit: true,
            bank_sets: sets.unwrap_or_default(),
            llc: llc.unwrap_or_default(),
            reserved: 0,
            cpus: Vec::new(),
            figures: BTreeMap::from([
                ("tasks", group.tasks.len() as u64),
                ("pages", group.pages),
                ("page_tables", group.page_tables),
            ]),
            tasks: group.tasks,
            not_in_color: BTreeMap::new(),
            occupancy: None,
        }
    }))
}

/// Processors that the guard has ever regulated, or should.
fn cpus(control: &Control) -> Vec<Sample> {
    let view = Guard::open(control).and_then(|guard| guard.view());
    let concerned = |s: &Sample| {
        let any = |key| s.figures.get(key).is_some_and(|&n| n > 0);
        any("periods") || any("unregulated")
    };
    let all = view.map_or_else(|_| Vec::new(), |view| view.cpus);
    all.into_iter()
        .map(|cpu| {
            let mut figures = figures(CPU, &cpu.stats);
            let reserved = Bandwidth::of_kernel(&cpu.bandwidth);
            figures.insert("reserved", reserved.map_or(0, |(b, _)| b.rate()));
            figures.insert("unregulated", u64::from(cpu.unregulated));
            Sample {
                name: cpu.cpu.to_string(),
                figures,
            }
        })
        .filter(concerned)
        .collect()
}

fn figures(fields: &[Field], stats: &KeyValues) -> BTreeMap<&'static str, u64> {
    let value = |field: &Field| Some((field.key, stats.get(field.key)?.parse().ok()?));
    fields.iter().filter_map(value).collect()
}
