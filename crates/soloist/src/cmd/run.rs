//! `soloist run`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_core::{cpu_list, format_size, parse_size, AddrMap, ColorSet, NumList};
use soloist_host::control::{claim, Bandwidth, Control, Exhaust, Group, Guard, KeyValues, Plan};
use soloist_host::machine::{
    check_nodes, movable_bytes, named, node_of_cpu, pin, usable_cpus, Host,
};
use soloist_host::run::{Held, Job, Outcome};
use soloist_host::HostError;

use super::colors::ColorArgs;
use super::realtime::RealtimeArgs;
use soloist_cli::{Ctx, Misuse};

/// Run a command with memory of its own colours.
///
/// Every page that the command owns, from its first, comes from the colours
/// given, and so do those of its threads and children. Without colour flags
/// it gets one free colour and takes more as it needs them. Without `--cpus`
/// it is kept on the processors of the node that its colours are on. Its exit
/// status is passed on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Processors to run on; colours come from their node unless `--node`.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,

    /// Let it run on any node, though its colours are on one.
    #[arg(long, conflicts_with = "cpus")]
    no_pin: bool,

    /// Memory set aside for it beforehand, known to be zero.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Bandwidth reserved for it on its processors: RATE[:write=RATE], such as
    /// 500MB/s; docs/reference/guard.md. Needs `--cpus`.
    #[arg(long, value_name = "RATE", requires = "cpus")]
    bandwidth: Option<String>,

    /// Run in this group.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// Make the group if there is none, and remove it afterwards.
    #[arg(long, requires = "group")]
    create: bool,

    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    colors: ColorArgs,

    #[command(flatten)]
    realtime: RealtimeArgs,
}

/// What is said with `--json`, on standard error: standard output is the
/// command's.
#[derive(Serialize)]
struct Report<'a> {
    group: &'a str,
    plan: Option<&'a Plan>,
    colors: &'a str,
    /// Nodes that the colours are on.
    nodes: &'a str,
    /// Processors that it was kept on; none: it was not.
    cpus: Option<String>,
    capacity: u64,
    pid: u32,
    exit: u8,
    signal: Option<i32>,
    stats: &'a KeyValues,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    args.realtime.check()?;
    let host = Host::live();
    let control = Control::open(&host)?;
    let map = control.map()?;
    let asked = match &args.cpus {
        Some(cpus) => Some(cpu_list(cpus).map_err(|e| Misuse(format!("--cpus {cpus}: {e}")))?),
        None => None,
    };
    if let Some(cpus) = &asked {
        pin(cpus)?;
    }
    let mut seat = Seat::take(&args, &host, &control, &map)?;
    let done = seat
        .keep_in_place(&args, asked, &host, &map)
        .and_then(|()| seat.run(&args, ctx, &map));
    seat.leave(ctx)?;
    match done {
        Err(error) => exec_status(error),
        Ok(outcome) => Ok(ExitCode::from(outcome.code)),
    }
}

/// The group that the command runs in.
struct Seat {
    group: Group,
    /// How its colours were chosen; `None`: it was there before us.
    plan: Option<Plan>,
    /// Says that we live, to who removes groups of those that don't.
    held: Option<Held>,
    /// Nodes that its colours are on.
    nodes: NumList,
    /// Processors that the command is kept on.
    cpus: Option<NumList>,
}

impl Seat {
    fn take(args: &Args, host: &Host, control: &Control, map: &AddrMap) -> Result<Self> {
        let existing = match &args.group {
            Some(name) => match control.group(name) {
                // It may be a typo.
                Err(HostError::NoSuch { like, .. }) if !args.create => {
                    return Err(no_group(control, name, &like).into())
                }
                Err(HostError::NoSuch { .. }) => None,
                found => Some(found?),
            },
            None => None,
        };
        if let Some(group) = existing {
            if !args.colors.is_empty() || args.reserve.is_some() || args.bandwidth.is_some() {
                let name = group.name();
                return Err(Misuse(format!("group {name} exists and has its colours: leave the colour flags out, or change it with `soloist group set {name}`")).into());
            }
            return Ok(Self::new(group, None));
        }
        // What can't be is refused before a group is made.
        let request = args.colors.request(host, map, args.cpus.as_deref())?;
        request.plan(map)?;
        let (group, held) = match &args.group {
            Some(name) => (control.create_group(name)?, None),
            None => {
                let (group, held) = control.create_own_group()?;
                (group, Some(held))
            }
        };
        let reserve = |bytes| group.set_reserve(bytes);
        let set = claim(&request, host, control, map, &group).and_then(|plan| {
            args.reserve.map_or(Ok(()), reserve)?;
            reserve_bandwidth(args, control, &group)?;
            group.set_ephemeral()?;
            Ok(plan)
        });
        match set {
            Ok(plan) => Ok(Self {
                held,
                ..Self::new(group, Some(plan))
            }),
            Err(error) => {
                // The refusal is what matters; an empty group can stay if need be.
                let _ = group.remove();
                Err(error.into())
            }
        }
    }

