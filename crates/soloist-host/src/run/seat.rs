//! The group that a command runs in, for as long as it runs: joined, or made for it,
//! on the processors where its memory is.

use std::ffi::OsString;
use std::thread::sleep;
use std::time::Duration;

use soloist_core::{AddrMap, ColorSet, NumList};

use crate::control::{
    claim, Bandwidth, ColorPlan, ColorRequest, Control, Exhaust, Group, Guard, KeyValues,
};
use crate::machine::{check_nodes, named, node_of_cpu, pin, usable_cpus, Host};
use crate::run::job::{Exit, Job};
use crate::run::own::Held;
use crate::run::realtime::Realtime;
use crate::signals::HeldSignals;
use crate::HostError;

/// How often a group without colours is looked at before it is refused.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(100);

/// The group that a command runs in.
#[derive(Debug)]
pub struct Seat {
    /// The group.
    pub group: Group,
    /// How its colours were chosen; `None`: it was there before us.
    pub plan: Option<ColorPlan>,
    /// Says that we live, to who removes groups of those that don't.
    _held: Option<Held>,
    /// Nodes that its colours are on.
    pub nodes: NumList,
    /// Processors that the command is kept on; `None`: it is on any.
    pub cpus: Option<NumList>,
}

/// A group that is to be made for a command.
#[derive(Debug)]
pub struct SeatRequest<'a> {
    /// Its name; `None`: one of this run.
    pub name: Option<&'a str>,
    /// Its colours.
    pub colors: &'a ColorRequest,
    /// Memory that is set aside for it, bytes.
    pub reserve: Option<u64>,
    /// What is reserved for it on its processors, a list.
    pub bandwidth: Option<(Bandwidth, &'a str)>,
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its process id.
    pub pid: u32,
    /// How it ended.
    pub outcome: Exit,
    /// What becomes of requests where its colours have no page left.
    pub exhaust: Exhaust,
    /// The colours that it had last: it may have taken more.
    pub colors: ColorSet,
    /// The group's counters; `None`: the group was removed meanwhile.
    pub stats: Option<KeyValues>,
    /// By how much they grew while it ran: the group may have had tasks before.
    pub during: KeyValues,
}

impl Seat {
    /// The group `name`, where it is there; refused where it is not, unless it may be
    /// made: the name may be a typo. Refused too where it should have been made with colours,
    /// and has none.
    pub fn find(control: &Control, name: &str, create: bool) -> Result<Option<Group>, HostError> {
        match control.group(name) {
            Err(HostError::NoSuch { like, .. }) if !create => Err(no_group(control, name, &like)),
            Err(HostError::NoSuch { .. }) => Ok(None),
            Ok(group) if create => colored(group).map(Some),
            found => found.map(Some),
        }
    }

    /// In a group that is there.
    pub fn join(group: Group) -> Self {
        Self {
            group,
            plan: None,
            _held: None,
            nodes: NumList::new(1),
            cpus: None,
        }
    }

    /// In a group that is made now, and removed again where it can't have what is asked
    /// for.
    pub fn make(
        request: &SeatRequest,
        host: &Host,
        control: &Control,
        map: &AddrMap,
    ) -> Result<Self, HostError> {
        // Refuses impossible requests before it makes a group.
        request.colors.plan(map)?;
        let signals = HeldSignals::hold();
        let (group, held) = match request.name {
            Some(name) => control.create_named_group(name)?,
            None => {
                let (group, held) = control.create_own_group()?;
                (group, Some(held))
            }
        };
        let given = request.give(host, control, map, &group);
        match given.and_then(|plan| signals.check().map(|()| plan)) {
            Ok(plan) => Ok(Self {
                _held: held,
                plan: Some(plan),
                ..Self::join(group)
            }),
            Err(error) => {
                // The refusal is what matters; an empty group can stay if need be.
                let _ = group.remove();
                Err(error)
            }
        }
    }

    /// Keeps the command on `asked`, or where its memory is, unless it `roams`: its
    /// colours may be on some of the nodes only.
    pub fn keep_in_place(
        &mut self,
        asked: Option<NumList>,
        roams: bool,
        host: &Host,
        map: &AddrMap,
    ) -> Result<(), HostError> {
        self.nodes = self.group.nodes(map)?;
        self.cpus = asked;
        if self.group.colors(map)?.sets().is_some() {
            check_nodes(host, &self.nodes)?;
        }
        if self.cpus.is_some() || roams || self.nodes.len() as usize == map.memory_nodes().len() {
            return Ok(());
        }
        let cpus = usable_cpus(host, &self.nodes);
        // A node may have memory only.
        if !cpus.is_empty() {
            pin(&cpus)?;
            self.cpus = Some(cpus);
        }
        Ok(())
    }

