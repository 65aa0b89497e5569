//! `soloist group`.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use soloist_core::{cpu_list, format_size, parse_size};
use soloist_host::config::GroupConfig;
use soloist_host::control::{
    barred_words, in_use, is_label, limits, parse_rate, Bandwidth, Barred, Control, Exhaust, Group,
    GroupView, Guard, Mode, Occupancy, Text,
};
use soloist_host::machine::{find_existing, Host};
use soloist_host::observe::{verify, GroupColors};
use soloist_host::run::{check_lasting_name, HeldSignals};
use soloist_host::HostError;

use super::colors::{mode, text, ColorArgs};
use super::{distinct, moves};
use soloist_cli::complete;
use soloist_cli::number::pid;
use soloist_cli::table;
use soloist_cli::{Ctx, Misuse};

/// Manage groups: colours, and the tasks whose memory has them.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// List groups; a group that a rule made is called RULE#NUMBER.
    #[command(after_help = examples!["soloist group list", "soloist group list --json"])]
    List,
    /// Show one group in full.
    #[command(after_help = examples!["soloist group show video", "soloist group show x264#3"])]
    Show {
        /// The group, or RULE#NUMBER for one that a rule made.
        #[arg(add = complete::shown_groups())]
        name: String,
    },
    /// Create a group with colours.
    #[command(after_help = examples![
        "soloist group create video --colors 4 --llc 8 --reserve 64M",
        "soloist group create batch --node 1 --mode shareable --exhaust spill",
        "soloist group create rest --everything-else",
    ])]
    Create {
        /// The group.
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Change a group's colours or settings, or move processes into it.
    #[command(after_help = examples![
        "soloist group set video --exhaust grow",
        "soloist group set video --bandwidth 500MB/s --cpus 2-3",
        "soloist group set video --pid 1234 --move",
        "soloist group set video --bank-sets 4-7 --move",
        "soloist group set video --evict",
        "soloist group set x264#3 --evict",
    ])]
    Set {
        /// The group. For RULE#NUMBER, one that a rule made, only --evict is possible.
        #[arg(add = complete::shown_groups())]
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Remove groups.
    ///
    /// Fails if they have tasks, and names the tasks.
    #[command(after_help = examples!["soloist group rm video batch"])]
    Rm {
        /// The groups.
        #[arg(required = true, add = complete::groups())]
        names: Vec<String>,

        /// Move tasks out of them first; the tasks' new pages have no colour.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Settings {
    /// Whether other shareable groups may have the same colours. Default: a number of
    /// colours makes it exclusive; listed ones leave it as it is, at first shareable.
    #[arg(long, value_parser = mode())]
    mode: Option<Mode>,

    /// File pages that it only reads: private (copy programs and libraries into its
    /// colours), all (copy any file) or shared (use the page cache).
    #[arg(long, value_parser = text())]
    text: Option<Text>,

    /// Memory to reserve for it beforehand, zeroed.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Bandwidth to reserve for it on `--cpus` together: RATE[:write=RATE] such as
    /// 500MB/s, weight=N, or off; docs/reference/guard.md.
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<Reservation>,

    /// CPUs for `--bandwidth`; its tasks do not move to them. Default: as before.
    #[arg(long, value_name = "LIST", value_parser = processors)]
    cpus: Option<String>,

    /// Move these processes in, with all their threads. Present pages stay unless
    /// `--move` is given.
    #[arg(long = "pid", value_name = "PID", value_parser = pid::<i32>)]
    pids: Vec<i32>,

    /// Move the present pages of these processes into its colours, while they run. With
    /// a change of its colours, move the pages of all its tasks.
    #[arg(long = "move", id = "move")]
    recolor: bool,

    /// Evict others' pages from its colours: drop clean page cache, and migrate the
    /// rest. Ctrl-C ends it.
    #[arg(long)]
    evict: bool,

    /// Limit the rate of --evict, such as 100MB/s.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, requires = "evict")]
    evict_rate: Option<u64>,

    /// Also interrupt isolated CPUs. Otherwise --move and --evict leave pages that are
    /// mapped there.
    #[arg(long)]
    isolated: bool,

    /// Bind it to a cgroup (v2): all tasks in the cgroup, now and later, are in the
    /// group. PATH is as in /proc/PID/cgroup (/video.slice), or a directory below
    /// /sys/fs/cgroup. Repeat to bind several cgroups. This unbinds all other cgroups;
    /// `none` unbinds all.
    #[arg(long = "cgroup", id = "cgroup", value_name = "PATH")]
    cgroups: Vec<String>,

    /// Take in all tasks that are in no group, now and later; `group rm` releases them.
    /// Without a colour flag it gets all colours that no exclusive group has. Default:
    /// --exhaust spill. To leave a cgroup out, bind a group without colours to it.
    #[arg(long, conflicts_with_all = ["cgroup", "pids", "tids"])]
    everything_else: bool,

    /// Bind it before the cgroup exists. Systemd's cgroups (.slice, .service, .scope)
    /// do not need this.
    #[arg(long, requires = "cgroup")]
    later: bool,

    /// Move only these threads in.
    #[arg(long = "tid", value_name = "TID", value_parser = pid::<i32>)]
    tids: Vec<i32>,

    #[command(flatten)]
    colors: ColorArgs,
}

/// What `--bandwidth` takes.
#[derive(Debug, Clone, Copy)]
enum Reservation {
    Off,
    Of(Bandwidth),
}

impl FromStr for Reservation {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::Of),
        }
    }
}

