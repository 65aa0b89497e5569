//! What differs from a [`Config`] becomes steps that make it true, each a file or directory
//! of the control interface.

use std::collections::BTreeMap;
use std::fmt;

use soloist_core::{cpu_list, parse_size, AddrMap, NumList};
use soloist_machine::{did_you_mean, KeyError};

use crate::config::check_here::{check_cpus, check_order, check_room, Change};
use crate::config::file::{Config, GroupConfig, RuleConfig};
use crate::config::order::{how_many, loosened};
use crate::config::steps::{Step, Steps, SETTINGS};
use crate::control::{
    check_colors, check_events_here, Bandwidth, Control, Group, KeyValues, Mode, LIMIT_DEFAULT,
};
use crate::HostError;

/// A reservation that is none.
const OFF: &str = "off";

/// What `wanted` takes; `prune`: what it does not name goes. Without `control`, on
/// a machine where nothing is loaded yet; without `map`, where none will be.
pub fn plan<'m>(
    wanted: &Config,
    control: Option<&Control>,
    map: impl Into<Option<&'m AddrMap>>,
    prune: bool,
) -> Result<Steps, HostError> {
    let map = map.into();
    if map.is_none() && wanted.needs_map() {
        return Err(HostError::NoMap);
    }
    let (mut now, settings) = match control {
        Some(control) => (
            Config::beside(control, |name| wanted.groups.contains_key(name))?,
            match wanted.guard.is_empty() {
                true => None,
                false => Some(control.key_values(SETTINGS)?),
            },
        ),
        None => Default::default(),
    };
    if let Some(control) = control {
        check_cpus(wanted, control)?;
        let named = wanted
            .guard
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        check_events_here(control.host(), named)?;
    }
    let changed = settings_changed(&wanted.guard, settings.as_ref())?;
    let mut plan = Steps::default();
    plan.release(&mut now, wanted, prune, changed.is_some())?;
    if prune {
        plan.vacate(&mut now, wanted, map);
    }
    if let Some((old, new)) = changed {
        plan.write(SETTINGS.to_owned(), &old, new);
    }
    plan.groups(&now, wanted, map, prune)?;
    plan.cpus(&now.cpus, &wanted.cpus, prune)?;
    check_order(wanted, &now)?;
    for (name, rule) in &wanted.rules {
        map.map_or(Ok(()), |map| check_colors(rule.colors, map))
            .map_err(|why| KeyError::of(&["rules", name], "colors", format!(" {why}")))?;
        plan.rule(name, rule, now.rules.get(name));
    }
    let named = |name: &String| wanted.groups.contains_key(name);
    plan.rest("groups", now.groups.keys(), named, prune);
    let named = |name: &String| wanted.rules.contains_key(name);
    plan.rest("rules", now.rules.keys(), named, prune);
    Ok(plan)
}

/// Settings of the guard that differ, as they are `now` and as they shall be.
fn settings_changed(
    wanted: &BTreeMap<String, String>,
    now: Option<&KeyValues>,
) -> Result<Option<(String, String)>, HostError> {
    let of_now = |key: &str| now.and_then(|now| now.get(key));
    if let Some(now) = now {
        if let Some(key) = wanted.keys().find(|key| !now.contains_key(*key)) {
            let like = did_you_mean(key, now.keys().map(String::as_str));
            let what = format!(": no such setting{like}");
            return Err(KeyError::of(&["guard"], key, what).into());
        }
    }
    let is_now = |key: &str, wanted: &String| match (of_now(key), wanted.parse::<u64>()) {
        (Some(now), Ok(number)) => now.parse() == Ok(number),
        (now, _) => now == Some(wanted),
    };
    let moved = |key: &str| wanted.get(key).is_some_and(|v| !is_now(key, v));
    // An event brings its own line, unless that is written after it.
    let differs =
        |(key, _): &(&String, &String)| moved(key) || (key.as_str() == "line" && moved("event"));
    let lines = |pick: &dyn Fn(&str, &str) -> String| -> Vec<String> {
        let pairs = wanted.iter().filter(differs);
        pairs.map(|(key, value)| pick(key, value)).collect()
    };
    let new = lines(&|key, value| format!("{key} {value}"));
    let old = lines(&|key, _| format!("{key} {}", of_now(key).map_or("", String::as_str)));
    Ok((!new.is_empty()).then(|| (old.join("\n"), new.join("\n"))))
}

