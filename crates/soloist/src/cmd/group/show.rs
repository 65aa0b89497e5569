//! `soloist group list|show`.

use anyhow::Result;
use serde::Serialize;
use soloist_core::format_size;
use soloist_host::control::{barred_words, limits, Barred, Control, Group, GroupView, Occupancy};
use soloist_host::machine::{find_existing, Host};
use soloist_host::HostError;

use soloist_cli::table;
use soloist_cli::Ctx;

/// A group as `show` has it.
#[derive(Serialize)]
pub(super) struct Shown {
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
    pub(super) fn look(name: &str, host: &Host, control: &Control) -> Result<Self> {
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
pub(super) fn barred(name: &str, host: &Host, control: &Control) -> Result<Vec<Barred>, HostError> {
    match control.map() {
        Ok(map) => control.group(name)?.barred(host, &map),
        Err(_) => Ok(Vec::new()),
    }
}

pub(super) fn list(control: &Control, ctx: &Ctx) -> Result<()> {
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

pub(super) fn show(shown: &Shown, ctx: &Ctx) -> Result<()> {
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

pub(super) fn colors(view: &GroupView) -> String {
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