    fn new(group: Group, plan: Option<Plan>) -> Self {
        Self {
            group,
            plan,
            held: None,
            nodes: NumList::new(1),
            cpus: None,
        }
    }

    /// Keeps the command on `asked`, or where its memory is: its colours may be
    /// on some of the nodes only.
    fn keep_in_place(
        &mut self,
        args: &Args,
        asked: Option<NumList>,
        host: &Host,
        map: &AddrMap,
    ) -> Result<(), HostError> {
        self.nodes = self.group.nodes(map)?;
        self.cpus = asked;
        if self.group.colors(map)?.sets().is_some() {
            check_nodes(host, &self.nodes)?;
        }
        let roams = args.no_pin || args.realtime.must_roam();
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

    /// On processors of other nodes than its memory's, every access is remote.
    fn warn_of_distance(&self, host: &Host, map: &AddrMap) {
        let Some(cpus) = &self.cpus else { return };
        let mut near = cpus.iter().filter_map(|cpu| node_of_cpu(host, cpu));
        let Some(first) = near.next() else { return };
        if ![first]
            .into_iter()
            .chain(near)
            .any(|node| self.nodes.contains(node))
        {
            let nodes = &self.nodes;
            if map.memory_nodes().contains(&first) {
                errln!("soloist: processors {cpus} are on node {first}, its memory on {nodes}: each access is remote; leave --cpus or --node out");
            } else {
                errln!("soloist: processors {cpus} are on node {first}, which has no memory: colours are of node {nodes}, each access is remote");
            }
        }
    }

    fn run(&self, args: &Args, ctx: &Ctx, map: &AddrMap) -> Result<Outcome, HostError> {
        let asked = self.plan.as_ref().is_some_and(|plan| plan.mem.is_some());
        if ctx.progress || (asked && !ctx.json) {
            self.say(&self.group.colors(map)?, map);
        }
        if !ctx.json {
            self.warn_of_distance(&Host::live(), map);
        }
        let mut colors = self.group.colors(map)?;
        let how = self.group.exhaust()?;
        let job = Job::start(&self.group, &args.command, args.realtime.asked().as_ref())?;
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
            if how == Exhaust::Grow {
                look();
            }
        })?;
        look();
        // Its group may have been removed meanwhile; its status counts all the same.
        let Some(stats) = unless_gone(self.group.stats())? else {
            if ctx.json {
                errln!(
                    "{}",
                    serde_json::json!({ "group": self.group.name(), "removed": true, "exit": outcome.code })
                );
                return Ok(outcome);
            }
            errln!(
                "soloist: group {} was removed while the command ran: from then on it was in no colour",
                self.group.name()
            );
            return Ok(outcome);
        };
        let capacity = colors.bytes(map);
        if ctx.json {
            let report = Report {
                group: self.group.name(),
                plan: self.plan.as_ref(),
                colors: &colors.to_string(),
                nodes: &self.nodes.to_string(),
                cpus: self.cpus.as_ref().map(NumList::to_string),
                capacity,
                pid,
                exit: outcome.code,
                signal: outcome.signal,
                stats: &stats,
            };
            errln!("{}", serde_json::json!(report));
        } else {
            let seat = Explained {
                how,
                capacity,
                nodes: &self.nodes,
                movable: movable_bytes(&Host::live(), &self.nodes),
            };
            seat.explain(&outcome, &stats);
        }
        Ok(outcome)
    }

    fn say(&self, colors: &ColorSet, map: &AddrMap) {
        let name = self.group.name();
        let size = format_size(colors.bytes(map));
        match &self.plan {
            Some(plan) => {
                let one = format_size(plan.capacity_of_one);
                let why = plan
                    .mem
                    .map(|mem| format!(" for --mem {}", format_size(mem)))
                    .unwrap_or_default();
                // More than planned where others have memory in the first ones.
                let sets = colors
                    .sets()
                    .map_or(plan.sets, |sets| sets.iter().count() as u32);
                errln!("soloist: group {name}: {sets} x {one} = {size}{why}: {colors}");
            }
            None => errln!("soloist: group {name}: {size}: {colors}"),
        }
        let nodes = &self.nodes;
        match &self.cpus {
            Some(cpus) => errln!("soloist: memory on node {nodes}, kept on processors {cpus}"),
            None => errln!("soloist: memory on node {nodes}, on any processor"),
        }
    }

    /// Removes a group that we made, unless the command left somebody in it.
    fn leave(&self, ctx: &Ctx) -> Result<()> {
        if self.plan.is_none() {
            return Ok(());
        }
        let Some(left) = unless_gone(self.group.tasks())? else {
            return Ok(());
        };
        if left.is_empty() {
            unless_gone(self.group.remove())?;
        } else if !ctx.json {
            let name = self.group.name();
            let how = match self.held {
                Some(_) => "it goes after the last one, with the next `soloist` command".to_owned(),
                None => format!("afterwards `soloist group rm {name}`"),
            };
            let who = named(&Host::live(), &left);
            errln!("soloist: group {name} stays, for tasks of it still run: {who}; {how}");
        }
        Ok(())
    }
}