impl Steps {
    fn write(&mut self, path: String, old: &str, new: String) {
        self.steps.push(Step::Write {
            path,
            old: old.to_owned(),
            new,
        });
    }

    fn groups(
        &mut self,
        now: &Config,
        wanted: &Config,
        map: Option<&AddrMap>,
        prune: bool,
    ) -> Result<(), HostError> {
        let (loose, fresh) = (loosened(now, wanted, map, prune), GroupConfig::default());
        for name in wanted
            .groups
            .keys()
            .filter(|name| !now.groups.contains_key(*name))
        {
            let path = format!("groups/{name}");
            self.steps.push(Step::Make { path });
        }
        for name in &loose {
            let (old, new) = (Mode::Exclusive.to_string(), Mode::Shareable.to_string());
            self.write(format!("groups/{name}/mode"), &old, new);
        }
        let changes: Vec<Change> = wanted
            .groups
            .iter()
            .map(|(name, wanted)| Change {
                name,
                now: now.groups.get(name).unwrap_or(&fresh),
                wanted,
            })
            .collect();
        for change in &changes {
            self.colors(change, map)?;
        }
        for change in &changes {
            let mode = match loose.contains(change.name) {
                true => Mode::Shareable,
                false => change.now.mode,
            };
            self.differ(change, "mode", &mode, &change.wanted.mode);
        }
        changes.iter().try_for_each(|change| self.means(change))
    }

    /// Its colours, and what happens to requests for pages.
    fn colors(&mut self, of: &Change, map: Option<&AddrMap>) -> Result<(), HostError> {
        let Change { name, now, wanted } = of;
        let list = |key: &str, text: &str, limit| {
            NumList::parse(text, limit)
                .map(|list| list.to_string())
                .map_err(|e| KeyError::of(&["groups", name], key, format!(" {text}: {e}")))
        };
        let (n_sets, n_llc) = how_many(map);
        let sets = list("bank_sets", &wanted.bank_sets, n_sets)?;
        let llc = list("llc", &wanted.llc, n_llc)?;
        map.map_or(Ok(()), |map| check_room(of, map))?;
        let mut old_llc = now.llc.as_str();
        self.differ(of, "exhaust", &now.exhaust, &wanted.exhaust);
        self.differ(of, "text", &now.text, &wanted.text);
        // New sets with old LLC colours may be a pair that no page has.
        let both = now.bank_sets != sets && old_llc != llc;
        if both && !sets.is_empty() && !old_llc.is_empty() {
            self.differ(of, "llc_color", &old_llc, &"");
            old_llc = "";
        }
        self.differ(of, "bank_set", &now.bank_sets, &sets);
        self.differ(of, "llc_color", &old_llc, &llc.as_str());
        Ok(())
    }

    /// What it has beside colours.
    fn means(&mut self, of: &Change) -> Result<(), HostError> {
        let Change { now, wanted, .. } = of;
        let flag = |on: bool| u8::from(on);
        let (old, new) = (flag(now.ephemeral), flag(wanted.ephemeral));
        self.differ(of, "ephemeral", &old, &new);
        let bytes = |text: &Option<String>| {
            let size = text.as_deref().map(parse_size);
            size.and_then(Result::ok).unwrap_or(0)
        };
        self.differ(of, "reserve", &bytes(&now.reserve), &bytes(&wanted.reserve));
        self.differ(of, "bandwidth", &bandwidth(now)?, &bandwidth(wanted)?);
        self.differ(of, "cgroup", &paths(&now.cgroups), &paths(&wanted.cgroups));
        Ok(())
    }

    /// An attribute of a group is written where it differs.
    fn differ<T: fmt::Display>(&mut self, of: &Change, attribute: &str, old: &T, new: &T) {
        let (old, new) = (old.to_string(), new.to_string());
        if old != new {
            self.write(format!("groups/{}/{attribute}", of.name), &old, new);
        }
    }