fn processors(text: &str) -> Result<String, String> {
    cpu_list(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    match args {
        Args::List => list(&control, ctx)?,
        Args::Show { name } => show(&Shown::look(&name, &host, &control)?, ctx)?,
        Args::Create { name, settings } => settings.create(&name, &host, &control, ctx)?,
        Args::Set { name, settings } => settings.set(&name, &host, &control, ctx)?,
        Args::Rm { names, force } => {
            remove(&names, force, &host, &control)?;
            if ctx.json {
                ctx.print_json(&json!({ "removed": names }))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All are looked up before the first goes; one may be named twice.
fn remove(names: &[String], force: bool, host: &Host, control: &Control) -> Result<()> {
    let groups = distinct(names).map(|name| control.group(name));
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    let used = in_use(host, &groups)?;
    if !force && !used.is_empty() {
        return Err(HostError::InUse(used).into());
    }
    Ok(groups.iter().try_for_each(Group::remove)?)
}

impl Settings {
    fn create(&self, name: &str, host: &Host, control: &Control, ctx: &Ctx) -> Result<()> {
        self.check_moves()?;
        self.check_tasks(host)?;
        check_lasting_name(name)?;
        let alone = control.alone()?;
        let held = HeldSignals::hold();
        let group = control.create_group(name)?;
        if let Err(error) = self.apply_whole(host, control, &group, None, &held) {
            // What it lacked is in the error; do not leave half a group.
            let _ = group.remove();
            return Err(error);
        }
        drop((held, alone));
        let moved = moves::after(&self.moves(), &group, ctx)?;
        done(self, moved, host, control, &group, ctx)
    }

    fn set(&self, name: &str, host: &Host, control: &Control, ctx: &Ctx) -> Result<()> {
        self.check_moves()?;
        if is_label(name) {
            return self.evict_implicit(name, control, ctx);
        }
        let group = control.group(name)?;
        if self.is_empty() {
            return Err(Misuse("nothing to set: `soloist group set --help`".to_owned()).into());
        }
        self.check_tasks(host)?;
        let alone = control.alone()?;
        let before = GroupConfig::now(&group)?;
        let held = HeldSignals::hold();
        if let Err(error) = self.apply_whole(host, control, &group, Some(before.exhaust), &held) {
            // All or nothing; what was so before was allowed, and is again.
            let _ = before.put_back(control, &group);
            return Err(error);
        }
        drop((held, alone));
        let moved = moves::after(&self.moves(), &group, ctx)?;
        done(self, moved, host, control, &group, ctx)
    }

    /// A rule's group has what its rule says.
    fn evict_implicit(&self, name: &str, control: &Control, ctx: &Ctx) -> Result<()> {
        if !self.evict || !self.is_only_evict() {
            return Err(HostError::Implicit(name.to_owned()).into());
        }
        let view = control.group_view(name)?;
        let whose = moves::Evicted::Number(control, view.id.parse()?);
        let moved = vec![moves::evict(&whose, name, &self.moves(), ctx)?];
        match ctx.json {
            true => ctx.print_json(&Done {
                group: control.group_view(name)?,
                moved,
                joined: Vec::new(),
                barred: Vec::new(),
            }),
            false => Ok(outln!("{}", colors(&view))?),
        }
    }

    /// A name and nothing else.
    fn is_empty(&self) -> bool {
        !self.evict && self.is_only_evict()
    }

    /// Nothing is wanted beside --evict.
    fn is_only_evict(&self) -> bool {
        let own = [
            self.mode.is_some(),
            self.text.is_some(),
            self.reserve.is_some(),
            self.bandwidth.is_some(),
            self.cpus.is_some(),
            !self.cgroups.is_empty(),
            self.everything_else,
        ];
        let joining = !self.pids.is_empty() || !self.tids.is_empty();
        !own.contains(&true) && !joining && self.colors.is_empty()
    }

    /// Migrations that are asked for.
    fn moves(&self) -> moves::Wanted<'_> {
        moves::Wanted {
            recolor: if self.recolor { &self.pids } else { &[] },
            recolor_all: self.recolor && self.changes_colors(),
            evict: self.evict,
            rate: self.evict_rate,
            isolated: self.isolated,
        }
    }

    /// There must be something to move.
    fn check_moves(&self) -> Result<(), Misuse> {
        if self.recolor && self.pids.is_empty() && !self.changes_colors() {
            return Err(Misuse(
                "--move is of processes that join (--pid) or of other colours; `soloist recolor GROUP` moves what a group has".to_owned(),
            ));
        }
        if self.isolated && !self.recolor && !self.evict {
            return Err(Misuse("--isolated is of --move and --evict".to_owned()));
        }
        Ok(())
    }

    /// Who has moved in can't be moved back to where it was: all are looked up
    /// before anything is changed.
    fn check_tasks(&self, host: &Host) -> Result<(), HostError> {
        let is_there = |id: &i32| host.has(&format!("/proc/{id}"));
        if let Some(pid) = self.pids.iter().find(|pid| !is_there(pid)) {
            return Err(HostError::NoProcess(*pid));
        }
        match self.tids.iter().find(|tid| !is_there(tid)) {
            Some(tid) => Err(HostError::Other(format!("there is no thread {tid}"))),
            None => Ok(()),
        }
    }

    /// [`Self::apply`], unless a signal comes meanwhile.
    fn apply_whole(
        &self,
        host: &Host,
        control: &Control,
        group: &Group,
        exhaust: Option<Exhaust>,
        held: &HeldSignals,
    ) -> Result<()> {
        self.apply(host, control, group, exhaust)?;
        Ok(held.check()?)
    }

    /// `exhaust`: that of a group which is there already.
    fn apply(
        &self,
        host: &Host,
        control: &Control,
        group: &Group,
        exhaust: Option<Exhaust>,
    ) -> Result<()> {
        // Refuses impossible requests before it changes anything.
        let cgroups = self.existing_cgroups(host)?;
        // Before its colours, which others may have; automatic ones make it exclusive.
        if let Some(Mode::Shareable) = self.mode {
            group.set_mode(Mode::Shareable)?;
        }
        if self.only_exhaust() {
            self.colors
                .exhaust
                .map_or(Ok(()), |e| group.set_exhaust(e))?;
        } else if !self.colors.is_empty() {
            let map = control.map()?;
            self.colors.plan(&map, exhaust)?.apply(group, &map)?;
        }
        if let Some(mode) = self.mode {
            group.set_mode(mode)?;
        }
        if let Some(text) = self.text {
            group.set_text(text)?;
        }
        if let Some(bytes) = self.reserve {
            group.set_reserve(bytes)?;
        }
        self.reserve_bandwidth(control, group)?;
        if let Some(paths) = &cgroups {
            group.set_cgroups(paths)?;
        }
        if self.everything_else {
            let colored = self.changes_colors();
            group.take_everything_else(&control.map()?, colored, self.colors.exhaust)?;
        }
        for &pid in &self.pids {
            group.add_process(pid)?;
        }
        for &tid in &self.tids {
            group.add_thread(tid)?;
        }
        Ok(())
    }

    /// The cgroups to bind it to; `None`: as before.
    fn existing_cgroups(&self, host: &Host) -> Result<Option<Vec<String>>> {
        let none = |path: &String| matches!(path.as_str(), "none" | "");
        match self.cgroups.as_slice() {
            [] => Ok(None),
            [path] if none(path) => Ok(Some(Vec::new())),
            paths if paths.iter().any(none) => {
                Err(Misuse("--cgroup none is alone: it unbinds all".to_owned()).into())
            }
            paths => {
                let paths = paths
                    .iter()
                    .map(|path| existing_cgroup(host, path, self.later));
                paths.collect::<Result<_>>().map(Some)
            }
        }
    }

    /// What was not said of a reservation stays as it is.
    fn reserve_bandwidth(&self, control: &Control, group: &Group) -> Result<()> {
        let name = group.name();
        let misuse = |what: &str| Misuse(format!("group {name} {what}"));
        let now = match (self.bandwidth, &self.cpus) {
            (None, None) => return Ok(()),
            (Some(Reservation::Off), Some(_)) => {
                return Err(Misuse(
                    "--bandwidth off is for all its CPUs: leave --cpus out".to_owned(),
                )
                .into())
            }
            (Some(Reservation::Off), None) => {
                return Ok(Guard::open(control)?.reserve_group(group, None)?)
            }
            _ => group.view()?.reservation(),
        };
        let (now, its_cpus) = now.unzip();
        let want = match self.bandwidth {
            Some(Reservation::Of(bandwidth)) => Some(bandwidth),
            _ => now,
        };
        let want =
            want.ok_or_else(|| misuse("has no reservation: say --bandwidth RATE beside --cpus"))?;
        let cpus = self.cpus.clone().or(its_cpus);
        let cpus = cpus.ok_or_else(|| {
            misuse("has no reservation yet: give --cpus LIST too, the CPUs that its tasks run on")
        })?;
        Ok(Guard::open(control)?.reserve_group(group, Some((&want, &cpus)))?)
    }

    fn changes_colors(&self) -> bool {
        !self.colors.is_empty() && !self.only_exhaust()
    }

    /// `--exhaust` alone changes no colours.
    fn only_exhaust(&self) -> bool {
        let others = ColorArgs {
            exhaust: None,
            ..self.colors.clone()
        };
        others.is_empty()
    }
}

/// What the group is now, what was moved, and how much of the processes that joined it is
/// in its colours.
#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    group: GroupView,
    moved: Vec<moves::Moved>,
    joined: Vec<Joined>,
    /// Tasks that it can't colour, for their cpuset allows no node of it.
    barred: Vec<Barred>,
}

/// A group as `show` has it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    view: GroupView,
    /// Who holds the memory of its colours.
    occupancy: Option<Occupancy>,
    /// Those of its cgroups that are not there now.
    cgroups_missing: Vec<String>,
    /// Tasks that it can't colour, for their cpuset allows no node of it.
    barred: Vec<Barred>,
}

impl Shown {
    fn look(name: &str, host: &Host, control: &Control) -> Result<Self> {
        let view = control.group_view(name)?;
        let (barred, occupancy) = match view.implicit {
            true => (Vec::new(), None),
            false => (
                barred(name, host, control)?,
                control.group(name)?.occupancy()?,
            ),
        };
        Ok(Self {
            barred,
            occupancy,
            cgroups_missing: missing(&view.cgroups, host),
            view,
        })
    }
}

/// Those of `cgroups` that are not there.
fn missing(cgroups: &[String], host: &Host) -> Vec<String> {
    let is_missing = |path: &&String| {
        let found = find_existing(host, path, true);
        found.is_ok_and(|found| found.missing == Some(true))
    };
    cgroups.iter().filter(is_missing).cloned().collect()
}

/// Before there is a map nothing is coloured.
fn barred(name: &str, host: &Host, control: &Control) -> Result<Vec<Barred>, HostError> {
    match control.map() {
        Ok(map) => control.group(name)?.barred(host, &map),
        Err(_) => Ok(Vec::new()),
    }
}

/// Its path for the kernel; tells of one that is not there yet.
fn existing_cgroup(host: &Host, path: &str, later: bool) -> Result<String> {
    let found = find_existing(host, path, later)
        .map_err(|error| Misuse(format!("--cgroup {path}: {error} (--later)")))?;
    if let Some(words) = found.words() {
        errln!("soloist: {words}");
    }
    Ok(found.path)
}

#[derive(Serialize)]
struct Joined {
    pid: i32,
    /// Its pages in private mappings.
    own_pages: u64,
    /// Of these, in colour.
    in_color: u64,
}

fn done(
    settings: &Settings,
    moved: Vec<moves::Moved>,
    host: &Host,
    control: &Control,
    group: &Group,
    ctx: &Ctx,
) -> Result<()> {
    let joined = |&pid: &i32| Joined::look(pid, host, control);
    let done = Done {
        group: group.view()?,
        moved,
        joined: settings.pids.iter().filter_map(joined).collect(),
        barred: barred(group.name(), host, control)?,
    };
    if let Some(words) = barred_words(group.name(), &done.group.on_nodes, &done.barred) {
        errln!("soloist: {words}");
    }
    if ctx.json {
        return ctx.print_json(&done);
    }
    outln!("{}", colors(&done.group))?;
    let colored = !(done.group.bank_set.is_empty() && done.group.llc_color.is_empty());
    for Joined {
        pid,
        own_pages,
        in_color,
    } in done.joined
    {
        let share = in_color as f64 * 100.0 / own_pages.max(1) as f64;
        outln!("process {pid}: {in_color} of {own_pages} own pages are in colour ({share:.1} %)")?;
        if in_color < own_pages && colored {
            let name = group.name();
            outln!("  `soloist recolor {pid}` moves the others in while it runs")?;
            outln!("  the others stay where they are until it frees them; started with `soloist run --group {name} -- CMD` it is in colour from its first page")?;
        }
    }
    Ok(())
}

impl Joined {
    /// None where its pages can't be read: it may have ended.
    fn look(pid: i32, host: &Host, control: &Control) -> Option<Self> {
        let map = control.map().ok()?;
        let groups = GroupColors::of_process(host, control, &map, pid).ok()?;
        let own = verify(host, pid, &map, groups).ok()?.own;
        Some(Self {
            pid,
            own_pages: own.present,
            in_color: own.in_color,
        })
    }
}

fn list(control: &Control, ctx: &Ctx) -> Result<()> {
    let mut views = control.each_group(Group::view)?;
    // Before there is a map no rule made any.
    if let Ok(map) = control.map() {
        let implicit = control.implicit_groups(&map)?;
        views.extend(implicit.iter().map(|group| group.view(&map)));
    }
    if ctx.json {
        return ctx.print_json(&views);
    }
    if views.is_empty() {
        outln!("no groups; `soloist run -- CMD` makes one for a command, `soloist group create NAME` one that stays")?;
        return Ok(());
    }
    let mut table = table([
        "GROUP",
        "BANK SETS",
        "LLC",
        "NODES",
        "MODE",
        "EXHAUST",
        "TASKS",
        "PAGES",
    ]);
    for view in &views {
        table.add_row([
            view.name.clone(),
            limits(&view.bank_set, &view.llc_color).to_owned(),
            limits(&view.llc_color, &view.bank_set).to_owned(),
            view.on_nodes.clone(),
            or_none(&view.mode),
            or_none(&view.exhaust),
            view.tasks.len().to_string(),
            view.stats.get("pages").cloned().unwrap_or_default(),
        ]);
    }
    outln!("{}", table.trim_fmt())?;
    Ok(())
}

fn show(shown: &Shown, ctx: &Ctx) -> Result<()> {
    let view = &shown.view;
    if ctx.json {
        return ctx.print_json(shown);
    }
    let tasks: Vec<String> = view.tasks.iter().map(i32::to_string).collect();
    outln!("group        {} (id {})", view.name, view.id)?;
    outln!("bank sets    {}", limits(&view.bank_set, &view.llc_color))?;
    outln!("bank colours {}", limits(&view.dram_bank, &view.llc_color))?;
    outln!("LLC colours  {}", limits(&view.llc_color, &view.bank_set))?;
    outln!("nodes        {}", view.on_nodes)?;
    if view.implicit {
        outln!("made by      {}", maker(&view.name))?;
    } else {
        show_policy(shown)?;
    }
    if let Some(occupancy) = &shown.occupancy {
        outln!("memory       {}", occupancy.words())?;
    }
    outln!("tasks        {}", tasks.join(" "))?;
    show_stats(view)?;
    if let Some(words) = barred_words(&view.name, &view.on_nodes, &shown.barred) {
        outln!("{words}")?;
    }
    Ok(())
}

fn show_stats(view: &GroupView) -> Result<()> {
    let longest = view.stats.keys().map(String::len).max().unwrap_or(0);
    let width = longest.max(12);
    for (key, value) in &view.stats {
        let value = match (key.as_str(), value.parse()) {
            ("capacity", Ok(bytes)) => format_size(bytes),
            _ => value.clone(),
        };
        outln!("{key:<width$} {value}")?;
    }
    Ok(())
}

/// What only a group with a directory has.
fn show_policy(shown: &Shown) -> Result<()> {
    let view = &shown.view;
    let reserve = view
        .reserve
        .parse()
        .map_or(view.reserve.clone(), format_size);
    outln!("mode         {}", view.mode)?;
    outln!("exhaust      {}", view.exhaust)?;
    outln!("text         {}", view.text)?;
    outln!("reserve      {reserve}")?;
    let reserved = reserved(view).unwrap_or("off".to_owned());
    outln!("bandwidth    {reserved}")?;
    for path in &view.cgroups {
        let missing = match shown.cgroups_missing.contains(path) {
            true => ", which is not there now",
            false => "",
        };
        outln!("cgroup       {path}{missing}")?;
    }
    if view.cgroups.is_empty() {
        outln!("cgroup       none")?;
    }
    Ok(())
}

/// Of `RULE#NUMBER`.
fn maker(label: &str) -> String {
    match label.rsplit_once('#') {
        Some(("mmap", _)) => "an mmap() call".to_owned(),
        Some((rule, _)) => format!("rule {rule}"),
        None => "-".to_owned(),
    }
}

fn colors(view: &GroupView) -> String {
    let reserved = reserved(view).map(|text| format!(", {text}"));
    format!(
        "group {}: bank sets {}, LLC colours {}, {}{}",
        view.name,
        limits(&view.bank_set, &view.llc_color),
        limits(&view.llc_color, &view.bank_set),
        view.mode,
        reserved.unwrap_or_default()
    )
}

/// `500MB/s on CPUs 0-1`; `None`: nothing is.
fn reserved(view: &GroupView) -> Option<String> {
    let (bandwidth, cpus) = view.reservation()?;
    Some(format!("{} on CPUs {cpus}", bandwidth.for_people()))
}

/// A group that a rule made does not say it.
fn or_none(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}