/// `None` of a group that is there no longer.
fn unless_gone<T>(seen: Result<T, HostError>) -> Result<Option<T>, HostError> {
    match seen {
        Err(HostError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        seen => seen.map(Some),
    }
}

/// On the processors of `--cpus`; goes with the group.
fn reserve_bandwidth(args: &Args, control: &Control, group: &Group) -> Result<(), HostError> {
    let (Some(text), Some(cpus)) = (&args.bandwidth, &args.cpus) else {
        return Ok(());
    };
    let want: Bandwidth = text.parse()?;
    Guard::open(control)?.reserve_group(group, Some((&want, cpus)))
}

/// What is known of the colours of a command that ended.
struct Explained<'a> {
    how: Exhaust,
    capacity: u64,
    nodes: &'a NumList,
    /// Bytes on these nodes that are no good for page tables.
    movable: u64,
}

impl Explained<'_> {
    /// Says why it died whose colours were exhausted, or what it has out of colour.
    fn explain(&self, outcome: &Outcome, stats: &KeyValues) {
        let count = |key: &str| stats.get(key).and_then(|v| v.parse::<u64>().ok());
        let count = |key: &str| count(key).unwrap_or(0);
        let contradicted = count("contradicted");
        let killed = match outcome.signal {
            Some(libc::SIGBUS | libc::SIGKILL) => true,
            // What the kernel sends where execve can't have a stack.
            Some(libc::SIGSEGV) => contradicted > 0 && self.how != Exhaust::Spill,
            _ => false,
        };
        if killed && count("exhausted") > 0 {
            errln!(
                "soloist: the command was killed: {}",
                self.reason(contradicted)
            );
        }
        match (count("spilled"), self.how) {
            (0, _) => {}
            (pages, Exhaust::Spill) if contradicted > 0 => errln!(
                "soloist: {pages} pages are out of colour, {contradicted} of them since {}",
                self.contradiction()
            ),
            (pages, Exhaust::Spill) => errln!(
                "soloist: {pages} pages are out of colour: its colours, {} in all, had no page left (--exhaust spill)",
                format_size(self.capacity)
            ),
            // The kernel's own allocations never fail for want of a colour.
            (pages, _) => errln!(
                "soloist: {pages} of its page tables are out of colour: {}",
                self.why_no_table()
            ),
        }
    }

    fn reason(&self, contradicted: u64) -> String {
        if contradicted > 0 {
            return self.contradiction();
        }
        let size = format_size(self.capacity);
        let other = match self.how {
            Exhaust::Grow => "and no other colour was free; take some from other groups (`soloist group list`), or let it go on out of colour with --exhaust spill",
            _ => "give it more with --mem or --colors, or let it take more with --exhaust grow",
        };
        format!("its colours, {size} in all, had no page left; {other}")
    }

    fn contradiction(&self) -> String {
        let nodes = self.nodes;
        format!("its memory policy or cpuset.mems (numactl --membind, mbind) allows no memory on node {nodes}, where its colours are; take colours there with --node, or leave the policy out")
    }

    fn why_no_table(&self) -> String {
        match self.movable {
            0 => "no colour had a page left for them".to_owned(),
            bytes => format!(
                "none can be in movable memory, which {} of node {} are (kernelcore=, movablecore=, hotplug)",
                format_size(bytes),
                self.nodes
            ),
        }
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

/// The shell's statuses for a command that could not be run.
fn exec_status(error: HostError) -> Result<ExitCode> {
    if let HostError::Exec { source, .. } = &error {
        errln!("soloist: {error}");
        let found = source.kind() != ErrorKind::NotFound;
        return Ok(ExitCode::from(if found { 126 } else { 127 }));
    }
    Err(error.into())
}
