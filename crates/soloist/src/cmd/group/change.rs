//! `soloist group create|set`: all of it, or nothing.

use anyhow::Result;
use serde::Serialize;
use soloist_host::config::GroupConfig;
use soloist_host::control::{
    barred_words, is_label, Barred, Control, Exhaust, Group, GroupView, Guard, Mode,
};
use soloist_host::machine::{find_existing, Host};
use soloist_host::observe::{verify, GroupColors};
use soloist_host::run::{check_lasting_name, HeldSignals};
use soloist_host::HostError;

use super::show::{barred, colors};
use super::{Reservation, Settings};
use crate::cmd::colors::ColorArgs;
use crate::cmd::moves;
use soloist_cli::{Ctx, Misuse};

impl Settings {
    pub(super) fn create(
        &self,
        name: &str,
        host: &Host,
        control: &Control,
        ctx: &Ctx,
    ) -> Result<()> {
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

    pub(super) fn set(&self, name: &str, host: &Host, control: &Control, ctx: &Ctx) -> Result<()> {
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

/// Its path for the kernel; tells of one that is not there yet.
fn existing_cgroup(host: &Host, path: &str, later: bool) -> Result<String> {
    let found = find_existing(host, path, later)
        .map_err(|error| Misuse(format!("--cgroup {path}: {error} (--later)")))?;
    if let Some(words) = found.words() {
        errln!("soloist: {words}");
    }
    Ok(found.path)
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