    /// That its processors are on other nodes than its memory, in words: then every
    /// access is remote. `None`: they are not.
    pub fn distance(&self, host: &Host, map: &AddrMap) -> Option<String> {
        let (cpus, nodes) = (self.cpus.as_ref()?, &self.nodes);
        let mut near = cpus.iter().filter_map(|cpu| node_of_cpu(host, cpu));
        let first = near.next()?;
        if nodes.contains(first) || near.any(|node| nodes.contains(node)) {
            return None;
        }
        Some(match map.memory_nodes().contains(&first) {
            true => format!("CPUs {cpus} are on node {first}, its memory on {nodes}: each access is remote; leave --cpus or --node out"),
            false => format!("CPUs {cpus} are on node {first}, which has no memory: colours are of node {nodes}, each access is remote"),
        })
    }

    /// Runs a command in it.
    pub fn run(
        &self,
        command: &[OsString],
        realtime: Option<&Realtime>,
        map: &AddrMap,
    ) -> Result<Ran, HostError> {
        let mut colors = self.group.colors(map)?;
        let exhaust = self.group.exhaust()?;
        let before = self.group.stats()?;
        let job = Job::start(&self.group, command, realtime)?;
        let pid = job.pid();
        // It may grow, and it is gone with its last task.
        let mut look = || {
            if let Some(now) = self
                .group
                .colors(map)
                .ok()
                .filter(|_| !self.group.is_gone())
            {
                colors = now;
            }
        };
        let outcome = job.wait_looking(&mut || {
            if exhaust == Exhaust::Grow {
                look();
            }
        })?;
        look();
        // Its group may have been removed meanwhile; its status counts all the same.
        let stats = unless_gone(self.group.stats())?;
        Ok(Ran {
            pid,
            outcome,
            exhaust,
            colors,
            during: stats
                .as_ref()
                .map(|now| since(&before, now))
                .unwrap_or_default(),
            stats,
        })
    }

    /// Removes a group that we made, unless it lasts by now, or the command left
    /// somebody in it: then says so.
    pub fn leave(&self, host: &Host) -> Result<Option<String>, HostError> {
        if self.plan.is_none() || self.group.lasts() {
            return Ok(None);
        }
        let Some(left) = unless_gone(self.group.tasks())? else {
            return Ok(None);
        };
        if left.is_empty() {
            unless_gone(self.group.remove())?;
            return Ok(None);
        }
        let name = self.group.name();
        let who = named(host, &left);
        Ok(Some(format!(
            "group {name} stays, for tasks of it still run: {who}; it goes after the last one, with the next `soloist` command"
        )))
    }
}

impl SeatRequest<'_> {
    /// Gives `group` what is asked for; it goes with its last task.
    fn give(
        &self,
        host: &Host,
        control: &Control,
        map: &AddrMap,
        group: &Group,
    ) -> Result<ColorPlan, HostError> {
        // First: if this process is killed, the group is known to be nobody's.
        group.set_ephemeral()?;
        let plan = claim(self.colors, host, control, map, group)?;
        if let Some(bytes) = self.reserve {
            group.set_reserve(bytes)?;
        }
        if let Some((bandwidth, cpus)) = &self.bandwidth {
            Guard::open(control)?.reserve_group(group, Some((bandwidth, cpus)))?;
        }
        Ok(plan)
    }
}

/// By how much each counter grew.
fn since(before: &KeyValues, now: &KeyValues) -> KeyValues {
    let number = |of: &KeyValues, key: &str| of.get(key)?.parse::<u64>().ok();
    let grew = |key: &String| {
        let old = number(before, key).unwrap_or(0);
        Some((
            key.clone(),
            number(now, key)?.saturating_sub(old).to_string(),
        ))
    };
    now.keys().filter_map(grew).collect()
}

/// `None` of a group that is there no longer.
fn unless_gone<T>(seen: Result<T, HostError>) -> Result<Option<T>, HostError> {
    match seen {
        Err(error) if error.is_not_found() => Ok(None),
        seen => seen.map(Some),
    }
}

/// A group that is to be joined and is not there.
fn no_group(control: &Control, name: &str, like: &str) -> HostError {
    let groups = control.groups().unwrap_or_default();
    let names: Vec<&str> = groups.iter().map(Group::name).collect();
    let there = match names.is_empty() {
        true => "there is none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    HostError::Other(format!(
        "there is no group {name:?}{like}: {there}; --create makes it for this command"
    ))
}

/// Waits for another run that gives the group its colours at this moment. Refuses one that stays
/// without: its maker was killed.
fn colored(group: Group) -> Result<Group, HostError> {
    for _ in 0..LOOKS {
        if !group.is_bare().unwrap_or(false) {
            return Ok(group);
        }
        sleep(BETWEEN);
    }
    let name = group.name();
    Err(HostError::Other(format!(
        "group {name} has no colours and no task, like one whose `soloist run --create` was killed: `soloist group rm {name}` removes it"
    )))
}