    /// Reservations on single processors. Those that the file does not name go by
    /// `prune`.
    fn cpus(
        &mut self,
        now: &BTreeMap<String, String>,
        wanted: &BTreeMap<String, String>,
        prune: bool,
    ) -> Result<(), HostError> {
        for (cpu, text) in wanted {
            let new = of_kernel(text)?;
            let old = now.get(cpu).map(|text| of_kernel(text)).transpose()?;
            if old.as_ref() != Some(&new) {
                self.write(reservation_of(cpu), old.as_deref().unwrap_or(OFF), new);
            }
        }
        for (cpu, text) in now.iter().filter(|(cpu, _)| !wanted.contains_key(*cpu)) {
            match prune {
                true => self.write(reservation_of(cpu), &of_kernel(text)?, OFF.to_owned()),
                false => self.others.push(format!("guard/cpu{cpu}")),
            }
        }
        Ok(())
    }

    /// Where reservations change hands, or what can be reserved changes, those
    /// that change are given up first: else one could stand in another's way, as
    /// two groups that swap processors do. The same for cgroups. In `now` they are
    /// gone.
    fn release(
        &mut self,
        now: &mut Config,
        wanted: &Config,
        prune: bool,
        settings_change: bool,
    ) -> Result<(), HostError> {
        let none = GroupConfig::default();
        let stays = |name: &String| !prune && !wanted.groups.contains_key(name);
        let wanted_group = |name: &String| wanted.groups.get(name).unwrap_or(&none);
        let mut given_up = Vec::new();
        for (name, group) in now.groups.iter().filter(|(name, _)| !stays(name)) {
            let old = bandwidth(group)?;
            if old != OFF && old != bandwidth(wanted_group(name))? {
                given_up.push((name.clone(), old));
            }
        }
        let mut cpus = Vec::new();
        for (cpu, text) in &now.cpus {
            let old = of_kernel(text)?;
            let new = match wanted.cpus.get(cpu) {
                None if !prune => continue,
                new => new.map(|text| of_kernel(text)).transpose()?,
            };
            if new.as_ref() != Some(&old) {
                cpus.push((cpu.clone(), old));
            }
        }
        let fresh = wanted.groups.iter().filter(|(name, group)| {
            let old = now.groups.get(*name).map(|group| &group.bandwidth);
            group.bandwidth.is_some() && old.is_none_or(Option::is_none)
        });
        let fresh = fresh.count()
            + wanted
                .cpus
                .keys()
                .filter(|cpu| !now.cpus.contains_key(*cpu))
                .count();
        if settings_change || given_up.len() + cpus.len() + fresh > 1 {
            for (name, old) in given_up {
                self.write(format!("groups/{name}/bandwidth"), &old, OFF.to_owned());
                if let Some(group) = now.groups.get_mut(&name) {
                    (group.bandwidth, group.cpus) = (None, None);
                }
            }
            for (cpu, old) in cpus {
                self.write(reservation_of(&cpu), &old, OFF.to_owned());
                now.cpus.remove(&cpu);
            }
        }
        let taken_over = |name: &String, path: &String| {
            let mut others = wanted.groups.iter().filter(|(other, _)| *other != name);
            others.any(|(_, other)| other.cgroups.contains(path))
        };
        for (name, group) in now.groups.iter_mut().filter(|(name, _)| !stays(name)) {
            let before = paths(&group.cgroups);
            group.cgroups.retain(|path| !taken_over(name, path));
            let kept = paths(&group.cgroups);
            if kept != before {
                self.write(format!("groups/{name}/cgroup"), &before, kept);
            }
        }
        Ok(())
    }

    /// Groups that go, which they do last, leave their colours to those that take
    /// them over: an exclusive one must be alone. In `now` they have none.
    fn vacate(&mut self, now: &mut Config, wanted: &Config, map: Option<&AddrMap>) {
        let (n_sets, n_llc) = how_many(map);
        let colors = |g: &GroupConfig| (g.bank_sets.clone(), g.llc.clone(), g.mode);
        let moving: Vec<&GroupConfig> = wanted
            .groups
            .iter()
            .filter(|(name, group)| now.groups.get(*name).map(colors) != Some(colors(group)))
            .map(|(_, group)| group)
            .collect();
        let shared = |own: &str, other: &str, limit| {
            let list = |text| NumList::parse(text, limit).ok();
            let (Some(own), Some(other)) = (list(own), list(other)) else {
                return false;
            };
            let mut numbers = own.iter();
            numbers.any(|number| other.contains(number))
        };
        let going = now.groups.iter_mut();
        for (name, group) in going.filter(|(name, _)| !wanted.groups.contains_key(*name)) {
            let in_the_way = moving.iter().any(|other| {
                shared(&group.bank_sets, &other.bank_sets, n_sets)
                    || shared(&group.llc, &other.llc, n_llc)
            });
            if !in_the_way {
                continue;
            }
            let bytes = group.reserve.take().and_then(|size| parse_size(&size).ok());
            if let Some(bytes) = bytes {
                let path = format!("groups/{name}/reserve");
                self.write(path, &bytes.to_string(), "0".to_owned());
            }
            for (key, list) in [
                ("llc_color", &mut group.llc),
                ("bank_set", &mut group.bank_sets),
            ] {
                let old = std::mem::take(list);
                if !old.is_empty() {
                    self.write(format!("groups/{name}/{key}"), &old, String::new());
                }
            }
        }
    }

    fn rule(&mut self, name: &str, wanted: &RuleConfig, now: Option<&RuleConfig>) {
        let dir = format!("rules/{name}");
        if now.is_none() {
            self.steps.push(Step::Make { path: dir.clone() });
        }
        let flag = |on: bool| u8::from(on).to_string();
        let limit = |limit: Option<u32>| limit.map_or(LIMIT_DEFAULT.to_owned(), |n| n.to_string());
        let attributes = |rule: &RuleConfig| {
            [
                ("path", rule.path.clone()),
                ("uid", rule.uid.clone()),
                ("colors", rule.colors.to_string()),
                ("limit", limit(rule.limit)),
                ("user_limit", limit(rule.user_limit)),
                ("exhaust", rule.exhaust.to_string()),
                ("realtime", flag(rule.realtime)),
                ("enabled", flag(rule.enabled)),
            ]
        };
        let olds = now.map(attributes);
        for (at, (attribute, new)) in attributes(wanted).into_iter().enumerate() {
            let born = if new == LIMIT_DEFAULT {
                LIMIT_DEFAULT
            } else {
                ""
            };
            let old = olds.as_ref().map_or(born, |olds| olds[at].1.as_str());
            if old != new {
                self.write(format!("{dir}/{attribute}"), old, new);
            }
        }
    }

    /// Those that are there and were not named.
    fn rest<'a>(
        &mut self,
        kind: &str,
        there: impl Iterator<Item = &'a String>,
        named: impl Fn(&String) -> bool,
        prune: bool,
    ) {
        for name in there.filter(|name| !named(name)) {
            let path = format!("{kind}/{name}");
            match prune {
                true => self.steps.push(Step::Remove { path }),
                false => self.others.push(path),
            }
        }
    }
}

impl GroupConfig {
    /// Makes `group` so again; its tasks stay where they are.
    pub fn put_back(&self, control: &Control, group: &Group) -> Result<(), HostError> {
        let name = group.name().to_owned();
        let config = Config {
            groups: [(name, self.clone())].into(),
            ..Config::default()
        };
        plan(&config, Some(control), control.map().ok().as_ref(), false)?.apply(control)
    }
}

/// Cgroups as the kernel takes them; their order says nothing, nor that one comes twice.
fn paths(cgroups: &[String]) -> String {
    let mut lines: Vec<&str> = cgroups.iter().map(String::as_str).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.join("\n")
}

/// The file of a processor's reservation.
fn reservation_of(cpu: &str) -> String {
    format!("guard/cpu{cpu}/bandwidth")
}

/// A processor's reservation as the kernel takes it.
fn of_kernel(text: &str) -> Result<String, HostError> {
    Ok(text.parse::<Bandwidth>()?.to_string())
}

/// A group's reservation as the kernel takes it.
fn bandwidth(group: &GroupConfig) -> Result<String, HostError> {
    match (&group.bandwidth, &group.cpus) {
        (Some(text), Some(cpus)) => {
            let bandwidth: Bandwidth = text.parse()?;
            let cpus =
                cpu_list(cpus).map_err(|e| HostError::Request(format!("cpus {cpus}: {e}")))?;
            Ok(format!("{} cpus={cpus}", bandwidth.among(cpus.len())))
        }
        _ => Ok(OFF.to_owned()),
    }
}
